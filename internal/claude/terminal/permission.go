package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func (a *prompter) dialogForPermissionRequest(q *pendingPermissionRequest) *dialog {
	switch q.request.Use.Name {
	case "AskUserQuestion":
		if f := newQuestionForm(a, q); f != nil {
			return f.currentPage()
		}
	case "ExitPlanMode":
		d := a.newPlanApprovalDialog(q)
		if a.screen.isInline {
			d.convertOverlayToInline(a.screen.cols)
		}
		return d
	}
	if a.isCallCheckedByAutoMode(q.request) && !a.auto.isExplained {
		if a.player.session.Policy().Mode() == protocol.ModeAuto {
			return a.newAutoModeCannotCheckDialog(q)
		}
		a.showAutoModeCannotCheckNotice() // in plan mode, there is no question before the first dialog
	}
	return a.newToolPermissionDialog(q)
}

type permissionOption struct {
	label  string
	answer protocol.PermissionAnswer
}

func (a *prompter) findLabelOrPrefix(screenState, labelPrefix string) string {
	return a.screen.labels.findLabelOrPrefix(screenState, labelPrefix)
}

func interruptingRefusal() protocol.PermissionAnswer {
	return protocol.PermissionAnswer{Interrupt: true}
}

func (a *prompter) newToolPermissionDialog(q *pendingPermissionRequest) *dialog {
	r := q.request
	d := &dialog{state: StatePermission, indent: 1, showNumbers: true, topRuleGlyph: ruleGlyph, foot: []string{"", " " + a.findLabelOrPrefix("", "Esc to cancel") + amendHintText}}
	in := parseShownToolInput(r.Use.InputForHooksAndHosts())
	yes := permissionOption{a.findLabelOrPrefix("permission", "Yes"), protocol.PermissionAnswer{Allow: true}}
	always := permissionOption{answer: protocol.PermissionAnswer{Allow: true, UpdatedPermissions: r.Suggestions}}
	no := permissionOption{a.findLabelOrPrefix("permission", "No"), interruptingRefusal()}
	grants := []permissionOption{yes}
	switch {
	case r.Use.Name == "Bash":
		grants = append(grants, a.fillBashDialog(d, r, in)...)
	case in.FilePath != "":
		if always.label = a.fillFilePermissionDialog(d, r, in); len(always.answer.UpdatedPermissions) == 0 {
			always.answer = allowAndSetModeAnswer(protocol.ModeAcceptEdits)
		}
		d.shiftTabOption = 2
		grants = append(grants, always)
	case r.Use.Name == "WebFetch":
		host := in.URL
		if u, err := url.Parse(in.URL); err == nil && u.Host != "" {
			host = u.Hostname()
		}
		d.slotValues = map[string]string{"host": host, "url": in.URL}
		d.kind, d.head, d.foot = "webfetch", []string{" Fetch", " Claude wants to fetch content from " + host}, nil
		d.body, d.question = []string{" url: " + in.URL, " prompt: " + in.Prompt}, []string{" Do you want to allow Claude to fetch this content?"}
		always.label, no.label = "Yes, and don't ask again for "+host, a.findLabelOrPrefix("permission/webfetch", "No, and tell Claude what to do differently (esc)")
		grants = append(grants, always)
	default:
		calls := a.fillToolDialog(d, r)
		always.label = "Yes, and don't ask again for " + calls + " in " + a.cwd
		if len(r.Suggestions) > 0 {
			grants = append(grants, always)
		}
	}
	grants = append(grants, no)
	if a.isCallCheckedByAutoMode(r) {
		grants, d.showNumbers, d.reason, d.hasOwnTexts = []permissionOption{no, yes}, false, []string{" " + autoModeNoticeReason}, true
		d.head = slices.DeleteFunc(d.head, func(row string) bool { return strings.HasPrefix(row, " Tip: ") })
		if textWidth(d.reason[0]) >= a.screen.cols-1 {
			d.reason[0] = quotedRowMark + autoModeNoticeReason
		}
	}
	a.addGrantAndRefusalOptions(q, d, grants)
	return d
}

