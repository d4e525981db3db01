package command

import (
	"os"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/slash"
)

// loadedContext lists the parts of the context other than the conversation.
func loadedContext(o Options) slash.LoadedContext {
	tokens := func(text string) int { return (len(text) + 3) / 4 }
	var l slash.LoadedContext
	if o.Servers != nil {
		for _, t := range o.Servers.Tools() {
			l.MCPTools = append(l.MCPTools, slash.UsageItem{Name: t.Name, Source: t.Server, Tokens: tokens(t.Name + t.Description + string(t.InputSchema))})
		}
	}
	for _, a := range o.Catalog.Agents() {
		if a.Source != "built-in" {
			l.Agents = append(l.Agents, slash.UsageItem{Name: a.Name, Source: a.Source, Tokens: tokens(a.Name + a.Description)})
		}
	}
	for _, k := range o.Catalog.Commands() {
		if k.Skill {
			l.Skills = append(l.Skills, slash.UsageItem{Name: k.Name, Source: k.Source, Tokens: tokens(k.Name + k.Description)})
		}
	}
	for _, k := range claudecode.BuiltInSkills() {
		l.Skills = append(l.Skills, slash.UsageItem{Name: k.Name, Source: "built-in", Tokens: k.Tokens})
	}
	if data, err := os.ReadFile(o.Memory); err == nil {
		l.MemoryFiles = append(l.MemoryFiles, slash.MemoryFile{Path: o.Memory, Type: "Project", Tokens: tokens(string(data))})
	}
	return l
}
