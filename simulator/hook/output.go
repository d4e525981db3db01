package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type wrongHookEventNameError struct{ wantEvent, gotEvent, wholeMessage string }

func (e *wrongHookEventNameError) Error() string {
	return fmt.Sprintf("Hook returned incorrect event name: expected '%s' but got '%s'. Full stdout: %s", e.wantEvent, e.gotEvent, e.wholeMessage)
}

func parseJSONObjectText(text string) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// parseOutput parses a hook's output object; empty text and null count as an empty one. With a [wrongHookEventNameError], it also returns
// the output.
func parseOutput(event string, raw json.RawMessage) (protocol.HookOutput, error) {
	var object map[string]json.RawMessage
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return protocol.HookOutput{}, nil
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return protocol.HookOutput{}, fmt.Errorf("hook output: %w", err)
	}
	if string(object["async"]) == "true" {
		return protocol.HookOutput{Async: true}, nil // the other keys of the output are ignored
	}
	if err := validateKeysAndTypes("", hookOutputSchema, object); err != nil {
		return protocol.HookOutput{}, err
	}
	var out protocol.HookOutput
	err := json.Unmarshal(raw, &out)
	if _, stray := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !stray { // keys that belong to other events may have any type
		return protocol.HookOutput{}, fmt.Errorf("hook output: %w", err)
	}
	if out.Specific == nil || out.Specific.HookEventName == event {
		return out, nil
	}
	var full bytes.Buffer
	if err := json.Indent(&full, raw, "", "  "); err != nil {
		return protocol.HookOutput{}, err
	}
	return out, &wrongHookEventNameError{event, out.Specific.HookEventName, full.String()}
}

// A schema describes the keys of an object, in the order in which they are checked. A key is followed
// by ":" and its type; "!" marks a required key. A type is boolean, string, record (any object), a
// choice such as allow|deny, the name of another schema, or [] and the type of the elements of a list.
const (
	hookOutputSchema = "continue:boolean suppressOutput:boolean stopReason:string decision:approve|block reason:string " +
		"systemMessage:string terminalSequence:string hookSpecificOutput:specific"
	permissionRulesUpdateSchema       = "behavior!:allow|deny|ask rules!:[]rule destination!:" + updateDestinations
	permissionModeUpdateSchema        = "mode!:acceptEdits|auto|bypassPermissions|default|dontAsk|plan destination!:" + updateDestinations
	permissionDirectoriesUpdateSchema = "directories!:[]string destination!:" + updateDestinations
)

// updateDestinations is the type of the key `destination` in these schemas.
const updateDestinations = "userSettings|projectSettings|localSettings|session|cliArg"

// shapeError describes the first value in an output whose type is wrong.
type shapeError struct{ path, problem string }

func (e *shapeError) Error() string { return e.path + e.problem }

func newShapeError(path, problem string) error { return &shapeError{path, problem} }

// validateKeysAndTypes checks an object. path prefixes its keys in errors: "" or, for a nested object, a path ending with a dot.
func validateKeysAndTypes(path, keysAndTypes string, object map[string]json.RawMessage) error {
	for field := range strings.FieldsSeq(keysAndTypes) {
		name, kind, _ := strings.Cut(field, ":")
		name, must := strings.CutSuffix(name, "!")
		value, is := object[name]
		if !is && !must {
			continue
		}
		if err := validateValueType(path+name, kind, value); err != nil {
			return err
		}
	}
	return nil
}

// validateValueType checks the type of one value; kind is the required type as written in a schema. A nil value is missing.
func validateValueType(path, kind string, value json.RawMessage) error {
	if strings.Contains(kind, "|") {
		valid := strings.Split(kind, "|")
		if text, is := plainjson.StringValue(value); is && slices.Contains(valid, text) {
			return nil
		}
		if strings.HasSuffix(path, ".behavior") {
			return newShapeError(path, `: expected one of "`+strings.Join(valid, `" | "`)+`"`)
		}
		return newShapeError(path, `: Invalid option: expected one of "`+strings.Join(valid, `"|"`)+`"`)
	}
	item, list := strings.CutPrefix(kind, "[]")
	got, want := plainjson.TypeOf(value), kind
	switch {
	case list:
		want = "array"
	case kind != "boolean" && kind != "string" && kind != "record":
		want = "object"
	}
	if got != want && (want != "record" || got != "object") {
		text := ": expected " + want + ", received " + got
		if kind == "decision" {
			text += ` (PermissionRequest decision must be {"behavior": "allow"} or {"behavior": "deny", "message": "..."})`
		}
		return newShapeError(path, text)
	}
	switch got {
	case "array":
		for i, one := range plainjson.DecodeIgnoringErrors[[]json.RawMessage](value) {
			if err := validateValueType(path+"."+strconv.Itoa(i), item, one); err != nil {
				return err
			}
		}
	case "object":
		object := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](value)
		schema, err := expectedKeysAndTypes(path, kind, object)
		if err != nil {
			return err
		}
		return validateKeysAndTypes(path+".", schema, object)
	}
	return nil
}

