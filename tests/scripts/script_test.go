// Package scripts tests the binary from outside: scripts and other programs run it, and captured runs of the real CLI
// are repeated.
//
// The only product code that is imported is the entry point, which the test binary runs as `claudeless`.
// docs/testing.md describes the commands of the scripts.
package scripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudeless/claudeless/internal/cli"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestMain lets the test binary replace the programs that scripts run.
func TestMain(m *testing.M) {
	run := func() { os.Exit(cli.Main(nil)) }
	testscript.Main(m, map[string]func(){"claudeless": run, "claude": run, "mcpsrv": mcpServerMain})
}

// TestScripts runs ../testdata/script/*.txtar. docs/testing.md describes their commands.
func TestScripts(t *testing.T) {
	dir, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "../testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		ContinueOnError:     true,
		UpdateScripts:       *tree.Update,
		Setup:               func(env *testscript.Env) error { return setupScript(env, dir) },
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Getuid() == 0, nil
			case "strict": // a process can have its own network
				return exec.Command("unshare", "-n", "true").Run() == nil || exec.Command("unshare", "-rn", "true").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": cmdStatus,
			"usage":  cmdUsage,
			"shape":  cmdShape,
			"kinds":  cmdKinds,
			"event":  cmdEvent,
			"golden": cmdGolden,
			"alone":  cmdAlone,
			"same":   cmdSame,
		},
	})
}

