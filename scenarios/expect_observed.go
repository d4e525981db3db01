package scenarios

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/match"
)

// matchesCall reports whether the expectation matches the server and the tool in c.name, which has the form "server/tool".
func (m *ExpectMCP) matchesCall(c observedCall) bool {
	server, tool, _ := strings.Cut(c.name, "/")
	return matchesRawOrCanonicalName(server, m.Server) && (m.Tool == "" || matchesRawOrCanonicalName(tool, m.Tool))
}

func (m *ExpectMCP) expectsNotification() bool {
	return m.Progress != "" || m.Log != "" || m.Level != ""
}

func (m *ExpectMCP) matchesNotification(n ObservedNotification) bool {
	if !matchesRawOrCanonicalName(n.Server, m.Server) || (n.Level == "") != (m.Progress != "") {
		return false
	}
	if m.Progress != "" {
		return (m.Tool == "" || matchesRawOrCanonicalName(n.Tool, m.Tool)) && globMatchesWholeText(m.Progress, n.Text)
	}
	return (m.Level == "" || m.Level == n.Level) && (m.Log == "" || globMatchesWholeText(m.Log, n.Text))
}

func (m *ExpectMCP) expectedEventText() string {
	of := "the MCP server " + m.Server
	if m.Tool != "" {
		of = "the MCP tool " + m.Server + "/" + m.Tool
	}
	switch {
	case m.Progress != "":
		return "a progress message of " + of + " like " + strconv.Quote(m.Progress)
	case m.Log != "" && m.Level != "":
		return "a log message of level " + m.Level + " of " + of + " like " + strconv.Quote(m.Log)
	case m.Log != "":
		return "a log message of " + of + " like " + strconv.Quote(m.Log)
	case m.Level != "":
		return "a log message of level " + m.Level + " of " + of
	}
	return "a call to " + of
}

// describeOtherNotifications lists up to three notifications that the server sent instead.
func (m *ExpectMCP) describeOtherNotifications(observedNotifications []ObservedNotification) (messageSuffix string) {
	const most = 3
	var texts []string
	for _, n := range observedNotifications {
		if text := strconv.Quote(n.Text); matchesRawOrCanonicalName(n.Server, m.Server) && (n.Level == "") == (m.Progress != "") && !slices.Contains(texts, text) && len(texts) < most {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "; it said " + strings.Join(texts, ", ")
}

// ObservedOAuthRequest is a request to the authorization server of a fixture.
type ObservedOAuthRequest struct {
	Request, Grant, Client string
	Scopes                 []string
	Result                 string
}

func (x *ExpectOAuth) matches(r ObservedOAuthRequest) bool {
	return r.Request == cmp.Or(x.Request, "token") && (x.Grant == "" || x.Grant == r.Grant) && (x.Client == "" || globMatchesWholeText(x.Client, r.Client)) &&
		(x.Scope == "" || slices.Contains(r.Scopes, x.Scope)) && (x.Result == "" || x.Result == r.Result)
}

func (x *ExpectOAuth) expectedEventText() string {
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

func (x *ExpectOAuth) listObservedRequests(seen []ObservedOAuthRequest) string {
	var others []string
	for _, r := range seen {
		if text := strings.TrimSpace(r.Request+" "+r.Grant) + " -> " + r.Result; !slices.Contains(others, text) {
			others = append(others, text)
		}
	}
	if others == nil {
		return "; there was no OAuth request"
	}
	return "; there were " + strings.Join(others, ", ")
}

// globMatchesWholeText reports whether a glob matches a text. An invalid glob matches nothing; the compiler has reported it.
func globMatchesWholeText(glob, text string) bool {
	g, err := match.Glob(glob)
	if err != nil {
		return false
	}
	_, ok := g.Match(text)
	return ok
}

// ObservedDialog is a state in which the interactive screen waited for the user.
type ObservedDialog struct {
	State  string // "permission", "question", "plan" or "dialog"
	Kind   string // refines the state, such as "bash" or "trust"
	Answer string // "yes" or "no"
}
