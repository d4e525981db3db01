package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Limits are the numbers that the text format names when a limit ends a run.
type Limits struct {
	MaxTurns     int
	MaxBudgetUSD float64
}

// Text writes the text of every result with a newline at its end, and failures
// as the real CLI words them there: on stdout, limits without a final newline
// (spec: cli-observed 2). There is more than one result when work in the
// background was reported: an empty line separates them.
func Text(l Limits) Encoder {
	return func(w io.Writer, events Events) error {
		between := ""
		for ev, err := range events {
			if err != nil {
				return err
			}
			if r, ok := ev.(*protocol.Result); ok {
				if _, err := io.WriteString(w, between+l.text(r)); err != nil {
					return err
				}
				between = "\n"
			}
		}
		return nil
	}
}

func (l Limits) text(r *protocol.Result) string {
	switch {
	case r.Result != nil:
		text := *r.Result
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text
	case r.Subtype == "error_max_turns":
		return fmt.Sprintf("Error: Reached max turns (%d)", l.MaxTurns)
	case r.Subtype == "error_max_budget_usd":
		return fmt.Sprintf("Error: Exceeded USD budget (%s)", protocol.FormatNumber(l.MaxBudgetUSD))
	case r.NumTurns == 0:
		return "" // start-up failures have their text on stderr
	case len(r.Errors) > 0 && !strings.HasPrefix(r.Errors[0], "["):
		return "Error: " + strings.Join(r.Errors, "\n") + "\n"
	default:
		return "Execution error"
	}
}
