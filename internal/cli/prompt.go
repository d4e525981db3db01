package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	stdinLimit = 10 << 20
	// stdinPatience is how long a pipe may stay silent before the run goes on without it.
	stdinPatience = 3 * time.Second
)

// readPrompt returns the prompt of a text run: the word of the command line, what stdin holds, or both with a newline
// between. It must not be called for stream-json input. When ctx ends first, its cause is the error.
func readPrompt(ctx context.Context, s *System, f *Flags) (string, error) {
	prompt, err := promptText(ctx, s, f)
	switch {
	case err != nil:
		return "", err
	case prompt == "" && (f.Continue || f.Resume != ""):
		return "", claudeErrorf("Error: No deferred tool marker found in the resumed session. Either the session was not deferred, the marker is " +
			"stale (tool already ran), or it exceeds the tail-scan window. Provide a prompt to continue the conversation.")
	case prompt == "":
		return "", claudeErrorf("%sError: Input must be provided either through stdin or as a prompt argument when using --print", swallowedHint(f))
	case strings.TrimSpace(prompt) == "":
		return "", claudeErrorf("Error: Input contained only whitespace. Provide a prompt with text through stdin or as a prompt argument when using --print")
	}
	return prompt, nil
}

// promptText is readPrompt for runs that need none.
func promptText(ctx context.Context, s *System, f *Flags) (string, error) {
	piped, err := readStdin(ctx, s)
	switch {
	case err != nil:
		return "", err
	case f.Prompt == "":
		return piped, nil
	case piped == "":
		return f.Prompt, nil
	}
	return f.Prompt + "\n" + piped, nil
}

// swallowedHint explains a missing prompt that a variadic flag may have taken.
func swallowedHint(f *Flags) string {
	if f.HasPrompt || f.swallowed.Option == "" {
		return ""
	}
	if f.swallowed.First || !strings.ContainsAny(f.swallowed.Word, " \t\n") {
		return ""
	}
	return fmt.Sprintf("%q was read as a value of %s, not as a prompt · put a prompt before %[2]s or after --\n", f.swallowed.Word, f.swallowed.Option)
}

// readStdin returns all of stdin, "" when it is a terminal or says nothing for too long. The goroutine that reads ends
// with its read; on a pipe that stays open that is the end of the process.
func readStdin(ctx context.Context, s *System) (string, error) {
	if s.StdinIsTTY || s.Stdin == nil {
		return "", nil
	}
	in := &stdinReader{r: s.Stdin, started: make(chan struct{}), done: make(chan error, 1)}
	go in.read()
	patience := time.NewTimer(stdinPatience)
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
			return in.all.String(), err
		}
	}
}

// stdinReader reads to the end in a goroutine of its own. all may be looked at once done has spoken.
type stdinReader struct {
	r       io.Reader
	started chan struct{} // closed at the first byte
	done    chan error
	all     bytes.Buffer
}

func (in *stdinReader) read() {
	first := make([]byte, 1)
	n, _ := io.ReadFull(in.r, first)
	if n == 0 { // a stdin that cannot be read at all, closed by the caller say, is an empty one
		in.done <- nil
		return
	}
	close(in.started)
	in.all.Write(first)
	_, err := in.all.ReadFrom(io.LimitReader(in.r, stdinLimit))
	if err == nil && in.all.Len() > stdinLimit {
		err = claudeErrorf("Error: piped stdin input exceeds 10MB. Pass large content as a file path in your prompt instead.")
	}
	in.done <- err
}
