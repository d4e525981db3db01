package flags

import (
	_ "embed" // for agent.json
	"encoding/json"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
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

//go:embed agent.json
var agentSchemaJSON string

var agentSchema = sync.OnceValue(func() *plainjson.Schema { return plainjson.ParseSchemas(agentSchemaJSON)["agent"] })

// agentProblems validates the keys of one agent in the order in which the real CLI reports them.
func agentProblems(name string, agent plainjson.Object) []string {
	if model, ok := plainjson.StringValue(agent.Get("model")); ok {
		agent = agent.Set("model", json.RawMessage(plainjson.MarshalString(strings.TrimSpace(model))))
	}
	if string(agent.Get("permissionMode")) == `"manual"` { // another name of the default mode, which the messages do not mention
		agent = agent.Delete("permissionMode")
	}
	emptyMessages := map[string]string{"description": "Description cannot be empty", "model": "Model cannot be empty"}
	var problems []string
	for _, i := range agentSchema().Issues(agent.Raw()) {
		if empty := emptyMessages[i.LastKey()]; empty != "" && i.Code == plainjson.IssueTooSmall {
			i.Message = empty
		}
		problems = append(problems, name+"."+i.DottedPath()+": "+i.Message)
	}
	return problems
}
