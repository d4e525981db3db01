package hook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/jspattern"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// entry is one hook of an event: a configured one, or a callback of the host.
type entry struct {
	match      func(subject string) bool
	config     protocol.HookConfig // zero for a callback
	callback   string              // id; empty for a configured hook
	timeout    time.Duration
	mustAnswer bool     // onFailure "block"
	source     string   // of the file; empty for a callback
	plugin     string   // whose hook this is; empty = of none
	environ    []string // of the file, for a command
	once       bool     // it runs once a session; settings files cannot ask for it
	used       bool     // ran before; guarded by Runner.mu
}

// label is how a hook is named in front of its stderr.
func (e *entry) label() string {
	c := e.config
	switch {
	case e.callback != "":
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

// origin is how hosts are told where the hook comes from; callbacks are settings
// to them (observed with 2.1.329).
func (e *entry) origin() string {
	if e.plugin != "" {
		return protocol.PluginHookPrefix + e.plugin
	}
	return "settings"
}

// mustBlock reports whether a failure of the hook is a refusal. The end of a
// conversation cannot be refused that way (observed with 2.1.329).
func (e *entry) mustBlock(event string) bool { return e.mustAnswer && !ends(event) }

// shown is the label as transcripts write it, on one line.
func (e *entry) shown() string { return strings.ReplaceAll(e.label(), "\n", "␤") }

// matches compares the matcher with what the event is about; events about
// nothing in particular match whatever it says. The agent tool has two names.
func (e *entry) matches(event, subject string) bool {
	switch {
	case subject == "" && !strings.Contains(event, "Tool"):
		return true
	case subject == "Agent" && e.match("Task"):
		return true
	}
	return e.match(subject)
}

// identity is equal for hooks that would do the same; empty = never equal.
func (e *entry) identity() string {
	c := e.config
	switch c.Type {
	case "command":
		return strings.Join(append([]string{"command", c.Shell, c.If, c.Command}, c.Args...), "\x00")
	case "http":
		return strings.Join([]string{"http", c.If, c.URL}, "\x00")
	}
	return ""
}

func check(c protocol.HookConfig) error {
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
	return fmt.Errorf("unknown type %q", c.Type)
}

// compileMatcher follows the rule of the real CLI (spec: cli-contract 5.1):
// nothing, "" and "*" match all; letters, digits, "_" with "|" or commas between
// them are exact alternatives; anything else is an unanchored regular expression
// of JavaScript.
func compileMatcher(text *string) (func(subject string) bool, error) {
	switch {
	case text == nil || *text == "" || *text == "*":
		return func(string) bool { return true }, nil
	case strings.IndexFunc(*text, notPlain) < 0:
		names := strings.FieldsFunc(*text, func(c rune) bool { return c == '|' || c == ',' || c == ' ' })
		return func(subject string) bool { return slices.Contains(names, subject) }, nil
	}
	re, err := jspattern.Compile(*text)
	if err != nil {
		return nil, fmt.Errorf("matcher: %w", err)
	}
	return re.MatchString, nil
}

func notPlain(c rune) bool {
	plain := c == '_' || c == '|' || c == ',' || c == ' ' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	return !plain
}
