package cli

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
)

func TestReadPrompt(t *testing.T) {
	const (
		whitespace = "Error: Input contained only whitespace. Provide a prompt with text through stdin or as a prompt argument when using --print"
		tooLarge   = "Error: piped stdin input exceeds 10MB. Pass large content as a file path in your prompt instead."
	)
	full := strings.Repeat("x", 10<<20)
	tests := map[string]struct {
		args, stdin string
		tty         bool
		want, err   string
	}{
		"argument":                  {args: "-p hi", want: "hi"},
		"stdin":                     {args: "-p", stdin: "from stdin\n", want: "from stdin\n"},
		"both":                      {args: "-p hi", stdin: "more\n", want: "hi\nmore\n"},
		"empty argument, stdin":     {args: "-p ''", stdin: "more", want: "more"},
		"argument, blank stdin":     {args: "-p hi", stdin: "\n", want: "hi\n\n"},
		"argument, terminal":        {args: "-p hi", stdin: "not read", tty: true, want: "hi"},
		"largest stdin":             {args: "-p", stdin: full, want: full},
		"too large stdin":           {args: "-p hi", stdin: full + "x", err: tooLarge},
		"nothing":                   {args: "-p", err: strings.TrimSpace(noInput)},
		"empty argument":            {args: "-p ''", err: strings.TrimSpace(noInput)},
		"terminal":                  {args: "-p", stdin: "not read", tty: true, err: strings.TrimSpace(noInput)},
		"blank stdin":               {args: "-p", stdin: " \n\t\n", err: whitespace},
		"second positional dropped": {args: "-p one two", want: "one"},
		"swallowed": {
			args: "-p --add-dir /tmp hi\u00a0there", // a single word "hi there" for a shell
			err:  `"hi there" was read as a value of --add-dir, not as a prompt · put a prompt before --add-dir or after --` + "\n" + strings.TrimSpace(noInput),
		},
		"first value": {
			args: "-p --allowedTools hi\u00a0there",
			err:  strings.TrimSpace(noInput),
		},
		"one word": {
			args: "-p --allowedTools Read hi",
			err:  strings.TrimSpace(noInput),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _, stderr := fakeSystem(t)
			s.Stdin, s.StdinIsTTY = strings.NewReader(tt.stdin), tt.tty
			if tt.tty {
				s.Stdin = forbiddenStdin{t}
			}
			f, err := flags.Parse(s, words(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			got, err := requiredPromptFromArgOrStdin(context.Background(), s, f)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tt.want || text != tt.err {
				t.Errorf("prompt of %d bytes %.60q, error %q; want %.60q, %q", len(got), got, text, tt.want, tt.err)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr %q", stderr)
			}
		})
	}
}

func TestSilentStdinIsWaitedForThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, stderr := fakeSystem(t)
		r, w := io.Pipe()
		s.Stdin = r
		start := time.Now()
		got, err := requiredPromptFromArgOrStdin(context.Background(), s, &flags.Flags{Prompt: "hi", HasPrompt: true})
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		if got != "hi" || err != nil {
			t.Errorf("prompt %q, error %v", got, err)
		}
		if text := stderr.String(); !strings.HasPrefix(text, "Warning: no stdin data received in 3s, proceeding without it. ") || !strings.HasSuffix(text, "\n") {
			t.Errorf("stderr %q", text)
		}
		w.Close()
	})
}

func TestSlowStdinIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, stderr := fakeSystem(t)
		r, w := io.Pipe()
		s.Stdin = r
		go func() {
			time.Sleep(2 * time.Second)
			io.WriteString(w, "slow ")
			time.Sleep(10 * time.Second)
			io.WriteString(w, "data")
			w.Close()
		}()
		got, err := requiredPromptFromArgOrStdin(context.Background(), s, &flags.Flags{Prompt: "hi", HasPrompt: true})
		if got != "hi\nslow data" || err != nil || stderr.Len() > 0 {
			t.Errorf("prompt %q, error %v, stderr %q", got, err, stderr)
		}
	})
}

// An interrupt while stdin is read ends the program with exit code 0 and no output.
func TestInterruptWhileReadingStdin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stdout, stderr := fakeSystem(t)
		r, w := io.Pipe()
		s.Stdin = r
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			time.Sleep(time.Second)
			cancel(&process.SignalError{Signal: syscall.SIGINT})
		}()
		_, err := requiredPromptFromArgOrStdin(ctx, s, &flags.Flags{})
		if code := process.PrintErrorReturningExitCode(s.Stderr, err); code != 0 || stdout.Len()+stderr.Len() > 0 {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		w.Close()
	})
}
