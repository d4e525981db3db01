package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/slash"
)

// commands are the session's slash commands.
func (r *run) commands() simulator.Commands {
	return simulator.Commands{
		Disabled: r.f.DisableSlashCommands, Expand: r.expand, Run: r.local, Lines: r.session.Lines,
		Loaded: r.loaded, Reset: r.session.Reset,
		CompactDelay: r.timeout(r.scenario.Timeouts.CompactDelayMS, "CLAUDELESS_COMPACT_DELAY_MS", 20*time.Millisecond),
	}
}

// expand turns a custom command, a skill or an MCP prompt into text for the
// model.
func (r *run) expand(ctx context.Context, name, args string) (*slash.Expansion, error) {
	if k, ok := r.catalog.Command(name); ok {
		return &slash.Expansion{Text: commandText(k, args), Kind: "slash_command", Source: k.Source}, nil
	}
	for _, p := range r.prompts() {
		if mcp.CanonicalName(p.Server, p.Name) == name {
			text, err := r.promptText(ctx, p, args)
			return &slash.Expansion{Text: text, Kind: "mcp_prompt", Source: "mcp"}, err
		}
	}
	return nil, nil
}

// skill is what the Skill tool loads.
func (r *run) skill(name, args string) (string, error) {
	name = strings.TrimPrefix(name, "/")
	k, ok := r.catalog.Command(name)
	allowed := r.allowedSkills.Load()
	switch {
	case !ok:
		return "", errors.New("Unknown skill: " + name)
	case allowed != nil && !slices.Contains(*allowed, k.Name) && !slices.Contains(*allowed, name):
		return "", fmt.Errorf("Skill %s is not in this session's skills allowlist", name) //nolint:staticcheck // the text users see
	}
	return commandText(k, args), nil
}

func commandText(k persona.Command, args string) string {
	text := slash.Fill(k.Body, args)
	if k.Skill {
		text = "Base directory for this skill: " + k.Dir + "\n\n" + text
	}
	return text
}

// prompts lists the prompts of all connected servers.
func (r *run) prompts() []mcp.Prompt {
	if r.manager == nil {
		return nil
	}
	var all []mcp.Prompt
	for _, st := range r.manager.Servers() {
		all = append(all, st.Prompts...)
	}
	return all
}

// promptText fills in an MCP prompt; words go to its arguments in their order,
// the last one takes the rest.
func (r *run) promptText(ctx context.Context, p mcp.Prompt, args string) (string, error) {
	words := slash.Words(args)
	given := map[string]string{}
	for i, a := range p.Arguments {
		switch {
		case i >= len(words):
			if a.Required {
				return "", fmt.Errorf("the prompt %s needs the argument %q", p.Name, a.Name)
			}
		case i == len(p.Arguments)-1:
			given[a.Name] = strings.Join(words[i:], " ")
		default:
			given[a.Name] = words[i]
		}
	}
	raw, err := r.manager.GetPrompt(ctx, p.Server, p.Name, given)
	if err != nil {
		return "", err
	}
	var result struct {
		Messages []struct {
			Content struct {
				Text     string `json:"text"`
				Resource struct {
					Text string `json:"text"`
				} `json:"resource"`
			} `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", fmt.Errorf("reading the prompt %s: %w", p.Name, err)
	}
	var texts []string
	for _, m := range result.Messages {
		if text := m.Content.Text + m.Content.Resource.Text; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// loaded is what takes up room in the context beside the conversation.
func (r *run) loaded() slash.Loaded {
	tokens := func(text string) int { return (len(text) + 3) / 4 }
	var l slash.Loaded
	if r.manager != nil {
		for _, t := range r.manager.Tools() {
			l.MCPTools = append(l.MCPTools, slash.Item{Name: t.Name, Source: t.Server, Tokens: tokens(t.Name + t.Description + string(t.InputSchema))})
		}
	}
	for _, a := range r.catalog.Agents() {
		if a.Source != "built-in" {
			l.Agents = append(l.Agents, slash.Item{Name: a.Name, Source: a.Source, Tokens: tokens(a.Name + a.Description)})
		}
	}
	for _, k := range r.catalog.Commands() {
		if k.Skill {
			l.Skills = append(l.Skills, slash.Item{Name: k.Name, Source: k.Source, Tokens: tokens(k.Name + k.Description)})
		}
	}
	for _, k := range persona.BuiltInSkills() {
		l.Skills = append(l.Skills, slash.Item{Name: k.Name, Source: "built-in", Tokens: k.Tokens})
	}
	path := filepath.Join(r.cwd, "CLAUDE.md")
	if data, err := os.ReadFile(path); err == nil && r.reads("project") {
		l.MemoryFiles = append(l.MemoryFiles, slash.MemoryFile{Path: path, Type: "Project", Tokens: tokens(string(data))})
	}
	return l
}
