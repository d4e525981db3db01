package hook

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Listing is the list of hooks from settings files for a host (SDK type SDKControlGetHooksListingResponse).
type Listing struct {
	Events  []EventWithHookCount `json:"events"`
	Hooks   []ListedHook         `json:"hooks"`
	Catalog []EventInfo          `json:"eventCatalog"`
	Policy  Policy               `json:"policy"`
}

// EventInfo is an event that may have hooks.
type EventInfo struct {
	Name            string `json:"name"`
	Summary         string `json:"summary"`
	SupportsMatcher bool   `json:"supportsMatcher"`
}

// EventWithHookCount is a hook event with the number of hooks that are configured for it.
type EventWithHookCount struct {
	EventInfo
	Count int `json:"hookCount"`
}

// ListedHook is one hook of a settings file.
type ListedHook struct {
	Event         string        `json:"event"`
	Matcher       string        `json:"matcher"` // empty means none
	Source        string        `json:"source"`
	SourceLabel   string        `json:"sourceLabel"`
	Type          string        `json:"type"`
	DisplayText   string        `json:"displayText"`
	CommandText   string        `json:"commandText"`
	ContentLabel  string        `json:"contentLabel"`
	Condition     string        `json:"condition,omitempty"`
	Timeout       float64       `json:"timeout,omitempty"` // seconds
	StatusMessage string        `json:"statusMessage,omitempty"`
	Once          bool          `json:"runsOnce,omitempty"`
	Background    bool          `json:"runsInBackground,omitempty"`
	Disabled      bool          `json:"disabled,omitempty"`
	EditableHook  *EditableHook `json:"editable,omitempty"` // set for hooks in user, project and local settings
}

// EditableHook is a hook as written in its settings file, but without the values of HTTP headers.
type EditableHook struct {
	Matcher  string          `json:"matcher"`
	Config   json.RawMessage `json:"config"`
	Redacted bool            `json:"headersRedacted,omitempty"`
}

// Policy specifies which settings disable hooks.
type Policy struct {
	DisabledByPolicy bool `json:"disabledByPolicy"`
	ManagedOnly      bool `json:"managedOnly"`
	PluginOnly       bool `json:"pluginOnly"`
	AllDisabled      bool `json:"allDisabled"`
	PolicyHooks      int  `json:"policyHookCount"`
}

// List lists the hooks of settings files. The sources must be ordered from the lowest to the highest
// precedence. Events are in the order of the real CLI. The matchers of an event are in the order in which
// they first occur in the files (observed with 2.1.329). Invalid files and unknown events are omitted.
func List(sourcesLowestFirst []SettingsHooks, reportedPolicy Policy) Listing {
	l := Listing{Events: []EventWithHookCount{}, Hooks: []ListedHook{}, Catalog: eventCatalog(), Policy: reportedPolicy}
	for _, event := range l.Catalog {
		rows := listedHooks(event.Name, sourcesLowestFirst)
		matched := func(h ListedHook) bool { return h.Matcher != "" }
		for i := range rows {
			rows[i].Disabled = reportedPolicy.AllDisabled
			if rows[i].Source == "policySettings" {
				l.Policy.PolicyHooks++
			}
		}
		if len(rows) > 0 {
			event.SupportsMatcher = event.SupportsMatcher || slices.ContainsFunc(rows, matched)
			l.Events = append(l.Events, EventWithHookCount{event, len(rows)})
			l.Hooks = append(l.Hooks, rows...)
		}
	}
	return l
}

func listedHooks(event string, sources []SettingsHooks) []ListedHook {
	var rows []ListedHook
	first := map[string]int{} // position of each matcher in the list, in order of first occurrence
	for i, s := range sources {
		var groups map[string][]struct {
			Matcher string            `json:"matcher"`
			Hooks   []json.RawMessage `json:"hooks"`
		}
		_ = json.Unmarshal(s.Raw, &groups) // on an error, the entries decoded so far are listed
		for _, g := range groups[event] {
			if _, seen := first[g.Matcher]; !seen {
				first[g.Matcher] = i
			}
			for _, raw := range g.Hooks {
				rows = append(rows, listedHook(event, g.Matcher, s.Name, raw))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b ListedHook) int {
		return cmp.Or(first[a.Matcher]-first[b.Matcher], strings.Compare(a.Matcher, b.Matcher))
	})
	return rows
}

func listedHook(event, matcher, source string, raw json.RawMessage) ListedHook {
	var c protocol.HookConfig
	_ = json.Unmarshal(raw, &c) // on an error, the fields decoded so far are shown
	text := (&hookEntry{config: c}).messageLabel()
	contentLabels := map[string]string{"command": "Command", "http": "URL", "mcp_tool": "MCP tool"}
	sourceLabels := map[string]string{
		"userSettings": "User settings (~/.claude/settings.json)", "projectSettings": "Project settings (.claude/settings.json)",
		"localSettings": "Local settings (.claude/settings.local.json)", "flagSettings": "Startup settings (--settings option)",
	}
	h := ListedHook{
		Event: event, Matcher: matcher, Source: source, SourceLabel: cmp.Or(sourceLabels[source], source), Type: c.Type,
		DisplayText: strings.ReplaceAll(cmp.Or(c.StatusMessage, text), "\n", "␤"), CommandText: text,
		ContentLabel: cmp.Or(contentLabels[c.Type], "Prompt"), Condition: c.If, Timeout: c.Timeout, StatusMessage: c.StatusMessage,
		Once: c.Once, Background: c.Async || c.AsyncRewake,
	}
	if sourceLabels[source] == "" || source == "flagSettings" {
		return h
	}
	h.EditableHook = &EditableHook{Matcher: matcher, Config: raw}
	if len(c.Headers) > 0 {
		h.EditableHook.Config, h.EditableHook.Redacted = withoutHeaderValues(raw), true
	}
	return h
}

// withoutHeaderValues removes the values of HTTP headers, which may be secrets.
func withoutHeaderValues(hookConfig json.RawMessage) json.RawMessage {
	var config map[string]any
	if json.Unmarshal(hookConfig, &config) != nil {
		return nil
	}
	if headers, ok := config["headers"].(map[string]any); ok {
		for name := range headers {
			headers[name] = ""
		}
	}
	out, err := protocol.Marshal(config)
	if err != nil {
		return nil
	}
	return out
}

func eventCatalog() []EventInfo {
	events := claudecode.HookEvents()
	slices.SortFunc(events, func(a, b claudecode.HookEvent) int { return a.ListPosition - b.ListPosition })
	list := make([]EventInfo, len(events))
	for i, e := range events {
		list[i] = EventInfo{e.Name, e.Summary, e.HasMatcher}
	}
	return list
}
