package terminal

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// suggestion returns a suggestion of rules for a tool; without a tool, of directories.
func suggestion(tool string, contents ...string) protocol.PermissionUpdate {
	if tool == "" {
		return protocol.PermissionUpdate{Type: "addDirectories", Directories: contents}
	}
	u := protocol.PermissionUpdate{Type: "addRules"}
	for _, content := range contents {
		u.Rules = append(u.Rules, protocol.PermissionRule{ToolName: tool, RuleContent: content})
	}
	return u
}

// TestBashDialog: each row is a command with the dialog of claude 2.1.330 about it.
func TestBashDialog(t *testing.T) {
	const approval, auto = "This command requires approval", "Yes, and switch to auto mode · auto mode handles these prompts for you"
	type request = protocol.PermissionRequest
	bash := func(contents ...string) []protocol.PermissionUpdate {
		return []protocol.PermissionUpdate{suggestion("Bash", contents...)}
	}
	dir := t.TempDir()
	for command, tt := range map[string]struct {
		request request
		reason  string
		options []string // between Yes and No
	}{
		"npm test":              {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("npm test *")}, approval, []string{"Yes, and don’t ask again for: npm test *", auto}},
		"curl -s https://a.b/c": {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("curl -s https://a.b/c")}, approval, []string{"Yes, and don’t ask again for: curl *", auto}},
		"python script.py":      {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("python script.py")}, approval, []string{"Yes, and don’t ask again for: python *", auto}},
		"FOO=1 npm test":        {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("FOO=1 npm test")}, approval, []string{"Yes, and don’t ask again for: FOO=1 npm test *", auto}},
		"chmod +x f":            {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("chmod +x f")}, approval, []string{"Yes, and don’t ask again for: chmod +x *", auto}},
		"make":                  {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("make")}, approval, []string{"Yes, and don’t ask again for: make *", auto}},
		"sudo ls":               {request{DecisionReason: approval, DecisionReasonType: "other", Suggestions: bash("sudo ls")}, approval, []string{"Yes, and don’t ask again for: sudo ls", auto}},
		"ls | xargs rm":         {request{DecisionReasonType: "subcommandResults", Suggestions: bash("xargs rm")}, approval, []string{"Yes, and don’t ask again for: xargs rm", auto}},
		"mkdir x && touch x/a":  {request{DecisionReasonType: "subcommandResults", Suggestions: bash("mkdir x *", "touch x/a")}, "", []string{"Yes, and don't ask again for mkdir x and touch x/a commands in /work", auto}},
		"npm a && npm b; c d":   {request{DecisionReasonType: "subcommandResults", Suggestions: bash("npm a *", "npm b *", "c d *")}, approval, []string{"Yes, and don't ask again for npm a, npm b, and c d commands in /work", auto}},
		"touch a":               {request{BlockedPath: "/work/a", Suggestions: append(bash("touch a *"), suggestion("", "/work"))}, "", []string{"Yes, and always allow access to /work from this project", auto}},
		"mkdir there":           {request{BlockedPath: dir, Suggestions: []protocol.PermissionUpdate{suggestion("", "/work")}}, "", []string{"Yes, and always allow access to " + dir + " from this project", auto}},
		"cat /etc/shadow":       {request{Suggestions: append(bash("cat /etc/shadow"), suggestion("Read", "//etc/**"))}, "", []string{"Yes, allow reading from /etc from this project", auto}},
		"echo $(ls)":            {request{DecisionReason: "A nested command", DecisionReasonType: "other"}, "A nested command", []string{auto}},
		"rm -rf /":              {request{DecisionReason: "Dangerous rm operation detected: '/'\n\nThis", DecisionReasonType: "safetyCheck", Safety: protocol.SafetyNeedsApprovalOfEachCall}, "Dangerous rm operation on critical path: /", nil},
	} {
		a := &prompter{screen: &screen{}, cwd: "/work"}
		d := &dialog{}
		var labels []string
		for _, o := range a.fillBashDialog(d, tt.request, shownToolInput{Command: command}) {
			labels = append(labels, o.label)
		}
		if diff := cmp.Diff(tt.options, labels); diff != "" {
			t.Errorf("%s: options (-want +got):\n%s", command, diff)
		}
		if reason := strings.TrimSpace(strings.Join(d.reason, "\n")); reason != tt.reason {
			t.Errorf("%s: the reason is %q, want %q", command, reason, tt.reason)
		}
	}
	long := strings.Repeat("word ", 20)
	got := wrapKeepingQuoteMarks(rowsWithBarIfLong("echo "+long+"> f"), 80)
	if diff := cmp.Diff([]string{" │ echo" + strings.Repeat(" word", 14), " │ word word word word word word > f"}, got); diff != "" {
		t.Errorf("a long command (-want +got):\n%s", diff)
	}
}

