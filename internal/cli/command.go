package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// knownCommand tells whether a command is the CLI's own, on a terminal at
// least.
func knownCommand(name string) bool {
	b, ok := persona.BuiltinNamed(name)
	return ok && !b.Skill || slices.Contains(persona.Unavailable(), name)
}

func commandText(k catalog.Command, args string) string {
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

// usageOf names the arguments of a prompt.
func usageOf(arguments []mcp.PromptArgument) string {
	names := make([]string, len(arguments))
	for i, a := range arguments {
		names[i] = a.Name
	}
	return strings.Join(names, " ")
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
				return "", fmt.Errorf("Error: Missing required argument: %s. Usage: /%s %s", a.Name, mcp.CanonicalName(p.Server, p.Name), usageOf(p.Arguments))
			}
		case i == len(p.Arguments)-1:
			given[a.Name] = strings.Join(words[i:], " ")
		default:
			given[a.Name] = words[i]
		}
	}
	raw, err := r.manager.GetPrompt(ctx, p.Server, p.Name, given)
	if err != nil {
		return "", fmt.Errorf("%s: %w", errorName(err), err)
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

// errorName is the class of an error as the real CLI names it.
func errorName(err error) string {
	if _, answered := errors.AsType[*mcp.RPCError](err); answered {
		return "ProtocolError"
	}
	return "SdkError"
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
	for _, a := range r.Catalog.Agents() {
		if a.Source != "built-in" {
			l.Agents = append(l.Agents, slash.Item{Name: a.Name, Source: a.Source, Tokens: tokens(a.Name + a.Description)})
		}
	}
	for _, k := range r.Catalog.Commands() {
		if k.Skill {
			l.Skills = append(l.Skills, slash.Item{Name: k.Name, Source: k.Source, Tokens: tokens(k.Name + k.Description)})
		}
	}
	for _, k := range persona.BuiltInSkills() {
		l.Skills = append(l.Skills, slash.Item{Name: k.Name, Source: "built-in", Tokens: k.Tokens})
	}
	path := filepath.Join(r.CWD, "CLAUDE.md")
	if data, err := os.ReadFile(path); err == nil && r.Settings.Reads("project") {
		l.MemoryFiles = append(l.MemoryFiles, slash.MemoryFile{Path: path, Type: "Project", Tokens: tokens(string(data))})
	}
	return l
}

// local answers the slash commands of the CLI itself that need more than the
// conversation; nil = it becomes a prompt. Texts are the real CLI's.
func (r *run) local(name, args string) *slash.Said {
	said := slash.Said{Name: name}
	switch name {
	case "model":
		said.Text = r.modelCommand(args)
	case "effort":
		said.Text = r.effortCommand(args)
	case "output-style":
		said.Text = r.styleCommand(args)
	case "rename":
		said.Text, said.Title = r.renameCommand(args)
	case "mcp":
		said.Text = r.mcpCommand(args)
	case "color":
		said.Text = r.colorCommand(args)
	case "goal":
		if args != "" {
			return nil // it becomes a prompt for the model
		}
		said.Text = "No goal set. Usage: `/goal <condition>`"
	default:
		said.Text = r.fixedCommand(name)
	}
	if said.Text == "" {
		return nil
	}
	return &said
}

// fixedCommand is what commands say that change nothing; empty = the command is
// a prompt for the model.
func (r *run) fixedCommand(name string) string {
	switch name {
	case "agents":
		return "The /agents wizard has been removed.\n\n" +
			"Ask Claude to create or update subagents for you (e.g. \"create a code-reviewer subagent that ...\"),\n" +
			"or edit the files directly:\n  • .claude/agents/       (this project)\n  • ~/.claude/agents/     (all projects)\n\n" +
			"Docs: https://code.claude.com/docs/en/sub-agents"
	case "autocompact":
		return "Auto-compact window for " + model.Display(model.Resolve(r.current.Model())) + ": 1m tokens (default for this model)"
	case "config":
		return "Usage: /config key=value [key=value ...]"
	case "fast":
		return "Fast mode unavailable: Fast mode is not available in the Agent SDK"
	case "focus":
		return "/focus isn't available here yet"
	case "heapdump", "auto-mode-setup":
		return "/" + name + " isn't available in this environment."
	case "__remote-workflow":
		return "remote-workflow: error[not-remote-session]: this command only runs inside a remote (CCR) session (CLAUDE_CODE_REMOTE is not set). Use the Workflow tool locally."
	case "workflow-launch-exec":
		return "workflow-launch-exec: no pending launch handoff for this invocation (expected when a restored session replays the dispatch turn); nothing executed."
	case "reload-plugins":
		plugins, skills := r.Catalog.Counts()
		return fmt.Sprintf("Reloaded: %s · %s · %s · 0 hooks · 0 plugin LSP servers",
			amount(plugins, "plugin"), amount(skills, "skill"), amount(len(r.Catalog.Agents()), "agent"))
	case "reload-skills":
		_, skills := r.Catalog.Counts()
		return fmt.Sprintf("Reloaded skills: %s available (none added or removed).", amount(skills+len(persona.BuiltInSkills()), "skill"))
	case "list-agents":
		return "This session: " + r.sessionName() + " (the name other sessions use to message it)\n\n" +
			"No subagents, teammates or other Claude sessions — no other session is running on this machine right now; peer messaging itself is available."
	}
	return ""
}

func amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func (r *run) modelCommand(name string) string {
	if name == "" {
		return "Current model: `" + r.shownModel(r.current.Model()) + "`\n" +
			"Usage: /model <name>. Available: sonnet, opus, haiku, fable, best, sonnet[1m], opus[1m], fable[1m], opusplan, default, or a full model ID."
	}
	if name == "default" {
		name = ""
	}
	r.current.SetModel(name)
	text := "Set model to `" + r.shownModel(name) + "` for this session only"
	if full := model.Resolve(name); !strings.HasPrefix(full, "claude-") {
		text += fmt.Sprintf("\nClaude Code doesn't recognize the model %q, so it assumes a context window of 1m tokens. "+
			"Update Claude Code, or see https://code.claude.com/docs/en/model-config#correct-the-window-for-a-gateway-or-custom-model-id to set the window.", name)
	}
	return text
}

// shownModel words a model as /model does.
func (r *run) shownModel(name string) string {
	shown := model.Display(model.Resolve(name))
	if name == "" || name == "default" || name == model.Default {
		shown += " (default)"
	}
	return shown
}

func (r *run) effortCommand(level string) string {
	const options = "low, medium, high, xhigh, max, auto, ultracode [on|off]"
	switch {
	case level == "":
		return "Usage: /effort <low|medium|high|xhigh|max|auto|ultracode [on|off]>"
	case !slices.Contains(strings.Split(options, ", ")[:6], level):
		return "Unknown option: " + level + ". Options: " + options
	}
	r.current.SetEffort(level)
	text := "Set effort level to " + level + " (this session only)"
	if level == "high" {
		text += ": Comprehensive implementation with extensive testing and documentation"
	}
	return text
}

func (r *run) styleCommand(name string) string {
	current := r.outputStyle()
	styles := r.Catalog.Styles()
	switch {
	case name != "" && !slices.Contains(styles, name):
		return fmt.Sprintf("Unknown output style %q. Available styles: %s", name, strings.Join(styles, ", "))
	case name != "":
		r.style.Store(&name)
		return "Output style set to " + name
	}
	about := map[string]string{}
	for _, s := range persona.Styles() {
		about[s.Name] = s.Description
	}
	var b strings.Builder
	b.WriteString("Output style: " + current + "\n\nAvailable styles:")
	for _, s := range styles {
		b.WriteString("\n- " + s)
		if s == current {
			b.WriteString(" (current)")
		}
		if about[s] != "" {
			b.WriteString(": " + about[s])
		}
	}
	return b.String() + "\n\nUsage: /output-style <style>"
}

// renameCommand gives the session a name; the caller tells the host about it.
func (r *run) renameCommand(title string) (text, told string) {
	if title == "" {
		return "Couldn't generate a name: no conversation yet. Usage: /rename <name>", ""
	}
	r.title = title
	if err := r.session.Entitle(title); err != nil {
		r.warn("the title is not saved: " + err.Error())
	}
	return "Session renamed to: " + title, title
}

// sessionName is how other sessions would call this one.
func (r *run) sessionName() string {
	name := r.title
	if name == "" {
		name = r.Custom.Title
	}
	id := r.session.ID()
	if name == "" {
		name = "session"
	}
	return fmt.Sprintf("%s [%.6s]", name, strings.ReplaceAll(id, "-", ""))
}

func (r *run) mcpCommand(args string) string {
	const usage = "Usage: /mcp [reconnect|enable|disable [<server>|all]]. With no server name, applies to all."
	statuses := r.statuses()
	words := strings.Fields(args)
	if len(words) > 1 && words[1] != "all" {
		for _, st := range statuses {
			if st.Name == words[1] {
				return usage
			}
		}
		return fmt.Sprintf("There's no MCP server named %q. Run `/mcp` in the terminal to see configured servers.", words[1])
	}
	if len(statuses) == 0 {
		return "No MCP servers are configured. Add one with `claude mcp add`.\n" + usage
	}
	connected, disabled := 0, 0
	for _, st := range statuses {
		switch st.Status {
		case "connected":
			connected++
		case "disabled":
			disabled++
		}
	}
	return fmt.Sprintf("%s: %d connected, %d not connected, %d disabled. Use `/mcp` in the terminal for details.",
		amount(len(statuses), "MCP server"), connected, len(statuses)-connected-disabled, disabled)
}

func (r *run) colorCommand(name string) string {
	colors := []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan", "default"}
	switch {
	case name == "" && r.color == "":
		r.color = "green"
	case name == "":
	case !slices.Contains(colors, name):
		return fmt.Sprintf("%q isn't an available color. Options: %s", name, strings.Join(colors, ", "))
	default:
		r.color = name
	}
	return "Session color set to: " + r.color
}

// openMention reads what a prompt mentions as the Read tool would: it asks
// nobody, but what a rule denies stays closed (spec: cli-shapes,
// attachment:file).
func (r *run) openMention(ctx context.Context, m simulator.Mention) (simulator.Mentioned, bool) {
	path := m.Path
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(r.Home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.CWD, path)
	}
	path = filepath.Clean(path)
	raw, err := protocol.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return simulator.Mentioned{}, false
	}
	use := protocol.ToolUse{Type: "tool_use", Name: "Read", Input: raw}
	info, err := os.Stat(path)
	if err != nil || r.policy.Decide(use).Behavior == permission.Deny {
		return simulator.Mentioned{}, false
	}
	shown, err := filepath.Rel(r.CWD, path)
	if err != nil {
		shown = path
	}
	if info.IsDir() {
		return mentionedDir(path, shown)
	}
	result := r.tools.Open(ctx, path, m.First, m.Lines)
	if result.IsError {
		return simulator.Mentioned{}, false
	}
	return simulator.Mentioned{Text: result.Content.Plain(), Attachment: map[string]any{
		"type": "file", "filename": path, "content": result.Output, "displayPath": shown,
		"savedCopyFraming": map[string]any{"enveloped": false},
	}}, true
}

func mentionedDir(path, shown string) (simulator.Mentioned, bool) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return simulator.Mentioned{}, false
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	list := strings.Join(names, "\n")
	return simulator.Mentioned{Text: list, Attachment: map[string]any{
		"type": "directory", "path": path, "content": list, "displayPath": shown,
	}}, true
}