// fillToolDialog fills in the dialog for a call of an MCP tool, or of a built-in tool without a special dialog. It
// returns the words that follow "don't ask again for" in an option, such as "Web Search commands".
func (a *prompter) fillToolDialog(d *dialog, r protocol.PermissionRequest) (callsToAllow string) {
	name := r.DisplayName
	d.kind, d.head = "tool", []string{" Tool use"}
	d.question = []string{" Do you want to proceed?"}
	switch in := parseShownToolInput(r.Use.InputForHooksAndHosts()); r.Use.Name {
	case "WebSearch":
		d.head, d.body = append(d.head, quotedRowMark+"Claude wants to search the web for: "+in.Query), []string{" " + in.webSearchText()}
		return "Web Search commands"
	case "Skill":
		d.head, d.body = []string{` Use skill "` + in.Skill + `"?`, " Claude may use instructions, code, or files from this Skill."}, []string{" " + a.screen.commandMenu.description("/"+in.Skill)}
		return in.Skill
	}
	if r.Server != nil {
		name, d.kind = r.Server.Name+" — "+r.DisplayName, "mcp"
		d.head = append(d.head, " "+name+" Tool: (MCP)")
		d.slotValues = map[string]string{"dir": a.cwd, "tool": name, toolDescriptionSlotName: a.quotedToolDescription(r.Use.Name)}
	} else {
		d.head = append(d.head, " "+name)
	}
	d.body = toolInputRows(r.Use.InputForHooksAndHosts())
	return name + " commands"
}

func (a *prompter) quotedToolDescription(tool string) string {
	for _, t := range a.player.session.Servers().Tools() {
		if t.Name == tool && t.Description != "" {
			return strings.Join(slices.DeleteFunc(prefixEachLine(quotedRowMark, t.Description), func(row string) bool { return row == quotedRowMark }), "\n")
		}
	}
	return ""
}

func (a *prompter) addGrantAndRefusalOptions(q *pendingPermissionRequest, d *dialog, grants []permissionOption) {
	for _, g := range grants {
		d.options = append(d.options, dialogOption{label: g.label, truncate: d.kind == "mcp"})
	}
	a.applyScreenFaultsToPermissionDialog(d, &grants)
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		chosen := interruptingRefusal()
		word := "cancelled"
		if !c.cancelled {
			chosen, word = grants[c.index].answer, grants[c.index].label
		}
		if c.text != "" {
			chosen.Feedback, chosen.Interrupt = c.text, false
		}
		a.recordAndSendAnswer(q, d, word, chosen)
		return nil
	})
}

func allowAndSetModeAnswer(mode protocol.PermissionMode) protocol.PermissionAnswer {
	return protocol.PermissionAnswer{Allow: true, UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: mode, Destination: "session"}}}
}

func (a *prompter) fillBashDialog(d *dialog, r protocol.PermissionRequest, in shownToolInput) []permissionOption {
	description := cmp.Or(in.Description, "Run shell command")
	d.slotValues = map[string]string{"dir": a.cwd, "command": in.Command, "description": description}
	d.kind, d.head = "bash", []string{" Bash command", " " + description}
	d.body, d.wrapBody, d.question = rowsWithBarIfLong(in.Command), true, []string{" Do you want to proceed?"}
	grants := []permissionOption{}
	if always := bashAlwaysAllowOption(r, in.Command, a.cwd); always.label != "" {
		grants = append(grants, always)
	}
	reason := r.DecisionReason
	if path, dangerous := strings.CutPrefix(reason, "Dangerous rm operation detected: '"); dangerous {
		path, _, _ = strings.Cut(path, "'")
		reason = "Dangerous rm operation on critical path: " + path
	}
	switch {
	case r.DecisionReasonType == "other" || r.DecisionReasonType == "safetyCheck":
		d.reason = rowsWithBarIfLong(reason)
	case r.DecisionReasonType == "subcommandResults" && hasNonFileCommandSuggestion(r.Suggestions):
		d.reason = rowsWithBarIfLong("This command requires approval")
	}
	switch {
	case r.Safety == protocol.SafetyNeedsApprovalOfEachCall:
		return nil
	case a.auto.isUnavailable, a.screen.mode == string(protocol.ModePlan):
		return grants
	}
	d.head = slices.Insert(d.head, 1, ` Tip: choose "switch to auto mode" below to see fewer of these dialogs`)
	return append(grants, permissionOption{a.screen.labels.findLabelOrPrefixWithRest("permission/bash", "Yes, and switch to auto mode", " · auto mode handles these prompts for you"), allowAndSetModeAnswer(protocol.ModeAuto)})
}

func rowsWithBarIfLong(text string) []string {
	const longText = 80 // length in characters
	mark := " "
	if strings.Contains(text, "\n") || len([]rune(text)) > longText {
		mark = quotedRowMark
	}
	return prefixEachLine(mark, text)
}

