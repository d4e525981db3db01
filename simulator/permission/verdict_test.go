package permission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The decision about a call and its text. Each line tests one condition of the engine, and the next line its opposite.
func TestVerdictAndItsText(t *testing.T) {
	const (
		edits, bypass = protocol.ModeAcceptEdits, protocol.ModeBypass
		runs          = "allow subcommandResults"
		denied        = "deny subcommandResults"
		approval      = "This command requires approval"
		expansion     = "Shell expansion syntax in paths requires manual approval"
		sed           = "sed command requires approval (contains potentially dangerous operations)"
		severalParts  = "This Bash command contains multiple operations. "
	)
	for _, tt := range []struct {
		mode      protocol.PermissionMode
		rules     string // separated by semicolons
		tool      string
		in        string
		want      string
		beginning string // of the text
	}{
		// A Glob call reads the base directory of its pattern; other patterns are not paths.
		{"", "", "Glob", `{"pattern":"/etc/*"}`, "ask workingDir", "Claude requested permissions to read from /etc, "},
		{"", "", "Grep", `{"pattern":"/etc/"}`, "allow mode", ""},

		// If rules deny paths, a command that receives file names from another command needs approval.
		{"", "", "Bash", "cat f | xargs grep x", runs, ""},
		{"", "deny Bash(rm:*)", "Bash", "cat f | xargs grep x", runs, ""},
		{"", "deny Read(x)", "Bash", "cat f | xargs grep x", "ask subcommandResults", severalParts + "The following part requires approval: xargs grep x"},
		{"", "deny Edit(x)", "Bash", "cat f | xargs grep x", "ask subcommandResults", severalParts + "The following part requires approval: xargs grep x"},
		{"", "deny Read(x)", "Bash", "ls | xargs grep x", runs, ""},
		{"", "deny Read(x)", "Bash", "cat f | xargs echo", runs, ""},
		{"", "deny Read(x)", "Bash", "cat f | grep x", runs, ""},

		// These cases check which words of a command name files.
		{"", "allow Bash;deny Read(//work/project)", "Bash", "find", denied, ""},
		{"", "allow Bash;deny Read(//work/project)", "Bash", "ls", denied, ""},
		{"", "allow Bash;deny Read(//work/project)", "Bash", "wc", "allow rule", ""},
		{"", "allow Bash;deny Read(-secret)", "Bash", "cat -- -secret", denied, ""},
		{"", "allow Bash;deny Read(-secret)", "Bash", "cat -n -secret", "allow rule", ""},
		{"", "allow Bash;deny Read(.env)", "Bash", "grep -f.env x", denied, ""},
		{"", "", "Bash", "find -L /etc -name x", "ask", "find in '/etc' was blocked. "},
		{"", "", "Bash", "find . -newer", runs, ""},
		{"", "", "Bash", "grep -", runs, ""},
		{"", "", "Bash", "xargs", runs, ""},
		{"", "", "Bash", "cat ~", "ask", "cat in '/home/me' was blocked. "},
		{"", "", "Bash", "cat /etc/*", "ask", "cat in '/etc' was blocked. "},
		{"", "", "Bash", "cat ***???[a][b]", runs, ""},
		{"", "", "Bash", "cat ***???[a][b][c]", "ask other", expansion},

		// These cases check the description of what a removal would remove.
		{bypass, "", "Bash", "rm -rf /*", "ask safetyCheck", "Dangerous rm operation detected: '/*'\n\nThis command would remove a critical system directory. "},
		{bypass, "", "Bash", "rm -rf */*", "ask safetyCheck", "Dangerous rm operation detected: '/work/project/*/*'\n\nThis command would remove a workspace directory "},
		{bypass, "", "Bash", "rm -rf a/*/*", "ask safetyCheck", "Dangerous rm operation detected: '/work/project/a/*/*'\n\nThis command would remove what can't be told before it runs. "},

		// Some names are sensitive only as a directory of the path, not as its last element. The exception is .claude.
		{edits, "", "Write", cwd + "/.claude", "ask safetyCheck", "Claude requested permissions to write to /work/project/.claude, but you haven't granted it yet."},
		{edits, "", "Write", cwd + "/.config", "allow mode", ""},
		{edits, "", "Write", cwd + "/.config/git/x", "ask safetyCheck", "Claude requested permissions to edit /work/project/.config/git/x which is a sensitive file."},

		// For an ask rule about the whole tool, the command line determines the text of the question. An ask rule about a
		// command has its own text.
		{"", "ask Bash", "Bash", "touch /elsewhere/x", "ask", "touch in '/elsewhere/x' needs approval. "},
		{"", "ask Bash(touch:*)", "Bash", "touch /elsewhere/x", "ask rule", "Claude requested permissions to use Bash, but you haven't granted it yet."},
		{"", "ask Bash(echo:*)", "Bash", "echo $'a'", "ask other", "Text with escape codes in this command can't be checked before it runs"},

		{edits, "", "Bash", "sed -e 's/a/b/w x' f", "ask other", sed},
		{edits, "", "Bash", "sed", "ask other", sed},
		{edits, "", "Bash", "sed -i", "ask other", sed},
		{edits, "", "Bash", "make x", "ask other", approval},
		{"", "allow Edit(a)", "Bash", "sed -i s/x/y/ a", "ask other", sed},
		{"", "allow Edit(a)", "Bash", "touch a", "ask other", approval},
		{"", "", "Bash", "touch a", "ask", "touch in '/work/project/a' needs approval. "},
		{"", "", "Bash", "touch sub/", "ask", "touch in '/work/project/sub/' needs approval. "},
		{"", "", "Bash", "touch /", "ask", "touch in '/' needs approval. "},
		{"", "allow Edit(~/**)", "Bash", "echo a > ~/f", runs, ""},
		{"", "allow Edit(~/**)", "Bash", "echo a > ~/{f,g}", "ask other", expansion},

		// A command line that consists only of a redirection or an assignment.
		{edits, "", "Bash", "> f", "ask other", approval},
		{"", "", "Bash", "> f", "ask", "Output redirection to '/work/project/f' needs approval. "},
		{"", "allow Bash(ls)", "Bash", "X=1", "ask other", approval},

		{"", "allow Bash(awk *)", "Bash", `awk 'BEGIN { system("x") }'`, "ask other", "awk program contains system() which executes arbitrary commands"},
		{"", "", "Bash", "echo 'system('", runs, ""},

		// The question for a rule about a domain names the domain, the one for a rule about the tool names the tool.
		{"", "deny WebFetch(domain:x.org)", "WebFetch", "https://x.org", "deny rule", "WebFetch denied access to domain:x.org."},
		{"", "deny WebFetch", "WebFetch", "https://x.org", "deny rule", "Permission to use WebFetch has been denied."},
		{"", "deny WebFetch;deny WebFetch(domain:y.org)", "WebFetch", "https://x.org", "deny rule", "Permission to use WebFetch has been denied."},
		{"", "deny WebFetch;allow WebFetch(domain:x.org)", "WebFetch", "https://x.org", "deny rule", "Permission to use WebFetch has been denied."},
		{"", "deny WebSearch", "WebSearch", `{"query":"x"}`, "deny rule", "Permission to use WebSearch has been denied."},
	} {
		var rules []string
		if tt.rules != "" {
			rules = strings.Split(tt.rules, ";")
		}
		p := newPolicy(t, files(permission.Options{Mode: tt.mode}), rules...)
		v := p.Decide(newCall(tt.tool, tt.in))
		if got := verdictText(v); got != tt.want || !strings.HasPrefix(v.Message, tt.beginning) || (v.Message == "") != (tt.beginning == "") && tt.beginning != "" {
			t.Errorf("%s %s under %q in %q: %q, %q; want %q, %q…", tt.tool, tt.in, tt.rules, tt.mode, got, v.Message, tt.want, tt.beginning)
		}
	}
}

