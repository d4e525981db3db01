package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// dialogFor makes the dialog of a question.
func (a *prompter) dialogFor(q *pendingQuestion) *dialog {
	switch q.request.Use.Name {
	case "AskUserQuestion":
		if f := newForm(a, q); f != nil {
			return f.page()
		}
	case "ExitPlanMode":
		return a.planDialog(q)
	}
	return a.permissionDialog(q)
}

// permissionOption is an option of a permission dialog and what it answers.
type permissionOption struct {
	label  string
	answer protocol.PermissionAnswer
}

// label returns a label of the screen.
func (a *prompter) label(state, begin string) string { return a.screen.labels.text(state, begin) }

// refusal returns the answer for No and Esc, which ends the turn.
func refusal() protocol.PermissionAnswer { return protocol.PermissionAnswer{Interrupt: true} }

// permissionDialog asks whether a call may run.
func (a *prompter) permissionDialog(q *pendingQuestion) *dialog {
	r := q.request
	d := &dialog{state: Permission, indent: 1, numbers: true, rule: ruleGlyph, foot: []string{"", " " + a.label("", "Esc to cancel") + amendHint}}
	in := readCall(r.Use.DisplayInput())
	yes := permissionOption{a.label("permission", "Yes"), protocol.PermissionAnswer{Allow: true}}
	always := permissionOption{answer: protocol.PermissionAnswer{Allow: true, UpdatedPermissions: r.Suggestions}}
	no := permissionOption{a.label("permission", "No"), refusal()}
	grants := []permissionOption{yes}
	switch {
	case r.Use.Name == "Bash":
		d.values = map[string]string{"dir": a.cwd, "command": in.Command, "description": in.Description}
		d.kind, d.head = "bash", []string{" Bash command"}
		if in.Description != "" {
			d.head = append(d.head, " "+in.Description)
		}
		d.body, d.question = strings.Split(" "+in.Command, "\n"), []string{" Do you want to proceed?"}
		always.answer.UpdatedPermissions = slices.DeleteFunc(slices.Clone(r.Suggestions), func(u protocol.PermissionUpdate) bool { return u.Type == "setMode" })
		if changesFiles(in.Command) {
			always.answer.UpdatedPermissions = []protocol.PermissionUpdate{{Type: "addDirectories", Directories: []string{a.cwd}, Destination: "session"}}
		}
		if always.label = bashGrant(always.answer.UpdatedPermissions); always.label != "" {
			grants = append(grants, always)
		}
		grants = append(grants, permissionOption{a.label("permission/bash", "Yes, and switch to auto mode"), setMode(protocol.ModeAuto)})
	case in.FilePath != "":
		a.fileDialog(d, r.Use.Name, in)
		if len(always.answer.UpdatedPermissions) == 0 {
			always.answer = setMode(protocol.ModeAcceptEdits)
		}
		always.label = a.label("permission/edit", "Yes, and switch to accept edits")
		if r.Use.Name == "Read" {
			always.label = "Yes, allow reading from " + filepath.Base(filepath.Dir(in.FilePath)) + "/ during this session"
		}
		grants = append(grants, always)
	case r.Use.Name == "WebFetch":
		host := in.URL
		if u, err := url.Parse(in.URL); err == nil && u.Host != "" {
			host = u.Hostname()
		}
		d.values = map[string]string{"host": host, "url": in.URL}
		d.kind, d.head, d.foot = "webfetch", []string{" Fetch", " Claude wants to fetch content from " + host}, nil
		d.body, d.question = []string{" url: " + in.URL, " prompt: " + in.Prompt}, []string{" Do you want to allow Claude to fetch this content?"}
		always.label, no.label = "Yes, and don't ask again for "+host, a.label("permission/webfetch", "No, and tell Claude what to do differently (esc)")
		grants = append(grants, always)
	default:
		name := a.toolDialog(d, r)
		always.label = "Yes, and don't ask again for " + name + " commands in " + a.cwd
		if len(r.Suggestions) > 0 {
			grants = append(grants, always)
		}
	}
	a.fill(q, d, append(grants, no))
	return d
}