// hasNonFileCommandSuggestion reports whether a suggestion permits a command that is not one of the usual file commands
// (touch, mkdir, rm, rmdir, mv, cp, sed). If a suggestion adds a directory, it returns false.
func hasNonFileCommandSuggestion(suggestions []protocol.PermissionUpdate) bool {
	other := false
	for _, u := range suggestions {
		if u.Type == "addDirectories" {
			return false
		}
		for _, r := range u.Rules {
			name, _, _ := strings.Cut(r.RuleContent, " ")
			other = other || !slices.Contains([]string{"touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed"}, name)
		}
	}
	return other
}

// bashAlwaysAllowOption returns the option that permits more than this one command, permanently: access to a directory, reading in a
// directory, or commands that begin in the same way. The suggestions decide which; without any, the label is empty.
func bashAlwaysAllowOption(r protocol.PermissionRequest, command, cwd string) permissionOption {
	var names, rules []string
	updates := map[string][]protocol.PermissionUpdate{} // updates by the kind of permission
	for _, u := range r.Suggestions {
		switch {
		case u.Type == "addDirectories":
			if info, err := os.Stat(r.BlockedPath); err == nil && info.IsDir() {
				u.Directories = []string{r.BlockedPath}
			}
			updates["dir"], names = append(updates["dir"], u), u.Directories
		case u.Type != "addRules":
		case u.Rules[0].ToolName == "Read":
			updates["read"], names = append(updates["read"], u), []string{strings.TrimSuffix(strings.TrimPrefix(u.Rules[0].RuleContent, "/"), "/**")}
		default:
			updates["rule"] = append(updates["rule"], u)
			for _, rule := range u.Rules {
				rules = append(rules, rule.RuleContent)
			}
		}
	}
	label, granted := "", "rule"
	switch {
	case updates["dir"] != nil:
		label, granted = "Yes, and always allow access to "+names[0]+" from this project", "dir"
	case updates["read"] != nil:
		label, granted = "Yes, allow reading from "+names[0]+" from this project", "read"
	case len(rules) == 1:
		if rules[0] == strings.TrimSpace(command) {
			rules[0] = prefixRuleOrWholeCommand(command)
			updates["rule"][0].Rules = []protocol.PermissionRule{{ToolName: "Bash", RuleContent: rules[0]}}
		}
		label = "Yes, and don’t ask again for: " + rules[0]
	case len(rules) > 1:
		for i := range rules {
			rules[i] = strings.TrimSuffix(rules[i], " *")
		}
		label = "Yes, and don't ask again for " + joinWithCommasAndAnd(rules) + " commands in " + cwd
	}
	return permissionOption{label, protocol.PermissionAnswer{Allow: true, UpdatedPermissions: updates[granted]}}
}

func prefixRuleOrWholeCommand(command string) string {
	m := regexp.MustCompile(`^((?:\w+=\w+ )*)([\w./-]+)( [\w+][\w+-]*)?(?: |$)`).FindStringSubmatch(command)
	if m == nil || slices.Contains([]string{"bash", "sh", "zsh", "sudo", "su", "env", "nice", "nohup", "time", "timeout", "xargs", "exec", "eval"}, m[2]) {
		return command
	}
	return m[1] + m[2] + m[3] + " *"
}

// joinWithCommasAndAnd returns a list as text: "a", "a and b", "a, b, and c".
func joinWithCommasAndAnd(items []string) string {
	last := len(items) - 1
	if last < 2 {
		return strings.Join(items, " and ")
	}
	return strings.Join(items[:last], ", ") + ", and " + items[last]
}

func (a *prompter) fillFilePermissionDialog(d *dialog, r protocol.PermissionRequest, in shownToolInput) (alwaysOptionLabel string) {
	path, name := in.FilePath, filepath.Base(in.FilePath)
	if rel, err := filepath.Rel(a.cwd, path); err == nil {
		path = rel
	}
	d.slotValues = map[string]string{"dir": a.cwd, "file": path}
	d.kind, d.question = strings.ToLower(r.Use.Name), []string{" Do you want to proceed?"}
	switch d.hasOwnTexts = path != name; r.Use.Name {
	case "Write":
		verb, rows := "create", []string(nil)
		if rows, d.hasOwnTexts = rowsOfWrite(in); d.hasOwnTexts {
			verb = "overwrite"
		}
		d.hasOwnTexts = d.hasOwnTexts || path != name
		d.head, d.question = []string{" " + strings.ToUpper(verb[:1]) + verb[1:] + " file", " " + path}, []string{" Do you want to " + verb + " " + name + "?"}
		d.body = prefixEachLine("  ", strings.Join(rows, "\n"))
	case "Edit":
		d.head, d.question = []string{" Edit file", " " + path}, []string{" Do you want to make this edit to " + name + "?"}
		rows, places := firstPlaceOfEdit(in)
		if d.body = prefixEachLine(" ", strings.Join(rows, "\n")); places > 0 {
			d.body = append(d.body, fmt.Sprintf("The diff doesn't show all of what this edit changes: %d places in the file.", places))
			d.foot[1] = " One-time Yes only: places not shown ·" + d.foot[1]
		}
	case "Read":
		d.head, d.body = []string{" Read file"}, []string{" Read(" + in.FilePath + ")"}
		return "Yes, allow reading from " + filepath.Dir(in.FilePath) + " during this session"
	default:
		d.head = []string{" " + r.Use.Name + " file", " " + path}
	}
	return a.screen.labels.findLabelOrPrefixWithRest("permission/edit", "Yes, and switch to accept edits", " (auto-approve file edits and common file commands) for this session (shift+tab)")
}

