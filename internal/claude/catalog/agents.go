package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Agent is a kind of sub-agent. Its JSON keys are those of --agents.
type Agent struct {
	Name        string          `json:"-"`
	Description string          `json:"description"`
	Prompt      string          `json:"prompt"`
	Tools       []string        `json:"tools"` // nil means all tools
	Disallowed  []string        `json:"disallowedTools"`
	Model       string          `json:"model"`
	Effort      any             `json:"effort"` // a level, or a number in --agents; nil means the effort of the session
	MaxTurns    int             `json:"maxTurns"`
	Background  *bool           `json:"background"`
	Isolation   string          `json:"isolation"`      // "worktree" means that the agent works in a separate git worktree
	Mode        string          `json:"permissionMode"` // permission mode of its calls; empty or unknown means the session's
	Hooks       json.RawMessage `json:"hooks"`          // hooks while the agent runs, as in settings files; nil means none
	Skills      []string        `json:"skills"`         // skills that are loaded before the agent's prompt
	Memory      string          `json:"memory"`         // "user", "project" or "local" if the agent keeps a memory
	First       string          `json:"initialPrompt"`  // precedes the prompt of a run whose main agent this is
	Source      string          `json:"-"`              // "built-in", "userSettings", "projectSettings", "plugin", "flagSettings"
	Path        string          `json:"-"`              // file; empty means none
}

// DefineAgents adds the agents of a JSON object that is keyed by name, as in --agents and in initialize.
func (c *Catalog) DefineAgents(raw json.RawMessage, source string) error {
	var defs map[string]Agent
	if err := json.Unmarshal(raw, &defs); err != nil {
		return fmt.Errorf("reading agents: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, d := range defs {
		d.Name, d.Source = name, source
		c.agents[name] = d.withToolsForMemory()
	}
	return nil
}

// withToolsForMemory adds the tools that an agent with a memory needs to the agent's list of tools.
func (a Agent) withToolsForMemory() Agent {
	if a.Tools != nil && slices.Contains([]string{"user", "project", "local"}, a.Memory) {
		missing := slices.DeleteFunc([]string{"Write", "Edit", "Read"}, func(tool string) bool { return slices.Contains(a.Tools, tool) })
		a.Tools = append(slices.Clone(a.Tools), missing...)
	}
	return a
}

// Agent returns the kind of agent with this name, or false if none has it.
func (c *Catalog) Agent(name string) (Agent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.agents[name]
	return a, ok
}

// Agents lists the kinds of agents, sorted by name as in the real CLI.
func (c *Catalog) Agents() []Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.AppendSeq(make([]Agent, 0, len(c.agents)), maps.Values(c.agents))
	slices.SortFunc(list, func(a, b Agent) int { return compareNamesInRealCLIOrder(a.Name, b.Name) })
	return list
}

// AgentNames lists the names of the agents in [Catalog.Agents].
func (c *Catalog) AgentNames() []string {
	return mapToNames(c.Agents(), func(a Agent) string { return a.Name })
}

func builtinAgents() []Agent {
	return []Agent{
		{Name: "claude", Description: "Catch-all agent for tasks that fit no other.", Source: "built-in"},
		{Name: "claude-code-guide", Description: "Answers questions about Claude Code and its SDK.", Source: "built-in", Model: "haiku", Mode: "dontAsk", Tools: []string{"Bash", "Read", "WebFetch", "WebSearch"}},
		{Name: "Explore", Description: "Explores a code base without changing it.", Source: "built-in", Model: "inherit", Disallowed: []string{"Agent", "Edit", "Write", "NotebookEdit", "ExitPlanMode"}},
		{Name: "general-purpose", Description: "Works on tasks of several steps.", Source: "built-in"},
		{Name: "Plan", Description: "Plans an implementation without changing anything.", Source: "built-in", Model: "inherit", Disallowed: []string{"Agent", "Edit", "Write", "NotebookEdit", "ExitPlanMode"}},
		{Name: "statusline-setup", Description: "Sets up the status line.", Source: "built-in", Model: "sonnet", Tools: []string{"Read", "Edit"}},
	}
}

func (l *loader) addAgent(doc markdownDocument, source, path string) {
	name := doc.textOfKey("name")
	if name == "" || source != pluginSource && doc.textOfKey("description") == "" { // such as a README next to the agent files
		return
	}
	a := Agent{
		Name: l.plugin.namePrefix + name, Description: doc.textOfKey("description"), Prompt: l.expandPluginDirs(strings.TrimSpace(doc.body), strings.Clone), Tools: doc.commaListOfKey("tools"),
		Disallowed: doc.commaListOfKey("disallowedTools"), Model: doc.textOfKey("model"), MaxTurns: doc.numberOfKey("maxTurns"),
		Background: doc.boolOfKey("background"), Isolation: doc.textOfKey("isolation"), Source: source,
		Skills: doc.commaListOfKey("skills"), Memory: doc.textOfKey("memory"), First: doc.textOfKey("initialPrompt"), Effort: doc.frontMatter["effort"], Path: path,
	}
	if source != pluginSource {
		a.Mode, a.Hooks = doc.textOfKey("permissionMode"), doc.frontMatterObjectJSON("hooks")
	}
	l.catalog.agents[a.Name] = a.withToolsForMemory()
}