// toolDialog describes a call of an MCP server, or of a tool without its own dialog. It returns the name of the tool.
func (a *prompter) toolDialog(d *dialog, r protocol.PermissionRequest) (name string) {
	name = r.DisplayName
	d.kind, d.head = "tool", []string{" Tool use"}
	if r.Server != nil {
		name, d.kind = r.Server.Name+" — "+r.DisplayName, "mcp"
		d.head = append(d.head, " "+name+" Tool: (MCP)")
		d.values = map[string]string{"dir": a.cwd, "tool": name}
		d.about = a.describe(r.Use.Name)
	} else {
		d.head = append(d.head, " "+name)
	}
	d.body, d.question = inputRows(r.Use.DisplayInput()), []string{" Do you want to proceed?"}
	return name
}

// describe returns the description of an MCP tool, as rows.
func (a *prompter) describe(tool string) []string {
	for _, t := range a.player.session.Servers().Tools() {
		if t.Name == tool && t.Description != "" {
			rows := numbered(" │ ", t.Description)
			return slices.DeleteFunc(rows, func(row string) bool { return row == " │ " })
		}
	}
	return nil
}

// fill adds the options to a permission dialog.
func (a *prompter) fill(q *pendingQuestion, d *dialog, grants []permissionOption) {
	for _, g := range grants {
		d.options = append(d.options, option{label: g.label, oneRow: d.kind == "mcp"})
	}
	a.spoil(d, &grants)
	d.owner = chooser(func(c choice) *dialog {
		chosen := refusal()
		word := "cancelled"
		if !c.cancelled {
			chosen, word = grants[c.index].answer, grants[c.index].label
		}
		a.answer(q, d, word, chosen)
		return nil
	})
}

func setMode(mode protocol.PermissionMode) protocol.PermissionAnswer {
	return protocol.PermissionAnswer{Allow: true, UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: mode, Destination: "session"}}}
}

// changesFiles reports whether the real CLI asks about a command by directory. The answer adds the directory, and
// the next such command is asked about again.
func changesFiles(command string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	return slices.Contains([]string{"touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed"}, name)
}

// bashGrant returns the label of the option that makes a command's suggested rules or
// directories permanent; empty = nothing is suggested.
func bashGrant(suggestions []protocol.PermissionUpdate) string {
	var rules, dirs []string
	for _, u := range suggestions {
		for _, rule := range u.Rules {
			rules = append(rules, strings.Replace(rule.RuleContent, ":*", " *", 1))
		}
		dirs = append(dirs, u.Directories...)
	}
	switch {
	case len(rules) > 0:
		return "Yes, and don’t ask again for: " + strings.Join(rules, ", ")
	case len(dirs) > 0:
		return "Yes, and always allow access to " + strings.Join(dirs, ", ") + " from this project"
	}
	return ""
}

// fileDialog describes a call that reads or changes a file.
func (a *prompter) fileDialog(d *dialog, tool string, in callInput) {
	path := shortPath(a.cwd, in.FilePath)
	d.values = map[string]string{"dir": a.cwd, "file": path}
	switch tool {
	case "Write":
		d.kind, d.head, d.question = "write", []string{" Create file", " " + path}, []string{" Do you want to create " + filepath.Base(path) + "?"}
		d.body = numbered("  ", strings.Join(numberedRows(in.Content), "\n"))
	case "Edit":
		d.kind, d.head, d.question = "edit", []string{" Edit file", " " + path}, []string{" Do you want to make this edit to " + filepath.Base(path) + "?"}
		d.body = numbered(" ", strings.Join(editRows(in), "\n"))
	default:
		d.kind, d.head, d.question = strings.ToLower(tool), []string{" " + tool + " file", " " + path}, []string{" Do you want to proceed?"}
	}
}

