package claudecode

import (
	_ "embed" // for events.json
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// HookOutputIntroductionPrefix begins the line with which requests introduce the output of a hook (observed since 2.1.331).
const HookOutputIntroductionPrefix = "The text below is the output of a hook"

// HTTPHookUserAgent is the name of the real CLI's HTTP client in the requests of HTTP hooks.
const HTTPHookUserAgent = "axios/1.15.2"

// IsCLIContinuationRequest reports whether a text is a request of the CLI to the model to continue.
func IsCLIContinuationRequest(messageText string) bool {
	starts := []string{"Output token limit hit.", "Your response above was ", "[Your previous response had no visible output."}
	return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(messageText, s) })
}

// HookEvent is one event at which hooks can run. The type for the input of its hooks is in package protocol. The rules
// for their output are in package hook.
type HookEvent struct {
	Name         string
	Summary      string // description in lists for hosts
	ListPosition int    // position in lists for hosts, from 0
	HasMatcher   bool   // a matcher selects which hooks run
	// CanBlock is true if exit status 2 of a hook blocks an action or gives feedback. Otherwise, status 2 is an ordinary error.
	CanBlock bool
	// IgnoresMissingScript is true if status 2 does not block when only an error about a missing file was printed, and
	// IgnoresMissingPluginScript if this applies only to hooks of plugins.
	IgnoresMissingScript, IgnoresMissingPluginScript bool
	// CanGuardPermissions is true if a hook for the event may protect permissions. Therefore the CLI ignores a whole
	// settings file if a hook for the event is invalid.
	CanGuardPermissions bool
	DecidesPermission   bool // true if the output of a hook can contain a permission decision
	TextIsContext       bool // true if printed text that is not JSON becomes context for the model
	// PrecedesPrompt is true if the event comes right before a prompt, PrecedesEnd if it comes right before the end of a reply.
	PrecedesPrompt, PrecedesEnd bool
	FramesOnly                  bool   // the output of the event's hooks appears in frames for the host, but not in the transcript
	HidesFrames                 bool   // true if no frames appear for the event's hooks, not even with --include-hook-events
	SkipsHTTP                   bool   // true if HTTP hooks of the event do not run
	OutputKeys                  string // keys in the hookSpecificOutput of the event's hooks, as a schema of package hook; empty means none
}

//go:embed events.json
var hookEventTable string

var hookEvents = tableFromJSON[HookEvent](hookEventTable)

// tableFromJSON returns a function that decodes an embedded table once. It ignores errors; tests check the tables.
func tableFromJSON[T any](table string) func() []T {
	return sync.OnceValue(func() (rows []T) {
		_ = json.Unmarshal([]byte(table), &rows)
		return rows
	})
}

// HookEvents lists the events in the order in which messages name them.
func HookEvents() []HookEvent { return slices.Clone(hookEvents()) }

// HookEventNamed returns the event with a name; the zero value means unknown.
func HookEventNamed(name string) HookEvent {
	for _, event := range hookEvents() {
		if event.Name == name {
			return event
		}
	}
	return HookEvent{}
}
