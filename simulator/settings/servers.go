package settings

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// ServerList names MCP servers that may be used, or may not. Nil is a list that
// was not given.
type ServerList struct{ entries []serverEntry }

// serverEntry names servers in one way: by name, by the command line that
// starts them, or by the address, in which * stands for anything.
type serverEntry struct {
	Name    string   `json:"serverName"`
	Command []string `json:"serverCommand"`
	URL     string   `json:"serverUrl"`
}

// Server is what a [ServerList] wants to know of a server.
type Server struct {
	Name    string
	Command []string // with its arguments; empty = it is not started
	URL     string
}

// with adds the entries of another file; what is no list is passed over.
func (l *ServerList) with(raw json.RawMessage) *ServerList {
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

// Denies tells whether an entry is about the server in any way.
func (l *ServerList) Denies(s Server) bool {
	return l != nil && slices.ContainsFunc(l.entries, func(e serverEntry) bool { return e.named(s) || e.started(s) || e.reached(s) })
}

// Allows tells whether the server may be used. Where the list has command
// lines, it has to start by one of them; where it has addresses, be reached at
// one; otherwise its name decides.
func (l *ServerList) Allows(s Server) bool {
	if l == nil {
		return true
	}
	has := serverEntry.named
	switch {
	case len(s.Command) > 0 && slices.ContainsFunc(l.entries, func(e serverEntry) bool { return len(e.Command) > 0 }):
		has = serverEntry.started
	case s.URL != "" && slices.ContainsFunc(l.entries, func(e serverEntry) bool { return e.URL != "" }):
		has = serverEntry.reached
	}
	return slices.ContainsFunc(l.entries, func(e serverEntry) bool { return has(e, s) })
}

func (e serverEntry) named(s Server) bool { return e.Name != "" && e.Name == s.Name }

func (e serverEntry) started(s Server) bool {
	return len(e.Command) > 0 && slices.Equal(e.Command, s.Command)
}

func (e serverEntry) reached(s Server) bool {
	if e.URL == "" || s.URL == "" {
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(e.URL), `\*`, `.*`)
	matched, err := regexp.MatchString("^"+pattern+"$", s.URL)
	return err == nil && matched
}
