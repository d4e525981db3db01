package tool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Result is the result of a tool, with events to show before and after it.
type Result struct {
	protocol.ToolResult
	EventsBefore, EventsAfter []protocol.Event
}

// ResultOf returns a result without events.
func ResultOf(r protocol.ToolResult) Result { return Result{ToolResult: r} }

// Text returns a successful result with a text for the model and a structured output.
func Text(s string, output any) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: s}, Output: output}
}

// Refuse returns the error result of a valid call that is not possible. The model sees the text in tags, and hosts see
// "Error: …".
func Refuse(format string, args ...any) protocol.ToolResult {
	r := protocol.UsageError(fmt.Sprintf(format, args...))
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
		text = fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s",
			string(runes[:half]), len(runes)-maxErrorLength, string(runes[len(runes)-half:]))
	}
	return protocol.ErrorResult(text)
}

// NeedsResult returns the error result of a call that only a scenario can answer. Its text begins with name and reason.
func NeedsResult(name, reason string) protocol.ToolResult {
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

// Prefix returns at most n bytes of a text, without splitting a character.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Truncate is [Prefix] with a note about the number of lines that are missing.
func Truncate(s string, n int) string {
	kept := Prefix(s, n)
	if len(kept) == len(s) {
		return s
	}
	return kept + TruncationNote(strings.Count(s[len(kept):], "\n")+1)
}

// TruncationNote returns a note that this number of lines is missing.
func TruncationNote(lines int) string { return fmt.Sprintf("\n\n... [%d lines truncated] ...", lines) }
