package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// session is what the host controls, in the words of internal/control.
func (h *host) session() control.Session {
	var first *protocol.UserMessage
	if in, ok := h.sim.Deferred(); ok {
		first = &in
	}
	return control.Session{
		First: first, Turn: h.turn, Ready: h.ready, Background: h.background(), Initialize: h.initialize, Connect: h.connect,
		Policy: h.policy, Servers: h.manager, SetServers: h.setServers,
		Model: h.model, SetModel: h.setModel, Rename: h.rename, StopTask: h.stopTask,
		Rewind: h.rewind(), ReadFile: h.readFile,
		ContextUsage: h.contextUsage, Settings: h.settingsInForce, Usage: h.usage, Rules: h.rules,
		Models: func() any { return map[string]any{"models": persona.Models()} },
		Cost:   h.costText, Version: h.Version, BuildTime: persona.BuildTime, TaskOutput: h.taskOutput,
		ApplySettings: h.applySettings, UpdateSettings: h.updateSettings, SideQuestion: h.sideQuestion, RegisterRoot: h.registerRoot,
		Hooks:         h.hooksListing,
		ReloadSkills:  func() any { return map[string]any{"skills": h.skillCommands()} },
		ReloadPlugins: h.reloadPlugins,
		ReloadStyles:  func() any { return map[string]any{"available_output_styles": h.Catalog.Styles()} },
	}
}

// describe answers initialize (spec: cli-contract 4.2).
func (h *host) describe() control.Description {
	said := persona.Init()
	h.Catalog.Fill(&said)
	d := control.Description{
		Commands: []control.Command{}, Agents: []control.Agent{},
		OutputStyle: said.OutputStyle, AvailableOutputStyles: h.Catalog.Styles(),
		Models: persona.Models(), PID: h.PID, ClaudeCodeVersion: h.Version,
		Account:           control.Account{TokenSource: "none", APIKeySource: h.APIKeySource, APIProvider: "firstParty"},
		FeedbackMode:      control.Kind{Kind: "disabled"},
		AnalyticsDisabled: true, FastModeState: said.FastModeState, FastModeDisabledReason: said.FastModeDisabledReason,
		Capabilities: persona.HostCapabilities(),
	}
	if h.State != "" {
		d.UserOutputStylesDir = filepath.Join(h.State, "output-styles")
	}
	d.OutputStyle = h.outputStyle()
	for _, name := range said.SlashCommands {
		if c, ok := h.Catalog.Command(name); ok {
			listed := control.Command{Name: c.Name, Description: c.Description, ArgumentHint: c.Hint}
			if short := c.Alias(); short != "" {
				listed.Aliases = []string{short}
			}
			d.Commands = append(d.Commands, listed)
		} else if b, ok := persona.BuiltinNamed(name); ok {
			d.Commands = append(d.Commands, control.Command{
				Name: b.Name, Description: b.Description, ArgumentHint: b.Hint, Aliases: b.Aliases, Builtin: true,
			})
		}
	}
	for _, a := range h.Catalog.Agents() {
		d.Agents = append(d.Agents, control.Agent{Name: a.Name, Description: a.Description, Model: a.Model})
	}
	return d
}

// usage answers get_usage with the numbers of the last turn that has ended.
func (h *host) usage() any {
	h.mu.Lock()
	cost := h.cost
	h.mu.Unlock()
	models := map[string]protocol.ModelUsage{}
	if last := h.last.Load(); last != nil {
		models = last.ModelUsage
	}
	return map[string]any{
		"session": map[string]any{
			"total_cost_usd": cost.USD, "total_api_duration_ms": cost.APIMS, "total_duration_ms": cost.WallMS,
			"total_lines_added": cost.Added, "total_lines_removed": cost.Removed, "model_usage": models,
		},
		"subscription_type": nil, "rate_limits_available": false, "rate_limits": nil, "behaviors": nil,
	}
}

// costText answers get_session_cost as /cost does.
func (h *host) costText() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cost.Text()
}

// reloadPlugins answers reload_plugins with what there is.
func (h *host) reloadPlugins() any {
	said := persona.Init()
	h.Catalog.Fill(&said)
	d := h.describe()
	type server struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	}
	servers := []server{}
	for _, st := range h.statuses() {
		servers = append(servers, server{st.Name, st.Status})
	}
	return map[string]any{
		"commands": d.Commands, "agents": d.Agents, "plugins": said.Plugins, "mcpServers": servers, "error_count": len(said.PluginErrors),
	}
}

// taskOutput reads what a command in the background has written so far.
func (h *host) taskOutput(id string) ([]byte, bool) {
	if t, ok := h.tasks.Find(id); !ok || t.Kind != task.Bash {
		return nil, false
	}
	data, err := h.tasks.Output(id)
	return data, err == nil
}

