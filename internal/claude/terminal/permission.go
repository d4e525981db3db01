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

// newDialog makes the dialog for a question.
func (a *prompter) newDialog(q *pendingQuestion) *dialog {
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
func (a *prompter) label(state, begin string) string { return a.screen.labels.find(state, begin) }

// refusalAnswer returns the answer for No and Esc, which ends the turn.
func refusalAnswer() protocol.PermissionAnswer { return protocol.PermissionAnswer{Interrupt: true} }

// permissionDialog asks whether a call may run.
func (a *prompter) permissionDialog(q *pendingQuestion) *dialog {
	r := q.request
	d := &dialog{state: StatePermission, indent: 1, showNumbers: true, topRule: ruleGlyph, foot: []string{"", " " + a.label("", "Esc to cancel") + amendHintText}}
	in := parseCallInput(r.Use.DisplayInput())
	yes := permissionOption{a.label("permission", "Yes"), protocol.PermissionAnswer{Allow: true}}
	always := permissionOption{answer: protocol.PermissionAnswer{Allow: true, UpdatedPermissions: r.Suggestions}}
	no := permissionOption{a.label("permission", "No"), refusalAnswer()}
	grants := []permissionOption{yes}
	switch {
	case r.Use.Name == "Bash":
		d.slotValues = map[string]string{"dir": a.cwd, "command": in.Command, "description": in.Description}
		d.kind, d.head = "bash", []string{" Bash command"}
		if in.Description != "" {
			d.head = append(d.head, " "+in.Description)
		}
		d.body, d.question = strings.Split(" "+in.Command, "\n"), []string{" Do you want to proceed?"}
		always.answer.UpdatedPermissions = slices.DeleteFunc(slices.Clone(r.Suggestions), func(u protocol.PermissionUpdate) bool { return u.Type == "setMode" })
		if asksByDirectory(in.Command) {
			always.answer.UpdatedPermissions = []protocol.PermissionUpdate{{Type: "addDirectories", Directories: []string{a.cwd}, Destination: "session"}}
		}
		if always.label = bashGrant(always.answer.UpdatedPermissions); always.label != "" {
			grants = append(grants, always)
		}
		grants = append(grants, permissionOption{a.label("permission/bash", "Yes, and switch to auto mode"), modeAnswer(protocol.ModeAuto)})
	case in.FilePath != "":
		a.fileDialog(d, r.Use.Name, in)
		if len(always.answer.UpdatedPermissions) == 0 {
			always.answer = modeAnswer(protocol.ModeAcceptEdits)
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
		d.slotValues = map[string]string{"host": host, "url": in.URL}
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
	a.addOptions(q, d, append(grants, no))
	return d
}

// toolDialog describes a call of an MCP server, or of a tool without its own dialog. It returns the name of the tool.
func (a *prompter) toolDialog(d *dialog, r protocol.PermissionRequest) (name string) {
	name = r.DisplayName
	d.kind, d.head = "tool", []string{" Tool use"}
	if r.Server != nil {
		name, d.kind = r.Server.Name+" — "+r.DisplayName, "mcp"
		d.head = append(d.head, " "+name+" Tool: (MCP)")
		d.slotValues = map[string]string{"dir": a.cwd, "tool": name}
		d.toolDescription = a.toolDescriptionRows(r.Use.Name)
	} else {
		d.head = append(d.head, " "+name)
	}
	d.body, d.question = inputRows(r.Use.DisplayInput()), []string{" Do you want to proceed?"}
	return name
}

// toolDescriptionRows returns the description of an MCP tool.
func (a *prompter) toolDescriptionRows(tool string) []string {
	for _, t := range a.player.session.Servers().Tools() {
		if t.Name == tool && t.Description != "" {
			rows := markedLines(" │ ", t.Description)
			return slices.DeleteFunc(rows, func(row string) bool { return row == " │ " })
		}
	}
	return nil
}

// addOptions adds the options to a permission dialog.
func (a *prompter) addOptions(q *pendingQuestion, d *dialog, grants []permissionOption) {
	for _, g := range grants {
		d.options = append(d.options, option{label: g.label, truncate: d.kind == "mcp"})
	}
	a.applyFaults(d, &grants)
	d.owner = chooserFunc(func(c choice) *dialog {
		chosen := refusalAnswer()
		word := "cancelled"
		if !c.cancelled {
			chosen, word = grants[c.index].answer, grants[c.index].label
		}
		a.answer(q, d, word, chosen)
		return nil
	})
}

// modeAnswer returns an answer that allows the call and changes the permission mode.
func modeAnswer(mode protocol.PermissionMode) protocol.PermissionAnswer {
	return protocol.PermissionAnswer{Allow: true, UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: mode, Destination: "session"}}}
}

// asksByDirectory reports whether the real CLI offers to allow a command for a whole directory. The answer adds the
// directory, and the next such command is asked about again.
func asksByDirectory(command string) bool {
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
	d.slotValues = map[string]string{"dir": a.cwd, "file": path}
	switch tool {
	case "Write":
		d.kind, d.head, d.question = "write", []string{" Create file", " " + path}, []string{" Do you want to create " + filepath.Base(path) + "?"}
		d.body = markedLines("  ", strings.Join(numberedRows(in.Content), "\n"))
	case "Edit":
		d.kind, d.head, d.question = "edit", []string{" Edit file", " " + path}, []string{" Do you want to make this edit to " + filepath.Base(path) + "?"}
		d.body = markedLines(" ", strings.Join(editRows(in), "\n"))
	default:
		d.kind, d.head, d.question = strings.ToLower(tool), []string{" " + tool + " file", " " + path}, []string{" Do you want to proceed?"}
	}
}

// markedLines returns the first lines of a text, each after a mark.
func markedLines(mark, text string) []string {
	const maxLines = 10
	var rows []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if len(rows) == maxLines {
			return append(rows, mark+"…")
		}
		rows = append(rows, mark+line)
	}
	return rows
}

