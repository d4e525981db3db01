package permission

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// BuildPermissionRequest returns the request to a [Prompter] for a call with the verdict v, which must be Ask.
func (p *Policy) BuildPermissionRequest(use protocol.ToolUse, v Verdict) protocol.PermissionRequest {
	use.Input = use.InputForHooksAndHosts()
	r := protocol.PermissionRequest{
		Use: use, DisplayName: use.Name, Suggestions: v.Suggestions, BlockedPath: v.BlockedPath, Safety: v.Safety,
		DecisionReason: v.Reason, DecisionReasonType: v.ReasonType, RequiresUser: v.RequiresUser,
	}
	if v.ReasonType == "hook" {
		r.Hook = use.Hook
	}
	if v.AskRule { // no update of the permissions can make the question unnecessary
		r.Suggestions, r.ServerAskOnly, r.RuleSource = nil, new(false), v.RuleSource
	}
	if p.opts.Tool == nil {
		return r
	}
	tool, found := p.opts.Tool(use.Name)
	if !found {
		return r
	}
	if toolClassOf(use.Name) != claudecode.ToolClassAsksQuestionToUser && tool.Server == "" { // AskUserQuestion has no description, and MCP tools have an empty one
		r.Description, _, _ = strings.Cut(tool.Description, "\n")
		r.Description = cmp.Or(p.shortDescriptionOfBuiltInCall(use), r.Description)
	}
	if tool.Server != "" {
		r.DisplayName = tool.RawName
		r.Server = &protocol.ServerNameAndSource{Name: tool.Server, Source: tool.ServerSource}
		switch planning := p.Mode() == protocol.ModePlan; {
		case planning:
			r.Suggestions, r.ServerAskOnly = nil, nil
		case !v.AskRule:
			r.ServerAskOnly = new(true)
		}
	}
	return r
}

// shortDescriptionOfBuiltInCall returns a short description of a call of a built-in tool; "" means
// that the description of the tool is shown.
func (p *Policy) shortDescriptionOfBuiltInCall(use protocol.ToolUse) (descriptionOrEmpty string) {
	var input struct {
		Description  string `json:"description"`
		Command      string `json:"command"`
		FilePath     string `json:"file_path"`
		NotebookPath string `json:"notebook_path"`
		URL          string `json:"url"`
		Query        string `json:"query"`
	}
	if json.Unmarshal(use.Input, &input) != nil {
		return ""
	}
	switch use.Name {
	case "Bash":
		return cmp.Or(input.Description, truncateCallDescription(input.Command))
	case "Read", "Write", "Edit":
		return p.displayPath(input.FilePath)
	case "NotebookEdit":
		return p.displayPath(input.NotebookPath)
	case "WebFetch":
		return truncateCallDescription(input.URL)
	case "WebSearch":
		return truncateCallDescription(input.Query)
	}
	return ""
}

func truncateCallDescription(description string) string {
	const most = 50
	if runes := []rune(description); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return description
}

// displayPath returns a path as users see it: relative to the working directory, or with "~" for the home directory.
func (p *Policy) displayPath(path string) string {
	if path == "" {
		return ""
	}
	abs, home := p.resolver.absolutePathFromStartDir(path), p.opts.Home
	if rel, err := filepath.Rel(p.opts.CWD, abs); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if home != "" && isAtOrBelow(home, abs) && abs != home {
		return "~" + strings.TrimPrefix(abs, strings.TrimSuffix(home, "/"))
	}
	return path
}

// Apply applies updates of a host in order, and reports whether the mode has changed. Invalid
// rules, modes that may not be set, and updates of an unknown type are skipped.
func (p *Policy) Apply(updates []protocol.PermissionUpdate) (modeChanged bool) {
	dirs := p.WorkingDirectories()
	modeChanged = p.applyUpdatesWithoutNotifying(updates)
	if now := p.WorkingDirectories(); p.opts.OnDirectories != nil && !slices.Equal(dirs, now) {
		p.opts.OnDirectories(now)
	}
	return modeChanged
}