// Without a file system, a glob is not expanded.
func TestGlobWithoutDisk(t *testing.T) {
	if got := verdictText(newPolicy(t, permission.Options{}).Decide(newCall("Bash", "cat *"))); got != "allow subcommandResults" {
		t.Errorf("got %q", got)
	}
}

// The source of a decision is that of the first rule that applies. A rule in the user's own files
// counts as a decision of the user.
func TestSourceOfTheDecision(t *testing.T) {
	for _, tt := range []struct {
		behavior, source string
		wantSource       string
	}{
		{"allow", "userSettings", "user_permanent"},
		{"allow", "localSettings", "user_permanent"},
		{"allow", "projectSettings", "config"},
		{"allow", "cliArg", "config"},
		{"deny", "userSettings", "user_reject"},
		{"deny", "localSettings", "user_reject"},
		{"deny", "projectSettings", "config"},
		{"deny", "cliArg", "config"},
	} {
		other := map[string]string{"allow": "deny", "deny": "allow"}[tt.behavior]
		for _, call := range []struct{ rule, input string }{{"WebFetch(domain:x.org)", "https://x.org"}, {"Bash(make all)", "make all"}} {
			tool, _, _ := strings.Cut(call.rule, "(")
			p, err := permission.New(permission.Options{CWD: cwd, Rules: []permission.Rule{
				{Behavior: other, Source: "session", Text: "Skill(x)"},
				{Behavior: other, Source: "session", Text: tool + "(domain:y.org)"},
				{Behavior: tt.behavior, Source: tt.source, Text: call.rule},
				{Behavior: tt.behavior, Source: "policySettings", Text: call.rule},
			}})
			if err != nil {
				t.Fatal(err)
			}
			v := p.Decide(newCall(tool, call.input))
			if !strings.HasPrefix(verdictText(v), tt.behavior) || v.Decision.Source != tt.wantSource {
				t.Errorf("%s %s of %s: %s from %q, want %q", tt.behavior, call.rule, tt.source, verdictText(v), v.Decision.Source, tt.wantSource)
			}
			if tt.behavior == "allow" && v.Decision.RuleSource != tt.source {
				t.Errorf("allow %s: rule of %q, want %q", call.rule, v.Decision.RuleSource, tt.source)
			}
		}
	}
}

