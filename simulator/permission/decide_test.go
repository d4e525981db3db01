package permission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// policy creates a policy from rules such as "allow Bash(git *)".
func policy(t *testing.T, o permission.Options, rules ...string) *permission.Policy {
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

// use creates a call: the input is a JSON object, or for Bash the command and for the file tools the path.
func use(tool, input string) protocol.ToolUse {
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

// outcome abbreviates a verdict: "allow rule", "ask", "ask workingDir", "deny mode".
func outcome(v permission.Verdict) string {
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

// Contract 6.1: the order is deny rule, ask rule, mode and allow rule,
// auto-allow, ask.
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
		// Checklist row 24: echo runs, touch asks, Write asks, reads inside run.
		{"read-only command", nil, use("Bash", "echo hi"), modes{d: "allow subcommandResults", ae: "allow subcommandResults", by: "allow mode", da: "allow subcommandResults", pl: "allow subcommandResults"}},
		{"read-only pipeline", nil, use("Bash", "cat a.txt | wc -l && pwd"), modes{d: "allow subcommandResults"}},
		{"writing command", nil, use("Bash", "touch made"), modes{d: "ask", ae: "allow subcommandResults", au: "allow mode", by: "allow mode", da: "deny mode", pl: "deny classifier"}},
		{"writing outside", nil, use("Bash", "touch /elsewhere/x"), modes{d: "ask", ae: "ask", au: "deny classifier"}},
		{"writing after cd", nil, use("Bash", "cd sub && touch made"), modes{ae: "ask other"}},
		{"unknown path", nil, use("Bash", `rm "$FILE"`), modes{ae: "ask other"}},
		{"compound with one writer", nil, use("Bash", "echo a; touch b"), modes{d: "ask", ae: "allow subcommandResults"}},
		{"redirection", nil, use("Bash", "echo a > b"), modes{d: "ask", ae: "allow subcommandResults", pl: "deny classifier"}},
		{"redirection to a place unknown", nil, use("Bash", "echo a > $F"), modes{ae: "ask other"}},
		{"redirection of a writer", nil, use("Bash", "npm test > b"), modes{ae: "ask other"}},
		{"other command", nil, use("Bash", "npm install"), modes{d: "ask other", ae: "ask other", by: "allow mode"}},
		{"reading outside by command", nil, use("Bash", "cat /etc/passwd"), modes{d: "ask"}},
		{"unfinished command", nil, use("Bash", `echo "a`), modes{d: "ask other", by: "allow mode"}},
		{"Write inside", nil, use("Write", cwd+"/a"), modes{d: "ask", ae: "allow mode", au: "allow mode", by: "allow mode", da: "deny mode", pl: "ask mode"}},
		{"Write outside", nil, use("Write", "/elsewhere/a"), modes{d: "ask workingDir", ae: "ask workingDir", by: "allow mode", da: "deny mode", pl: "ask mode"}},
		{"Write that climbs out", nil, use("Write", cwd+"/../a"), modes{ae: "ask workingDir"}},
		{"Read inside", nil, use("Read", cwd+"/a"), modes{d: "allow mode", pl: "allow mode", da: "allow mode"}},
		{"Read outside", nil, use("Read", "/etc/passwd"), modes{d: "ask workingDir", ae: "ask workingDir", da: "deny mode", pl: "allow mode", au: "allow mode"}},
		{"Glob without a path", nil, use("Glob", `{"pattern":"*"}`), modes{d: "allow mode"}},
		{"MCP tool", nil, use("mcp__s__t", "{}"), modes{d: "ask", ae: "ask", au: "deny classifier", by: "allow mode", da: "deny mode"}},
		{"sub-agent", nil, use("Task", "Explore"), modes{d: "allow", da: "allow"}},
		{"todo list", nil, use("TodoWrite", `{}`), modes{d: "allow"}},
		{"web", nil, use("WebFetch", "https://example.com/x"), modes{d: "ask", by: "allow mode"}},
		{"documentation", nil, use("WebFetch", "https://Docs.Python.org:8443/3"), modes{d: "allow other", da: "allow other"}},
		{"documentation below a path", nil, use("WebFetch", "https://github.com/anthropics/x"), modes{d: "allow other"}},
		{"beside that path", nil, use("WebFetch", "https://github.com/anthropicsx"), modes{d: "ask"}},
		{"out of that path", nil, use("WebFetch", "https://github.com/anthropics/../x"), modes{d: "ask"}},
		{"a name that begins like that of documentation", nil, use("WebFetch", "https://docs.python.org.evil/"), modes{d: "ask"}},
		{"documentation denied", []string{"deny WebFetch(domain:docs.python.org)"}, use("WebFetch", "https://docs.python.org/"), modes{d: "deny rule"}},
		{"documentation asked about", []string{"ask WebFetch(domain:docs.python.org)"}, use("WebFetch", "https://docs.python.org/"), modes{d: "ask rule"}},
		{"question", nil, use("AskUserQuestion", `{}`), modes{d: "ask", by: "ask", da: "deny mode"}},
		{"bad input", nil, use("Write", `{"file_path":7}`), modes{d: "allow", da: "allow"}},
		{"input that is no object", nil, protocol.ToolUse{Name: "Bash", Input: json.RawMessage(`[`)}, modes{d: "allow"}},

		// Checklist row 26: rules.
		{"allow", []string{"allow Bash(touch *)"}, use("Bash", "touch made"), modes{d: "allow subcommandResults", da: "allow subcommandResults", pl: "allow subcommandResults"}},
		{"allow by its own text", []string{"allow Bash(npm test)"}, use("Bash", "NODE_ENV=test timeout 5 npm test"), modes{d: "allow rule"}},
		{"deny wins over allow", []string{"allow Bash", "deny Bash(touch *)"}, use("Bash", "touch made"), modes{d: "deny subcommandResults", by: "deny subcommandResults", da: "deny subcommandResults"}},
		{"deny one part", []string{"allow Bash", "deny Bash(rm:*)"}, use("Bash", "echo a && rm -rf x"), modes{d: "deny subcommandResults"}},
		{"deny in a substitution", []string{"allow Bash", "deny Bash(rm:*)"}, use("Bash", "echo $(rm x)"), modes{d: "deny rule"}},
		{"deny behind a variable", []string{"allow Bash", "deny Bash(rm:*)"}, use("Bash", "A=1 rm x"), modes{d: "deny subcommandResults"}},
		{"deny behind wrappers", []string{"allow Bash", "deny Bash(rm:*)"}, use("Bash", "sudo -n timeout 5s /bin/rm x"), modes{d: "deny subcommandResults"}},
		{"deny by its own text", []string{"allow Bash", "deny Bash(npm test)"}, use("Bash", "time npm test"), modes{d: "deny rule"}},
		{"deny another spelling", []string{"allow Bash", "deny Bash(rm *)"}, use("Bash", `'rm' x`), modes{d: "deny subcommandResults"}},
		{"ask wins over allow", []string{"allow Bash", "ask Bash(git push *)"}, use("Bash", "git push origin"), modes{d: "ask rule", by: "ask rule", da: "deny mode"}},
		{"ask about the tool, in the line's own words", []string{"ask Bash"}, use("Bash", "cd sub && touch made"), modes{ae: "ask other", by: "ask other"}},
		{"ask about the tool", []string{"ask Bash"}, use("Bash", "make a; make b"), modes{d: "ask rule", by: "ask rule"}},
		{"ask about one of two commands", []string{"ask Bash(touch:*)"}, use("Bash", "touch a; rm -f b"), modes{d: "ask subcommandResults", by: "ask subcommandResults"}},
		{"ask about the only one that needs it", []string{"ask Bash(touch:*)"}, use("Bash", "cd sub && touch a"), modes{d: "ask rule", by: "ask rule"}},
		{"every part allowed", []string{"allow Bash(npm run *)"}, use("Bash", "npm run a && echo ok"), modes{d: "allow subcommandResults"}},
		{"one part not allowed", []string{"allow Bash(npm run *)"}, use("Bash", "npm run a && npm publish"), modes{d: "ask subcommandResults"}},
		{"allowed with redirection", []string{"allow Bash(echo *)"}, use("Bash", "echo a > /elsewhere/f"), modes{d: "ask"}},
		{"exact compound", []string{"allow Bash(make a && make b)"}, use("Bash", "make a && make b"), modes{d: "allow rule"}},
		{"whole tool", []string{"allow Bash(*)"}, use("Bash", "make a > b &"), modes{d: "allow rule"}},
		{"function hides commands", []string{"allow Bash(f *)"}, use("Bash", "f() { rm x; }; f a"), modes{d: "ask other"}},
		{"MCP by rule", []string{"allow mcp__s__t"}, use("mcp__s__t", "{}"), modes{d: "allow rule", au: "allow rule"}},
		{"Write in plan mode with a rule", []string{"allow Write"}, use("Write", cwd+"/a"), modes{pl: "ask mode", d: "allow rule"}},
		{"Read deny", []string{"deny Read(./secret/**)"}, use("Read", cwd+"/secret/k"), modes{d: "deny", by: "deny"}},
		{"Write where reading is denied as a whole", []string{"deny Read(*)", "allow Write"}, use("Write", cwd+"/a"), modes{d: "deny", by: "deny"}},
		{"Edit where reading is denied by name", []string{"deny Read", "allow Edit"}, use("Edit", cwd+"/a"), modes{d: "deny", by: "deny"}},
		{"Grep under a Read deny", []string{"deny Read(./secret/**)"}, use("Grep", cwd+"/secret/k"), modes{d: "deny rule"}},
	}
	for _, tt := range tests {
		for mode, want := range tt.want {
			t.Run(tt.name+"/"+string(mode), func(t *testing.T) {
				p := policy(t, permission.Options{Mode: mode}, tt.rules...)
				if got := outcome(p.Decide(tt.use)); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// Short texts that clients match on (contract 6.2 and its corrections; row 52).
func TestDenialTexts(t *testing.T) {
	tests := []struct {
		name  string
		o     permission.Options
		rules []string
		use   protocol.ToolUse
		want  string // text of the result
		event string // decision_reason_type of the event; "none" = no event
	}{
		{"MCP", permission.Options{}, nil, use("mcp__s__t", "{}"), "Claude requested permissions to use mcp__s__t, but you haven't granted it yet.", ""},
		{"Edit", permission.Options{}, nil, use("Edit", "/w/a"), "Claude requested permissions to write to /w/a, but you haven't granted it yet.", "workingDir"},
		{"Read", permission.Options{}, nil, use("Read", "/w/a"), "Claude requested permissions to read from /w/a, but you haven't granted it yet.", "workingDir"},
		{
			"touch",
			permission.Options{},
			nil, use("Bash", "touch made"),
			"touch in '/work/project/made' needs approval. The path is inside the working directories for this session ('/work/project'), and Claude Code asks before a shell command creates, changes or removes files there.", "",
		},
		{"plan", permission.Options{Mode: protocol.ModePlan}, nil, use("Write", "/w/a"), "Cannot write to /w/a while in plan mode.", "mode"},
		{"Bash as a whole", permission.Options{}, []string{"deny Bash(echo:*)", "deny Bash"}, use("Bash", "echo hi"), "Permission to use Bash has been denied.", "rule"},
		{"Bash rule", permission.Options{}, []string{"deny Bash(echo:*)"}, use("Bash", "echo hi"), "Permission to use Bash with command echo hi has been denied.", "subcommandResults"},
		{"Bash rule in a pipeline", permission.Options{}, []string{"deny Bash(wc:*)"}, use("Bash", "ls | wc -l"), "Permission to use Bash with command wc -l has been denied.", "subcommandResults"},
		{"MCP rule", permission.Options{}, []string{"deny mcp__s"}, use("mcp__s__t", "{}"), "Permission to use mcp__s__t has been denied.", "rule"},
		{"Read rule", permission.Options{}, []string{"deny Read(//w/**)"}, use("Read", "/w/a"), "<tool_use_error>File is in a directory that is denied by your permission settings.</tool_use_error>", "none"},
		{"Write rule", permission.Options{}, []string{"deny Edit(//w/**)"}, use("Write", "/w/a"), "<tool_use_error>File is in a directory that is denied by your permission settings.</tool_use_error>", "none"},
		{"no prompts", permission.Options{NoPrompts: true}, nil, use("mcp__s__t", "{}"), "Permission to use mcp__s__t has been denied because this session shows no permission prompts.", "asyncAgent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policy(t, tt.o, tt.rules...)
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
	planning := policy(t, permission.Options{Mode: protocol.ModePlan})
	if v := planning.Decide(use("Write", "/w/a")); v.Behavior != permission.Ask || v.Suggestions != nil {
		t.Errorf("plan mode: %+v, want a question without suggestions", v)
	}
	p := policy(t, permission.Options{Mode: protocol.ModeDontAsk})
	text := p.Decide(use("Write", "/w/a")).Message
	if !strings.HasPrefix(text, "Permission to use Write has been denied because Claude Code is running in don't ask mode. ") {
		t.Errorf("don't ask mode: %q", text)
	}
}

// With a prompter, plan and auto mode ask if they would need the classifier, and don't ask mode still denies.
func TestAskerInModes(t *testing.T) {
	for mode, want := range map[protocol.PermissionMode]string{
		protocol.ModePlan: "ask other", protocol.ModeAuto: "ask other", protocol.ModeDontAsk: "deny mode",
	} {
		p := policy(t, permission.Options{Mode: mode, HasAsker: true})
		if got := outcome(p.Decide(use("Bash", "npm install"))); got != want {
			t.Errorf("%s: got %q, want %q", mode, got, want)
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
	p := policy(t, o, "deny Bash(rm *)")
	if got := p.Decide(use("Bash", "rm x")); got.Behavior != permission.Allow || got.Decision.Decision != "accept" {
		t.Errorf("auto_approve: %+v", got)
	}
	if diff := cmp.Diff(permission.Verdict{Behavior: permission.Allow}, p.Decide(use("Nosuch", "{}"))); diff != "" {
		t.Errorf("unknown tool (-want +got):\n%s", diff)
	}
}

// Hooks may overrule a mode but no rule (contract 6.1; row 20).
func TestVerdictTellsRulesFromModes(t *testing.T) {
	p := policy(t, permission.Options{Mode: protocol.ModeDontAsk}, "deny Bash(rm *)")
	if v := p.Decide(use("Bash", "rm x")); !v.DenyRule {
		t.Error("a deny rule is not told")
	}
	if v := p.Decide(use("Bash", "touch x")); v.DenyRule || v.AskRule {
		t.Error("a mode is told as a rule")
	}
	p = policy(t, permission.Options{}, "ask Bash(git *)")
	if v := p.Decide(use("Bash", "git push")); !v.AskRule {
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
	p := policy(t, o)
	if got := outcome(p.Decide(use("Write", cwd+"/link/f"))); got != "ask workingDir" {
		t.Errorf("link out of the directory: %q", got)
	}
	if got := outcome(p.Decide(use("Write", "/alias/f"))); got != "allow mode" {
		t.Errorf("link into the directory: %q", got)
	}
	for _, mode := range []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModeBypass} {
		o.Mode = mode
		for _, tool := range []string{"Write", "Edit", "NotebookEdit"} {
			for path, target := range map[string]string{cwd + "/to-f": cwd + "/f", cwd + "/to-nothing": "/gone"} {
				call := use(tool, path)
				if tool == "NotebookEdit" {
					call.Input = []byte(`{"notebook_path":"` + path + `"}`)
				}
				v := policy(t, o, "allow "+tool).Decide(call)
				want := "Refusing to write " + path + ": it is a symbolic link. Write to the link's target path instead: " + target + "."
				if v.Behavior != permission.Deny || v.Message != want || !v.DenyRule {
					t.Errorf("%s of %s in mode %s: %+v", tool, path, mode, v)
				}
			}
		}
	}
	if got := outcome(policy(t, o).Decide(use("Read", cwd+"/to-f"))); got != "allow mode" {
		t.Errorf("a link that is read: %q", got)
	}
}

// A deny rule about reading hides files from the tools that list them.
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
		if got := policy(t, permission.Options{}, tt.rule).IsHidden(tt.path); got != tt.want {
			t.Errorf("%s hides %s: %v", tt.rule, tt.path, got)
		}
	}
}

// --disallowedTools Read takes the tool away: files may be written. A rule of the settings, or one with
// a path, covers files.
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
