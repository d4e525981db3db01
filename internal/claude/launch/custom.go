package launch

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
)

// Reduced says that customisations are switched off, hooks among them.
func (c Custom) Reduced() bool { return c.Bare || c.SafeMode }

// catalog finds agents, commands, skills, styles and plugins, and what follows from the agent that the session is.
func (r *resolver) catalog() error {
	f := r.f
	r.p.Custom = Custom{
		Agent: f.Agent, Title: f.SessionName, NoCommands: f.DisableSlashCommands, Bare: f.Bare, Restricted: f.Restricted, SafeMode: f.SafeMode,
		Memory: r.memory(),
	}
	if o := r.p.Custom.Memory; o != nil {
		r.p.Custom.Memories = catalog.Memories(*o)
	}
	switch {
	case f.InitSetup:
		r.p.Custom.Setup = "init"
	case f.Maintenance:
		r.p.Custom.Setup = "maintenance"
	}
	o := catalog.Options{Agents: f.Agents, Disabled: f.SafeMode, Open: OpenDir}
	if r.p.Settings.Reads("user") && !f.Bare {
		o.UserDir = r.p.State
	}
	if r.p.Settings.Reads("project") && !f.Bare {
		o.ProjectDir = filepath.Join(cmp.Or(f.ProjectConfigRoot, r.p.CWD), ".claude")
	}
	for _, dir := range slices.Concat(f.PluginDirs, f.PluginDirsNoMCP) {
		o.Plugins = append(o.Plugins, r.p.Abs(dir))
	}
	var warnings []string
	r.p.Catalog, warnings = catalog.New(o)
	for _, w := range warnings {
		r.p.warn(w)
	}
	return r.asAgent()
}

// OpenDir is the file tree below a directory.
func OpenDir(dir string) fs.FS { return os.DirFS(dir) }

// asAgent makes the session that of --agent, or of an agent that the settings name: its prompt, model and tools, where
// flags do not give others.
func (r *resolver) asAgent() error {
	r.p.Prompt = systemPrompt(r.sys, r.f)
	r.p.Model.Asked = r.f.Model
	r.p.Tools.Named, r.p.Tools.Given = r.f.Tools, r.f.Has("tools")
	if _, ok := r.p.Catalog.Agent(r.p.Settings.Agent); ok && r.f.Agent == "" {
		r.p.Custom.Agent = r.p.Settings.Agent
	}
	name := r.p.Custom.Agent
	if name == "" {
		return nil
	}
	a, ok := r.p.Catalog.Agent(name)
	if !ok {
		return process.Verbatimf("--agent '%s' not found. Available agents: %s", name, strings.Join(r.p.Catalog.AgentNames(), ", "))
	}
	r.p.Prompt.System = cmp.Or(r.p.Prompt.System, a.Prompt)
	if r.p.Model.Asked == "" && a.Model != "inherit" {
		r.p.Model.Asked = a.Model
	}
	r.p.Tools.Hidden = toolNames(a.Disallowed)
	if a.Tools == nil || slices.Contains(a.Tools, "*") {
		return nil
	}
	tools := toolNames(a.Tools)
	if r.p.Tools.Given && !slices.Equal(r.f.Tools, []string{"default"}) {
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(r.f.Tools, name) })
	}
	r.p.Tools.Named, r.p.Tools.Given = tools, true
	return nil
}

// toolNames are the tools that rules such as Bash(git *) are about.
func toolNames(rules []string) []string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i], _, _ = strings.Cut(rule, "(")
	}
	return names
}

// memory says where the files of instructions are; nil = they do not count.
func (r *resolver) memory() *catalog.MemoryOptions {
	if r.f.Bare || r.f.SafeMode || r.f.Restricted {
		return nil
	}
	o := catalog.MemoryOptions{CWD: r.p.CWD, Home: r.p.Home, Project: r.p.Settings.Reads("project"), Local: r.p.Settings.Reads("local")}
	if r.p.Settings.Reads("user") {
		o.UserDir = r.p.State
	}
	return &o
}
