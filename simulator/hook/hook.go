// Package hook runs the hooks of an event and merges their output. Hooks are commands, HTTP calls and MCP tools from
// settings files, and callbacks of the SDK host.
//
// [Runner.Run] always returns a decision; a hook that fails, hangs or prints invalid output is never a Go error. The
// returned events have no session and no UUID; the caller adds them.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Callback asks the host to run a hook and returns the output object unchanged. If the host reports a failure, Callback returns an error.
// If the host has disconnected, the error wraps [ErrHostGone]. When ctx ends, an implementation must tell the host to stop, and return
// soon. It calls [protocol.NoteRequestSent] once the request has been written: the next callback of the same event is called after that.
type Callback func(ctx context.Context, callbackID string, input json.RawMessage, toolUseID string) (json.RawMessage, error)

// ErrHostGone means that the SDK host has disconnected, so it cannot answer a callback.
var ErrHostGone = errors.New("the SDK host has disconnected")

// Options configures a [Runner]. The zero value runs nothing.
type Options struct {
	// Settings are the hooks of settings files, lowest precedence first. The hooks of one event run concurrently; their
	// answers are merged in this order. The caller handles disableAllHooks.
	Settings []SettingsHooks

	CWD                       string // directory in which commands run, unless Input.Base sets another
	DisplayCWD                string // working directory that hook inputs report; empty means the directory in which commands run
	SessionID, TranscriptPath string
	Environ                   []string // environment of commands, and source of the variables that headers may use
	PID                       int      // CLAUDE_PID; 0 means not set
	AgentType                 string   // agent type that the main conversation runs as; empty means none
	Entrypoint                string   // CLAUDE_CODE_ENTRYPOINT; empty means "sdk-cli"
	// EnvDir is the directory of the files into which hooks write variables for the shell (CLAUDE_ENV_FILE). It is created when needed.
	// CLAUDE_ENV_FILE is set for Setup, SessionStart, CwdChanged and FileChanged. If EnvDir is empty, CLAUDE_ENV_FILE is never set.
	EnvDir string

	Callback   Callback // nil means that callbacks are skipped
	HTTPLimits protocol.HTTPHookLimits
	// MCPTool calls a tool of a connected server and returns its text. It is needed for hooks of type "mcp_tool".
	MCPTool func(ctx context.Context, server, tool string, input json.RawMessage) (string, error)
	// PromptAnswer is the model's answer to hooks of type "prompt": a JSON object with the keys ok and reason. Empty
	// means that the model answers "OK". Because that is not JSON, the hook then makes no decision.
	PromptAnswer string
	// MatchRule reports whether a call matches a hook's "if" rule. Nil means that the rule must equal the tool's name.
	MatchRule func(rule string, use protocol.ToolUse) bool

	Reports bool // enables [Runner.TakeEventStats]

	NewID          func() string    // nil means ""
	Now            func() time.Time // nil means that durations are 0
	DefaultTimeout time.Duration    // limits hooks without their own timeout; 0 means 600 s
	ProgressEvery  time.Duration    // the interval of frames with the output of a running command; 0 means 1 s, negative means never
}

// SettingsHooks is the "hooks" object of one settings file.
type SettingsHooks struct {
	Name      string // name of the file, for warnings and [Runner.ReplaceSettingsHooks]
	Raw       json.RawMessage
	Environ   []string // variables for the commands of this file, in addition to [Options.Environ]
	FromSkill bool     // true for the hooks of a skill; only these may be limited to one run per session
	Plugin    string   // plugin of the hooks; empty means none
	PluginID  string   // the plugin with its marketplace, for messages
	// Agent is the id of the agent to which the hooks belong; empty means that they belong to the
	// session. Hooks of an agent run only for its calls. Their Stop hooks run when the agent stops.
	Agent string
}

// EventInput is the event for which hooks run, with the input that the hooks receive.
type EventInput struct {
	// Base has the keys that all hook inputs share. Empty values are set from Options, and HookEventName always from Event.
	Base      protocol.HookBase
	Event     protocol.HookInput
	ToolUseID string // passed to callbacks separately; empty means a new id, with the prefix "hook-" for PostToolBatch
}

// Runner runs the hooks of a session. Its methods may be called from many goroutines.
type Runner struct {
	options    Options
	closing    chan struct{} // closed by Close to end asynchronous hooks
	asyncHooks sync.WaitGroup

	mu                      sync.Mutex
	hooksByEvent            map[string][]*hookEntry // by event: the hooks of settings before the callbacks of the host
	closed                  bool
	reports                 []protocol.HookEventStats
	commandsWithDescendants []*proc.Process // commands that have exited but left processes in the background

	asyncFrameAdded chan struct{}               // has a value after an event was added to asyncFrames
	asyncFrames     []*protocol.SystemEvent     // events of asynchronous hooks that TakeAsyncFrames has not returned yet
	asyncAnswers    []*protocol.AttachmentAdded // answers of asynchronous hooks that TakeAsyncAnswers has not returned yet
}