func (p *Policy) applyUpdatesWithoutNotifying(updates []protocol.PermissionUpdate) (modeChanged bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.mode
	for _, u := range updates {
		switch u.Type {
		case "addRules":
			p.rules.rules = append(p.rules.rules, rulesOfUpdate(u)...)
		case "replaceRules":
			p.rules.rules = slices.DeleteFunc(p.rules.rules, func(r rule) bool {
				return r.Behavior == u.Behavior && r.Source == cmp.Or(u.Destination, "session")
			})
			p.rules.rules = append(p.rules.rules, rulesOfUpdate(u)...)
		case "removeRules":
			gone := rulesOfUpdate(u)
			p.rules.rules = slices.DeleteFunc(p.rules.rules, func(r rule) bool {
				return slices.ContainsFunc(gone, func(g rule) bool {
					return r.Behavior == g.Behavior && r.Source == g.Source && r.tool == g.tool && r.content == g.content
				})
			})
		case "setMode":
			if mode, err := ParseMode(string(u.Mode)); err == nil {
				_ = p.setMode(mode) // if the mode may not be set, it is unchanged
			}
		case "addDirectories":
			for _, d := range u.Directories {
				p.resolver.addWorkingDirectoryIfNew(WorkingDirectory{d, cmp.Or(u.Destination, "session")})
			}
		case "removeDirectories":
			added := slices.DeleteFunc(p.resolver.workingDirs[1:], func(dir string) bool {
				return slices.ContainsFunc(u.Directories, func(d string) bool { return p.resolver.absolutePathFromStartDir(d) == dir })
			})
			p.resolver.workingDirs = p.resolver.workingDirs[:1+len(added)]
		}
	}
	return p.mode != before
}

// ReplaceRules replaces the rules of a source. Invalid rules are ignored.
func (p *Policy) ReplaceRules(source string, rules []Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules.rules = slices.DeleteFunc(p.rules.rules, func(r rule) bool { return r.Source == source })
	for _, r := range rules {
		if parsed, err := parseRule(r); err == nil {
			p.rules.rules = append(p.rules.rules, parsed)
		}
	}
}

// ReplaceDirectories replaces the working directories of a source.
func (p *Policy) ReplaceDirectories(source string, dirs []string) {
	var gone []string
	for _, d := range p.AdditionalDirectories() {
		if d.Source == source {
			gone = append(gone, d.Path)
		}
	}
	p.Apply([]protocol.PermissionUpdate{{Type: "removeDirectories", Directories: gone}, {Type: "addDirectories", Directories: dirs, Destination: source}})
}

func rulesOfUpdate(u protocol.PermissionUpdate) []rule {
	var out []rule
	for _, r := range u.Rules {
		parsed, err := parseRule(Rule{Behavior: u.Behavior, Source: cmp.Or(u.Destination, "session"), Text: FormatRule(r)})
		if err == nil {
			out = append(out, parsed)
		}
	}
	return out
}

// ParseAnswerOrAskFailure parses the answer of a host or a permission tool. For an invalid answer, AskFailure is set. An "allow"
// without an input keeps the input of the call.
func ParseAnswerOrAskFailure(raw json.RawMessage) protocol.PermissionAnswer {
	var in struct {
		Behavior    string          `json:"behavior"`
		Input       json.RawMessage `json:"updatedInput"`
		Permissions json.RawMessage `json:"updatedPermissions"`
		Message     *string         `json:"message"`
		Interrupt   bool            `json:"interrupt"`
	}
	invalid := protocol.PermissionAnswer{
		AskFailure: "The canUseTool callback returned an invalid permission result. Expected {behavior: 'allow', updatedInput?: object} or " +
			"{behavior: 'deny', message: string}. updatedPermissions may hold at most 4096 updates, rules and directories in all.",
	}
	if json.Unmarshal(raw, &in) != nil {
		return invalid
	}
	switch {
	case in.Behavior == "allow":
		a := protocol.PermissionAnswer{Allow: true}
		if len(in.Input) > 0 {
			if in.Input[0] != '{' {
				return invalid
			}
			if string(in.Input) != "{}" { // an empty input counts as missing
				a.UpdatedInput = in.Input
			}
		}
		if len(in.Permissions) > 0 && string(in.Permissions) != "null" && json.Unmarshal(in.Permissions, &a.UpdatedPermissions) != nil {
			return invalid
		}
		return a
	case in.Behavior == "deny" && in.Message != nil:
		return protocol.PermissionAnswer{Message: *in.Message, Interrupt: in.Interrupt}
	}
	return invalid
}
