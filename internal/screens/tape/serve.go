package tape

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// terminalRequest is one request of a test, a line of JSON. Its optional parts are executed in the order of the fields.
type terminalRequest struct {
	Wait      string `json:"wait"`       // wait until the screen contains this text
	Gone      string `json:"gone"`       // wait until the screen does not contain this text
	Type      string `json:"type"`       // type this text, and wait for its echo
	Paste     string `json:"paste"`      // paste this text
	Press     string `json:"press"`      // press these keys: "Down Enter"
	Resize    string `json:"resize"`     // change the size: COLSxROWS
	Exit      *int   `json:"exit"`       // wait until the program ends, with this exit code
	TimeoutMS int    `json:"timeout_ms"` // bounds each wait; 0 means 15000
	Screen    bool   `json:"screen"`     // answer with the screen
}

type terminalAnswer struct {
	Error  string         `json:"error,omitempty"`
	Screen *screenContent `json:"screen,omitempty"`
}

type screenContent struct {
	emulator.Screen
	Text string `json:"text"`
}

// ServeTerminal reads requests from in, one line of JSON each, and executes them. It writes each answer as a line to
// out. It returns when in ends.
func ServeTerminal(ctx context.Context, t *Terminal, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := enc.Encode(t.handleRequest(ctx, line)); err != nil {
				return fmt.Errorf("writing the response to a tape request: %w", err)
			}
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("reading requests: %w", err)
		}
	}
}

func (t *Terminal) handleRequest(ctx context.Context, line []byte) terminalAnswer {
	var r terminalRequest
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	if err == nil {
		err = t.DoStep(ctx, Step{Wait: r.Wait, Gone: r.Gone, Type: r.Type, Paste: r.Paste, Key: r.Press, Exit: r.Exit, TimeoutMS: r.TimeoutMS})
	}
	if err == nil && r.Resize != "" {
		var size emulator.Size
		if size, err = emulator.ParseSize(r.Resize); err == nil {
			err = t.Resize(size.Cols, size.Rows)
		}
	}
	var a terminalAnswer
	if err != nil {
		a.Error = err.Error()
	}
	if r.Screen {
		s := t.Screen()
		a.Screen = &screenContent{s, s.Text()}
	}
	return a
}