// In server names, all characters other than ASCII letters, digits, hyphens and underscores become underscores.
func TestRuleForServerWithOddName(t *testing.T) {
	for server, rule := range map[string]string{"azAZ09_-": "mcp__azAZ09_-", "`{@[/:": "mcp__" + "______", "é x": "mcp____x"} {
		o := permission.Options{Tool: func(name string) (protocol.Tool, bool) { return protocol.Tool{Name: name, Server: server}, true }}
		if got := verdictText(newPolicy(t, o, "allow "+rule).Decide(newCall("mcp__any__t", "{}"))); got != "allow rule" {
			t.Errorf("%q by %s: %q", server, rule, got)
		}
	}
}

// Unknown keys of a CLI tool's input are removed; those of a server's tool are kept.
func TestKnown(t *testing.T) {
	p := newPolicy(t, permission.Options{Tool: func(name string) (protocol.Tool, bool) {
		tool := protocol.Tool{Name: name, InputSchema: json.RawMessage(`{"properties":{"a":{},"b":{}}}`)}
		switch name {
		case "mcp__s__t":
			tool.Server = "s"
		case "Broken":
			tool.InputSchema = json.RawMessage(`[`)
		}
		return tool, name != "None"
	}})
	for _, tt := range []struct{ tool, in, want string }{
		{"Own", `{"a":1,"x":2}`, `{"a":1}`},
		{"Own", `{ "b": 1 }`, `{ "b": 1 }`},
		{"Own", `[1]`, `[1]`},
		{"mcp__s__t", `{"a":1,"x":2}`, `{"a":1,"x":2}`},
		{"Broken", `{"a":1,"x":2}`, `{"a":1,"x":2}`},
		{"None", `{"a":1,"x":2}`, `{"a":1,"x":2}`},
	} {
		if got := string(p.RemoveUnknownBuiltinInputKeys(tt.tool, json.RawMessage(tt.in))); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.in, got, tt.want)
		}
	}
	if got := string(newPolicy(t, permission.Options{}).RemoveUnknownBuiltinInputKeys("Own", json.RawMessage(`{"x":2}`))); got != `{"x":2}` {
		t.Errorf("without definitions: %s", got)
	}
}

// Only deny rules about files refuse a call before the tool checks its input.
func TestRefuses(t *testing.T) {
	p := newPolicy(t, permission.Options{}, "deny Read(//w/**)", "deny Edit(//w/**)", "deny Bash(rm:*)")
	for call, want := range map[string]bool{"Read /w/a": true, "Write /w/a": true, "Read /v/a": false, "Bash rm x": false} {
		tool, input, _ := strings.Cut(call, " ")
		if _, got := p.FileDenialByRule(newCall(tool, input)); got != want {
			t.Errorf("%s: %v, want %v", call, got, want)
		}
	}
}

// A rule that allows an agent type does not deny it.
func TestAllowedAgentIsNotDenied(t *testing.T) {
	if text, _ := newPolicy(t, permission.Options{}, "allow Agent(Explore)").DenyRuleForAgentType("Explore"); text != "" {
		t.Errorf("denied by %q", text)
	}
}

