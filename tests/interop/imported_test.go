package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// inNamespace runs the real CLI in a network with loopback only, with serve and a recorder as its API. $1 is the
// scenario, the rest is the command.
const inNamespace = `
set -u
ip link set lo up 2>/dev/null || ifconfig lo up
scenario=$1; shift
wait_for() { for i in $(seq 200); do [ -s "$1" ] && return; sleep 0.05; done; echo "no $1" >&2; exit 99; }
claudeless serve "$scenario" --port-file api.port & api=$!
wait_for api.port
claudeless serve --record "http://127.0.0.1:$(cat api.port)" --capture traffic.jsonl --port-file port & recorder=$!
wait_for port
cd cwd
ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat ../port)" timeout 120 "$@" > ../log.jsonl < /dev/null; code=$?
cd ..
kill -INT $recorder $api; wait
exit $code
`

// R4: sessions of the real CLI, of the newest version and of an older one, become scenarios that repeat them: each
// recording alone, and all of them together.
func TestRealSessionsAreImported(t *testing.T) {
	modules, bin := realCLI(t)
	scripted, err := filepath.Abs("real/scenario.toml")
	if err != nil {
		t.Fatal(err)
	}
	newest, older := []string{filepath.Join(modules, "newest", "claude")}, []string{"node", filepath.Join(modules, "older", "cli.js")}
	for _, c := range []struct {
		name     string
		cli      []string
		scenario string
		args     []string
		calls    int
		fails    bool
	}{
		{"newest", newest, scripted, []string{"-p", "tidy up here", "--allowedTools", "Bash,Read,Write"}, 5, false},
		{"older", older, scripted, []string{"-p", "tidy up here", "--allowedTools", "Bash,Read,Write"}, 5, false},
		{"newest, an agent", newest, scripted, []string{"-p", "ask somebody else", "--allowedTools", "Bash,Agent"}, 2, false},
		{"newest, a failure", newest, scripted, []string{"-p", "break it"}, 0, true},
		{"older, a failure", older, scripted, []string{"-p", "break it"}, 0, true},
		{"the guide", newest, "tools-demo", []string{"-p", "run echo hello", "--allowedTools", "Bash"}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := recordSession(t, bin, c.scenario, append(c.cli, c.args...), c.fails)
			if c.scenario == "tools-demo" {
				s.runGuide(t)
			}
			for _, files := range [][]string{{s.transcript}, {"log.jsonl"}, {"traffic.jsonl"}, {"log.jsonl", s.transcript, "traffic.jsonl"}} {
				out := s.claudeless(t, append([]string{"import", "-o", "kit", "--force", "--check"}, files...)...)
				if want := fmt.Sprintf("prompts: 1, tool calls: %d", c.calls); !strings.Contains(out, want) {
					t.Errorf("%v: want %s in\n%s", files, want, out)
				}
				if out := s.claudeless(t, "check", "kit/scenario.toml", "kit/mcp.json"); strings.Count(out, "\n") != strings.Count(out, ": ok") {
					t.Errorf("%v: check says more than ok:\n%s", files, out)
				}
			}
		})
	}
}

// realCLI installs the real CLI and builds the binary. The test is skipped if that is impossible.
func realCLI(t *testing.T) (modules, bin string) {
	t.Helper()
	mode := os.Getenv("CLAUDELESS_INTEROP")
	if mode == "" {
		t.Skip("CLAUDELESS_INTEROP is not set; make interop does it")
	}
	h := sdkProject{name: "real", pins: "real/package.json", install: func(ctx context.Context, dir, pins string) error {
		if err := copyFile(filepath.Join(dir, "package.json"), pins); err != nil {
			return err
		}
		return run(ctx, dir, "npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
	}}
	dir, err := h.installDir(t.Context())
	if err == nil {
		err = run(t.Context(), ".", "unshare", "-n", "true")
	}
	switch {
	case err != nil && mode == "require":
		t.Fatalf("the real CLI cannot be run: %v", err)
	case err != nil:
		fmt.Fprintf(os.Stderr, "\n*** SKIPPED: the real CLI cannot be run: %v ***\n\n", err)
		t.SkipNow()
	}
	bin = t.TempDir()
	if err := run(t.Context(), ".", "go", "build", "-o", filepath.Join(bin, "claudeless"), "../../cmd/claudeless"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "node_modules"), bin
}

// realSession is the recorded data of a session of the real CLI.
type realSession struct{ dir, bin, transcript string }

// recordSession runs the real CLI once.
func recordSession(t *testing.T, bin, scenario string, command []string, fails bool) realSession {
	t.Helper()
	s := realSession{dir: t.TempDir(), bin: bin}
	home := filepath.Join(s.dir, "home")
	if err := errors.Join(os.MkdirAll(filepath.Join(s.dir, "cwd"), 0o755), os.MkdirAll(home, 0o755),
		os.WriteFile(filepath.Join(s.dir, "cwd", "a.txt"), []byte("one\ntwo\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	words := append([]string{"-n", "--", "bash", "-c", inNamespace, "bash", scenario}, command...)
	cmd := exec.CommandContext(ctx, "unshare", append(words, "--output-format", "stream-json", "--verbose")...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "CLAUDE_CONFIG_DIR=" + filepath.Join(home, ".claude"), "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic", "TERM=dumb",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "IS_SANDBOX=1",
	}
	if out, err := cmd.CombinedOutput(); (err != nil) != fails {
		t.Fatalf("%v\n%s", err, out)
	}
	transcripts, err := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", "*.jsonl"))
	if err != nil || len(transcripts) != 1 {
		t.Fatalf("transcripts: %v, %v", transcripts, err)
	}
	s.transcript = transcripts[0]
	return s
}

// claudeless runs a command of claudeless that must succeed, and returns all output.
func (s realSession) claudeless(t *testing.T, args ...string) string {
	t.Helper()
	return s.output(t, exec.CommandContext(t.Context(), filepath.Join(s.bin, "claudeless"), args...))
}

func (s realSession) output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.bin + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_ENVIRONMENT=base-url,no-traffic"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		scenario, _ := os.ReadFile(filepath.Join(s.dir, "kit", "scenario.toml")) // it may not exist
		t.Errorf("%v: %v\n%s\n%s", cmd.Args, err, out, scenario)
	}
	return string(out)
}

// runGuide runs the commands that docs/import.md shows for an older session.
func (s realSession) runGuide(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/import.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, _ := strings.Cut(string(text), "## A first import\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(walk, -1)
	if len(commands) != 5 {
		t.Fatalf("%d commands in the guide", len(commands))
	}
	if err := copyFile(filepath.Join(s.dir, "yesterday.jsonl"), filepath.Join(s.dir, "log.jsonl")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"prompts: 1, ", "imported/mcp.json: ok", "clean", "passed"} {
		if out := s.output(t, exec.CommandContext(t.Context(), "sh", "-ec", commands[i+1][1])); !strings.Contains(out, want) {
			t.Errorf("%s\ngave %q, want %q", commands[i+1][1], out, want)
		}
	}
}
