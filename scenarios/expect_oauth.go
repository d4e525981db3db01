package scenarios

import (
	"cmp"
	"slices"
	"strings"
)

// ExpectOAuth is a request to the authorization server of a fixture, or one that
// the fixture refused.
type ExpectOAuth struct {
	// Request is what was asked for; default `token`.
	Request string `toml:"request" enum:"register,authorize,token,access" default:"token"`
	// Grant is the grant type of a token request; absent = any.
	Grant string `toml:"grant" enum:"authorization_code,refresh_token,client_credentials"`
	// Client is the client_id, or a glob; absent = any.
	Client string `toml:"client" empty:"no"`
	// Scope must be among the scopes that were granted; absent = any.
	Scope string `toml:"scope" empty:"no"`
	// Result is `ok` or the error code; absent = any.
	Result string `toml:"result" empty:"no"`
	// Count is how often, as in `times`.
	Count *Times `toml:"count" schema:"integer|string"`
}

// OAuthSeen is a request to the authorization server of a fixture.
type OAuthSeen struct {
	Request, Grant, Client string
	Scopes                 []string
	Result                 string
}

// ReadFixtures says that what fixtures write was read too. Without it expectations
// of OAuth are not judged: a process by itself knows nothing of them.
func (s *Seen) ReadFixtures() { s.fixtures = true }

// OAuth records a request to an authorization server.
func (s *Seen) OAuth(r OAuthSeen) { s.oauth = append(s.oauth, r) }

// matches reports whether the expectation speaks of a request.
func (x *ExpectOAuth) matches(r OAuthSeen) bool {
	return r.Request == cmp.Or(x.Request, "token") && (x.Grant == "" || x.Grant == r.Grant) && (x.Client == "" || globMatches(x.Client, r.Client)) &&
		(x.Scope == "" || slices.Contains(r.Scopes, x.Scope)) && (x.Result == "" || x.Result == r.Result)
}

// subject names what is expected.
func (x *ExpectOAuth) subject() string {
	text := "an OAuth " + cmp.Or(x.Request, "token") + " request"
	for _, part := range []struct{ word, value string }{
		{"with grant", x.Grant}, {"of client", x.Client}, {"with scope", x.Scope}, {"with result", x.Result},
	} {
		if part.value != "" {
			text += " " + part.word + " " + part.value
		}
	}
	return text
}

// almost tells which requests there were instead.
func (x *ExpectOAuth) almost(seen []OAuthSeen) string {
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
