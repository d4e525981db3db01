package docs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// githubAction is the part of action.yml that the tests use.
type githubAction struct {
	Inputs map[string]struct{ Default string }
	Runs   struct{ Steps []actionStep }
}

type actionStep struct {
	Name, Run, Uses string
	Env             map[string]string
}

func readAction(t *testing.T) githubAction {
	t.Helper()
	var action githubAction
	if err := yaml.Unmarshal([]byte(tree.ReadFile(t, "action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	return action
}

func (a githubAction) step(t *testing.T, name string) actionStep {
	t.Helper()
	i := slices.IndexFunc(a.Runs.Steps, func(s actionStep) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("action.yml has no step %q", name)
	}
	return a.Runs.Steps[i]
}

// TestAction runs the step "Run" of the GitHub action as a runner does: the inputs are
// variables, and its exit code and annotations are the verdict.
func TestAction(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the action is run by bash")
	}
	action := readAction(t)
	step := action.step(t, "Run")
	const (
		scenario = "[[responses]]\npattern = { type = \"exact\", text = \"known\" }\nresponse = \"yes\"\n\n[[expect]]\nprompt = { type = \"exact\", text = \"known\" }\n"
		server   = `{"mcpServers": {"weather": {"command": "${CLAUDELESS_BIN}", "args": ["fixture", "serve", "weather"]}}}`
	)
	for _, tt := range []struct {
		name   string
		inputs map[string]string
		code   int
		shown  string
	}{
		{"green", map[string]string{"run": "test \"$(claude -p known)\" = yes"}, 0, ""},
		{"the command fails", map[string]string{"run": "claude -p known\nfalse\necho unreached"}, 1, ""},
		{"the verdict fails", map[string]string{"run": "true"}, 3, "s.toml,line=5::expected a prompt"},
		{"servers for every claude", map[string]string{"run": "claude -p known --output-format stream-json --verbose > out\ngrep -q mcp__weather__ out", "mcp-config": "mcp.json"}, 0, ""},
		{"faults, each survived or reported", map[string]string{"run": "claude -p known || { echo claude failed >&2; exit 1; }", "faults": "529-storm,crlf"}, 0, ""},
		{"a fault that is swallowed", map[string]string{"run": "claude -p known || true", "faults": "529-storm"}, 4, "1 fault, 1 lied"},
		{"an unknown lane", map[string]string{"run": "true", "lane": "both"}, 2, "use fake or real"},
		{"reports", map[string]string{"run": "claude -p known", "junit": "report.xml", "report": "report.html"}, 0, ""},
		{"reports of a red run", map[string]string{"run": "true", "junit": "report.xml", "report": "report.html"}, 3, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"s.toml": scenario, "mcp.json": server} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), bash, "-e", "-o", "pipefail", "-c", step.Run) // as `shell: bash` does
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GITHUB_ACTIONS=true")
			for variable, from := range step.Env {
				input := strings.TrimSuffix(strings.TrimPrefix(from, "${{ inputs."), " }}")
				value, given := tt.inputs[input]
				if input == "scenario" {
					value, given = "s.toml", true
				}
				declared, known := action.Inputs[input]
				if !known {
					t.Fatalf("%s is %q, which is no input", variable, from)
				}
				if !given {
					value = declared.Default
				}
				cmd.Env = append(cmd.Env, variable+"="+value)
			}
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != tt.code || !strings.Contains(string(out), tt.shown) || strings.Contains(string(out), "unreached") {
				t.Errorf("exit code %d, want %d and %q:\n%s", got, tt.code, tt.shown, out)
			}
			for _, input := range []string{"junit", "report"} {
				if name := tt.inputs[input]; name != "" {
					if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// TestActionInstall plays the steps that choose and install the archive against a server with one release. A cached
// archive is not downloaded again, and one without the right checksum is refused and not kept.
func TestActionInstall(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the release that the test makes is for Linux")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the action is run by bash")
	}
	version := strings.TrimSpace(tree.ReadFile(t, "internal/cli/version.txt"))
	name := "claudeless_" + version + "_linux_amd64"
	archive := archiveOf(t, name)
	for _, tt := range []struct {
		name   string
		sums   string
		runs   int
		ok     bool
		loaded int // requests that the server sees
	}{
		{"a release", fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive), name), 1, true, 2},
		{"a cached release", fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive), name), 2, true, 2},
		{"another checksum", fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256([]byte("other")), name), 2, false, 4},
		{"no checksum for the archive", fmt.Sprintf("%x  other.tar.gz\n", sha256.Sum256(archive)), 1, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				switch r.URL.Path {
				case "/v" + version + "/" + name + ".tar.gz":
					_, _ = w.Write(archive)
				case "/v" + version + "/SHA256SUMS":
					_, _ = io.WriteString(w, tt.sums)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(server.Close)
			temp := t.TempDir()
			var out string
			for range tt.runs {
				out, err = installByAction(t, bash, temp, server.URL)
			}
			if (err == nil) != tt.ok || int(requests.Load()) != tt.loaded {
				t.Fatalf("installed: %v, want %v; %d requests, want %d:\n%s", err == nil, tt.ok, requests.Load(), tt.loaded, out)
			}
			path, _ := os.ReadFile(filepath.Join(temp, "path"))
			if !tt.ok {
				if len(path) > 0 || !strings.Contains(out, "does not have the checksum") {
					t.Errorf("refused, but PATH gets %q:\n%s", path, out)
				}
				return
			}
			if text, err := exec.CommandContext(t.Context(), filepath.Join(strings.Fields(string(path))[0], "claudeless")).Output(); err != nil || string(text) != "from the release\n" {
				t.Errorf("the installed program prints %q: %v", text, err)
			}
		})
	}
}

