// Package tool defines a built-in tool: the function that runs a call, and its entry in definitions.json.
//
// It decodes and validates inputs, so a tool receives only valid input. Its error results have the real CLI's wording.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tool is one built-in tool with its state.
type Tool struct {
	Name string // key of definitions.json, which contains the description and the schema of the input
	Run  Run
	// Check refuses a call with valid input that cannot succeed, such as the deletion of an unknown job. It runs before
	// permissions are checked; nil means no check.
	Check   Check
	Prepare func(*OrderedObject) bool // changes an input before users see the call, and reports whether it did; nil means no change
	// RenameAliases replaces aliases in an input: keys that models often write instead of the tool's own keys. It may also remove keys. It
	// runs before validation, but users see the call with the aliases. It reports whether it changed the input.
	// note is appended to a successful result. Nil means that the tool has no aliases.
	RenameAliases   func(*OrderedObject) (note string, changed bool)
	UnavailableKeys []string // keys of the input schema that this session refuses
}

type (
	// Run runs a call with valid input.
	Run func(context.Context, protocol.ToolUse) Result
	// Check returns the result for a refused input; nil means that the input is accepted.
	Check func(context.Context, json.RawMessage) *protocol.ToolResult
	// OrderedObject is an input as a JSON object that keeps the order of its keys.
	OrderedObject = plainjson.Object
)

// ClockWithIDs provides the time and ids.
type ClockWithIDs interface {
	Now() time.Time
	NewID() string
}

// PreparedInput returns an input as t.Prepare changes it. An input that is not an object is unchanged.
func (t Tool) PreparedInput(originalInput json.RawMessage) json.RawMessage {
	if t.Prepare == nil {
		return originalInput
	}
	in, err := plainjson.Parse(originalInput)
	if err != nil || !t.Prepare(&in) {
		return originalInput
	}
	return in.Raw()
}

// ResolveAliases replaces aliases of keys in an input. note is to be appended to a successful result; empty means none.
func (t Tool) ResolveAliases(input json.RawMessage) (known json.RawMessage, note string) {
	if t.RenameAliases == nil {
		return input, ""
	}
	in, err := plainjson.Parse(input)
	if err != nil {
		return input, ""
	}
	note, changed := t.RenameAliases(&in)
	if !changed {
		return input, ""
	}
	return in.Raw(), note
}

// RenameNonEmptyStringKey is like RenameKey, but only renames a key whose value is a non-empty string.
func RenameNonEmptyStringKey(in *OrderedObject, from, to string) bool {
	return JSONStringOrConcatenatedList(in.Get(from)) != "" && IsString(in.Get(from)) && RenameKey(in, from, to)
}

// RemoveKeys removes keys from an input. It reports whether the input had any of them.
func RemoveKeys(in *OrderedObject, names ...string) (removedAny bool) {
	before := len(*in)
	*in = in.Delete(names...)
	return len(*in) != before
}

// IsString reports whether a value is a string.
func IsString(raw json.RawMessage) bool { return plainjson.TypeOf(raw) == "string" }

// RenameKey renames a key if it exists and the new name is not used. It reports whether it renamed the key.
func RenameKey(in *OrderedObject, from, to string) bool {
	if in.Get(from) == nil || in.Get(to) != nil {
		return false
	}
	for i := range *in {
		if (*in)[i].Key == from {
			(*in)[i].Key = to
		}
	}
	return true
}

// TypedRun creates a [Run] from a function that takes the state of the tool and the decoded input.
func TypedRun[S, In any](state S, f func(context.Context, S, In) protocol.ToolResult) Run {
	return TypedRunReturningEvents(state, func(ctx context.Context, state S, in In) Result { return ResultWithoutEvents(f(ctx, state, in)) })
}

// TypedRunReturningEvents is [TypedRun] for tools that return additional events.
func TypedRunReturningEvents[S, In any](state S, f func(context.Context, S, In) Result) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		in, err := Decode[In](call.Input)
		if err != nil {
			return ResultWithoutEvents(Refuse("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))
		}
		return f(ctx, state, in)
	}
}

// TypedRunWithCall is [TypedRun] for tools that need the call itself.
func TypedRunWithCall[S, In any](state S, f func(context.Context, S, protocol.ToolUse, In) protocol.ToolResult) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		return TypedRun(state, func(ctx context.Context, state S, in In) protocol.ToolResult { return f(ctx, state, call, in) })(ctx, call)
	}
}

// TypedCheck creates a [Check] from a function that takes the state of the tool and the decoded input. It accepts input
// that cannot be decoded, because the validation reports it.
func TypedCheck[S, In any](state S, f func(context.Context, S, In) *protocol.ToolResult) Check {
	return func(ctx context.Context, raw json.RawMessage) *protocol.ToolResult {
		in, err := Decode[In](raw)
		if err != nil {
			return nil
		}
		return f(ctx, state, in)
	}
}

// IntFromJSONNumber is an integer in an input. Decoding cuts off the fraction of a JSON number and reduces a number beyond
// maxIntFromJSONNumber to maxIntFromJSONNumber.
type IntFromJSONNumber int

const maxIntFromJSONNumber = 1 << 40