func prefixEachLine(prefix, text string) []string {
	return strings.Split(prefix+strings.ReplaceAll(text, "\n", "\n"+prefix), "\n")
}

func toolInputRows(raw json.RawMessage) []string {
	rows := []string{}
	object, _ := plainjson.Parse(raw) // an input that is not an object has no rows
	for _, member := range object {
		rows = append(rows, fmt.Sprintf(" %s: %s", member.Key, member.Value))
	}
	return rows
}

// newPlanApprovalDialog asks if claude may carry out the written plan. As in the real CLI, a plan in the call's input is ignored.
func (a *prompter) newPlanApprovalDialog(q *pendingPermissionRequest) *dialog {
	d := &dialog{state: StatePlanApproval, kind: "approval", indent: 3, showNumbers: true, isOverlay: true, head: []string{"   Ready to code?", ""}}
	_, plan := a.player.session.PlanModeFile()
	if plan == "" {
		return a.fillExitPlanModeDialogWithoutPlan(q, d)
	}
	d.head, d.body = append(d.head, "   Here is Claude's plan:"), planRows("   ", plan)
	d.question = []string{"   Claude has written up a plan and is ready to execute. Would you like to proceed?", ""}
	change, _, _ := strings.Cut(a.findLabelOrPrefix("plan", "Tell Claude what to change"), " shift+tab")
	d.options = []dialogOption{{label: a.findLabelOrPrefix("plan", "Yes, and use auto mode")}, {label: a.findLabelOrPrefix("plan", "Yes, manually approve edits")}, {label: change, isInput: true, secondLine: "shift+tab to approve with this feedback"}}
	d.shiftTabOption = 1
	if d.foot = []string{"", "   ctrl+g to edit in Vim · " + session.ShownPlanPath(a.player.session)}; a.screen.faults[faultFooterHintsHidden] {
		d.foot = nil
	}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		answer, word := interruptingRefusal(), "cancelled"
		switch feedback := d.options[2].detail; {
		case c.cancelled:
		case c.index == 2:
			word, answer = d.options[2].label, protocol.PermissionAnswer{Feedback: feedback}
		default:
			word, answer = d.options[c.index].label, planAcceptedAnswer([]protocol.PermissionMode{protocol.ModeAuto, protocol.ModeDefault}[c.index], feedback)
		}
		a.recordAndSendAnswer(q, d, word, answer)
		return nil
	})
	return d
}

func (d *dialog) convertOverlayToInline(cols int) {
	d.isOverlay, d.topRuleGlyph, d.indent = false, ruleGlyph, d.indent-len(overlayMargin)
	for _, rows := range [][]string{d.head, d.body, d.question, d.foot} {
		for i := range rows {
			rows[i] = strings.TrimPrefix(rows[i], overlayMargin)
		}
	}
	if d.body != nil {
		d.question = slices.Insert(d.question, 0, "", strings.Repeat(ruleGlyph, cols))
	}
}

func planAcceptedAnswer(mode protocol.PermissionMode, feedback string) protocol.PermissionAnswer {
	answer := allowAndSetModeAnswer(mode)
	answer.UpdatedInput, answer.Feedback = json.RawMessage("{}"), feedback
	return answer
}

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

func (a *prompter) fillExitPlanModeDialogWithoutPlan(q *pendingPermissionRequest, d *dialog) *dialog {
	d.kind, d.indent, d.head, d.question = "exit", 4, []string{"   Exit plan mode?", ""}, []string{"    Claude wants to exit plan mode", ""}
	a.addGrantAndRefusalOptions(q, d, []permissionOption{
		{"Yes, and switch to default (ask each time) for this session", planAcceptedAnswer(protocol.ModeDefault, "")}, {a.findLabelOrPrefix("permission", "No"), interruptingRefusal()},
	})
	return d
}

