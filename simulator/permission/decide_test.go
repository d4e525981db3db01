package permission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// newPolicy creates a policy from rules such as "allow Bash(git *)".
func newPolicy(t *testing.T, o permission.Options, rules ...string) *permission.Policy {
	t.Helper()
	o.CWD = cwd
	for _, r := range rules {
		behavior, text, _ := strings.Cut(r, " ")
		o.Rules = append(o.Rules, permission.Rule{Behavior: behavior, Source: "userSettings", Text: text})
	}
	p, err := permission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if w := p.Warnings(); len(w) > 0 {
		t.Fatalf("warnings: %q", w)
	}
	return p
}

// newCall creates a call. input is a JSON object, or only the command for Bash and only the path for the file tools.
func newCall(tool, input string) protocol.ToolUse {
	if !strings.HasPrefix(input, `{"`) && input != "{}" {
		key := "file_path"
		switch tool {
		case "Bash":
			key = "command"
		case "Glob", "Grep":
			key = "path"
		case "Task", "Agent":
			key = "subagent_type"
		case "Skill":
			key = "skill"
		case "WebFetch":
			key = "url"
		}
		data, err := json.Marshal(map[string]string{key: input})
		if err != nil {
			panic(err)
		}
		input = string(data)
	}
	return protocol.ToolUse{Type: "tool_use", ID: "toolu_1", Name: tool, Input: json.RawMessage(input)}
}

// verdictText abbreviates a verdict: "allow rule", "ask", "ask workingDir", "deny mode".
func verdictText(v permission.Verdict) string {
	reason := v.ReasonType
	word := "ask"
	switch v.Behavior {
	case permission.Allow:
		word, reason = "allow", v.Decision.ReasonType
	case permission.Deny:
		word = "deny"
	default:
	}
	return strings.TrimSpace(word + " " + reason)
}