// installByAction plays the first steps of the action on a Linux runner whose temporary directory is temp. The outputs
// of the first step are variables of the step that installs.
func installByAction(t *testing.T, bash, temp, releases string) (string, error) {
	t.Helper()
	action := readAction(t)
	root, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(temp, "output")
	env := append(os.Environ(), "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+temp, "GITHUB_OUTPUT="+output, "GITHUB_PATH="+filepath.Join(temp, "path"))
	play := func(name string, variables ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), bash, "-e", "-o", "pipefail", "-c", action.step(t, name).Run)
		cmd.Env = append(slices.Clip(env), variables...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := play("Choose the archive", "VERSION=", "ACTION="+root); err != nil {
		return out, err
	}
	lines, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for line := range strings.Lines(string(lines)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		outputs["${{ steps.release.outputs."+key+" }}"] = value
	}
	variables := []string{"RELEASES=" + releases}
	for variable, from := range action.step(t, "Install").Env {
		if variable == "RELEASES" {
			continue
		}
		value, known := outputs[from]
		if !known {
			t.Fatalf("%s is %q, which the first step does not write", variable, from)
		}
		variables = append(variables, variable+"="+value)
	}
	return play("Install", variables...)
}

// archiveOf returns a release archive whose program prints one line.
func archiveOf(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	text := []byte("#!/bin/sh\necho from the release\n")
	if err := w.WriteHeader(&tar.Header{Name: name + "/claudeless", Mode: 0o755, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{w, z} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestActionDocumented compares the page about the Action with the Action: the workflow is the one that init writes,
// and the table has every input with its default.
func TestActionDocumented(t *testing.T) {
	t.Parallel()
	page := tree.ReadFile(t, "docs/github-action.md")
	if workflow := tree.ReadFile(t, "internal/cli/help/files/ci.yml"); !strings.Contains(page, "```yaml\n"+workflow+"```\n") {
		t.Error("the workflow on the page is not the one that claudeless init writes")
	}
	inputs := readAction(t).Inputs
	var rows []string
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			rows = append(rows, name[:strings.Index(name, "`")])
		}
	}
	if got, want := slices.Sorted(slices.Values(rows)), slices.Sorted(maps.Keys(inputs)); !slices.Equal(got, want) {
		t.Errorf("the page has the inputs %v, the Action %v", got, want)
	}
}

// TestActionPins checks that every workflow and the action use actions pinned by commit, with the version next to it.
func TestActionPins(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range append(files, "../../action.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, uses, ok := strings.Cut(line, "uses: "); ok {
				seen++
				if uses = strings.TrimSpace(uses); !pinned.MatchString(uses) && !strings.HasPrefix(uses, "./") {
					t.Errorf("%s: %q is not pinned by commit with its version in a comment", file, uses)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no action is used anywhere")
	}
}
