package terminal

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/launch"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

// TestScreens plays testdata/*.txtar: a user types, and the screen changes. The files "flags" and "environ" contain the command line and
// additional variables of claude; other files are written to the working directory, $WORK. The file "keys" is played line by line in a
// synctest bubble:
//
//	type TEXT    types a text
//	key NAMES    presses keys, such as "down enter"
//	size C R     changes the size of the terminal
//	wait D       the clock advances
//	show PATH    prints a file
//	N| TEXT      row N, if it differs from that before; trailing rows that are gone are not shown
//	= TEXT       the error with which the session ends
//
// With -update, the rows are rewritten.
func TestScreens(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no screens", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			u := &user{t: t, work: filepath.Join(base, strings.Repeat("d", max(1, 100-len(base))))} // paths on the screen have one length
			at := -1
			var script string
			for i, f := range archive.Files {
				text := strings.ReplaceAll(string(f.Data), "$WORK", u.work)
				switch f.Name {
				case "flags":
					u.flags = strings.TrimSpace(text)
				case "environ":
					u.environ = strings.Fields(text)
				case "keys":
					script, at = string(f.Data), i
				default:
					path := filepath.Join(u.work, f.Name)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			synctest.Test(t, func(t *testing.T) { u.t = t; u.play(script) })
			if *update {
				archive.Files[at].Data = []byte(u.out.String())
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(script, u.out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// user is a user with a terminal. It implements [process.Terminal].
type user struct {
	t          *testing.T
	work       string
	flags      string
	environ    []string
	input      chan []byte
	rest       []byte // read in part
	cols, rows int
	shown      []string // rows
	console    *Console
	mu         sync.Mutex // guards painted
	painted    []string   // rows of the screen after the last write
	resized    chan<- os.Signal
	ended      chan error
	hasEnded   bool
	out        strings.Builder
}

func (u *user) Read(p []byte) (int, error) {
	if len(u.rest) == 0 {
		var ok bool
		if u.rest, ok = <-u.input; !ok {
			return 0, io.EOF
		}
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// Write is called by the goroutine that paints the screen, after it has stored the rows.
func (u *user) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.console != nil {
		u.painted = u.console.painter.lastRows
	}
	return len(p), nil
}

func (u *user) MakeRaw() (func() error, error) { return func() error { return nil }, nil }
func (u *user) Size() (cols, rows int)         { return u.cols, u.rows }
func (u *user) Notify(c chan<- os.Signal, _ ...os.Signal) (stop func()) {
	u.resized = c
	return func() {}
}

func (u *user) Kill(sig syscall.Signal) error { return fmt.Errorf("killed by %v", sig) }
func (u *user) ParentPID() int                { return 1 }

// keySequences are the bytes that a terminal sends for keys.
var keySequences = map[string]string{ // constant: only read
	"enter": "\r", "esc": "\x1b", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "tab": "\t", "shift-tab": "\x1b[Z",
	"backspace": "\x7f", "delete": "\x1b[3~", "home": "\x1b[H", "end": "\x1b[F", "page-up": "\x1b[5~", "page-down": "\x1b[6~", "space": " ",
	"alt-enter": "\x1b\r", "alt-b": "\x1bb", "alt-f": "\x1bf", "alt-backspace": "\x1b\x7f", "paste": "\x1b[200~pasted\ntext\x1b[201~",
}

func (u *user) play(script string) {
	u.t.Helper()
	u.cols, u.rows, u.input, u.ended = 150, 30, make(chan []byte, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(u.t.Context())
	go func() { u.ended <- u.run(ctx) }()
	synctest.Wait()
	u.printRows()
	for line := range strings.Lines(script) {
		if shownRow.MatchString(line) {
			continue
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "type":
			u.send(rest)
		case "key":
			for name := range strings.FieldsSeq(rest) {
				bytes, ok := keySequences[name]
				if letter, control := strings.CutPrefix(name, "ctrl-"); control {
					bytes, ok = string(rune(letter[0]&0x1f)), true
				}
				if !ok {
					u.t.Fatalf("unknown key %q", name)
				}
				u.send(bytes)
			}
		case "size":
			if _, err := fmt.Sscan(rest, &u.cols, &u.rows); err != nil {
				u.t.Fatal(err)
			}
			u.resized <- os.Interrupt // any signal
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				u.t.Fatal(err)
			}
			<-time.After(d)
		case "show":
			data, err := os.ReadFile(filepath.Join(u.work, rest))
			u.out.WriteString(line)
			if err != nil {
				data = []byte("no file")
			}
			for text := range strings.Lines(string(data)) {
				u.out.WriteString("| " + strings.TrimSuffix(u.withoutPaths(text), "\n") + "\n")
			}
			continue
		case "", "#":
		default:
			u.t.Fatalf("unknown line %q", line)
		}
		u.out.WriteString(line)
		synctest.Wait()
		u.printRows()
	}
	close(u.input)
	synctest.Wait()
	cancel()
	synctest.Wait()
	u.printRows()
	if u.console != nil {
		go func() { // keys that were typed after the end
			for range u.console.input {
			}
		}()
		synctest.Wait()
	}
}

func (u *user) send(text string) {
	if u.hasEnded { // nobody reads
		return
	}
	u.input <- []byte(text)
	synctest.Wait()
	if text == "\x1b" {
		<-time.After(2 * escapeDelay)
		synctest.Wait()
	}
}

// run resolves the command line and runs its session, as the command claude does.
func (u *user) run(ctx context.Context) error {
	ids := 0
	sys := &process.System{
		Args:    append([]string{"claude"}, strings.Fields(u.flags)...),
		Environ: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.work, "CLAUDE_CONFIG_DIR=" + filepath.Join(u.work, ".config"), "TMPDIR=" + u.work, "CLAUDELESS_SCENARIO=" + filepath.Join(u.work, "s.toml"), "TERM=xterm-256color"}, u.environ...),
		Stdin:   u, Stdout: u, Stderr: u.t.Output(), UID: 1000, Terminal: u, Lifetime: u,
		Getwd:      func() (string, error) { return u.work, nil },
		Executable: func() (string, error) { return "/usr/bin/claude", nil },
		Now:        time.Now,
		NewID: func() string {
			ids++
			return fmt.Sprintf("%08x-0000-4000-8000-0000%08[1]x", uint32(ids*2_654_435_761)) // ids of tasks have only a part of it
		},
	}
	f, err := flags.Parse(sys, sys.Args[1:])
	if err == nil {
		f.Interactive = true
		err = f.CheckAndNormalize(sys)
	}
	if err != nil {
		return err
	}
	plan, err := launch.Resolve(sys, f)
	if err != nil {
		return err
	}
	if u.console, err = OpenConsoleInRawMode(sys, &process.SignalHandler{}, &Faults{}, &plan); err != nil {
		return err
	}
	defer func() { _ = u.console.Close() }()
	if _, err := AskStartupQuestions(ctx, u.console, &plan, sys.Getenv("ANTHROPIC_API_KEY")); err != nil {
		return err
	}
	x, err := Open(plan, u.console, sys.Args[1:])
	if err != nil {
		return err
	}
	defer x.Session().Close(context.WithoutCancel(ctx))
	return x.Run(ctx, f.Prompt)
}

// shownRow matches a line with a row of the screen, the line of a file, or the end.
var shownRow = regexp.MustCompile(`^( *[0-9]+)?\| |^= |^ *[0-9]*\|$`)

// styles are the escape sequences of colors.
var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

// printRows writes the rows that have changed.
func (u *user) printRows() {
	select {
	case err := <-u.ended:
		u.printEnd(err)
	default:
	}
	u.mu.Lock()
	rows := u.painted
	u.mu.Unlock()
	for i, row := range rows {
		text := strings.TrimRight(styles.ReplaceAllString(row, ""), " ")
		if i < len(u.shown) && u.shown[i] == text || i >= len(u.shown) && text == "" {
			continue
		}
		fmt.Fprintf(&u.out, "%2d| %s\n", i+1, u.withoutPaths(text))
	}
	u.shown = nil
	for _, row := range rows {
		u.shown = append(u.shown, strings.TrimRight(styles.ReplaceAllString(row, ""), " "))
	}
}

func (u *user) printEnd(err error) {
	fmt.Fprintf(&u.out, "= %s\n", strings.ReplaceAll(u.withoutPaths(fmt.Sprint(err)), "\n", ": "))
	u.hasEnded = true
}

// localTime is the time at which a turn ended; it depends on the time zone of the machine.
var localTime = regexp.MustCompile(`done [0-9]+:[0-9]{2} [AP]M`)

func (u *user) withoutPaths(text string) string {
	return localTime.ReplaceAllString(strings.ReplaceAll(text, u.work, "$WORK"), "done TIME")
}