// UnmarshalJSON reads a JSON number.
func (n *IntFromJSONNumber) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*n = IntFromJSONNumber(max(-maxIntFromJSONNumber, min(maxIntFromJSONNumber, f)))
	return nil
}

// Decode decodes an input. An empty input returns the zero value.
func Decode[In any](raw json.RawMessage) (in In, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return in, nil
	}
	err = json.Unmarshal(raw, &in)
	return in, err
}

// JSONStringOrConcatenatedList returns the value of a JSON string, or the joined strings of a list; "" for other values.
func JSONStringOrConcatenatedList(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return strings.Join(plainjson.DecodeIgnoringErrors[[]string](raw), "")
}

// Quote returns s as a JSON string.
func Quote(s string) json.RawMessage {
	raw, _ := protocol.Marshal(s)
	return raw
}

// NonNilCopy returns a copy of s that is not nil.
func NonNilCopy[T any](s []T) []T { return append([]T{}, s...) }

// backslashOrUnicodeEscapesPattern matches an escaped backslash, or a sequence of escapes \uXXXX.
var backslashOrUnicodeEscapesPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*`) })

// DecodeUnicodeEscapesInStrings replaces \uXXXX in the strings of an input with the character, as the real CLI does. It reports
// whether it changed the input. A backslash that is itself escaped does not begin an escape sequence.
func DecodeUnicodeEscapesInStrings(in *OrderedObject) (anyDecoded bool) {
	changed := false
	for i, k := range *in {
		var text string
		if json.Unmarshal(k.Value, &text) != nil || !strings.Contains(text, `\u`) {
			continue
		}
		decoded := backslashOrUnicodeEscapesPattern().ReplaceAllStringFunc(text, func(s string) string {
			if s == `\\` {
				return s
			}
			var units []uint16
			for part := range strings.SplitSeq(s[2:], `\u`) {
				n, _ := strconv.ParseUint(part, 16, 16) // part consists of four hexadecimal digits
				units = append(units, uint16(n))
			}
			return string(utf16.Decode(units))
		})
		if decoded != text {
			(*in)[i].Value, changed = Quote(decoded), true
		}
	}
	return changed
}

// Result is the result of a tool, with events to show before and after it.
type Result struct {
	protocol.ToolResult
	EventsBefore, EventsAfter []protocol.Event
}

// ResultWithoutEvents returns a result without events.
func ResultWithoutEvents(toolResult protocol.ToolResult) Result {
	return Result{ToolResult: toolResult}
}

// TextResult returns a successful result with a text for the model and a structured output.
func TextResult(s string, output any) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: s}, Output: output}
}

// StructuredOutput returns a structured output with these keys and values, in this order.
func StructuredOutput(keysAndValues ...any) (output OrderedObject) {
	for pair := range slices.Chunk(keysAndValues, 2) {
		value, _ := protocol.Marshal(pair[1]) // outputs consist of values that can be encoded
		output = append(output, plainjson.Member{Key: pair[0].(string), Value: value})
	}
	return output
}

// Refuse returns the error result of a call that has valid input but cannot be carried out, such as the deletion of an
// unknown job. The model sees the text in <tool_use_error> tags, and hosts see it after "Error: ".
func Refuse(format string, args ...any) protocol.ToolResult {
	r := protocol.UsageErrorResult(fmt.Sprintf(format, args...))
	r.Output = "Error: " + fmt.Sprintf(format, args...)
	return r
}

// maxErrorLength is the maximum number of characters in a failure's text. The middle of a longer text is omitted.
const maxErrorLength = 10_000

// Fail returns the error result of a tool that failed while it ran.
func Fail(format string, args ...any) protocol.ToolResult {
	text := fmt.Sprintf(format, args...)
	if runes := []rune(text); len(runes) > maxErrorLength {
		const half = maxErrorLength / 2
		text = fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s", string(runes[:half]), len(runes)-maxErrorLength, string(runes[len(runes)-half:]))
	}
	return protocol.ErrorResult(text)
}

// FailUnsimulated returns the error of a call that only a scenario can answer, with the tool's name and the reason.
func FailUnsimulated(name, reason string) protocol.ToolResult {
	return Fail("%s %s. Give the call a result in the scenario: `result = \"…\"` on the tool call, or `[tool_execution.tools.%[1]s] result = \"…\"`.", name, reason)
}

// FormatSize formats a number of bytes, as in 12KB or 1.5MB.
func FormatSize(n int) string {
	f := float64(n) / 1024
	if f < 1 {
		return fmt.Sprintf("%d bytes", n)
	}
	units := []string{"KB", "MB", "GB"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + units[i]
}

// Prefix returns at most maxBytes bytes of a text, without splitting a character.
func Prefix(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	for maxBytes > 0 && !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}

// TruncateWithMissingLinesNote is [Prefix] with a note about the number of lines that are missing.
func TruncateWithMissingLinesNote(text string, maxBytes int) string {
	kept := Prefix(text, maxBytes)
	if len(kept) == len(text) {
		return text
	}
	return kept + TruncationNote(strings.Count(text[len(kept):], "\n")+1)
}

// TruncationNote returns the note that this number of lines is missing.
func TruncationNote(lines int) string { return fmt.Sprintf("\n\n... [%d lines truncated] ...", lines) }
