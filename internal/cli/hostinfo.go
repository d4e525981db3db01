package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// session is what the host controls, in the words of internal/control.
func (h *host) session() control.Session {
	return control.Session{
		Turn: h.turn, Ready: h.ready, Background: h.background(), Initialize: h.initialize, Connect: h.connect,
		Policy: h.policy, Servers: h.manager, SetServers: h.setServers,
		Model: h.model, SetModel: h.setModel, Rename: h.rename, StopTask: h.stopTask,
		Rewind: h.rewind(), ReadFile: h.readFile,
		ContextUsage: h.contextUsage, Settings: h.settingsInForce, Usage: h.usage, Rules: h.rules,
		Models: func() any { return map[string]any{"models": persona.Models()} },
		Cost:   h.costText, Version: h.version(),
	}
}

// describe answers initialize (spec: cli-contract 4.2).
func (h *host) describe() control.Description {
	said := persona.Init()
	h.catalog.Fill(&said)
	d := control.Description{
		Commands: []control.Command{}, Agents: []control.Agent{},
		OutputStyle: said.OutputStyle, AvailableOutputStyles: h.catalog.Styles(),
		Models: persona.Models(), PID: os.Getpid(), ClaudeCodeVersion: h.version(),
		Account:           control.Account{TokenSource: "none", APIKeySource: "none", APIProvider: "firstParty"},
		FeedbackMode:      control.Kind{Kind: "disabled"},
		AnalyticsDisabled: true, FastModeState: said.FastModeState, FastModeDisabledReason: said.FastModeDisabledReason,
		Capabilities: persona.HostCapabilities(),
	}
	if h.dir != "" {
		d.UserOutputStylesDir = filepath.Join(h.dir, "output-styles")
	}
	if h.settings.OutputStyle != "" {
		d.OutputStyle = h.settings.OutputStyle
	}
	if h.sys.Getenv("ANTHROPIC_API_KEY") != "" {
		d.Account.APIKeySource = "ANTHROPIC_API_KEY"
	}
	for _, name := range said.SlashCommands {
		if c, ok := h.catalog.Command(name); ok {
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
	for _, a := range h.catalog.Agents() {
		d.Agents = append(d.Agents, control.Agent{Name: a.Name, Description: a.Description, Model: a.Model})
	}
	return d
}

// contextUsage answers get_context_usage.
func (h *host) contextUsage() any {
	h.mu.Lock()
	c := h.context
	h.mu.Unlock()
	type category struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Tokens int    `json:"tokens"`
		Color  string `json:"color"`
		Kind   string `json:"kind"`
	}
	categories := []category{}
	for _, k := range c.Categories {
		id := strings.ToLower(strings.ReplaceAll(k.Name, " ", "_"))
		categories = append(categories, category{ID: id, Name: k.Name, Tokens: k.Tokens, Color: "inactive", Kind: k.Kind})
	}
	none := []any{}
	return map[string]any{
		"categories": categories, "totalTokens": c.TotalTokens, "maxTokens": c.MaxTokens, "rawMaxTokens": c.MaxTokens,
		"percentage": c.Percentage, "gridRows": none, "model": c.Model, "memoryFiles": c.MemoryFiles, "mcpTools": c.MCPTools,
		"mcpInstructions": none, "agents": c.Agents, "isAutoCompactEnabled": true, "autoCompactThreshold": c.MaxTokens * 9 / 10,
		"autocompactSource": "auto", "apiUsage": nil,
		"slashCommands": map[string]int{"totalCommands": len(persona.Init().SlashCommands), "includedCommands": 0, "tokens": 0},
		"skills":        map[string]any{"totalSkills": len(c.Skills), "includedSkills": len(c.Skills), "tokens": 0, "skillFrontmatter": c.Skills},
		"messageBreakdown": map[string]any{
			"toolCallTokens": 0, "toolResultTokens": 0, "attachmentTokens": 0, "assistantMessageTokens": 0, "userMessageTokens": 0,
			"redirectedContextTokens": 0, "unattributedTokens": 0, "toolCallsByType": none, "attachmentsByType": none,
		},
	}
}

// settingsInForce answers get_settings.
func (h *host) settingsInForce() any {
	effective := map[string]any{}
	sources := []any{}
	for _, layer := range h.settings.Layers {
		sources = append(sources, map[string]any{"source": string(layer.Source)})
	}
	if h.settings.OutputStyle != "" {
		effective["outputStyle"] = h.settings.OutputStyle
	}
	if h.settings.Model != "" {
		effective["model"] = h.settings.Model
	}
	effort := h.f.Effort
	if effort == "" {
		effort = "medium"
	}
	return map[string]any{
		"effective": effective, "sources": sources, "served_settings_state": "none",
		"applied": map[string]any{
			"model": h.model(), "effort": effort, "advisor": nil, "ultracode": false, "ultracodeAvailable": false,
			"ultracodeRequested": false, "ultrathinkAvailable": false, "launchEnvLeftOwnFilesInPlace": false,
			"outsideBlocksCountLaunchFoldersOnly": false, "outsideFileToolReadsBlocked": false, "outsideFileToolWritesBlocked": false,
		},
	}
}

// spent is what the session has cost when the last result was shown.
func (h *host) spent() (float64, map[string]protocol.ModelUsage) {
	if last := h.last.Load(); last != nil {
		return last.TotalCostUSD, last.ModelUsage
	}
	return 0, map[string]protocol.ModelUsage{}
}

// usage answers get_usage with the numbers of the last result.
func (h *host) usage() any {
	total, models := h.spent()
	return map[string]any{
		"session": map[string]any{
			"total_cost_usd": total, "total_api_duration_ms": 0, "total_duration_ms": 0, "total_lines_added": 0,
			"total_lines_removed": 0, "model_usage": models,
		},
		"subscription_type": nil, "rate_limits_available": false, "rate_limits": nil, "behaviors": nil,
	}
}

func (h *host) costText() string {
	total, models := h.spent()
	var text strings.Builder
	fmt.Fprintf(&text, "Total cost: $%.4f", total)
	for _, name := range slices.Sorted(maps.Keys(models)) {
		u := models[name]
		fmt.Fprintf(&text, "\n%s: %d input, %d output ($%.4f)", name, u.InputTokens, u.OutputTokens, u.CostUSD)
	}
	return text.String()
}

// rules answers list_permission_rules.
func (h *host) rules() any {
	type rule struct {
		Source   string `json:"source"`
		Behavior string `json:"behavior"`
		Rule     string `json:"rule"`
	}
	list := []rule{}
	for _, r := range h.policy.Rules() {
		list = append(list, rule{r.Source, r.Behavior, r.Text})
	}
	return map[string]any{"state": map[string]any{
		"rules": list, "workspaceDirectories": h.policy.Directories(), "originalCwd": h.cwd, "managedOnly": false,
	}}
}