// usageCategory is one kind of use as get_context_usage shows it.
type usageCategory struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Color  string `json:"color"`
	Kind   string `json:"kind"` // used, buffer, free
}

// usageSquare is one square of the picture of the context.
type usageSquare struct {
	Color      string  `json:"color"`
	IsFilled   bool    `json:"isFilled"`
	Category   string  `json:"categoryName"`
	Tokens     int     `json:"tokens"`
	Percentage int     `json:"percentage"`
	Fullness   float64 `json:"squareFullness"` // 0 to 1
}

// contextUsage answers get_context_usage (spec: cli-contract 4.3).
func (h *host) contextUsage() any {
	h.mu.Lock()
	c := h.sim.Context()
	h.mu.Unlock()
	categories := []usageCategory{}
	for _, k := range c.Categories {
		id := strings.ToLower(strings.ReplaceAll(k.Name, " ", "_"))
		categories = append(categories, usageCategory{ID: id, Name: k.Name, Tokens: k.Tokens, Color: categoryColor(id), Kind: k.Kind})
	}
	type agent struct {
		Type   string `json:"agentType"`
		Source string `json:"source"`
		Tokens int    `json:"tokens"`
	}
	agents := []agent{}
	for _, a := range c.Agents {
		agents = append(agents, agent{a.Name, a.Source, a.Tokens})
	}
	skills := 0
	for _, s := range c.Skills {
		skills += s.Tokens
	}
	var api *protocol.Usage
	if last := h.last.Load(); last != nil {
		api = &last.Usage
	}
	none := []any{}
	return map[string]any{
		"categories": categories, "totalTokens": c.TotalTokens, "maxTokens": c.MaxTokens, "rawMaxTokens": c.MaxTokens,
		"percentage": c.Percentage, "gridRows": usageGrid(categories, c.MaxTokens), "model": c.Model, "memoryFiles": c.MemoryFiles,
		"mcpTools": h.toolUse(c.MCPTools), "mcpInstructions": none, "agents": agents, "isAutoCompactEnabled": true,
		"autoCompactThreshold": c.MaxTokens - slash.CompactBuffer, "autocompactSource": "model-default", "apiUsage": api,
		"slashCommands": map[string]int{"totalCommands": len(c.Skills), "includedCommands": len(c.Skills), "tokens": 0},
		"skills":        map[string]any{"totalSkills": len(c.Skills), "includedSkills": len(c.Skills), "tokens": skills, "skillFrontmatter": c.Skills},
		"messageBreakdown": map[string]any{
			"toolCallTokens": 0, "toolResultTokens": 0, "attachmentTokens": 0, "assistantMessageTokens": 0, "userMessageTokens": 0,
			"redirectedContextTokens": 0, "unattributedTokens": 0, "toolCallsByType": none, "attachmentsByType": none,
		},
	}
}

// categoryColor is the color of the real CLI's theme for a category.
func categoryColor(id string) string {
	colors := map[string]string{
		"system_prompt": "promptBorder", "custom_agents": "permission", "memory_files": "claude", "skills": "warning",
		"messages": "purple_FOR_SUBAGENTS_ONLY", "free_space": "promptBorder",
	}
	if color, ok := colors[id]; ok {
		return color
	}
	return "inactive"
}

// toolUse tells how much room the tools of servers take.
func (h *host) toolUse(items []slash.Item) any {
	type tool struct {
		Name   string `json:"name"`
		Server string `json:"serverName"`
		Tokens int    `json:"tokens"`
		Loaded bool   `json:"isLoaded"`
	}
	servers := map[string]mcp.ServerStatus{}
	for _, st := range h.statuses() {
		for _, t := range st.Tools {
			servers[t.Name] = st
		}
	}
	list := []tool{}
	for _, i := range items {
		st := servers[i.Name]
		list = append(list, tool{i.Name, st.Name, i.Tokens, st.Config.AlwaysLoad})
	}
	return list
}

const usageRows, usageColumns = 10, 20

