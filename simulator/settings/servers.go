package settings

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// ServerList selects MCP servers that are allowed or denied. Nil means that no list is set.
type ServerList struct{ entries []serverEntry }

// serverEntry selects servers by name, by the command line that starts them, or by URL, in which * matches any text.
type serverEntry struct {
	Name    string   `json:"serverName"`
	Command []string `json:"serverCommand"`
	URL     string   `json:"serverUrl"`
}

// Server contains the properties of a server that a [ServerList] checks.
type Server struct {
	Name    string
	Command []string // command and arguments; empty means that it is not a stdio server
	URL     string
}

// appendEntries adds the entries of another file; a value that is not a list is ignored.
func (l *ServerList) appendEntries(raw json.RawMessage) *ServerList {
	var entries []serverEntry
	if raw == nil || json.Unmarshal(raw, &entries) != nil {
		return l
	}
	out := &ServerList{entries: entries}
	if l != nil {
		out.entries = append(slices.Clone(l.entries), entries...)
	}
	return out
}

// Denies reports whether an entry matches the server.
func (l *ServerList) Denies(s Server) bool {
	return l != nil && slices.ContainsFunc(l.entries, func(e serverEntry) bool { return e.matchesName(s) || e.matchesCommand(s) || e.matchesURL(s) })
}

// Allows reports whether the server may be used. If the list has command lines, a stdio server must match one of
// them; if it has URLs, a remote server must match one; otherwise one of the names must match.
func (l *ServerList) Allows(s Server) bool {
	if l == nil {
		return true
	}
	has := serverEntry.matchesName
	switch {
	case len(s.Command) > 0 && slices.ContainsFunc(l.entries, func(e serverEntry) bool { return len(e.Command) > 0 }):
		has = serverEntry.matchesCommand
	case s.URL != "" && slices.ContainsFunc(l.entries, func(e serverEntry) bool { return e.URL != "" }):
		has = serverEntry.matchesURL
	}
	return slices.ContainsFunc(l.entries, func(e serverEntry) bool { return has(e, s) })
}

func (e serverEntry) matchesName(s Server) bool { return e.Name != "" && e.Name == s.Name }

func (e serverEntry) matchesCommand(s Server) bool {
	return len(e.Command) > 0 && slices.Equal(e.Command, s.Command)
}

func (e serverEntry) matchesURL(s Server) bool {
	if e.URL == "" || s.URL == "" {
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(e.URL), `\*`, `.*`)
	matched, err := regexp.MatchString("^"+pattern+"$", s.URL)
	return err == nil && matched
}
