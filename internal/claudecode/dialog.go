package claudecode

import "time"

// DeafPeriod says which keys a dialog ignores right after it has appeared.
type DeafPeriod struct {
	Length time.Duration
	AnyKey bool // every key is ignored, not only Enter and digits
}

// DeafPeriodOf returns the period of a dialog: "permission", "question", "plan", or "dialog/KIND" for one that is shown
// before the session. It was measured with 2.1.330: a key was sent 0 to 600 ms after the text of the dialog arrived.
func DeafPeriodOf(dialog string) DeafPeriod {
	const start, session = 100 * time.Millisecond, 150 * time.Millisecond
	return map[string]DeafPeriod{
		"dialog/trust": {start, true}, "dialog/mcp": {session, true}, // the first Enter that had an effect: 120 ms, 150 ms
		"permission": {session, false}, "question": {session, false}, // 140 to 160 ms; arrows and Esc act at once
		"plan": {session, false},
	}[dialog]
}
