package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/settings"
)

// AllDisabled reports whether all customizations of the user are disabled, among them hooks. It does not consider settings.
func (c ResolvedCustomization) AllDisabled() bool { return c.Bare || c.SafeMode }

// loadCustomizationsAndAgent finds agents, commands, skills, styles and plugins, and applies the session's agent.
func (r *planResolver) loadCustomizationsAndAgent() error {
	f := r.flags
	r.plan.Customization = ResolvedCustomization{Agent: f.Agent, Title: f.SessionName, NoCommands: f.DisableSlashCommands, Bare: f.Bare, Restricted: f.Restricted, SafeMode: f.SafeMode, InstructionFileOptions: r.instructionFileOptions()}
	r.plan.Customization.NoGitInstructions = r.plan.Settings.NoGitInstructions || isEnvEnabled(r.sys, "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS")
	r.plan.Settings.NoMemory = r.plan.Settings.NoMemory || isEnvEnabled(r.sys, "CLAUDE_CODE_DISABLE_AUTO_MEMORY")
	if o := r.plan.Customization.InstructionFileOptions; o != nil {
		r.plan.Customization.InstructionFiles = catalog.FindInstructionFilesAtStart(*o)
	}
	switch {
	case f.InitSetup, f.InitOnly:
		r.plan.Customization.Setup = "init"
	case f.Maintenance:
		r.plan.Customization.Setup = "maintenance"
	}
	o := catalog.Options{Agents: f.Agents, Disabled: f.SafeMode, Open: FileTreeBelowDir, Guide: !strings.HasPrefix(r.plan.Entrypoint, "sdk-")}
	if r.plan.Settings.IsSourceEnabled("user") && !f.Bare {
		o.UserDir = r.plan.State
	}
	if r.plan.Settings.IsSourceEnabled("project") && !f.Bare {
		o.AddedDirs = r.addDirFlagPaths()
		o.ProjectDirs, o.MainWorktreeDir = dotClaudeDirsUpToRepositoryOrHome(cmp.Or(f.ProjectConfigRoot, r.plan.CWD), r.plan.Home)
	}
	for _, dir := range slices.Concat(f.PluginDirs, f.PluginDirsNoMCP) {
		o.Plugins = append(o.Plugins, r.plan.AbsFromStartDir(dir))
	}
	if o.Marketplaces = filepath.Join(r.plan.State, "plugins"); !f.Bare {
		o.Enabled, _ = r.plan.Settings.EnabledAndDisabledPlugins()
	}
	var warnings []string
	r.plan.Catalog, warnings = catalog.New(o)
	for _, w := range warnings {
		r.plan.warn(w)
	}
	if !f.Bare && !f.SafeMode && r.plan.State != "" {
		declared := r.plan.Settings.DeclaredMarketplaceDirs(settings.Options{GlobalFile: r.plan.Store.File, CWD: r.plan.CWD, ReadFile: os.ReadFile})
		catalog.SaveNewMarketplaces(o.Marketplaces, declared, r.plan.Clock.Now())
	}
	return r.setPromptModelAndTools()
}

// dotClaudeDirsUpToRepositoryOrHome returns the .claude directories of dir and its parents, the nearest one first (observed with 2.1.330).
// The list ends at the repository's top or just below home. In a linked git worktree, main is the .claude directory of the main worktree.
func dotClaudeDirsUpToRepositoryOrHome(dir, home string) (dirs []string, main string) {
	top := gitworktree.NearestDirectoryWithDotGit(dir)
	for ; dir != home; dir = filepath.Dir(dir) {
		dirs = append(dirs, filepath.Join(dir, ".claude"))
		if dir == top || dir == filepath.Dir(dir) {
			break
		}
	}
	if main = gitworktree.MainTopOfLinkedWorktree(top); main != "" && dir == top && top != home {
		return dirs, filepath.Join(main, ".claude")
	}
	return dirs, ""
}

// FileTreeBelowDir returns the files below dir. Agents, commands and plugins are read through it.
func FileTreeBelowDir(dir string) fs.FS { return os.DirFS(dir) }