func (a *prompter) applyScreenFaultsToPermissionDialog(d *dialog, grants *[]permissionOption) {
	f := a.screen.faults
	d.showNumbers = d.showNumbers && !f[faultOptionNumbersHidden]
	if f[faultOptionsSwapped] {
		last := len(*grants) - 1
		(*grants)[0], (*grants)[last] = (*grants)[last], (*grants)[0]
		d.options[0], d.options[last] = d.options[last], d.options[0]
	}
	if f[faultExtraBypassModeOption] {
		if d.shiftTabOption > 0 {
			d.shiftTabOption++
		}
		*grants = append((*grants)[:1:1], append([]permissionOption{{"Yes, and switch to bypass permissions", allowAndSetModeAnswer(protocol.ModeBypass)}}, (*grants)[1:]...)...)
		d.options = append(d.options[:1:1], append([]dialogOption{{label: (*grants)[1].label}}, d.options[1:]...)...)
	}
	if f[faultFooterHintsHidden] {
		d.foot = nil
	}
}

type autoModeState struct {
	isUnavailable bool // the model does not support the mode, or the user has left it
	ignoresPlans  bool // in plan mode, the user is asked as in the default mode
	isExplained   bool // the user was told that mode auto checks no calls, and approves them in dialogs
}

// Texts about mode auto. In the real CLI, a server checks each call in this mode. claudeless has no such server, so the
// user must approve calls.
const (
	autoModeNoticeTitle  = "Auto mode can't check actions in this session"
	autoModeNoticeReason = autoModeNoticeTitle + ", so this one needs your approval"
)

// isCallCheckedByAutoMode reports whether mode auto would check the call instead of asking the user. Plan mode also
// checks calls, except file changes. Calls that need the user in every mode, such as dangerous ones, are never checked.
func (a *prompter) isCallCheckedByAutoMode(r protocol.PermissionRequest) bool {
	mode := a.player.session.Policy().Mode()
	isPlanned := mode == protocol.ModePlan && !a.auto.isUnavailable && !a.auto.ignoresPlans && (r.DecisionReasonType != "mode" || r.Server != nil)
	return (mode == protocol.ModeAuto || isPlanned) && !r.RequiresUser && r.DecisionReasonType != "rule" && r.Safety != protocol.SafetyNeedsApprovalOfEachCall
}

func (a *prompter) showAutoModeCannotCheckNotice() {
	a.auto.isExplained = true
	notice := autoModeNoticeTitle + cmp.Or(a.screen.labels.pages.paragraphRestAfterPrefix("permission/bash", answerGlyph+" "+autoModeNoticeTitle), ". Actions that need the check now ask for your approval. Shift+Tab switches the permission mode.")
	a.screen.entries = append(a.screen.entries, transcriptEntry{glyph: answerGlyph + " ", text: notice, isError: true})
	session.DeferRecordUntilNextEvent(a.player.session, informationalSystemEvent(notice, "warning"))
}

func (a *prompter) newAutoModeCannotCheckDialog(q *pendingPermissionRequest) *dialog {
	d := &dialog{state: StateStartupOrAutoModeDialog, kind: "auto", topRuleGlyph: ruleGlyph, head: []string{
		"  " + autoModeNoticeTitle, "", "  The server does not answer the check. Stay, and approve each action that needs it, or leave for accept edits mode.", "",
	}}
	d.foot = []string{"  Enter to stay in auto mode · shift+Tab to leave for accept edits mode and stop · Esc to cancel"}
	if rows := a.screen.labels.pages.rowsBelowInputField("dialog/auto"); rows != nil {
		d.head, d.foot = rows, nil
	}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		word := "cancelled"
		switch c.key {
		case keyEnter:
			a.player.session.JournalAndWarningWriter().WriteJournal(d.journalLine("Enter", true))
			a.showAutoModeCannotCheckNotice()
			return a.dialogForPermissionRequest(q)
		case keyBackTab:
			word, a.auto.isUnavailable = "shift+Tab", true
			_ = a.player.session.Policy().SetMode(protocol.ModeAcceptEdits) // cannot fail, because this mode is always allowed
			a.screen.mode = string(protocol.ModeAcceptEdits)
		default: // Esc and Ctrl-C
		}
		a.player.session.JournalAndWarningWriter().WriteJournal(d.journalLine(word, false))
		a.removeFromPending(q)
		a.screen.interruptedTurn = a.player.interruptRunningTurn(session.ErrInterruptedByKey)
		return nil
	})
	return d
}
