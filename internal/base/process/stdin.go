package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/term"
)

const (
	stdinLimit = 10 << 20
	// stdinWaitLimit is how long a pipe may stay silent before the run continues without it.
	stdinWaitLimit = 3 * time.Second
)

// ReadStdin returns all of stdin, decoded by [DecodeStream]; "" if it is a terminal or stays silent for too long.
// If it gives up, its goroutine stays blocked in Read until the pipe is closed or the process exits.
func (s *System) ReadStdin(ctx context.Context) (string, error) {
	if s.StdinIsTTY || s.Stdin == nil {
		return "", nil
	}
	in := &stdinReader{r: s.Stdin, started: make(chan struct{}), done: make(chan error, 1)}
	go in.read()
	patience := time.NewTimer(stdinWaitLimit)
	defer patience.Stop()
	for started := in.started; ; {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-started:
			started = nil
			patience.Stop()
		case <-patience.C:
			fmt.Fprintln(s.Stderr, "Warning: no stdin data received in 3s, proceeding without it. "+
				"If piping from a slow command, redirect stdin explicitly: < /dev/null to skip, or wait longer.")
			return "", nil
		case err := <-in.done:
			return string(DecodeStream(in.buffered.Bytes())), err
		}
	}
}

// ReadSecret reads a line from the terminal without echo.
func (s *System) ReadSecret(prompt string) (string, error) {
	terminal, ok := s.Stdin.(interface{ Fd() uintptr })
	if !ok || !s.StdinIsTTY {
		return "", errors.New("stdin is not a terminal")
	}
	fmt.Fprint(s.Stderr, prompt)
	line, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(s.Stderr)
	return string(line), err
}

// stdinReader reads to the end in a goroutine. buffered may be read after done has received a value.
type stdinReader struct {
	r        io.Reader
	started  chan struct{} // closed at the first byte
	done     chan error
	buffered bytes.Buffer
}

func (in *stdinReader) read() {
	first := make([]byte, 1)
	n, _ := io.ReadFull(in.r, first)
	if n == 0 { // a stdin that cannot be read at all, such as a closed one, counts as empty
		in.done <- nil
		return
	}
	close(in.started)
	in.buffered.Write(first)
	_, err := in.buffered.ReadFrom(io.LimitReader(in.r, stdinLimit))
	if err == nil && in.buffered.Len() > stdinLimit {
		err = Verbatimf("Error: piped stdin input exceeds 10MB. Pass large content as a file path in your prompt instead.")
	}
	in.done <- err
}