// TestParseCallInput: a key with a value of another type stays empty, and the others are read.
func TestParseCallInput(t *testing.T) {
	got := parseShownToolInput([]byte(`{"command":7,"file_path":"a","replace_all":"x","content":"b"}`))
	if diff := cmp.Diff(shownToolInput{FilePath: "a", Content: "b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSmallScreen: on 11 rows, claude 2.1.330 shows three options of a permission dialog, and as
// many of a question as fit. The others appear when the selection moves.
func TestSmallScreen(t *testing.T) {
	ask := func(labels ...string) *dialog {
		d := &dialog{state: StatePermission, indent: 1, showNumbers: true, screenRows: 11}
		for _, label := range labels {
			d.options = append(d.options, dialogOption{label: label})
		}
		return d
	}
	question := &dialog{
		state: StateQuestion, showNumbers: true, screenRows: 11, head: []string{" ☐ Colour", "", "Which?", ""}, foot: []string{"", "Enter to select"},
		options: []dialogOption{{label: "Red", detail: "a rose"}, {label: "Blue", detail: "the sea"}, {label: "Type", isInput: true}, {label: "Chat", lineAbove: true}},
	}
	large := ask("a", "b", "c", "d")
	large.screenRows = 24
	for name, tt := range map[string]struct {
		dialog *dialog
		downs  int
		want   []string
	}{
		"permission":       {ask("a", "b", "c", "d"), 0, []string{" ❯ 1. a", "   2. b", " ↓ 3. c"}},
		"third option":     {ask("a", "b", "c", "d"), 2, []string{"   1. a", "   2. b", " ❯ 3. c"}},
		"last option":      {ask("a", "b", "c", "d"), 3, []string{" ↑ 2. b", "   3. c", " ❯ 4. d"}},
		"three options":    {ask("a", "b", "c"), 0, []string{" ❯ 1. a", "   2. b", "   3. c"}},
		"a large screen":   {large, 0, []string{" ❯ 1. a", "   2. b", "   3. c", "   4. d"}},
		"question":         {question, 0, []string{"❯ 1. Red", "     a rose", strings.Repeat(ruleGlyph, 20), "  4. Chat", "", "Enter to select"}},
		"question, second": {question, 1, []string{"❯ 2. Blue", "     the sea"}},
	} {
		d := *tt.dialog
		d.selected = tt.downs
		rows, _ := d.choiceRows(20)
		if diff := cmp.Diff(tt.want, rows[:min(len(rows), len(tt.want))]); diff != "" || d.state == StatePermission && len(rows) != len(tt.want) {
			t.Errorf("%s: %q (-want +got):\n%s", name, rows, diff)
		}
	}
}

// TestPlanOnSmallScreen: up to 26 rows, claude 2.1.330 leaves out parts of the plan dialog. An arrow ends a plan that is
// too long.
func TestPlanOnSmallScreen(t *testing.T) {
	rule, thin := "  "+strings.Repeat(ruleGlyph, 16), "  "+strings.Repeat(thinRuleGlyph, 16)
	large := []string{strings.Repeat("▔", 20), "", rule, "   Ready to code?", "", "   Here is the plan:", thin, "   a", "   b"}
	small := []string{strings.Repeat("▔", 20), "   Ready to code?", thin, "   a", "   b"}
	choices := []string{rule, "   Proceed?", "   ❯ 1. Yes"}
	for _, tt := range []struct {
		rows int
		want []string
	}{
		{27, slices.Concat(large, []string{thin}, make([]string, 11), choices[:2], []string{""}, choices[2:])},
		{26, slices.Concat(small, []string{thin}, make([]string, 15), choices)},
		{11, slices.Concat(small, []string{thin, choices[0]}, choices[1:])},
		{10, slices.Concat(small[:4], []string{"   b" + strings.Repeat(" ", 15) + "↓"}, choices)},
		{7, slices.Concat(small[:1], []string{small[1] + "  ↓"}, choices)},
		{107, slices.Concat(small[:1], []string{small[1] + "  ↓"}, choices)},
		{109, slices.Concat(small[:2], []string{thin + " ↓"}, choices, []string{"   ↓ 2. No"})},
		{110, slices.Concat(small[:1], []string{small[1] + "  ↓"}, choices, []string{"     2. No", "     3. Tell", "        how"})},
	} {
		d := &dialog{
			state: StatePlanApproval, kind: "approval", indent: 3, showNumbers: true, isOverlay: true, screenRows: tt.rows, options: []dialogOption{{label: "Yes"}},
			head: []string{"   Ready to code?", "", "   Here is the plan:"}, body: []string{"   a", "   b"}, question: []string{"   Proceed?", ""},
		}
		if tt.rows > 100 { // a dialog with more options
			d.screenRows, d.options = tt.rows-100, append(d.options, dialogOption{label: "No"}, dialogOption{label: "Tell", isInput: true, secondLine: "how"})
		}
		got, at := d.rows(20)
		if diff := cmp.Diff(tt.want, got); diff != "" || !strings.HasPrefix(got[at], "   ❯") {
			t.Errorf("%d rows: the cursor is in row %d of %d (-want +got):\n%s", tt.rows, at, len(got), diff)
		}
	}
}

// TestFormAnswer: the answer has annotations, which no page of the form asks for, and a rejection lists the questions.
func TestFormAnswer(t *testing.T) {
	f := &questionForm{input: []byte(`{"questions":[]}`), questions: []formQuestion{{Question: "Which?"}, {Question: "Why?"}}, answers: []string{"Red", ""}}
	if got := string(f.allowAnswer().UpdatedInput); got != `{"questions":[],"answers":{"Which?":"Red"},"annotations":{}}` {
		t.Error(got)
	}
	want := "The user wants to clarify these questions.\n\n    Questions asked:\n- \"Which?\"\n  Answer: Red\n- \"Why?\"\n  (No answer provided)"
	if diff := cmp.Diff(want, f.clarificationText()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