// inputRows returns the keys of an input, one per row.
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

// planDialog asks whether claude may carry out a plan.
func (a *prompter) planDialog(q *pendingQuestion) *dialog {
	d := &dialog{state: StatePlan, kind: "approval", indent: 3, showNumbers: true, topRule: ruleGlyph, head: []string{"   Ready to code?", ""}}
	file, saved := a.player.session.PlanFile()
	plan := cmp.Or(parseCallInput(q.request.Use.DisplayInput()).Plan, saved)
	if plan == "" {
		return a.emptyPlanDialog(q, d)
	}
	d.isOverlay, d.head, d.body = true, append(d.head, "   Here is Claude's plan:"), planRows("   ", plan)
	d.question = []string{"   Claude has written up a plan and is ready to execute. Would you like to proceed?", ""}
	change, _, _ := strings.Cut(a.label("plan", "Tell Claude what to change"), " shift+tab")
	d.options = []option{{label: a.label("plan", "Yes, and use auto mode")}, {label: a.label("plan", "Yes, manually approve edits")}, {label: change, isInput: true, note: "shift+tab to approve with this feedback"}}
	if d.foot = []string{"", "   ctrl+g to edit in Vim · " + file}; a.screen.faults.footerHidden || file == "" {
		d.foot = nil
	}
	d.owner = chooserFunc(func(c choice) *dialog {
		switch {
		case c.cancelled:
			a.answer(q, d, "cancelled", refusalAnswer())
		case c.index == 2:
			a.answer(q, d, d.options[2].label, protocol.PermissionAnswer{Message: c.text})
		default:
			a.answer(q, d, d.options[c.index].label, modeAnswer([]protocol.PermissionMode{protocol.ModeAuto, protocol.ModeDefault}[c.index]))
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
	a.addOptions(q, d, []permissionOption{{a.label("permission", "Yes"), modeAnswer(protocol.ModeDefault)}, {a.label("permission", "No"), refusalAnswer()}})
	return d
}

// applyFaults changes a dialog according to the active faults.
func (a *prompter) applyFaults(d *dialog, grants *[]permissionOption) {
	f := a.screen.faults
	d.showNumbers = d.showNumbers && !f.numbersHidden
	if f.optionsSwapped {
		last := len(*grants) - 1
		(*grants)[0], (*grants)[last] = (*grants)[last], (*grants)[0]
		d.options[0], d.options[last] = d.options[last], d.options[0]
	}
	if f.extraModeOption {
		*grants = append((*grants)[:1:1], append([]permissionOption{{"Yes, and switch to bypass permissions", modeAnswer(protocol.ModeBypass)}}, (*grants)[1:]...)...)
		d.options = append(d.options[:1:1], append([]option{{label: (*grants)[1].label}}, d.options[1:]...)...)
	}
	if f.footerHidden {
		d.foot = nil
	}
}
