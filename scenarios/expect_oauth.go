package scenarios

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/match"
)

// ObservedOAuthRequest is a request to the authorization server of a fixture.
type ObservedOAuthRequest struct {
	Request, Grant, Client string
	Scopes                 []string
	Result                 string
}

// matches reports whether the expectation is about a request.
func (x *ExpectOAuth) matches(r ObservedOAuthRequest) bool {
	return r.Request == cmp.Or(x.Request, "token") && (x.Grant == "" || x.Grant == r.Grant) && (x.Client == "" || globMatches(x.Client, r.Client)) &&
		(x.Scope == "" || slices.Contains(r.Scopes, x.Scope)) && (x.Result == "" || x.Result == r.Result)
}

// subject names what is expected.
func (x *ExpectOAuth) subject() string {
	var text strings.Builder
	text.WriteString("an OAuth " + cmp.Or(x.Request, "token") + " request")
	for _, part := range []struct{ word, value string }{
		{"with grant", x.Grant}, {"of client", x.Client}, {"with scope", x.Scope}, {"with result", x.Result},
	} {
		if part.value != "" {
			text.WriteString(" " + part.word + " " + part.value)
		}
	}
	return text.String()
}

// nearMiss lists the actual requests.
func (x *ExpectOAuth) nearMiss(seen []ObservedOAuthRequest) string {
	var others []string
	for _, r := range seen {
		text := strings.TrimSpace(r.Request+" "+r.Grant) + " -> " + r.Result
		if !slices.Contains(others, text) {
			others = append(others, text)
		}
	}
	if others == nil {
		return "; there was no OAuth request"
	}
	return "; there were " + strings.Join(others, ", ")
}

// globMatches matches a glob that was checked when the scenario was compiled.
func globMatches(glob, text string) bool {
	g, err := match.Glob(glob)
	if err != nil {
		return false
	}
	_, ok := g.Match(text)
	return ok
}