// Contract 6.1: the order is deny rule, ask rule, mode and allow rule, auto-allow, ask.
func TestDecide(t *testing.T) {
	type modes = map[protocol.PermissionMode]string
	const d, ae, au, by, da, pl = protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModeAuto,
		protocol.ModeBypass, protocol.ModeDontAsk, protocol.ModePlan
	tests := []struct {
		name  string
		rules []string
		use   protocol.ToolUse
		want  modes
	}{
		// Checklist row 24: echo and reads in the working directory run, touch and Write ask.
		{"read-only command", nil, newCall("Bash", "echo hi"), modes{d: "allow subcommandResults", ae: "allow subcommandResults", by: "allow mode", da: "allow subcommandResults", pl: "allow subcommandResults"}},
		{"read-only pipeline", nil, newCall("Bash", "cat a.txt | wc -l && pwd"), modes{d: "allow subcommandResults"}},
		{"writing command", nil, newCall("Bash", "touch made"), modes{d: "ask", ae: "allow subcommandResults", au: "allow mode", by: "allow mode", da: "deny mode", pl: "deny classifier"}},
		{"writing outside", nil, newCall("Bash", "touch /elsewhere/x"), modes{d: "ask", ae: "ask", au: "deny classifier"}},
		{"writing after cd", nil, newCall("Bash", "cd sub && touch made"), modes{ae: "ask other"}},
		{"unknown path", nil, newCall("Bash", `rm "$FILE"`), modes{ae: "ask other"}},
		{"compound with one writer", nil, newCall("Bash", "echo a; touch b"), modes{d: "ask", ae: "allow subcommandResults"}},
		{"redirection", nil, newCall("Bash", "echo a > b"), modes{d: "ask", ae: "allow subcommandResults", pl: "deny classifier"}},
		{"redirection to a place unknown", nil, newCall("Bash", "echo a > $F"), modes{ae: "ask other"}},
		{"redirection of a writer", nil, newCall("Bash", "npm test > b"), modes{ae: "ask other"}},
		{"other command", nil, newCall("Bash", "npm install"), modes{d: "ask other", ae: "ask other", by: "allow mode"}},
		{"reading outside by command", nil, newCall("Bash", "cat /etc/passwd"), modes{d: "ask"}},
		{"unfinished command", nil, newCall("Bash", `echo "a`), modes{d: "ask other", by: "allow mode"}},
		{"Write inside", nil, newCall("Write", cwd+"/a"), modes{d: "ask", ae: "allow mode", au: "allow mode", by: "allow mode", da: "deny mode", pl: "ask mode"}},
		{"Write outside", nil, newCall("Write", "/elsewhere/a"), modes{d: "ask workingDir", ae: "ask workingDir", by: "allow mode", da: "deny mode", pl: "ask mode"}},
		{"Write that climbs out", nil, newCall("Write", cwd+"/../a"), modes{ae: "ask workingDir"}},
		{"Read inside", nil, newCall("Read", cwd+"/a"), modes{d: "allow mode", pl: "allow mode", da: "allow mode"}},
		{"Read outside", nil, newCall("Read", "/etc/passwd"), modes{d: "ask workingDir", ae: "ask workingDir", da: "deny mode", pl: "allow mode", au: "allow mode"}},
		{"Glob without a path", nil, newCall("Glob", `{"pattern":"*"}`), modes{d: "allow mode"}},
		{"MCP tool", nil, newCall("mcp__s__t", "{}"), modes{d: "ask", ae: "ask", au: "deny classifier", by: "allow mode", da: "deny mode"}},
		{"sub-agent", nil, newCall("Task", "Explore"), modes{d: "allow", da: "allow"}},
		{"todo list", nil, newCall("TodoWrite", `{}`), modes{d: "allow"}},
		{"web", nil, newCall("WebFetch", "https://example.com/x"), modes{d: "ask", by: "allow mode"}},
		{"documentation", nil, newCall("WebFetch", "https://Docs.Python.org:8443/3"), modes{d: "allow other", da: "allow other"}},
		{"documentation below a path", nil, newCall("WebFetch", "https://github.com/anthropics/x"), modes{d: "allow other"}},
		{"beside that path", nil, newCall("WebFetch", "https://github.com/anthropicsx"), modes{d: "ask"}},
		{"out of that path", nil, newCall("WebFetch", "https://github.com/anthropics/../x"), modes{d: "ask"}},
		{"a name that begins like that of documentation", nil, newCall("WebFetch", "https://docs.python.org.evil/"), modes{d: "ask"}},
		{"documentation denied", []string{"deny WebFetch(domain:docs.python.org)"}, newCall("WebFetch", "https://docs.python.org/"), modes{d: "deny rule"}},
		{"documentation asked about", []string{"ask WebFetch(domain:docs.python.org)"}, newCall("WebFetch", "https://docs.python.org/"), modes{d: "ask rule"}},
		{"question", nil, newCall("AskUserQuestion", `{}`), modes{d: "ask", by: "ask", da: "deny mode"}},
		{"bad input", nil, newCall("Write", `{"file_path":7}`), modes{d: "allow", da: "allow"}},
		{"input that is no object", nil, protocol.ToolUse{Name: "Bash", Input: json.RawMessage(`[`)}, modes{d: "allow"}},

		// Checklist row 26: allow, ask and deny rules in each mode.
		{"allow", []string{"allow Bash(touch *)"}, newCall("Bash", "touch made"), modes{d: "allow subcommandResults", da: "allow subcommandResults", pl: "allow subcommandResults"}},
		{"allow by its own text", []string{"allow Bash(npm test)"}, newCall("Bash", "NODE_ENV=test timeout 5 npm test"), modes{d: "allow rule"}},
		{"deny wins over allow", []string{"allow Bash", "deny Bash(touch *)"}, newCall("Bash", "touch made"), modes{d: "deny subcommandResults", by: "deny subcommandResults", da: "deny subcommandResults"}},
		{"deny one part", []string{"allow Bash", "deny Bash(rm:*)"}, newCall("Bash", "echo a && rm -rf x"), modes{d: "deny subcommandResults"}},
		{"deny in a substitution", []string{"allow Bash", "deny Bash(rm:*)"}, newCall("Bash", "echo $(rm x)"), modes{d: "deny rule"}},
		{"deny behind a variable", []string{"allow Bash", "deny Bash(rm:*)"}, newCall("Bash", "A=1 rm x"), modes{d: "deny subcommandResults"}},
		{"deny behind wrappers", []string{"allow Bash", "deny Bash(rm:*)"}, newCall("Bash", "sudo -n timeout 5s /bin/rm x"), modes{d: "deny subcommandResults"}},
		{"deny by its own text", []string{"allow Bash", "deny Bash(npm test)"}, newCall("Bash", "time npm test"), modes{d: "deny rule"}},
		{"deny another spelling", []string{"allow Bash", "deny Bash(rm *)"}, newCall("Bash", `'rm' x`), modes{d: "deny subcommandResults"}},
		{"ask wins over allow", []string{"allow Bash", "ask Bash(git push *)"}, newCall("Bash", "git push origin"), modes{d: "ask rule", by: "ask rule", da: "deny mode"}},
		{"ask about the tool, in the line's own words", []string{"ask Bash"}, newCall("Bash", "cd sub && touch made"), modes{ae: "ask other", by: "ask other"}},
		{"ask about the tool", []string{"ask Bash"}, newCall("Bash", "make a; make b"), modes{d: "ask rule", by: "ask rule"}},
		{"ask about one of two commands", []string{"ask Bash(touch:*)"}, newCall("Bash", "touch a; rm -f b"), modes{d: "ask subcommandResults", by: "ask subcommandResults"}},
		{"ask about the only one that needs it", []string{"ask Bash(touch:*)"}, newCall("Bash", "cd sub && touch a"), modes{d: "ask rule", by: "ask rule"}},
		{"every part allowed", []string{"allow Bash(npm run *)"}, newCall("Bash", "npm run a && echo ok"), modes{d: "allow subcommandResults"}},
		{"one part not allowed", []string{"allow Bash(npm run *)"}, newCall("Bash", "npm run a && npm publish"), modes{d: "ask subcommandResults"}},
		{"allowed with redirection", []string{"allow Bash(echo *)"}, newCall("Bash", "echo a > /elsewhere/f"), modes{d: "ask"}},
		{"exact compound", []string{"allow Bash(make a && make b)"}, newCall("Bash", "make a && make b"), modes{d: "allow rule"}},
		{"whole tool", []string{"allow Bash(*)"}, newCall("Bash", "make a > b &"), modes{d: "allow rule"}},
		{"function hides commands", []string{"allow Bash(f *)"}, newCall("Bash", "f() { rm x; }; f a"), modes{d: "ask other"}},
		{"MCP by rule", []string{"allow mcp__s__t"}, newCall("mcp__s__t", "{}"), modes{d: "allow rule", au: "allow rule"}},
		{"Write in plan mode with a rule", []string{"allow Write"}, newCall("Write", cwd+"/a"), modes{pl: "ask mode", d: "allow rule"}},
		{"Read deny", []string{"deny Read(./secret/**)"}, newCall("Read", cwd+"/secret/k"), modes{d: "deny", by: "deny"}},
		{"Write where reading is denied as a whole", []string{"deny Read(*)", "allow Write"}, newCall("Write", cwd+"/a"), modes{d: "deny", by: "deny"}},
		{"Edit where reading is denied by name", []string{"deny Read", "allow Edit"}, newCall("Edit", cwd+"/a"), modes{d: "deny", by: "deny"}},
		{"Grep under a Read deny", []string{"deny Read(./secret/**)"}, newCall("Grep", cwd+"/secret/k"), modes{d: "deny rule"}},
	}
	for _, tt := range tests {
		for mode, want := range tt.want {
			t.Run(tt.name+"/"+string(mode), func(t *testing.T) {
				p := newPolicy(t, permission.Options{Mode: mode}, tt.rules...)
				if got := verdictText(p.Decide(tt.use)); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestDenialTexts checks the short texts that clients match on (contract 6.2, row 52).
func TestDenialTexts(t *testing.T) {
	tests := []struct {
		name  string
		o     permission.Options
		rules []string
		use   protocol.ToolUse
		want  string // text of the result
		event string // decision_reason_type of the event; "none" means no event
	}{
		{"MCP", permission.Options{}, nil, newCall("mcp__s__t", "{}"), "Claude requested permissions to use mcp__s__t, but you haven't granted it yet.", ""},
		{"Edit", permission.Options{}, nil, newCall("Edit", "/w/a"), "Claude requested permissions to write to /w/a, but you haven't granted it yet.", "workingDir"},
		{"Read", permission.Options{}, nil, newCall("Read", "/w/a"), "Claude requested permissions to read from /w/a, but you haven't granted it yet.", "workingDir"},
		{
			"touch",
			permission.Options{},
			nil, newCall("Bash", "touch made"),
			"touch in '/work/project/made' needs approval. The path is inside the working directories for this session ('/work/project'), and Claude Code asks before a shell command creates, changes or removes files there.", "",
		},
		{"plan", permission.Options{Mode: protocol.ModePlan}, nil, newCall("Write", "/w/a"), "Cannot write to /w/a while in plan mode.", "mode"},
		{"Bash as a whole", permission.Options{}, []string{"deny Bash(echo:*)", "deny Bash"}, newCall("Bash", "echo hi"), "Permission to use Bash has been denied.", "rule"},
		{"Bash rule", permission.Options{}, []string{"deny Bash(echo:*)"}, newCall("Bash", "echo hi"), "Permission to use Bash with command echo hi has been denied.", "subcommandResults"},
		{"Bash rule in a pipeline", permission.Options{}, []string{"deny Bash(wc:*)"}, newCall("Bash", "ls | wc -l"), "Permission to use Bash with command wc -l has been denied.", "subcommandResults"},
		{"MCP rule", permission.Options{}, []string{"deny mcp__s"}, newCall("mcp__s__t", "{}"), "Permission to use mcp__s__t has been denied.", "rule"},
		{"Read rule", permission.Options{}, []string{"deny Read(//w/**)"}, newCall("Read", "/w/a"), "<tool_use_error>File is in a directory that is denied by your permission settings.</tool_use_error>", "none"},
		{"Write rule", permission.Options{}, []string{"deny Edit(//w/**)"}, newCall("Write", "/w/a"), "<tool_use_error>File is in a directory that is denied by your permission settings.</tool_use_error>", "none"},
		{"no prompts", permission.Options{NoPrompts: true}, nil, newCall("mcp__s__t", "{}"), permission.NoSurfaceText + "Claude requested permissions to use mcp__s__t, but you haven't granted it yet.", "asyncAgent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, tt.o, tt.rules...)
			v := p.Decide(tt.use)
			r, denied := v.Denial()
			if diff := cmp.Diff(tt.want, r.Content.Text); diff != "" || !r.IsError {
				t.Errorf("text (-want +got):\n%s\nIsError %v", diff, r.IsError)
			}
			event := "none"
			if denied != nil {
				event = denied.DecisionReasonType
				if denied.Message != r.Content.Text {
					t.Errorf("event says %q", denied.Message)
				}
			}
			if event != tt.event {
				t.Errorf("event %q, want %q", event, tt.event)
			}
			if !v.CountDenial || r.Decision == nil {
				t.Errorf("CountDenial %v, Decision %v", v.CountDenial, r.Decision)
			}
		})
	}
	planning := newPolicy(t, permission.Options{Mode: protocol.ModePlan})
	if v := planning.Decide(newCall("Write", "/w/a")); v.Behavior != permission.Ask || v.Suggestions != nil {
		t.Errorf("plan mode: %+v, want a question without suggestions", v)
	}
	p := newPolicy(t, permission.Options{Mode: protocol.ModeDontAsk})
	text := p.Decide(newCall("Write", "/w/a")).Message
	if !strings.HasPrefix(text, "Permission to use Write has been denied because Claude Code is running in don't ask mode. ") {
		t.Errorf("don't ask mode: %q", text)
	}
}

// With a prompter, the modes plan and auto ask instead of using the classifier. The mode dontAsk still denies.
func TestAskerInModes(t *testing.T) {
	for mode, want := range map[protocol.PermissionMode]string{
		protocol.ModePlan: "ask other", protocol.ModeAuto: "ask other", protocol.ModeDontAsk: "deny mode",
	} {
		p := newPolicy(t, permission.Options{Mode: mode, AsksPerson: true})
		if got := verdictText(p.Decide(newCall("Bash", "npm install"))); got != want {
			t.Errorf("%s: got %q, want %q", mode, got, want)
		}
	}
}

// A call that mode auto cannot check has another reason in the transcript than in manual mode (observed with 2.1.330).
func TestReasonCodeOfUncheckedCall(t *testing.T) {
	for mode, want := range map[protocol.PermissionMode]string{protocol.ModeAuto: "other", protocol.ModeDefault: "bashMiss:no-rule-match"} {
		p := newPolicy(t, permission.Options{Mode: mode, AsksPerson: true})
		if got := p.Decide(newCall("Bash", "npm install")).Decision.ReasonCode; got != want {
			t.Errorf("%s: got %q, want %q", mode, got, want)
		}
	}
}

// In plan mode files outside the working directory may be read, unless the settings forbid that a classifier decides.
func TestReadingInPlanMode(t *testing.T) {
	for alone, want := range map[bool]string{false: "allow mode", true: "ask workingDir"} {
		p := newPolicy(t, permission.Options{AsksPerson: true, NoClassifierInPlanMode: alone})
		if err := p.SetMode(protocol.ModePlan); err != nil {
			t.Fatal(err)
		}
		started := newPolicy(t, permission.Options{Mode: protocol.ModePlan, AsksPerson: true, NoClassifierInPlanMode: alone})
		for _, p := range []*permission.Policy{p, started} {
			if got := verdictText(p.Decide(newCall("Read", "/else/x"))); got != want {
				t.Errorf("alone: %t: %q, want %q", alone, got, want)
			}
		}
	}
}

// A scenario's auto_approve has precedence over modes and deny rules; an unknown tool passes without a decision.
func TestAutoApproveAndUnknownTools(t *testing.T) {
	o := permission.Options{
		Mode:        protocol.ModeDontAsk,
		AutoApprove: func(tool string) bool { return tool == "Bash" },
		Tool: func(name string) (protocol.Tool, bool) {
			return protocol.Tool{Name: name}, name == "Bash"
		},
	}
	p := newPolicy(t, o, "deny Bash(rm *)")
	if got := p.Decide(newCall("Bash", "rm x")); got.Behavior != permission.Allow || got.Decision.Decision != "accept" {
		t.Errorf("auto_approve: %+v", got)
	}
	if diff := cmp.Diff(permission.Verdict{Behavior: permission.Allow}, p.Decide(newCall("Nosuch", "{}"))); diff != "" {
		t.Errorf("unknown tool (-want +got):\n%s", diff)
	}
}

// A verdict shows whether a rule or the mode decided, because a hook may override only the mode (contract 6.1, row 20).
func TestVerdictTellsRulesFromModes(t *testing.T) {
	p := newPolicy(t, permission.Options{Mode: protocol.ModeDontAsk}, "deny Bash(rm *)")
	if v := p.Decide(newCall("Bash", "rm x")); !v.DenyRule {
		t.Error("a deny rule is not told")
	}
	if v := p.Decide(newCall("Bash", "touch x")); v.DenyRule || v.AskRule {
		t.Error("a mode is told as a rule")
	}
	p = newPolicy(t, permission.Options{}, "ask Bash(git *)")
	if v := p.Decide(newCall("Bash", "git push")); !v.AskRule {
		t.Error("an ask rule is not told")
	}
}

// linkFS is a file system that has only links.
type linkFS map[string]string

func (l linkFS) Resolve(path string) string {
	if to, found := l[path]; found {
		return to
	}
	return path
}

func (linkFS) Glob(string) []string { return nil }
func (linkFS) IsDir(string) bool    { return false }

// Working directories are compared by their real paths.
func TestResolve(t *testing.T) {
	links := linkFS{
		cwd + "/link": "/elsewhere", cwd + "/link/f": "/elsewhere/f", "/alias": cwd, "/alias/f": cwd + "/f",
		cwd + "/to-f": cwd + "/f", cwd + "/to-nothing": "/gone",
	}
	o := permission.Options{Mode: protocol.ModeAcceptEdits, FileSystem: links}
	p := newPolicy(t, o)
	if got := verdictText(p.Decide(newCall("Write", cwd+"/link/f"))); got != "ask workingDir" {
		t.Errorf("link out of the directory: %q", got)
	}
	if got := verdictText(p.Decide(newCall("Write", "/alias/f"))); got != "allow mode" {
		t.Errorf("link into the directory: %q", got)
	}
	for _, mode := range []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModeBypass} {
		o.Mode = mode
		for _, tool := range []string{"Write", "Edit", "NotebookEdit"} {
			for path, target := range map[string]string{cwd + "/to-f": cwd + "/f", cwd + "/to-nothing": "/gone"} {
				call := newCall(tool, path)
				if tool == "NotebookEdit" {
					call.Input = []byte(`{"notebook_path":"` + path + `"}`)
				}
				v := newPolicy(t, o, "allow "+tool).Decide(call)
				want := "Refusing to write " + path + ": it is a symbolic link. Write to the link's target path instead: " + target + "."
				if v.Behavior != permission.Deny || v.Message != want || !v.DenyRule {
					t.Errorf("%s of %s in mode %s: %+v", tool, path, mode, v)
				}
			}
		}
	}
	if got := verdictText(newPolicy(t, o).Decide(newCall("Read", cwd+"/to-f"))); got != "allow mode" {
		t.Errorf("a link that is read: %q", got)
	}
}

// A deny rule for reading hides files from the tools that list files.
func TestIsHidden(t *testing.T) {
	for _, tt := range []struct {
		rule, path string
		want       bool
	}{
		{"deny Read(secret/**)", "secret/x", true},
		{"deny Read(secret/**)", cwd + "/secret/x", true},
		{"deny Read(secret/**)", "x", false},
		{"deny Edit(secret/**)", "secret/x", false},
		{"ask Read(secret/**)", "secret/x", false},
	} {
		if got := newPolicy(t, permission.Options{}, tt.rule).IsReadDenied(tt.path); got != tt.want {
			t.Errorf("%s hides %s: %v", tt.rule, tt.path, got)
		}
	}
}

// --disallowedTools Read removes the tool but allows writing files. A deny rule in settings, or one with a path, also
// protects the files.
func TestReadTakenAway(t *testing.T) {
	for _, tt := range []struct {
		source, text string
		want         permission.Behavior
	}{
		{"cliArg", "Read", permission.Allow},
		{"userSettings", "Read", permission.Deny},
		{"cliArg", "Read(**)", permission.Deny},
	} {
		p, err := permission.New(permission.Options{CWD: "/w", Rules: []permission.Rule{
			{Behavior: permission.BehaviorDeny, Source: tt.source, Text: tt.text}, {Behavior: permission.BehaviorAllow, Source: "cliArg", Text: "Write"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(protocol.ToolUse{Name: "Write", Input: []byte(`{"file_path":"/w/new"}`)}).Behavior; got != tt.want {
			t.Errorf("%s from %s: %v, want %v", tt.text, tt.source, got, tt.want)
		}
	}
}
