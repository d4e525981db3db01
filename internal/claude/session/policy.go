package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// permissionPolicy decides which calls are allowed, and selects the prompter that answers permission questions.
type permissionPolicy struct {
	*permission.Policy
	servers         *sessionMCPServers
	records         *recorder
	catalog         *catalog.Catalog
	settings        launch.InitialPermissions
	cannedResults   executor.CannedOptions
	scriptedAnswers map[string]string // the scenario's answers to questions to the user
}

type toolsAndCurrentDir interface {
	Tool(name string) (protocol.Tool, bool)
	Dir() string
}

func newPermissionPolicy(plan launch.Plan, b toolsAndCurrentDir, v *sessionMCPServers) (*permissionPolicy, error) {
	p := &permissionPolicy{servers: v, records: v.records, catalog: plan.Catalog, settings: plan.Permission, cannedResults: cannedResultOptions(plan.Scenario)}
	if te := plan.Scenario.ToolExecution; te != nil {
		p.scriptedAnswers = te.Tools["AskUserQuestion"].Answers
	}
	var err error
	transcriptsDir := filepath.Dir(v.records.transcript.Path())
	p.Policy, err = permission.New(permission.Options{
		Mode: plan.Permission.Mode, CWD: plan.CWD, AdditionalDirs: plan.Permission.Directories, Home: plan.Home, Rules: plan.Permission.Rules,
		AutoApprove: p.scenarioAutoApproves, NoPrompts: plan.Permission.NoPrompts, Tool: b.Tool,
		FileSystem: diskFS{}, Dir: b.Dir, AsksPerson: plan.Records.Run.Interactive, BypassAllowed: plan.Permission.BypassAllowed,
		NoBypass: plan.Settings.Permissions.DisableBypass, NoAuto: plan.Settings.Permissions.DisableAuto,
		NoClassifierInPlanMode: plan.Settings.Permissions.NoClassifierInPlanMode || plan.Settings.Permissions.DisableAuto, OnDirectories: func(dirs []string) { v.manager.SetRootsAndNotifyServers(v.callContext, dirs) },
		AskSkill: p.skillNeedsPermission, PlanDir: filepath.Join(plan.State, "plans"),
		StateDirs: permission.StateDirs{
			Memory:      projectMemoryDirs(plan, transcriptsDir),
			AgentMemory: []string{filepath.Join(plan.CWD, ".claude", "agent-memory"), filepath.Join(plan.CWD, ".claude", "agent-memory-local"), filepath.Join(plan.State, "agent-memory")},
			Readable:    []string{transcriptsDir, filepath.Join(plan.State, "tasks")},
		},
	})
	if err != nil {
		return nil, err
	}
	for _, w := range p.Warnings() {
		p.records.WarnUnlessRunAsClaude(w)
	}
	return p, nil
}

// projectMemoryDirs returns the directories with the memory of the project. The first is the one that init reports: a repository has
// one memory for all of its directories and worktrees (observed with 2.1.330).
func projectMemoryDirs(plan launch.Plan, transcriptsDir string) []string {
	if dir := plan.Settings.MemoryDir; filepath.IsAbs(dir) || strings.HasPrefix(dir, "~/") {
		dir, _ = plan.AbsDirWithHomeExpanded(dir)
		return []string{dir}
	}
	dirs := []string{filepath.Join(transcriptsDir, "memory")}
	top := gitworktree.NearestDirectoryWithDotGit(plan.CWD)
	if top = cmp.Or(gitworktree.MainTopOfLinkedWorktree(top), top); top != "" {
		dirs = slices.Insert(dirs, 0, filepath.Join(filepath.Dir(transcriptsDir), transcript.Slug(top), "memory"))
	}
	return dirs
}

func cannedResultOptions(scenario launch.Scenario) executor.CannedOptions {
	o := executor.CannedOptions{Tools: map[string]executor.CannedToolSettings{}, Shape: builtin.ShapeResult}
	te := scenario.ToolExecution
	if te == nil {
		return o
	}
	if te.Mode == "mock" {
		o.Mode = executor.ModeMock
	}
	for name, tool := range te.Tools {
		o.Tools[name] = executor.CannedToolSettings{Result: tool.Result, Error: tool.Error, AutoApprove: tool.AutoApprove}
	}
	return o
}

// scenarioAutoApproves reports whether the scenario lets a tool run without asking. AskUserQuestion also runs without asking if
// the scenario has answers to its questions and no prompter (host or tool) is set.
func (p *permissionPolicy) scenarioAutoApproves(tool string) bool {
	answered := tool == "AskUserQuestion" && p.settings.PromptTool == "" && len(p.scriptedAnswers) > 0
	return p.cannedResults.Tools[tool].AutoApprove || answered
}

func (p *permissionPolicy) skillNeedsPermission(name string) (asks bool, reasonType, reason string) {
	k, _ := p.catalog.Command(strings.TrimPrefix(name, "/"))
	hasHooks := k.Hooks != nil && string(k.Hooks) != "{}"
	if hasHooks && k.Source != "plugin" {
		reasonType, reason = "other", "This skill has hooks that can run commands for the rest of the session."
	}
	return hasHooks || len(k.Tools) > 0, reasonType, reason
}

