package claudecode

import "time"

// DeafPeriod specifies which keys a dialog ignores right after it has appeared.
type DeafPeriod struct {
	Length time.Duration
	AnyKey bool // every key is ignored, not only Enter and digits
}

// DeafPeriodOf returns the period of a dialog: "permission", "question", "plan", or "dialog/KIND" for a dialog before
// the session. It was measured with 2.1.330: keys were sent 0 to 600 ms after the text of the dialog had arrived. The
// first Enter with an effect came after 80 to 150 ms in dialogs before the session, and after 140 to 160 ms in dialogs
// of the session.
func DeafPeriodOf(dialog string) DeafPeriod {
	const length = 150 * time.Millisecond
	return map[string]DeafPeriod{
		"dialog/trust": {length, true}, "dialog/mcp": {length, true},
		"permission": {length, false}, "question": {length, false}, "plan": {length, false},
	}[dialog]
}