// usageGrid draws the context: every category that is used has one square at
// least, the buffer is at the end, and the rest is free.
func usageGrid(categories []usageCategory, window int) [][]usageSquare {
	const all = usageRows * usageColumns
	perSquare := float64(max(1, window)) / all
	squares := func(k usageCategory) []usageSquare {
		exact := float64(k.Tokens) / perSquare
		n := int(exact)
		if float64(n) < exact && k.Kind != "free" {
			n++
		}
		var out []usageSquare
		for i := range n {
			out = append(out, usageSquare{k.Color, true, k.Name, k.Tokens, k.Tokens * 100 / max(1, window), min(1, exact-float64(i))})
		}
		return out
	}
	var used, buffer []usageSquare
	free := usageSquare{IsFilled: true, Fullness: 1}
	for _, k := range categories {
		switch k.Kind {
		case "free":
			free = usageSquare{k.Color, true, k.Name, k.Tokens, k.Tokens * 100 / max(1, window), 1}
		case "buffer":
			buffer = append(buffer, squares(k)...)
		default:
			used = append(used, squares(k)...)
		}
	}
	line := used[:min(len(used), all)]
	for len(line)+len(buffer) < all {
		line = append(line, free)
	}
	line = append(line, buffer...)[:all]
	var rows [][]usageSquare
	for i := range usageRows {
		rows = append(rows, line[i*usageColumns:(i+1)*usageColumns])
	}
	return rows
}

// skillCommands are the skills that reload_skills lists.
func (h *host) skillCommands() []any {
	list := []any{}
	for _, c := range h.describe().Commands {
		b, builtin := persona.BuiltinNamed(c.Name)
		k, custom := h.Catalog.Command(c.Name)
		if custom && k.Skill || builtin && !custom && b.Skill {
			list = append(list, c)
		}
	}
	return list
}

// readFile reads a file that the Read tool could read without asking.
func (h *host) readFile(path string) (string, []byte, error) {
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(h.CWD, abs)
	}
	input, err := protocol.Marshal(map[string]string{"file_path": abs})
	if err != nil {
		return "", nil, err
	}
	if h.policy.Decide(protocol.ToolUse{Type: "tool_use", Name: "Read", Input: input}).Behavior != permission.Allow {
		return "", nil, fs.ErrPermission
	}
	// Requests are read behind this one: what may never end is not opened.
	if info, err := os.Stat(abs); err != nil || !info.Mode().IsRegular() {
		return "", nil, cmp.Or(err, fs.ErrInvalid)
	}
	data, err := os.ReadFile(abs)
	return abs, data, err
}

// sideQuestion has the scripted model answer beside the conversation, of which
// it takes no note.
func (h *host) sideQuestion(ctx context.Context, question string) (control.Aside, error) {
	reply, err := h.engine.Subagent(nil).Next(ctx, scenarios.Request{Prompt: question})
	if err == nil {
		err = h.Clock.Sleep(ctx, time.Duration(reply.DelayMS)*time.Millisecond)
	}
	if err != nil {
		return control.Aside{}, err
	}
	if reply.Failure != nil {
		h.mu.Lock() // initialize may make another simulator
		text := strings.TrimPrefix(h.sim.FailureText(reply.Failure), "API Error: ")
		h.mu.Unlock()
		return control.Aside{Text: "(API error: " + text + ")", Synthetic: true}, nil
	}
	var said strings.Builder
	for _, block := range reply.Blocks {
		switch block := block.(type) {
		case protocol.TextBlock:
			said.WriteString(block.Text)
		case protocol.ToolUse:
			return control.Aside{Text: "(The model tried to call " + block.Name +
				" instead of answering directly. Try rephrasing or ask in the main conversation.)", Synthetic: true}, nil
		}
	}
	return control.Aside{Text: said.String()}, nil
}

// registerRoot makes a directory below the working directory, or below one of
// --add-dir, a working directory of its own (texts: 2.1.329).
func (h *host) registerRoot(given string) (string, error) {
	refuse := func(text string) (string, error) { return "", errors.New("register_repo_root: " + text) }
	path := given
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.CWD, path)
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return refuse("target path could not be resolved")
	}
	below := h.CWD != dir && strings.HasPrefix(dir, h.CWD+string(filepath.Separator))
	for _, d := range h.policy.Added() {
		if d.Path == dir {
			return refuse(given + " is already a registered working directory")
		}
		below = below || d.Source == "cliArg" && strings.HasPrefix(dir, d.Path+string(filepath.Separator))
	}
	switch {
	case dir == h.CWD:
		return refuse(given + " is the session's working directory, which is already registered; pass the cloned repo's own directory instead")
	case !below:
		return refuse(given + " is not a subdirectory of the session's working directory or of a launch-time --add-dir root that still leads where it first did")
	case !isDir(dir):
		return refuse(given + " is not a directory")
	}
	h.policy.Apply([]protocol.PermissionUpdate{{Type: "addDirectories", Directories: []string{dir}, Destination: fromSession}})
	return dir, nil
}

// hooksListing answers get_hooks_listing.
func (h *host) hooksListing() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.inForce()
	var sources []hook.Source
	for _, s := range now.Hooks {
		sources = append(sources, hook.Source{Name: string(s.Source), Raw: s.Raw})
	}
	return hook.List(sources, hook.Policy{AllDisabled: now.DisableAllHooks})
}