// expectedKeysAndTypes returns the schema of an object. For some kinds, it depends on the content of the object.
func expectedKeysAndTypes(path, kind string, object map[string]json.RawMessage) (keysAndTypes string, err error) {
	switch kind {
	case "specific":
		return schemaOfHookSpecificOutput(path, object)
	case "decision":
		if behavior, _ := plainjson.StringValue(object["behavior"]); behavior == "deny" {
			return "message:string interrupt:boolean", nil
		}
		return "behavior!:allow|deny updatedInput:record updatedPermissions:[]update", nil
	case "update":
		switch updateType, _ := plainjson.StringValue(object["type"]); updateType {
		case "addRules", "replaceRules", "removeRules":
			return permissionRulesUpdateSchema, nil
		case "setMode":
			return permissionModeUpdateSchema, nil
		case "addDirectories", "removeDirectories":
			return permissionDirectoriesUpdateSchema, nil
		}
		return "", newShapeError(path+".type", ": Invalid discriminator value. "+
			"Expected 'addRules' | 'replaceRules' | 'removeRules' | 'setMode' | 'addDirectories' | 'removeDirectories'")
	case "rule":
		return "toolName!:string ruleContent:string", nil
	}
	return "", nil // a record may have any keys
}

func schemaOfHookSpecificOutput(path string, object map[string]json.RawMessage) (keysAndTypes string, err error) {
	event, is := object["hookEventName"]
	if !is {
		return "", newShapeError(path, ` is missing required field "hookEventName"`)
	}
	name, _ := plainjson.StringValue(event)
	if schema := claudecode.HookEventNamed(name).OutputKeys; schema != "" {
		return schema, nil
	}
	return "", newShapeError(path+".hookEventName", `: expected one of "PreToolUse" | "UserPromptSubmit" | "UserPromptExpansion" | "SessionStart" | "Setup" | "PreModelSwitch" | …`)
}

// isAsyncRequest reports whether a line of a command's output asks to run it in the background. The real CLI 2.1.330 ignores
// the time limit (asyncTimeout) in the request.
func isAsyncRequest(line string) bool {
	var out protocol.HookOutput
	return strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &out) == nil && out.Async
}

var inputPathPlaceholderPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z0-9_.]+)\}`) })

// expandPlaceholders copies a JSON tree and replaces placeholders in its strings.
func expandPlaceholders(tree, values any) any {
	switch t := tree.(type) {
	case string:
		return inputPathPlaceholderPattern().ReplaceAllStringFunc(t, func(m string) string { return valueTextAtDottedPath(values, m[2:len(m)-1]) })
	case []any:
		out := make([]any, len(t))
		for i, v := range t {
			out[i] = expandPlaceholders(v, values)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, v := range t {
			out[k] = expandPlaceholders(v, values)
		}
		return out
	}
	return tree
}

// valueTextAtDottedPath follows a dotted path; it returns "" if the value is missing.
func valueTextAtDottedPath(jsonTree any, dottedPath string) string {
	for key := range strings.SplitSeq(dottedPath, ".") {
		m, ok := jsonTree.(map[string]any)
		if !ok {
			return ""
		}
		jsonTree = m[key]
	}
	switch v := jsonTree.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := protocol.Marshal(jsonTree)
	if err != nil {
		return ""
	}
	return string(text)
}

// blockExitCode is the exit status of a command that blocks a call, a prompt or a turn's end (spec: cli-contract 5.5).
const blockExitCode = 2

type eventRun struct {
	event                     string
	hookName                  string // "EVENT" or "EVENT:SUBJECT"
	toolUseID, cwd, sessionID string
	stdin                     []byte
	promptText                string        // text of the prompt; set only for events about a prompt
	effort                    string        // effort level; empty means that the event has none
	slowestDenial             time.Duration // duration of the slowest hook that refused the call
	startShown                bool          // the hook_started events have been shown
	inAgent                   bool          // the event belongs to a sub-agent, whose hooks show no messages
	hasBareDenials            bool          // a denial in JSON is shown without the name of the hook
	attachmentIDs             []string      // ids for attachments, one for each hook; nil means that all attachments have the id toolUseID
}

type hookResult struct {
	entry     *hookEntry
	id        string // id of the hook in its frames
	output    protocol.HookOutput
	plainText string // standard output that is not a JSON object; empty otherwise
	// refusalReasonForUser is the reason of a hook that blocked with exit status 2, as users see it: after the label of the
	// hook. rawReason is the same reason without the label.
	refusalReasonForUser, rawReason string
	hasRefused                      bool
	stdout, stderr                  string
	outputsWhileRunning             []partialOutput // output while the hook was running
	exitCode                        *int            // nil means that the hook was killed
	outcome                         runOutcome
	missingVerdictReason            noVerdictReason
	timedOut                        bool
	wasKilled                       bool             // the hook was killed by a signal
	detached                        *detachedCommand // the hook runs in the background, so it gives no decision; otherwise nil
	duration                        time.Duration
}

type partialOutput struct{ stdout, stderr string }

type runOutcome string

const (
	outcomeSuccess   runOutcome = "success"
	outcomeError     runOutcome = "error"
	outcomeCancelled runOutcome = "cancelled"
)

type noVerdictReason int

const (
	verdictGiven           noVerdictReason = iota
	noVerdictBecauseFailed                 // the hook ran and failed
	noVerdictBecauseCommandNotFound
	noVerdictBecauseTimedOut
	noVerdictBecauseInvalidOutput // the answer was invalid; stderr contains the message
	noVerdictBecauseHostGone
	noVerdictBecauseTypeNotSimulated // a hook type that is not simulated
)

// interpretSuccessfulOutput interprets the output of a successful configured hook: a JSON object is parsed, any other output is plain text.
func (a *hookResult) interpretSuccessfulOutput(event string) {
	object, ok := parseJSONObjectText(a.stdout)
	if !ok {
		a.plainText = a.stdout
		return
	}
	out, err := parseOutput(event, object)
	if _, isForOtherEvent := errors.AsType[*wrongHookEventNameError](err); isForOtherEvent && out.Decision == "block" {
		out.Specific, err = &protocol.HookSpecificOutput{SuppressOriginalPrompt: true}, nil // only the refusal counts
	}
	if err != nil {
		a.outcome, a.missingVerdictReason = outcomeError, noVerdictBecauseInvalidOutput
		a.stderr = invalidOutputMessage(object, err)
		if _, read := errors.AsType[*shapeError](err); !read { // the CLI treats a hook with invalid JSON as one that did not run
			a.stdout, a.exitCode = "", new(1)
		}
		return
	}
	a.output = out
}

func timeoutOrErrorResult(ctx, timeoutCtx context.Context, err error) hookResult {
	if timeoutCtx.Err() != nil && ctx.Err() == nil {
		return hookResult{outcome: outcomeCancelled, missingVerdictReason: noVerdictBecauseTimedOut, timedOut: true}
	}
	return hookResult{outcome: outcomeError, missingVerdictReason: noVerdictBecauseFailed, stderr: err.Error()}
}

const maxOutputBytes = 2 << 20

// detachedCommand is a command hook that continues in the background until timer expires.
type detachedCommand struct {
	process *proc.Process
	output  *outputWatcher
	timer   *time.Timer
}

type outputWatcher struct {
	asyncRequest chan struct{} // receives a value if the first line of output asks that the command run in the background
	ended        chan struct{} // closed at the end of the output

	mu        sync.Mutex
	collected strings.Builder
}

func (w *outputWatcher) output() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.collected.String()
}

func (w *outputWatcher) appendOutputUpToLimit(piece []byte) (wholeOutput string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collected.Write(piece[:min(len(piece), maxOutputBytes-w.collected.Len())])
	return w.collected.String()
}

// startReadingHookOutput reads r in the background until EOF. When the process is stopped, r reaches EOF.
func startReadingHookOutput(r io.Reader) *outputWatcher {
	w := &outputWatcher{asyncRequest: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() { // returns at EOF of r
		defer close(w.ended)
		buf := make([]byte, 8<<10)
		first := true
		for {
			n, err := r.Read(buf)
			all := w.appendOutputUpToLimit(buf[:n])
			if first {
				line, _, whole := strings.Cut(all, "\n")
				async := isAsyncRequest(line)
				if async {
					w.asyncRequest <- struct{}{}
				}
				first = !async && !whole && len(line) < len(buf)
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

func (w *outputWatcher) waitForOutputEnd(timeout time.Duration) {
	select {
	case <-w.ended:
	case <-time.After(timeout):
	}
}