// New reads the hooks of the settings. Invalid entries are omitted, each with a warning.
func New(o Options) (*Runner, []protocol.StderrWarning) {
	if o.DefaultTimeout <= 0 {
		o.DefaultTimeout = 600 * time.Second
	}
	o.ProgressEvery = cmp.Or(o.ProgressEvery, time.Second)
	o.Entrypoint = cmp.Or(o.Entrypoint, "sdk-cli")
	if o.NewID == nil {
		o.NewID = func() string { return "" }
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	if o.MatchRule == nil {
		o.MatchRule = func(rule string, use protocol.ToolUse) bool { return rule == use.Name }
	}
	o.Environ = slices.Clone(o.Environ)
	r := &Runner{options: o, closing: make(chan struct{}), asyncFrameAdded: make(chan struct{}, 1), hooksByEvent: map[string][]*hookEntry{}}
	var warnings []protocol.StderrWarning
	for _, s := range o.Settings {
		warnings = append(warnings, r.addSettingsHooksLocked(s)...)
	}
	return r, warnings
}

// Add adds the hooks of another settings file. Invalid entries are omitted, each with a warning.
func (r *Runner) Add(s SettingsHooks) []protocol.StderrWarning {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addSettingsHooksLocked(s)
}

// ReplaceSettingsHooks replaces the hooks of the settings file s.Name by those in s.
func (r *Runner) ReplaceSettingsHooks(s SettingsHooks) []protocol.StderrWarning {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeHooksWhereLocked(func(e *hookEntry) bool { return e.callbackID == "" && e.settingsFile == s.Name })
	return r.addSettingsHooksLocked(s)
}

// ReplaceCallbacks replaces all callbacks of the host, by event.
func (r *Runner) ReplaceCallbacks(matchers map[string][]protocol.HookCallbackMatcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeHooksWhereLocked(func(e *hookEntry) bool { return e.callbackID != "" })
	for _, event := range slices.Sorted(maps.Keys(matchers)) {
		r.addCallbacksLocked(event, matchers[event])
	}
}

// removeHooksWhereLocked removes the hooks for which the function returns true. r.mu must be locked.
func (r *Runner) removeHooksWhereLocked(which func(*hookEntry) bool) {
	for event, entries := range r.hooksByEvent {
		r.hooksByEvent[event] = slices.DeleteFunc(slices.Clone(entries), which)
	}
}

// AddCallbacks adds callbacks of the host. They are not called for Setup hooks, or for the start and end of the session
// itself (spec: cli-contract 5.1). A matcher that is not a valid expression matches nothing.
func (r *Runner) AddCallbacks(event string, matchers []protocol.HookCallbackMatcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addCallbacksLocked(event, matchers)
}

// addCallbacksLocked does the work of [Runner.AddCallbacks]. r.mu must be locked.
func (r *Runner) addCallbacksLocked(event string, matchers []protocol.HookCallbackMatcher) {
	for _, m := range matchers {
		match, err := compileMatcher(m.Matcher)
		if err != nil {
			continue
		}
		for _, id := range m.HookCallbackIDs {
			r.hooksByEvent[event] = append(r.hooksByEvent[event], &hookEntry{matchesSubject: match, callbackID: id, timeout: r.hookTimeout(m.Timeout), failureRefuses: m.OnFailure == "block"})
		}
	}
}

// Has reports whether the event has a hook, with any matcher.
func (r *Runner) Has(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.hooksByEvent[event]) > 0
}

// Matches reports whether the event has a hook with a matcher that matches the subject.
func (r *Runner) Matches(event, subject string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.hooksByEvent[event], func(e *hookEntry) bool { return e.matches(event, subject) })
}

// HasSingleUnconditionalHook reports whether each event with this subject runs one hook: a command, URL or MCP tool.
func (r *Runner) HasSingleUnconditionalHook(event, subject string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.hooksByEvent[event] {
		switch {
		case !e.matches(event, subject):
		case e.callbackID != "", e.config.If != "", e.runsOnce, e.config.Type == "prompt", e.config.Type == "agent":
			return false
		default:
			n++
		}
	}
	return n == 1
}

// WaitForAsyncHooksAndClose waits until asynchronous hooks have finished or ctx ends. Then it kills hooks that still run, and processes that hook
// commands left in the background. Later events run no hooks.
func (r *Runner) WaitForAsyncHooksAndClose(ctx context.Context) {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if first {
		done := make(chan struct{})
		go func() { // the goroutine returns after the last job, which ends when r.closing is closed
			r.asyncHooks.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
		}
		close(r.closing)
		for _, p := range r.commandsWithDescendants {
			p.Stop(ctx)
		}
	}
	r.asyncHooks.Wait()
}