// TestGoldensArePlayed checks that a script plays back every captured run.
func TestGoldensArePlayed(t *testing.T) {
	scripts, err := filepath.Glob("../testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	played := map[string]bool{}
	for _, name := range scripts {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^golden (\S+)`).FindAllStringSubmatch(string(b), -1) {
			played[m[1]] = true
		}
	}
	goldens, err := filepath.Glob("../testdata/golden/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range goldens {
		if !played[strings.TrimSuffix(filepath.Base(name), ".txt")] {
			t.Errorf("%s is played back by no script", name)
		}
	}
}

// setupScript gives every script its own environment. Only PATH comes from the machine.
func setupScript(env *testscript.Env, tree string) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o777); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("TREE", tree)
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	env.Setenv("ANTHROPIC_API_KEY", "dummy")
	env.Setenv("CLAUDELESS_ENVIRONMENT", "base-url,no-traffic") // that of the recordings
	env.Setenv("CLAUDELESS_RETRY_SCALE", "0")
	if strings.HasPrefix(filepath.Base(env.WorkDir), "script-golden-") {
		env.Setenv("CLAUDELESS_CLAUDE_VERSION", goldenVersion)
	}
	return nil
}

// cmdStatus is `status N PROGRAM ARG…`: run the program, which must exit with N.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := runStatus(ts, args[1], args[2:]); got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

// cmdUsage is `usage TEXT ARG…`: claude must refuse ARG… with exactly TEXT on stderr, nothing on
// stdout, and status 1. In TEXT, \n represents a line end.
func cmdUsage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: usage TEXT [ARG...]")
	}
	want := strings.ReplaceAll(args[0], `\n`, "\n") + "\n"
	if status := runStatus(ts, "claude", args[1:]); status != 1 {
		ts.Fatalf("exit %d, want 1", status)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout is %q, want nothing", out)
	}
	if diff := cmp.Diff(want, ts.ReadFile("stderr")); diff != "" {
		ts.Fatalf("stderr (-want +got):\n%s", diff)
	}
}

func runStatus(ts *testscript.TestScript, program string, args []string) int {
	err := ts.Exec(program, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// cmdShape is `shape [-f FILE]`: every event has the keys and types of the real CLI.
func cmdShape(ts *testscript.TestScript, neg bool, args []string) {
	events, rest := fileEvents(ts, args)
	if neg || len(rest) > 0 {
		ts.Fatalf("usage: shape [-f FILE]")
	}
	b, err := os.ReadFile(filepath.Join("..", "testdata", "cli-shapes.json"))
	ts.Check(err)
	var sh shapes
	ts.Check(json.Unmarshal(b, &sh))
	ts.Check(sh.check(events))
}

// cmdKinds is `kinds [-f FILE] KIND…`: the events must be exactly these, in this order.
func cmdKinds(ts *testscript.TestScript, neg bool, args []string) {
	events, want := fileEvents(ts, args)
	if diff := cmp.Diff(want, kindsOf(events)); (diff != "") != neg {
		ts.Fatalf("kinds of events (-want +got):\n%s", diff)
	}
}

// cmdEvent is `[!] event [-f FILE] KIND [CONDITION…]`: at least one event of the kind must meet all conditions.
func cmdEvent(ts *testscript.TestScript, neg bool, args []string) {
	events, rest := fileEvents(ts, args)
	if len(rest) == 0 {
		ts.Fatalf("usage: event [-f FILE] KIND [CONDITION...]")
	}
	var seen []string
	for _, e := range events {
		if kind := kindOf(e); kind != rest[0] && valueAt(e, "type") != rest[0] && rest[0] != "any" {
			continue
		}
		failed := slices.IndexFunc(rest[1:], func(c string) bool {
			ok, err := conditionHolds(c, e)
			ts.Check(err)
			return !ok
		})
		if failed < 0 {
			if neg {
				ts.Fatalf("there is such an event: %s", shortJSON(e))
			}
			return
		}
		path := regexp.MustCompile(`[=~]`).Split(strings.TrimPrefix(rest[1+failed], "!"), 2)[0]
		seen = append(seen, fmt.Sprintf("%s: %s is %s", rest[1+failed], path, shortJSON(valueAt(e, path))))
	}
	if !neg {
		ts.Fatalf("no such %s among %v\n  %s", rest[0], kindsOf(events), strings.Join(seen, "\n  "))
	}
}

// conditionHolds evaluates one condition: PATH=VALUE (VALUE is JSON or else text), PATH~REGEXP or
// PATH (exists). A ! in front of a condition negates it.
func conditionHolds(condition string, e any) (bool, error) {
	c, negated := strings.CutPrefix(condition, "!")
	ok := false
	switch i := strings.IndexAny(c, "=~"); {
	case i < 0:
		ok = valueAt(e, c) != nil
	case c[i] == '=':
		got := valueAt(e, c[:i])
		var want any
		if json.Unmarshal([]byte(c[i+1:]), &want) != nil {
			want = c[i+1:]
		}
		ok = cmp.Equal(want, got) || got == c[i+1:]
	default:
		re, err := regexp.Compile(c[i+1:])
		if err != nil {
			return false, err
		}
		got := valueAt(e, c[:i])
		text, isText := got.(string)
		if !isText {
			text = compactJSON(got)
		}
		ok = got != nil && re.MatchString(text)
	}
	return ok != negated, nil
}

// cmdAlone is `alone`: within 400 ms all processes started by this script must have exited.
func cmdAlone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: alone")
	}
	deadline := time.Now().Add(400 * time.Millisecond)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processesWith("WORK=" + ts.Getenv("WORK"))
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still running: %v", left)
		}
		<-tick.C
	}
}

// processesWith lists processes whose environment has the entry. Without /proc it finds none.
func processesWith(entry string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), entry) {
			continue
		}
		if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return found
}

// cmdSame is `[!] same A B`: two files must have the same bytes. Unlike cmp it shows only the first difference and
// never updates a script.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same A B")
	}
	a, b := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if (a == b) == neg {
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		ts.Fatalf("%s and %s at byte %d:\n  %.200q\n  %.200q", args[0], args[1], i, a[max(0, i-60):], b[max(0, i-60):])
	}
}

// fileEvents reads the events of the last program's stdout, or of -f FILE.
func fileEvents(ts *testscript.TestScript, args []string) ([]any, []string) {
	file := "stdout"
	if len(args) > 1 && args[0] == "-f" {
		file, args = args[1], args[2:]
	}
	events, err := parseEvents(ts.ReadFile(file))
	ts.Check(err)
	return events, args
}
