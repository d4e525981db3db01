package simtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simtest"
)

// conformanceCase is a script of packages/conformance: the same names have the same meaning in the three languages.
type conformanceCase struct {
	Name     string            `json:"name"`
	Script   []json.RawMessage `json:"script"`
	File     string            `json:"file"` // a scenario in place of the script
	On       []answer          `json:"on"`
	Runs     []recordedRequest `json:"runs"`
	Prompts  *[]string         `json:"prompts"`
	Tools    *[]recordedRun    `json:"tools"`
	Problems []string          `json:"problems"`
}

type answer struct {
	Prompt struct{ Text, Regex string } `json:"prompt"`
	Steps  []json.RawMessage            `json:"steps"`
}

// prompt returns the pattern for On.
func (a *answer) prompt() any {
	if a.Prompt.Regex != "" {
		return regexp.MustCompile(a.Prompt.Regex)
	}
	return a.Prompt.Text
}

type recordedRequest struct {
	Args    []string `json:"args"`
	API     string   `json:"api"`
	Exit    int      `json:"exit"`
	Stdout  *string  `json:"stdout"`
	Matches string   `json:"matches"`
	Text    *string  `json:"text"`
	Status  int      `json:"status"`
}

type recordedRun struct {
	Name  string `json:"name"`
	Input any    `json:"input"`
}

// scriptedClaude is the common interface of Claude and API.
type scriptedClaude interface {
	Prompts() []simtest.Prompt
	Tools() []simtest.Tool
}

func TestConformance(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../packages/conformance/scripts.json")
	if err != nil {
		t.Fatal(err)
	}
	var scripts []conformanceCase
	if err := json.Unmarshal(text, &scripts); err != nil {
		t.Fatal(err)
	}
	for _, c := range scripts {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			f := &recordingTB{TB: t}
			got := c.play(t, f)
			if got != nil && c.Prompts != nil {
				var prompts []string
				for _, p := range got.Prompts() {
					prompts = append(prompts, p.Text)
				}
				if diff := cmp.Diff(*c.Prompts, prompts); diff != "" {
					t.Errorf("prompts (-want +got):\n%s", diff)
				}
			}
			if got != nil && c.Tools != nil {
				var tools []recordedRun
				for _, tool := range got.Tools() {
					tools = append(tools, recordedRun{tool.Name, decoded(t, tool.Input)})
				}
				if diff := cmp.Diff(*c.Tools, tools); diff != "" {
					t.Errorf("tools (-want +got):\n%s", diff)
				}
			}
			problems := f.end()
			if len(problems) > 0 != (len(c.Problems) > 0) {
				t.Errorf("problems: %q, want %q", problems, c.Problems)
			}
			for _, want := range c.Problems {
				if !regexp.MustCompile("(?s)" + want).MatchString(strings.Join(problems, "\n")) {
					t.Errorf("problems: %q, want %q", problems, want)
				}
			}
		})
	}
}

// play plays a script with claude or the Messages API, as its runs require.
func (c *conformanceCase) play(t *testing.T, f *recordingTB) scriptedClaude {
	t.Helper()
	script := scenarioSteps(t, c.Script)
	if len(c.Runs) > 0 && c.Runs[0].API != "" {
		api := simtest.Server(f, script...)
		for _, rule := range c.On {
			api.On(rule.prompt(), scenarioSteps(t, rule.Steps)...)
		}
		for _, run := range c.Runs {
			run.sendToAPI(t, api)
		}
		return api
	}
	directory := t.TempDir()
	var claude *simtest.Claude
	if c.File != "" {
		file := filepath.Join(directory, "s.toml")
		if err := os.WriteFile(file, []byte(c.File), 0o600); err != nil {
			t.Fatal(err)
		}
		claude = simtest.File(f, file)
	} else {
		claude = simtest.New(f, script...)
	}
	for _, rule := range c.On {
		claude.On(rule.prompt(), scenarioSteps(t, rule.Steps)...)
	}
	for _, run := range c.Runs {
		run.ask(t, claude, directory)
	}
	return claude
}

func scenarioSteps(t *testing.T, forms []json.RawMessage) []any {
	t.Helper()
	var all []any
	for _, form := range forms {
		all = append(all, step(t, decoded(t, form)))
	}
	return all
}

func step(t *testing.T, form any) any {
	t.Helper()
	switch form := form.(type) {
	case []any:
		var parts []any
		for _, part := range form {
			parts = append(parts, step(t, part))
		}
		return simtest.Say(parts...)
	case map[string]any:
		if tool, ok := form["call"].(string); ok {
			return simtest.Call(tool, form["input"])
		}
		failure := simtest.Fail(form["fail"].(string))
		for key, value := range form {
			if key != "fail" {
				failure = failure.With(key, value)
			}
		}
		return failure
	}
	return form
}

func (a *recordedRequest) ask(t *testing.T, claude *simtest.Claude, directory string) {
	t.Helper()
	cmd := exec.Command(claude.Path, append([]string{"-p"}, a.Args...)...)
	cmd.Env, cmd.Dir = append(claude.Env(), "CLAUDELESS_RETRY_SCALE=0"), directory
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != a.Exit {
		t.Errorf("%v: %v, want %d\n%s", a.Args, err, a.Exit, &stderr)
	}
	if a.Stdout != nil && string(out) != *a.Stdout {
		t.Errorf("%v: it says %q, want %q", a.Args, out, *a.Stdout)
	}
	if !regexp.MustCompile("(?s)" + a.Matches).Match(out) {
		t.Errorf("%v: it says %q, want %s", a.Args, out, a.Matches)
	}
}

func (a *recordedRequest) sendToAPI(t *testing.T, api *simtest.API) {
	t.Helper()
	prompt, _ := json.Marshal(a.API)
	resp, err := http.Post(api.URL+"/v1/messages", "application/json", strings.NewReader(
		`{"model":"claude-opus-5-5","max_tokens":100,"messages":[{"role":"user","content":`+string(prompt)+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Content []struct{ Text string } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if a.Text != nil && (len(answer.Content) != 1 || answer.Content[0].Text != *a.Text) {
		t.Errorf("%s: %+v, want %q", a.API, answer, *a.Text)
	}
	if a.Status != 0 && resp.StatusCode != a.Status {
		t.Errorf("%s: status %d, want %d", a.API, resp.StatusCode, a.Status)
	}
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