// claimMatchingHooks returns the hooks to run for an event: those whose matcher and "if" rule match. Of several equivalent
// hooks, it returns one. It marks the hooks as run, because some run only once per session. After Close it returns none.
func (r *Runner) claimMatchingHooks(event, subject string, in EventInput) []*hookEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	var chosen []*hookEntry
	seen := map[string]bool{}
	for _, e := range r.hooksByEvent[event] {
		switch key := e.equivalenceKey(); {
		case e.agentID != "" && e.agentID != in.Base.AgentID:
		case !e.matches(event, subject), e.runsOnce && e.hasRun, e.config.Type == "http" && claudecode.HookEventNamed(event).SkipsHTTP, !r.matchesCondition(e, in.Event):
		case e.callbackID != "" && (r.options.Callback == nil || isSkippedForHostCallbacks(in.Event)):
		case key != "" && seen[key]:
		default:
			seen[key] = true
			e.hasRun = true
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// matchesCondition reports whether a hook's "if" rule matches. A hook with an "if" rule never runs for an event without a tool.
func (r *Runner) matchesCondition(e *hookEntry, in protocol.HookInput) bool {
	if e.config.If == "" {
		return true
	}
	use, ok := toolUseOfInput(in)
	return ok && r.options.MatchRule(e.config.If, use)
}

func toolUseOfInput(in protocol.HookInput) (use protocol.ToolUse, ok bool) {
	switch in := in.(type) {
	case protocol.PreToolUseHookInput:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PostToolUseHookInput:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PostToolUseFailureHookInput:
		return protocol.ToolUse{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput}, true
	case protocol.PermissionRequestHookInput:
		return protocol.ToolUse{Name: in.ToolName, Input: in.ToolInput}, true
	}
	return protocol.ToolUse{}, false
}

func (r *Runner) addSettingsHooksLocked(s SettingsHooks) []protocol.StderrWarning {
	if len(bytes.TrimSpace(s.Raw)) == 0 {
		return nil
	}
	var warnings []protocol.StderrWarning
	warn := func(format string, args ...any) {
		warnings = append(warnings, protocol.StderrWarning{Text: s.Name + ": hooks" + fmt.Sprintf(format, args...)})
	}
	var table map[string]json.RawMessage
	if err := json.Unmarshal(s.Raw, &table); err != nil {
		warn(": %v", err)
		return warnings
	}
	for _, event := range slices.Sorted(maps.Keys(table)) {
		var groups []json.RawMessage
		if err := json.Unmarshal(table[event], &groups); err != nil {
			warn(".%s must be a list", event)
			continue
		}
		if s.Agent != "" && event == "Stop" {
			event = "SubagentStop"
		}
		for i, raw := range groups {
			entries, err := r.parseMatcherGroup(raw)
			if err != nil {
				warn(".%s[%d]: %v", event, i, err)
			}
			for _, e := range entries {
				e.settingsFile, e.plugin, e.pluginID, e.extraEnviron, e.runsOnce = s.Name, s.Plugin, s.PluginID, s.Environ, s.FromSkill && e.config.Once
				e.agentID = s.Agent
			}
			r.hooksByEvent[event] = append(r.hooksByEvent[event], entries...)
		}
	}
	return warnings
}

// parseMatcherGroup parses one matcher and its hooks. If a hook is invalid, it returns the valid ones and an error.
func (r *Runner) parseMatcherGroup(raw json.RawMessage) ([]*hookEntry, error) {
	var g struct {
		Matcher *string           `json:"matcher"`
		Hooks   []json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return nil, err
	}
	match, err := compileMatcher(g.Matcher)
	if err != nil {
		return nil, err
	}
	if g.Hooks == nil {
		return nil, fmt.Errorf("the key \"hooks\" is missing")
	}
	var entries []*hookEntry
	var fault error
	for i, h := range g.Hooks {
		var c protocol.HookConfig
		err := json.Unmarshal(h, &c)
		if err == nil {
			err = validateHookConfig(c)
		}
		if err != nil {
			fault = cmp.Or(fault, fmt.Errorf("hooks[%d]: %w", i, err))
			continue
		}
		entries = append(entries, &hookEntry{matchesSubject: match, config: c, timeout: r.hookTimeout(c.Timeout), failureRefuses: c.OnFailure == "block"})
	}
	return entries, fault
}

// hookTimeout converts seconds to a duration of at most one day; zero and negative values select the default.
func (r *Runner) hookTimeout(seconds float64) time.Duration {
	const most = 24 * 60 * 60 // so that time.Duration cannot overflow
	if seconds > 0 {
		return time.Duration(min(seconds, most) * float64(time.Second))
	}
	return r.options.DefaultTimeout
}
