// Package output turns the events of a run into the text of stdout: text, json or stream-json.
//
// All formats show the same events in the same order. They leave out events without a wire form.
package output

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Events is the stream of the events of a run, in order. If the run fails, the last pair contains the error.
type Events = iter.Seq2[protocol.Event, error]

// Encoder writes a whole run to w. It returns the stream's error, or the first error of w.
type Encoder func(w io.Writer, events Events) error

// eventAsShownInOutput returns the public form of an event, or false if the event is not shown.
func eventAsShownInOutput(ev protocol.Event) (shownEvent protocol.Event, isShown bool) {
	if said, ok := ev.(*protocol.AssistantEvent); ok && said.Final != nil && said.Final.Displayed != nil {
		text := *said.Final.Displayed
		shown := *said
		shown.Message.Content = []protocol.Block{protocol.Text(text)}
		return &shown, text != ""
	}
	return ev, protocol.HasWireForm(ev)
}

// StreamJSON writes one JSON object per line, each in one call of Write.
func StreamJSON(w io.Writer, events Events) error {
	for ev, err := range events {
		if err != nil {
			return err
		}
		if v, ok := ev.(*protocol.VerbatimOutput); ok {
			if err := writeVerbatim(w, v); err != nil {
				return err
			}
		}
		ev, is := eventAsShownInOutput(ev)
		if !is {
			continue
		}
		line, err := protocol.Marshal(ev)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// uninterruptedGroupWriter is a writer for several goroutines. While the f of WriteGroup runs, only f can write.
type uninterruptedGroupWriter interface {
	WriteGroup(f func(w io.Writer) error) error
}

// writeVerbatim writes output that a scenario specifies. Repeated text is written piece by piece, to save memory.
func writeVerbatim(w io.Writer, v *protocol.VerbatimOutput) error {
	if len(v.Stdout)+len(v.End) == 0 {
		return nil
	}
	if v.Times <= 1 {
		_, err := w.Write(slices.Concat(v.Stdout, v.End))
		return err
	}
	write := func(w io.Writer) error { return writeRepeatedStdoutAndEndText(w, v) }
	if g, ok := w.(uninterruptedGroupWriter); ok {
		return g.WriteGroup(write)
	}
	return write(w)
}

func writeRepeatedStdoutAndEndText(w io.Writer, verbatimOutput *protocol.VerbatimOutput) error {
	const piece = 64 << 10
	if len(verbatimOutput.Stdout) > 0 {
		each := min(verbatimOutput.Times, max(1, piece/len(verbatimOutput.Stdout)))
		block := bytes.Repeat(verbatimOutput.Stdout, each)
		for left := verbatimOutput.Times; left > 0; left -= each {
			if _, err := w.Write(block[:min(each, left)*len(verbatimOutput.Stdout)]); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(verbatimOutput.End)
	return err
}

// LastResultJSON writes the last result as one line, or nothing if there was none.
func LastResultJSON(w io.Writer, events Events) error {
	last, err := lastResult(events)
	if last == nil {
		return err
	}
	line, encodeErr := protocol.Marshal(withoutStreamJSONOnlyKeys(last))
	if encodeErr != nil {
		return encodeErr
	}
	if _, werr := w.Write(append(line, '\n')); werr != nil {
		return werr
	}
	return err
}

// JSONVerbose writes all events except those of hooks and of refused calls as one JSON array. It writes event by event, to save memory.
func JSONVerbose(w io.Writer, events Events) error {
	separator := "["
	for ev, err := range events {
		if err != nil {
			return err
		}
		ev, is := eventAsShownInOutput(ev)
		_, isDenial := ev.(*protocol.PermissionDeniedEvent)
		if s, ok := ev.(*protocol.SystemEvent); !is || isDenial || ok && strings.HasPrefix(s.Subtype, "hook_") {
			continue
		}
		if r, ok := ev.(*protocol.ResultEvent); ok {
			ev = withoutStreamJSONOnlyKeys(r)
		}
		element, err := protocol.Marshal(ev)
		if err != nil {
			return err
		}
		if _, err := w.Write(append([]byte(separator), element...)); err != nil {
			return err
		}
		separator = ","
	}
	if separator == "[" {
		return nil
	}
	_, err := io.WriteString(w, "]\n")
	return err
}

func lastResult(events Events) (*protocol.ResultEvent, error) {
	var last *protocol.ResultEvent
	for ev, err := range events {
		if err != nil {
			return last, err
		}
		if r, ok := ev.(*protocol.ResultEvent); ok {
			last = r
		}
	}
	return last, nil
}

// withoutStreamJSONOnlyKeys drops the keys that only stream-json shows (spec: cli-observed 2).
func withoutStreamJSONOnlyKeys(result *protocol.ResultEvent) *protocol.ResultEvent {
	short := *result
	short.ModelUsageSince = nil
	return &short
}

// Limits holds the limits of a run. The text format prints the limit that was exceeded.
type Limits struct {
	MaxTurns     int
	MaxBudgetUSD float64
}

// ResultTexts writes the text of every result, followed by a newline. Failures are also written to stdout, with the texts of
// the real CLI; messages about limits have no final newline (spec: cli-observed 2). A run in which background work was
// reported has several results, separated by an empty line; notices that the model answers together have one.
func ResultTexts(l Limits) Encoder {
	return func(w io.Writer, events Events) error {
		between := ""
		for ev, err := range events {
			if err != nil {
				return err
			}
			if r, ok := ev.(*protocol.ResultEvent); ok && (r.NumTurns > 0 || r.Origin == nil) {
				if _, err := io.WriteString(w, between+l.textOfResultOrFailure(r)); err != nil {
					return err
				}
				between = "\n"
			}
		}
		return nil
	}
}

func (l Limits) textOfResultOrFailure(result *protocol.ResultEvent) string {
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
	case result.Subtype == "error_max_structured_output_retries":
		return "Error: " + strings.Join(result.Errors, "\n")
	case result.NumTurns == 0:
		return "" // start-up failures are reported on stderr instead
	case len(result.Errors) > 0 && !strings.HasPrefix(result.Errors[0], "["):
		return "Error: " + strings.Join(result.Errors, "\n") + "\n"
	default:
		return "Execution error"
	}
}
