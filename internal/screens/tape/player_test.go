package tape

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// fakeProgram is a program whose behaviour is a function.
type fakeProgram struct {
	stdin  *io.PipeReader
	typed  *io.PipeWriter
	output *io.PipeReader
	stdout *io.PipeWriter
	done   chan struct{}
	exit   proc.ExitStatus
}

func startFake(run func(in io.Reader, out io.Writer) int) *fakeProgram {
	p := &fakeProgram{done: make(chan struct{})}
	p.stdin, p.typed = io.Pipe()
	p.output, p.stdout = io.Pipe()
	go func() {
		p.exit.Code = run(p.stdin, p.stdout)
		close(p.done)
		p.stdout.Close()
		p.stdin.Close()
	}()
	return p
}

func (p *fakeProgram) Read(b []byte) (int, error)  { return p.output.Read(b) }
func (p *fakeProgram) Write(b []byte) (int, error) { return p.typed.Write(b) }
func (p *fakeProgram) Done() <-chan struct{}       { return p.done }
func (p *fakeProgram) WaitExit() proc.ExitStatus   { return p.exit }

// play plays steps with a program and returns the lines of its pages.
func play(t *testing.T, p Program, steps string) (pages map[string]string, err error) {
	t.Helper()
	tp, list := Parse("test.toml", []byte("steps = ["+steps+"]"))
	if list.Err() != nil {
		t.Fatal(list)
	}
	pages = map[string]string{}
	player := Player{
		Program: p, Screen: emulator.New(40, 5), Clock: machineClock{},
		Page: func(page CapturedScreen) error {
			pages[page.Name] = strings.TrimRight(page.Screen.TextWithAllRows(), "\n")
			return nil
		},
	}
	return pages, player.Play(t.Context(), tp)
}

func TestPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := startFake(func(in io.Reader, out io.Writer) int {
			_, _ = io.WriteString(out, "Name? ")
			b := make([]byte, 100)
			typed := ""
			for !strings.HasSuffix(typed, "\r") {
				n, _ := in.Read(b)
				typed += string(b[:n])
				time.Sleep(2 * time.Second) // slow, but faster than the time limit for an echo
				_, _ = out.Write(b[:n])
			}
			_, _ = io.WriteString(out, "\nhello\x1b[6n")
			n, _ := in.Read(b)
			if string(b[:n]) != "\x1b[2;6R" {
				return 2
			}
			return 3
		})
		pages, err := play(t, program, `{ wait = "Name?", type = "Ann" }, { snapshot = "typed", state = "idle" }, { key = "Enter", wait_re = "(?m)Ann$" },
			{ wait = "hello", gone = "bye", snapshot = "greeted", state = "idle" }, { exit = 3 }`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"typed": "Name? Ann", "greeted": "Name? Ann\nhello"}, pages); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
	})
}

// A page is recorded when the output pauses, or after 1.5 s if the program never pauses.
func TestPageIsTakenWhenOutputPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		program := startFake(func(in io.Reader, out io.Writer) int {
			go func() { _, _ = io.Copy(io.Discard, in) }()
			for range 5 {
				_, _ = io.WriteString(out, "a")
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
			for range 100 {
				_, _ = io.WriteString(out, "b")
				time.Sleep(100 * time.Millisecond)
			}
			return 0
		})
		pages, err := play(t, program, `{ wait = "a", snapshot = "pause", state = "idle" }, { wait = "b", snapshot = "never", state = "busy" }, { exit = 0 }`)
		if err != nil {
			t.Fatal(err)
		}
		if pages["pause"] != "aaaaa" {
			t.Errorf("the first page is %q", pages["pause"])
		}
		if n := strings.Count(pages["never"], "b"); n < 14 || n > 17 {
			t.Errorf("the second page has %d characters, want those of 1.5 s", n)
		}
		if d := time.Since(began); d > 13*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

func TestFailuresOfSteps(t *testing.T) {
	for _, c := range []struct{ name, steps, want string }{
		{"a text that never comes", `{ type = "x" }, { wait = "never" }`, "tape test: step 2 (line 1): waited for the text `never` for 15s"},
		{"a text that stays", `{ wait = "prompt", gone = "prompt", timeout_ms = 100 }`, "waited until the text `prompt` is gone for 100ms"},
		{"another exit code", `{ key = "q", exit = 0 }`, "the program exited with exit status 7, expected exit status 0"},
		{"no end", `{ exit = 0 }`, "the program did not exit within 15s"},
		{"an early end", `{ key = "q" }, { wait = "never" }`, "waited for the text `never`, but the program exited: exit status 7"},
		{"a gate without scenario", `{ wait = "prompt", gate = "x" }`, "the step opens a gate, but no scenario with gates is running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				program := startFake(func(in io.Reader, out io.Writer) int {
					_, _ = io.WriteString(out, "prompt")
					for b := make([]byte, 1); b[0] != 'q'; {
						if _, err := in.Read(b); err != nil {
							return 0
						}
					}
					return 7
				})
				_, err := play(t, program, c.steps)
				step, ok := errors.AsType[*StepError](err)
				if !ok || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(step.Screen.TextWithAllRows(), "prompt") {
					t.Errorf("got %v, want %s", err, c.want)
				}
				program.typed.Close()
				<-program.done
				synctest.Wait()
			})
		})
	}
}

// The same player drives a program in a pseudo-terminal.
func TestPlayInPseudoTerminal(t *testing.T) {
	t.Parallel()
	program, err := emulator.StartProgram(context.Background(), emulator.ProgramOptions{
		Command: proc.Command{Path: "/bin/sh", Args: []string{"-c", `stty size; tty <&0 >/dev/null && read -r x && echo "got $x" && exit 4`}, Env: []string{"PATH=/usr/bin:/bin"}},
		Size:    emulator.Size{Cols: 77, Rows: 11},
	})
	if errors.Is(err, emulator.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer program.Stop(time.Second)
	pages, err := play(t, program, `{ wait = "11 77" }, { type = "one" }, { key = "Enter" }, { wait = "got one", snapshot = "end", state = "ended" }, { exit = 4 }`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "11 77\none\ngot one"; pages["end"] != want {
		t.Errorf("page %q, want %q", pages["end"], want)
	}
}

// machineClock is the clock of the machine, because the program runs in real time.
type machineClock struct{}

func (machineClock) Now() time.Time                         { return time.Now() }
func (machineClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
