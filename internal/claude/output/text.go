package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Limits are the limits that the text format prints if one of them is exceeded.
type Limits struct {
	MaxTurns     int
	MaxBudgetUSD float64
}

// Text writes the text of every result, followed by a newline. Failures are also written to stdout, with the texts of
// the real CLI; messages about limits have no final newline (spec: cli-observed 2). A run in which background work was
// reported has several results, separated by an empty line.
func Text(l Limits) Encoder {
	return func(w io.Writer, events Events) error {
		between := ""
		for ev, err := range events {
			if err != nil {
				return err
			}
			if r, ok := ev.(*protocol.Result); ok {
				if _, err := io.WriteString(w, between+l.textOfResultOrFailure(r)); err != nil {
					return err
				}
				between = "\n"
			}
		}
		return nil
	}
}

func (l Limits) textOfResultOrFailure(result *protocol.Result) string {
	switch {
	case result.Result != nil:
		text := *result.Result
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text
	case result.Subtype == "error_max_turns":
		return fmt.Sprintf("Error: Reached max turns (%d)", l.MaxTurns)
	case result.Subtype == "error_max_budget_usd":
		return fmt.Sprintf("Error: Exceeded USD budget (%s)", protocol.FormatNumber(l.MaxBudgetUSD))
	case result.NumTurns == 0:
		return "" // start-up failures are reported on stderr instead
	case len(result.Errors) > 0 && !strings.HasPrefix(result.Errors[0], "["):
		return "Error: " + strings.Join(result.Errors, "\n") + "\n"
	default:
		return "Execution error"
	}
}