// setPromptModelAndTools gives the session the prompt, model and tools of --agent or the settings' agent, unless flags set others.
func (r *planResolver) setPromptModelAndTools() error {
	r.plan.Prompt = SystemPromptAndSchema{System: r.flags.SystemPrompt, ReplacesSystem: r.flags.WasGiven("system-prompt") || r.flags.SystemPrompt != "", Append: r.flags.AppendSystemPrompt, Schema: r.flags.JSONSchema, SchemaFlag: r.flags.WasGiven("json-schema"), SchemaAttempts: envInt(r.sys, "MAX_STRUCTURED_OUTPUT_RETRIES")}
	r.plan.Model.Requested = r.flags.Model
	r.plan.Tools.Requested, r.plan.Tools.Restricted, r.plan.Tools.OfAgent, r.plan.Tools.AgentDisallowed = r.flags.Tools, r.flags.WasGiven("tools"), false, nil
	if _, ok := r.plan.Catalog.Agent(r.plan.Settings.Agent); ok && r.flags.Agent == "" {
		r.plan.Customization.Agent = r.plan.Settings.Agent
	}
	name := cmp.Or(r.plan.Customization.Agent, r.plan.Customization.UnknownAgent)
	if name == "" {
		return nil
	}
	a, ok := r.plan.Catalog.Agent(name)
	switch {
	case !ok && r.flags.InputFormat == "stream-json":
		r.plan.Customization.Agent, r.plan.Customization.UnknownAgent = "", name
		return nil
	case !ok:
		return process.Verbatimf("--agent '%s' not found. Available agents: %s", name, strings.Join(r.plan.Catalog.AgentNames(), ", "))
	}
	r.plan.Customization.Agent, r.plan.Customization.UnknownAgent = name, ""
	r.plan.Prompt.System = cmp.Or(r.plan.Prompt.System, a.Prompt)
	if r.plan.Model.Requested == "" && a.Model != "inherit" {
		r.plan.Model.Requested = a.Model
	}
	r.plan.Tools.AgentDisallowed = toolNamesOfRules(a.Disallowed)
	if a.Tools == nil || slices.Contains(a.Tools, "*") {
		return nil
	}
	tools := toolNamesOfRules(a.Tools)
	if r.plan.Tools.Restricted && !slices.Equal(r.flags.Tools, []string{"default"}) {
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(r.flags.Tools, name) })
	}
	r.plan.Tools.Requested, r.plan.Tools.Restricted, r.plan.Tools.OfAgent = tools, true, true
	return nil
}

// AddHostAgentsAndReplan adds the agents of a host to the catalog and returns the plan for the session's agent, which may be one of them. If one
// is invalid, it adds none.
func (p *Plan) AddHostAgentsAndReplan(raw json.RawMessage) (Plan, error) {
	if problems := flags.AgentsProblems(raw); len(problems) > 0 {
		return *p, errors.New("agents: " + problems[0])
	}
	plan := *p
	r := planResolver{sys: p.resolver.sys, flags: p.resolver.flags, plan: &plan}
	err := errors.Join(p.Catalog.DefineAgents(raw, "flagSettings"), r.setPromptModelAndTools())
	plan.Model = initialModel(r.sys, r.flags, &plan)
	return plan, err
}

func toolNamesOfRules(rules []string) []string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = claudecode.ParsePermissionRule(rule).Tool
	}
	return names
}

// instructionFileOptions returns where to find instruction files; nil means that none are used.
func (r *planResolver) instructionFileOptions() *catalog.InstructionFileOptions {
	if r.flags.Bare || r.flags.SafeMode || r.flags.Restricted || isEnvEnabled(r.sys, "CLAUDE_CODE_DISABLE_CLAUDE_MDS") {
		return nil
	}
	o := catalog.InstructionFileOptions{CWD: r.plan.CWD, Home: r.plan.Home, Project: r.plan.Settings.IsSourceEnabled("project"), Local: r.plan.Settings.IsSourceEnabled("local")}
	if r.plan.Settings.IsSourceEnabled("user") {
		o.UserDir = r.plan.State
	}
	_, disabled := r.plan.Settings.EnabledAndDisabledPlugins()
	o.AgentsMD = !slices.Contains(disabled, "cc-plugin-agents-md@builtin")
	o.Excludes, _ = r.plan.Settings.Merged()["claudeMdExcludes"].([]any)
	if isEnvEnabled(r.sys, "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD") {
		o.AddedDirs = r.addDirFlagPaths()
	}
	return &o
}

func (r *planResolver) addDirFlagPaths() (dirs []string) {
	for _, dir := range r.flags.AddDirs {
		dirs = append(dirs, r.plan.AbsFromStartDir(dir))
	}
	return dirs
}
