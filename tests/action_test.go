package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestAction runs the last step of the GitHub action as a runner does: the inputs are
// variables, and its exit code and annotations are the verdict.
func TestAction(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the action is run by bash")
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Name, Run string
				Env       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	step := action.Runs.Steps[len(action.Runs.Steps)-1]
	if step.Name != "Run" {
		t.Fatalf("the last step is %q", step.Name)
	}
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
		{"a report", map[string]string{"run": "claude -p known", "junit": "report.xml"}, 0, ""},
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
			if name := tt.inputs["junit"]; name != "" {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