// numbered returns the first lines of a text, each with a mark.
func numbered(mark, text string) []string {
	const most = 10
	var rows []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if len(rows) == most {
			return append(rows, mark+"…")
		}
		rows = append(rows, mark+line)
	}
	return rows
}

// inputRows returns the keys of an input, one a row.
func inputRows(raw json.RawMessage) []string {
	rows := []string{}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return rows
	}
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return rows
		}
		rows = append(rows, fmt.Sprintf(" %v: %s", name, value))
	}
	return rows
}

// planDialog asks whether a plan may be carried out.
func (a *prompter) planDialog(q *pendingQuestion) *dialog {
	d := &dialog{state: Plan, kind: "approval", indent: 3, numbers: true, rule: ruleGlyph, head: []string{"   Ready to code?", ""}}
	file, saved := a.player.session.PlanFile()
	plan := cmp.Or(readCall(q.request.Use.DisplayInput()).Plan, saved)
	if plan == "" {
		return a.emptyPlanDialog(q, d)
	}
	d.overlay, d.head, d.body = true, append(d.head, "   Here is Claude's plan:"), planRows("   ", plan)
	d.question = []string{"   Claude has written up a plan and is ready to execute. Would you like to proceed?", ""}
	change, _, _ := strings.Cut(a.label("plan", "Tell Claude what to change"), " shift+tab")
	d.options = []option{{label: a.label("plan", "Yes, and use auto mode")}, {label: a.label("plan", "Yes, manually approve edits")}, {label: change, input: true, under: "shift+tab to approve with this feedback"}}
	if d.foot = []string{"", "   ctrl+g to edit in Vim · " + file}; a.screen.faults.footerGone || file == "" {
		d.foot = nil
	}
	d.owner = chooser(func(c choice) *dialog {
		switch {
		case c.cancelled:
			a.answer(q, d, "cancelled", refusal())
		case c.index == 2:
			a.answer(q, d, d.options[2].label, protocol.PermissionAnswer{Message: c.text})
		default:
			a.answer(q, d, d.options[c.index].label, setMode([]protocol.PermissionMode{protocol.ModeAuto, protocol.ModeDefault}[c.index]))
		}
		return nil
	})
	return d
}

// planRows returns the rows of a plan, without the marks of its headings.
func planRows(margin, plan string) []string {
	var rows []string
	for line := range strings.SplitSeq(strings.TrimSpace(plan), "\n") {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			line = strings.TrimSpace(heading)
		}
		rows = append(rows, strings.TrimRight(margin+line, " "))
	}
	return rows
}

// emptyPlanDialog asks whether plan mode may end although no plan was written.
func (a *prompter) emptyPlanDialog(q *pendingQuestion, d *dialog) *dialog {
	d.kind, d.head, d.question = "exit", []string{"   Exit plan mode?", ""}, []string{"   Claude wants to exit plan mode", ""}
	a.fill(q, d, []permissionOption{{a.label("permission", "Yes"), setMode(protocol.ModeDefault)}, {a.label("permission", "No"), refusal()}})
	return d
}

// spoil applies the faults of dialogs.
func (a *prompter) spoil(d *dialog, grants *[]permissionOption) {
	f := a.screen.faults
	d.numbers = d.numbers && !f.numbersGone
	if f.optionOrder {
		last := len(*grants) - 1
		(*grants)[0], (*grants)[last] = (*grants)[last], (*grants)[0]
		d.options[0], d.options[last] = d.options[last], d.options[0]
	}
	if f.modeOption {
		*grants = append((*grants)[:1:1], append([]permissionOption{{"Yes, and switch to bypass permissions", setMode(protocol.ModeBypass)}}, (*grants)[1:]...)...)
		d.options = append(d.options[:1:1], append([]option{{label: (*grants)[1].label}}, d.options[1:]...)...)
	}
	if f.footerGone {
		d.foot = nil
	}
}