// Leaving plan mode restores the mode in which it began.
func TestUnplanned(t *testing.T) {
	p := newPolicy(t, permission.Options{BypassAllowed: true})
	for _, step := range []struct{ mode, want protocol.PermissionMode }{
		{protocol.ModeAcceptEdits, protocol.ModeDefault},
		{protocol.ModePlan, protocol.ModeAcceptEdits},
		{protocol.ModePlan, protocol.ModeAcceptEdits},
		{protocol.ModeDontAsk, protocol.ModeAcceptEdits},
		{protocol.ModePlan, protocol.ModeDontAsk},
	} {
		if err := p.SetMode(step.mode); err != nil || p.ModeAfterPlan() != step.want {
			t.Errorf("after %s: back to %s (%v), want %s", step.mode, p.ModeAfterPlan(), err, step.want)
		}
	}
}

// The host sees the decision of a hook if the hook caused the question.
func TestRequestOfHook(t *testing.T) {
	p := newPolicy(t, permission.Options{AsksPerson: true})
	call := newCall("Write", "/w/a")
	call.Hook = &protocol.HookVerdict{}
	for reason, want := range map[string]*protocol.HookVerdict{"hook": call.Hook, "mode": nil} {
		if r := p.BuildPermissionRequest(call, permission.Verdict{ReasonType: reason}); r.Hook != want {
			t.Errorf("%s: %v", reason, r.Hook)
		}
	}
}

// TestReadAnswer parses the answers of hosts and permission tools (contract 6.3).
func TestReadAnswer(t *testing.T) {
	const invalid = "The canUseTool callback returned an invalid permission result. "
	for _, tt := range []struct {
		in   string
		want protocol.PermissionAnswer
	}{
		{`{"behavior":"allow"}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":{}}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":{"a":1}}`, protocol.PermissionAnswer{Allow: true, UpdatedInput: json.RawMessage(`{"a":1}`)}},
		{`{"behavior":"allow","updatedInput":[1]}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{"behavior":"allow","updatedPermissions":null}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"plan"}]}`, protocol.PermissionAnswer{
			Allow: true, UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: "plan"}},
		}},
		{`{"behavior":"allow","updatedPermissions":{}}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{"behavior":"deny","message":"","interrupt":true}`, protocol.PermissionAnswer{Interrupt: true}},
		{`{"behavior":"deny","message":"no"}`, protocol.PermissionAnswer{Message: "no"}},
		{`{"behavior":"deny"}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{"behavior":"ask","message":"no"}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`[]`, protocol.PermissionAnswer{AskFailure: invalid}},
	} {
		got := permission.ParseAnswerOrAskFailure(json.RawMessage(tt.in))
		if strings.HasPrefix(got.AskFailure, invalid) {
			got.AskFailure = invalid
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

// A here-document is not part of the suggested rule.
func TestOfferedRuleOfHeredoc(t *testing.T) {
	for command, want := range map[string]string{
		"python3 - <<'E'\nx\nE":    "Bash(python3 -)",
		"python3 - -u <<'E'\nx\nE": "Bash(python3 - *)",
		"npm install <<'E'\nx\nE":  "Bash(npm install *)",
		"NODE_ENV=a make -x y":     "Bash(make -x y)",
		"NODE_ENV=a make all x y":  "Bash(make all *)",
	} {
		v := newPolicy(t, permission.Options{AsksPerson: true}).Decide(newCall("Bash", command))
		var got []string
		for _, s := range v.Suggestions {
			for _, r := range s.Rules {
				got = append(got, r.ToolName+"("+r.RuleContent+")")
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", command, diff)
		}
	}
}

// The decision names the rule that allows the command, not another rule about the tool (observed with 2.1.330).
func TestSourceOfAllowRule(t *testing.T) {
	rules := []permission.Rule{
		{Behavior: permission.BehaviorAllow, Source: "userSettings", Text: "Bash(make lint)"},
		{Behavior: permission.BehaviorAllow, Source: "projectSettings", Text: "Bash(make test:*)"},
	}
	for command, want := range map[string][2]string{"make lint": {"userSettings", "user_permanent"}, "make test": {"projectSettings", "config"}} {
		d := newPolicy(t, permission.Options{Rules: rules}).Decide(newCall("Bash", command)).Decision
		if got := [2]string{d.RuleSource, d.Source}; got != want {
			t.Errorf("%s: allowed by %q, want %q", command, got, want)
		}
	}
}