// SetGrantedRules allows the tools that a command or skill lists. It replaces the rules of earlier calls.
func (p *permissionPolicy) SetGrantedRules(rules []string) {
	var granted []permission.Rule
	for _, text := range rules {
		granted = append(granted, permission.Rule{Behavior: permission.BehaviorAllow, Source: "command", Text: text})
	}
	p.ReplaceRules("command", granted)
}

// selectPermissionPrompter returns the prompter for permission questions: the host, a tool of an MCP server, or nil.
func (p *permissionPolicy) selectPermissionPrompter(host Host) permission.Prompter {
	switch p.settings.PromptTool {
	case "":
		return nil
	case "stdio":
		if host == nil {
			return absentHost{}
		}
		return host
	}
	return permissionPromptTool{servers: p.servers, name: p.settings.PromptTool}
}

// absentHost takes the place of a host if the prompt is not read from stdin.
type absentHost struct{}

// Ask fails as if the host had closed stdin.
func (absentHost) Ask(context.Context, protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	return protocol.PermissionAnswer{AskFailure: "Tool permission request failed: AbortError: Stream closed"}, nil
}

// permissionPromptTool asks a tool of an MCP server (--permission-prompt-tool; spec: cli-contract 6.3).
type permissionPromptTool struct {
	servers *sessionMCPServers
	name    string
}

// Ask calls the tool. It returns an error if no server has the tool.
func (p permissionPromptTool) Ask(ctx context.Context, q protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	protocol.NoteRequestSent(ctx)
	input, err := protocol.Marshal(struct {
		ToolName  string          `json:"tool_name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
	}{q.Use.Name, q.Use.Input, q.Use.ID})
	if err != nil {
		return protocol.PermissionAnswer{}, err
	}
	if known := p.servers.allToolNamesIncludingHidden(); !slices.Contains(known, p.name) {
		return protocol.PermissionAnswer{}, process.Verbatimf("Error: MCP tool %s (passed via --permission-prompt-tool) not found. Available MCP tools: %s",
			p.name, cmp.Or(strings.Join(known, ", "), "none"))
	}
	result, err := p.servers.manager.Call(ctx, mcp.CallRequest{Tool: p.name, ToolUseID: q.Use.ID, Input: input})
	switch {
	case ctx.Err() != nil:
		return protocol.PermissionAnswer{}, ctx.Err()
	case err != nil: // the server of the tool has disconnected
		return protocol.PermissionAnswer{Undecided: true}, nil
	case result.IsError:
		return protocol.PermissionAnswer{AskFailure: result.Content.Plain(), CallFailed: true}, nil
	}
	answer := permission.ParseAnswerOrAskFailure(json.RawMessage(result.Content.Plain()))
	if answer.AskFailure != "" {
		answer.AskFailure = "The permission prompt tool returned an invalid permission result. Expected {behavior: 'allow', updatedInput?: object} or " +
			"{behavior: 'deny', message: string}. updatedPermissions may hold at most 4096 updates, rules and directories in all."
	}
	return answer, nil
}

type diskFS struct{}

func (diskFS) IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (diskFS) Resolve(path string) string { return resolveLinksOfExistingPart(path) }

// Glob returns the files that a shell pattern matches.
func (diskFS) Glob(pattern string) []string { return matchFiles(pattern) }

const maxFollowedDanglingLinksPerPath = 40

// resolveLinksOfExistingPart follows the symbolic links of an absolute path as far as it exists. It also follows
// dangling links, because a write through them creates the target.
func resolveLinksOfExistingPart(path string) string {
	return followLinks(path, maxFollowedDanglingLinksPerPath)
}

func followLinks(path string, maxLinks int) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(target, rest)
		}
		if to, err := os.Readlink(dir); err == nil && maxLinks > 0 {
			if !filepath.IsAbs(to) {
				to = filepath.Join(followLinks(filepath.Dir(dir), maxLinks-1), to)
			}
			return followLinks(filepath.Join(to, rest), maxLinks-1)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// matchFiles returns the files that an absolute shell pattern matches. It matches slightly more than a shell: it
// includes dot files, and a character class matches any character.
func matchFiles(pattern string) []string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']'); {
		case pattern[i] == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
		case pattern[i] == '[' && end >= 0:
			b.WriteByte('?')
			i += 2 + end
		case pattern[i] == '[' || pattern[i] == ']':
			b.WriteString(`\` + pattern[i:i+1])
		default:
			b.WriteByte(pattern[i])
		}
	}
	found, err := filepath.Glob(b.String())
	if err != nil {
		return nil // the pattern is malformed
	}
	return found
}

// permissionUpdateFiles saves permission updates to the settings files of the plan.
type permissionUpdateFiles struct {
	plan    launch.Plan
	records *recorder
}

// Save writes permanent updates to their files. A file that cannot be written causes a warning.
func (f permissionUpdateFiles) Save(updates []protocol.PermissionUpdate) {
	for _, u := range updates {
		path := f.plan.Settings.Options.FileToWrite(settings.Source(u.Destination))
		if f.plan.State == "" || path == "" || !f.plan.Settings.IsSourceEnabled(strings.TrimSuffix(u.Destination, "Settings")) {
			continue
		}
		rules := make([]string, 0, len(u.Rules))
		for _, r := range u.Rules {
			rules = append(rules, permission.FormatRule(r))
		}
		if err := settings.SaveUpdate(path, u, rules); err != nil {
			f.records.WarnOnStderr(fmt.Sprintf("cannot save the permission rule: %v", err))
		}
	}
}
