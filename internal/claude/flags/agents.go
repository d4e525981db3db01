package flags

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// loadAndCheckAgentsFlag validates --agents and replaces a file name with the content of the file.
func loadAndCheckAgentsFlag(s *process.System, f *Flags) error {
	if f.Agents == "" {
		return nil
	}
	from := ""
	if raw := strings.TrimSpace(f.Agents); !strings.HasPrefix(raw, "{") && (!json.Valid([]byte(raw)) || raw == "null") {
		path, err := f.Abs(s, f.Agents)
		if err != nil {
			return err
		}
		content, err := plainjson.ReadBounded(path)
		if err != nil {
			return process.Verbatimf("Error: --agents file not found: %s (a value that is not a JSON object is read as a file path)", path)
		}
		f.Agents, from = string(content), "\n(read from "+path+")"
	}
	if problems := AgentsProblems(json.RawMessage(f.Agents)); len(problems) > 0 {
		return process.Verbatimf("Error: Invalid --agents configuration:\n%s%s", strings.Join(problems, "\n"), from)
	}
	return nil
}

// AgentsProblems describes the problems in a JSON object of agents, with the texts of the real CLI.
func AgentsProblems(raw json.RawMessage) []string {
	if err := plainjson.SyntaxError(raw); err != nil {
		return []string{"invalid JSON: " + err.Error()}
	}
	agents, err := plainjson.Parse(raw)
	if err != nil {
		return []string{"Invalid input: expected record, received " + plainjson.TypeOf(raw)}
	}
	var problems []string
	for _, a := range agents {
		agent, err := plainjson.Parse(a.Value)
		if err != nil {
			problems = append(problems, a.Key+": Invalid input: expected object, received "+plainjson.TypeOf(a.Value))
			continue
		}
		problems = append(problems, agentProblems(a.Key, agent)...)
	}
	return problems
}

// agentProblems validates the keys of one agent in the order in which the real CLI reports them.
func agentProblems(name string, agent plainjson.Object) []string {
	var problems []string
	for _, key := range []struct {
		name    string
		problem func(json.RawMessage) string // message after the key; empty means that the value is valid
	}{
		{"description", stringProblemFunc("Description cannot be empty", func(text string) bool { return text != "" })},
		{"tools", stringsProblem},
		{"disallowedTools", stringsProblem},
		{"prompt", jsonTypeProblemFunc("string")},
		{"model", stringProblemFunc("Model cannot be empty", func(text string) bool { return strings.TrimSpace(text) != "" })},
		{"effort", describeInvalidAgentEffort},
		{"permissionMode", permissionModeProblem},
		{"mcpServers", jsonTypeProblemFunc("array")},
		{"hooks", jsonTypeProblemFunc("record")},
		{"maxTurns", positiveNumberProblem},
		{"skills", stringsProblem},
		{"initialPrompt", jsonTypeProblemFunc("string")},
		{"memory", choiceProblemFunc("user", "project", "local")},
		{"background", jsonTypeProblemFunc("boolean")},
		{"isolation", choiceProblemFunc("worktree", "remote")},
	} {
		value := agent.Get(key.name)
		if value == nil && key.name != "description" && key.name != "prompt" {
			continue
		}
		if problem := key.problem(value); problem != "" {
			problems = append(problems, name+"."+key.name+problem)
		}
	}
	return problems
}

func jsonTypeProblemFunc(want string) func(json.RawMessage) string {
	return func(value json.RawMessage) string {
		got := plainjson.TypeOf(value)
		if got == want || got == "object" && want == "record" {
			return ""
		}
		return ": Invalid input: expected " + want + ", received " + got
	}
}

func stringProblemFunc(problem string, isValid func(string) bool) func(json.RawMessage) string {
	return func(value json.RawMessage) string {
		var text string
		if err := json.Unmarshal(value, &text); err == nil && plainjson.TypeOf(value) == "string" && !isValid(text) {
			return ": " + problem
		}
		return jsonTypeProblemFunc("string")(value)
	}
}

func stringsProblem(value json.RawMessage) string {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) == nil {
		for i, item := range items {
			if problem := jsonTypeProblemFunc("string")(item); problem != "" {
				return "." + strconv.Itoa(i) + problem
			}
		}
	}
	return jsonTypeProblemFunc("array")(value)
}

// permissionModeProblem describes an invalid mode. It also accepts "manual", another name of the default mode.
func permissionModeProblem(value json.RawMessage) string {
	if string(value) == `"manual"` {
		return ""
	}
	return choiceProblemFunc("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")(value)
}

func choiceProblemFunc(options ...string) func(json.RawMessage) string {
	return func(value json.RawMessage) string {
		var text string
		if json.Unmarshal(value, &text) == nil && slices.Contains(options, text) {
			return ""
		}
		return `: Invalid option: expected one of "` + strings.Join(options, `"|"`) + `"`
	}
}

// describeInvalidAgentEffort describes an invalid effort. Effort names and whole numbers are valid.
func describeInvalidAgentEffort(effortJSON json.RawMessage) (problemOrEmpty string) {
	var name string
	var amount int
	if json.Unmarshal(effortJSON, &name) == nil && slices.Contains(claudecode.EffortLevels(), name) || json.Unmarshal(effortJSON, &amount) == nil && plainjson.TypeOf(effortJSON) == "number" {
		return ""
	}
	return ": Invalid input"
}

func positiveNumberProblem(value json.RawMessage) string {
	var amount float64
	if problem := jsonTypeProblemFunc("number")(value); problem != "" || json.Unmarshal(value, &amount) != nil {
		return problem
	}
	switch {
	case amount != math.Trunc(amount):
		return ": Invalid input: expected int, received number"
	case amount <= 0:
		return ": Too small: expected number to be >0"
	}
	return ""
}
