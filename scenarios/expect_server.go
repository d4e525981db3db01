package scenarios

import (
	"slices"
	"strconv"
	"strings"
)

// matchesCall reports whether the expectation is about a call, "server/tool".
func (m *ExpectMCP) matchesCall(c observedCall) bool {
	server, tool, _ := strings.Cut(c.name, "/")
	return matchesToolName(server, m.Server) && (m.Tool == "" || matchesToolName(tool, m.Tool))
}

// expectsNotification reports whether the expectation is about what the server says, not about calls.
func (m *ExpectMCP) expectsNotification() bool {
	return m.Progress != "" || m.Log != "" || m.Level != ""
}

// matchesNotification reports whether the expectation is about a notification.
func (m *ExpectMCP) matchesNotification(n ObservedNotification) bool {
	if !matchesToolName(n.Server, m.Server) || (n.Level == "") != (m.Progress != "") {
		return false
	}
	if m.Progress != "" {
		return (m.Tool == "" || matchesToolName(n.Tool, m.Tool)) && globMatches(m.Progress, n.Text)
	}
	return (m.Level == "" || m.Level == n.Level) && (m.Log == "" || globMatches(m.Log, n.Text))
}

// subject describes what the expectation is about.
func (m *ExpectMCP) subject() string {
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

// describeOthers lists the actual notifications of the server.
func (m *ExpectMCP) describeOthers(notified []ObservedNotification) string {
	const most = 3
	var texts []string
	for _, n := range notified {
		if text := strconv.Quote(n.Text); matchesToolName(n.Server, m.Server) && (n.Level == "") == (m.Progress != "") && !slices.Contains(texts, text) && len(texts) < most {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "; it said " + strings.Join(texts, ", ")
}
