package hook

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// hookEntry is one hook of an event: from settings, or a callback of the host.
type hookEntry struct {
	matchesSubject      func(subject string) bool
	config              protocol.HookConfig // zero if it is a callback
	callbackID          string              // id of the callback; empty for a configured hook
	timeout             time.Duration
	failureRefuses      bool      // a failure of the hook counts as a refusal (onFailure "block")
	settingsFile        string    // file with the hook; empty for a callback
	plugin              string    // plugin of the hook; empty means none
	pluginID            string    // see [SettingsHooks]
	extraEnviron        []string  // environment from the file, for a command
	agentID             string    // agent that the hook belongs to; empty means the session
	runsOnce            bool      // the hook runs once per session; settings files cannot request that
	hasRun              bool      // the hook has run in this session; guarded by Runner.mu
	uncheckedNoticeOnce sync.Once // limits the notice about calls that the hook did not check to one for each session
}

// messageLabel returns the text that identifies the hook in messages, such as its command or URL.
func (e *hookEntry) messageLabel() string {
	c := e.config
	switch {
	case e.callbackID != "":
		return "callback"
	case c.Type == "http":
		return c.URL
	case c.Type == "mcp_tool":
		return c.Server + "/" + c.Tool
	case c.Type != "command":
		return c.Prompt
	case len(c.Args) > 0:
		return c.Command + " " + strings.Join(c.Args, " ")
	}
	return c.Command
}

// pluginOrSettingsOrigin returns the source of the hook as hosts see it; callbacks count as settings (observed with 2.1.329).
func (e *hookEntry) pluginOrSettingsOrigin() string {
	if e.plugin != "" {
		return protocol.PluginHookOriginPrefix + e.plugin
	}
	return "settings"
}

// canFailureBlockEvent reports whether a failure of the hook counts as a refusal. A failing hook cannot block the end of a
// conversation (observed with 2.1.329).
func (e *hookEntry) canFailureBlockEvent(event string) bool {
	return e.failureRefuses && !claudecode.HookEventNamed(event).PrecedesEnd
}

func (e *hookEntry) singleLineLabel() string {
	return strings.ReplaceAll(e.messageLabel(), "\n", "␤")
}

// matches reports whether the matcher accepts the subject of the event. An event without a subject is accepted by every
// matcher, unless the event is about a tool. A matcher that accepts "Task" also accepts "Agent", the other name of that tool.
func (e *hookEntry) matches(event, subject string) bool {
	return subject == "" && !strings.Contains(event, "Tool") || subject == "Agent" && e.matchesSubject("Task") || e.matchesSubject(subject)
}

// equivalenceKey returns a key that equivalent hooks share; empty means that no other hook is equivalent.
func (e *hookEntry) equivalenceKey() string {
	c := e.config
	switch c.Type {
	case "command":
		return strings.Join(append([]string{"command", c.Shell, c.If, c.Command}, c.Args...), "\x00")
	case "http":
		return strings.Join([]string{"http", c.If, c.URL}, "\x00")
	}
	return ""
}

func validateHookConfig(c protocol.HookConfig) error {
	need := func(key, value string) error {
		if value == "" {
			return fmt.Errorf("a %s hook needs %q", c.Type, key)
		}
		return nil
	}
	switch c.Type {
	case "command":
		return need("command", c.Command)
	case "http":
		return need("url", c.URL)
	case "mcp_tool":
		if err := need("server", c.Server); err != nil {
			return err
		}
		return need("tool", c.Tool)
	case "prompt", "agent":
		return need("prompt", c.Prompt)
	}
	return fmt.Errorf("unknown hook type %q: expected command, http, mcp_tool, prompt or agent", c.Type)
}

// compileMatcher compiles a matcher by the rules of the real CLI (spec: cli-contract 5.1): A missing matcher, "" and
// "*" match everything. Names of letters, digits and "_", separated by "|", commas or spaces, are exact alternatives.
// Any other matcher is an unanchored JavaScript regular expression.
func compileMatcher(text *string) (func(subject string) bool, error) {
	switch {
	case text == nil || *text == "" || *text == "*":
		return func(string) bool { return true }, nil
	case strings.Trim(*text, "_|, 0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
		names := strings.FieldsFunc(*text, func(c rune) bool { return c == '|' || c == ',' || c == ' ' })
		return func(subject string) bool { return slices.Contains(names, subject) }, nil
	}
	re, err := match.CompileJS(*text)
	if err != nil {
		return nil, fmt.Errorf("matcher: %w", err)
	}
	return re.MatchString, nil
}
