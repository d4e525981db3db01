package permission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// The calls that each form of rule matches (contract 6.1).
func TestRuleMatches(t *testing.T) {
	tests := []struct {
		rule string
		yes  []protocol.ToolUse
		no   []protocol.ToolUse
	}{
		{"Bash", []protocol.ToolUse{newCall("Bash", "make")}, []protocol.ToolUse{newCall("Write", cwd+"/a")}},
		{"Bash(*)", []protocol.ToolUse{newCall("Bash", "make")}, nil},
		{"Bash(npm run *)", []protocol.ToolUse{newCall("Bash", "npm run a b"), newCall("Bash", "npm run")}, []protocol.ToolUse{newCall("Bash", "npm running"), newCall("Bash", "npm install")}},
		{"Bash(npm:*)", []protocol.ToolUse{newCall("Bash", "npm run a"), newCall("Bash", "npm")}, []protocol.ToolUse{newCall("Bash", "npmx")}},
		{"Bash(make all)", []protocol.ToolUse{newCall("Bash", "make all"), newCall("Bash", " make all ")}, []protocol.ToolUse{newCall("Bash", "make all x"), newCall("Bash", "make")}},
		{"Bash(git * main)", []protocol.ToolUse{newCall("Bash", "git merge main")}, []protocol.ToolUse{newCall("Bash", "git merge dev"), newCall("Bash", "git merge main; make")}},
		{"Bash( make:* )", nil, []protocol.ToolUse{newCall("Bash", "make")}},
		{"Bash(make *)", []protocol.ToolUse{
			newCall("Bash", "nohup make x"), newCall("Bash", "command -p make x"), newCall("Bash", "nice -n 5 make"), newCall("Bash", `"make"  x`),
			newCall("Bash", "timeout -k 1 5 make"), newCall("Bash", "stdbuf -o0 make"),
		}, []protocol.ToolUse{newCall("Bash", "env make x"), newCall("Bash", "sudo make x")}},
		{"*", nil, []protocol.ToolUse{newCall("Bash", "make"), newCall("Write", cwd+"/a"), newCall("mcp__s__a", "{}")}},
		{"W*", nil, []protocol.ToolUse{newCall("Write", cwd+"/a"), newCall("WebFetch", "https://example.com")}},
		{`Bash(make \(a\))`, nil, []protocol.ToolUse{newCall("Bash", "make a")}},

		{"mcp__s", []protocol.ToolUse{newCall("mcp__s__a", "{}")}, []protocol.ToolUse{newCall("mcp__sx__a", "{}")}},
		{"mcp__s__*", []protocol.ToolUse{newCall("mcp__s__a", "{}")}, []protocol.ToolUse{newCall("mcp__t__a", "{}")}},
		{"mcp__s__get_*", []protocol.ToolUse{newCall("mcp__s__get_a", "{}")}, []protocol.ToolUse{newCall("mcp__s__set_a", "{}")}},
		{"mcp__*", []protocol.ToolUse{newCall("mcp__s__a", "{}")}, []protocol.ToolUse{newCall("Bash", "make")}},
		{"mcp__s__a", []protocol.ToolUse{newCall("mcp__s__a", "{}")}, []protocol.ToolUse{newCall("mcp__s__ab", "{}")}},

		{"WebFetch(domain:example.com)", []protocol.ToolUse{newCall("WebFetch", "https://Example.com/x"), newCall("WebFetch", "http://example.com:8080")}, []protocol.ToolUse{newCall("WebFetch", "https://a.example.com"), newCall("WebFetch", "https://example.com.evil")}},
		{"WebFetch(domain:*.example.com)", []protocol.ToolUse{newCall("WebFetch", "https://a.example.com")}, []protocol.ToolUse{newCall("WebFetch", "https://example.com")}},
		{"Skill(pdf)", []protocol.ToolUse{newCall("Skill", "pdf")}, []protocol.ToolUse{newCall("Skill", "pdfs")}},
		{"Skill(pdf:*)", []protocol.ToolUse{newCall("Skill", "pdf:read"), newCall("Skill", "pdf"), newCall("Skill", "pdfs")}, []protocol.ToolUse{newCall("Skill", "apdf")}},

		{"Edit(src/**)", []protocol.ToolUse{newCall("Edit", cwd+"/src/a/b.go"), newCall("Write", cwd+"/src/a"), newCall("Write", "src/a")}, []protocol.ToolUse{newCall("Write", cwd+"/other"), newCall("Write", "/src/a")}},
		{"Edit(*.go)", []protocol.ToolUse{newCall("Write", cwd+"/a.go"), newCall("Write", cwd+"/x/y/a.go")}, []protocol.ToolUse{newCall("Write", cwd+"/a.god")}},
		{"Edit(/docs)", []protocol.ToolUse{newCall("Write", cwd+"/docs/a")}, []protocol.ToolUse{newCall("Write", cwd+"/x/docs/a"), newCall("Write", "/docs/a")}},
		{"Edit(//tmp/*.txt)", []protocol.ToolUse{newCall("Write", "/tmp/a.txt")}, []protocol.ToolUse{newCall("Write", "/tmp/b/a.txt"), newCall("Write", cwd+"/tmp/a.txt")}},
		{"Edit(~/notes/**)", []protocol.ToolUse{newCall("Write", "/home/me/notes/a"), newCall("Write", "~/notes/a")}, []protocol.ToolUse{newCall("Write", "/home/me/a")}},
		{"Edit(a/**/z)", []protocol.ToolUse{newCall("Write", cwd+"/a/z"), newCall("Write", cwd+"/a/b/c/z")}, []protocol.ToolUse{newCall("Write", cwd+"/a/zz")}},
		{"Edit(f[0-9]?.txt)", []protocol.ToolUse{newCall("Write", cwd+"/f1x.txt")}, []protocol.ToolUse{newCall("Write", cwd+"/fax.txt")}},
		{"Write(a)", nil, []protocol.ToolUse{newCall("Write", cwd+"/a"), newCall("Edit", cwd+"/a")}},
		{"Read(//etc/**)", []protocol.ToolUse{newCall("Read", "/etc/hosts"), newCall("Grep", "/etc/x")}, []protocol.ToolUse{newCall("Read", "/etcetera"), newCall("Write", "/etc/hosts")}},
		{"Edit(//etc/**)", []protocol.ToolUse{newCall("Read", "/etc/hosts")}, []protocol.ToolUse{newCall("Bash", "cat /etc/hosts")}},

		// Commands that rules about paths allow.
		{"Read(//etc/**)", []protocol.ToolUse{
			newCall("Bash", "cat /etc/hosts"), newCall("Bash", "ls /etc"), newCall("Bash", "cd /etc && ls"), newCall("Bash", "cat < /etc/hosts"), newCall("Bash", "cat /etc/hosts | wc -l"),
		}, []protocol.ToolUse{newCall("Bash", "cat /etc/hosts /usr/x"), newCall("Bash", "cp /etc/hosts q")}},
		{"Edit(src/**)", []protocol.ToolUse{newCall("Bash", "echo x > src/a"), newCall("Bash", "ls > src/a")}, []protocol.ToolUse{newCall("Bash", "make > src/a"), newCall("Bash", "touch src/a"), newCall("Bash", "echo x > a")}},
		{"Edit(//tmp/q/**)", []protocol.ToolUse{newCall("Bash", "echo x > /tmp/q/a")}, []protocol.ToolUse{newCall("Bash", "cat /tmp/q/a")}},
	}
	for _, tt := range tests {
		p := newPolicy(t, permission.Options{Home: "/home/me", AskSkill: func(string) (bool, string, string) { return true, "", "" }}, "allow "+tt.rule)
		for _, u := range tt.yes {
			if got := verdictText(p.Decide(u)); got != "allow rule" && (u.Name != "Bash" || got != "allow subcommandResults") {
				t.Errorf("%s on %s %s: got %q, want it allowed", tt.rule, u.Name, u.Input, got)
			}
		}
		for _, u := range tt.no {
			if got := verdictText(p.Decide(u)); strings.HasPrefix(got, "allow") {
				t.Errorf("%s on %s %s: got %q, want it not allowed", tt.rule, u.Name, u.Input, got)
			}
		}
	}
	for _, rule := range []string{"Agent", "Task"} {
		p := newPolicy(t, permission.Options{}, "deny "+rule)
		for _, name := range []string{"Agent", "Task"} {
			if got := verdictText(p.Decide(newCall(name, "Explore"))); got != "deny rule" {
				t.Errorf("%s on %s: %q", rule, name, got)
			}
		}
	}
}

// A rule about an agent type allows the call, but the agent does not start.
func TestDeniedAgent(t *testing.T) {
	for _, rule := range []string{"Agent(Explore)", "Task(Explore)"} {
		p := newPolicy(t, permission.Options{}, "ask "+rule, "deny "+rule)
		if got := verdictText(p.Decide(newCall("Agent", "Explore"))); got != "allow" {
			t.Errorf("%s: the call is %q", rule, got)
		}
		if text, source := p.DenyRuleForAgentType("Explore"); text != "Agent(Explore)" || source != "userSettings" {
			t.Errorf("%s: denied by %q from %q", rule, text, source)
		}
		if text, _ := p.DenyRuleForAgentType("Plan"); text != "" {
			t.Errorf("%s denies another type: %q", rule, text)
		}
	}
}

// Deny and ask rules may name a parameter and its value.
func TestParamRules(t *testing.T) {
	tests := []struct {
		rule string
		use  protocol.ToolUse
		want string // outcome and message
	}{
		{"deny Bash(run_in_background:true)", newCall("Bash", `{"command":"ls","run_in_background":true}`), "deny rule: Permission to use Bash with run_in_background:true has been denied."},
		{"deny Bash(run_in_background:true)", newCall("Bash", "ls"), "allow subcommandResults: "},
		{"deny Bash(timeout:*)", newCall("Bash", `{"command":"ls","timeout":5000}`), "deny rule: Permission to use Bash with timeout:* has been denied."},
		{"deny Bash(description:x)", newCall("Bash", `{"command":"ls","description":"xx"}`), "allow subcommandResults: "},
		{"deny Bash(command:ls*)", newCall("Bash", "ls"), "allow subcommandResults: "},
		{"deny Agent(model:opus)", newCall("Agent", `{"subagent_type":"Explore","model":"opus"}`), "deny rule: Permission to use Agent with model:opus has been denied."},
		{"deny Write(content:x*)", newCall("Write", `{"file_path":"a","content":"xy"}`), "deny rule: Permission to use Write with content:x* has been denied."},
		{"deny Edit(replace_all:true)", newCall("Write", `{"file_path":"a","replace_all":true}`), "ask: Claude requested permissions to write to " + cwd + "/a, but you haven't granted it yet."},
		{"deny Read(limit:5)", newCall("Read", `{"file_path":"a","limit":5}`), "deny rule: Permission to use Read with limit:5 has been denied."},
		{"deny Read(file_path:*)", newCall("Read", `{"file_path":"a"}`), "allow mode: "},
		{"ask Bash(run_in_background:true)", newCall("Bash", `{"command":"ls","run_in_background":true}`), "ask rule: Claude requested permissions to use Bash, but you haven't granted it yet."},
		{"allow Bash(run_in_background:true)", newCall("Bash", `{"command":"make","run_in_background":true}`), "ask other: This command requires approval"},
	}
	for _, tt := range tests {
		v := newPolicy(t, permission.Options{}, tt.rule).Decide(tt.use)
		if diff := cmp.Diff(tt.want, verdictText(v)+": "+v.Message); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", tt.rule, tt.use.Input, diff)
		}
	}
}

// A rule for an MCP server matches the complete name of the server, not the beginning of the tool's name.
func TestRuleForServer(t *testing.T) {
	o := permission.Options{Tool: func(name string) (protocol.Tool, bool) {
		return protocol.Tool{Name: name, Server: "my server__x"}, true
	}}
	call := newCall("mcp__my_server__x__t", "{}")
	if got := verdictText(newPolicy(t, o, "allow mcp__my_server__x").Decide(call)); got != "allow rule" {
		t.Errorf("its server: %q", got)
	}
	if got := verdictText(newPolicy(t, o, "allow mcp__my_server").Decide(call)); got != "ask" {
		t.Errorf("another server: %q", got)
	}
}

// The condition of a hook is a permission rule that must match some part of the call.
func TestCovers(t *testing.T) {
	p := newPolicy(t, permission.Options{CWD: cwd})
	tests := []struct {
		rule string
		use  protocol.ToolUse
		want bool
	}{
		{"Bash", newCall("Bash", "make"), true},
		{"Bash", newCall("Read", cwd+"/a"), false},
		{"Bash(ls *)", newCall("Bash", "make && ls x"), true},
		{"Bash(cp *)", newCall("Bash", "make && ls x"), false},
		{"Read(*.txt)", newCall("Read", cwd+"/a.txt"), true},
		{"Read(*.txt)", newCall("Read", cwd+"/a.go"), false},
		{"Agent", newCall("Agent", "general-purpose"), true},
		{"Agent(general-purpose)", newCall("Agent", "general-purpose"), false},
		{"Bash(", newCall("Bash", "make"), false},
	}
	for _, tt := range tests {
		if got := p.RuleCoversCall(tt.rule, tt.use); got != tt.want {
			t.Errorf("%s for %s %s: %v", tt.rule, tt.use.Name, tt.use.Input, got)
		}
	}
}

// A pattern with one leading slash is relative to the directory of its settings.
func TestRuleRoot(t *testing.T) {
	p, err := permission.New(permission.Options{CWD: cwd, Rules: []permission.Rule{
		{Behavior: permission.BehaviorAllow, Source: "userSettings", Text: "Edit(/a)", Root: "/home/me/settings"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := verdictText(p.Decide(newCall("Write", "/home/me/settings/a"))); got != "allow rule" {
		t.Errorf("below the root: %q", got)
	}
	if got := verdictText(p.Decide(newCall("Write", cwd+"/a"))); got != "ask" {
		t.Errorf("below the working directory: %q", got)
	}
}

func TestBadRulesAreLeftOut(t *testing.T) {
	bad := []string{"", "(x)", "Bash(", "Bash(x", `Bash(x\)`, "Ba sh", "mcp__s__t(x)", "Edit([z-a])", "Bash()", " Bash(x)", "Bash(x) "}
	for _, text := range bad {
		p, err := permission.New(permission.Options{CWD: cwd, Rules: []permission.Rule{{Behavior: permission.BehaviorAllow, Text: text}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Warnings()) != 1 || len(p.Rules()) != 0 {
			t.Errorf("%q: warnings %q, rules %v", text, p.Warnings(), p.Rules())
		}
	}
}

func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"Bash(git *) Edit,mcp__s", "Edit(**/[a-z]*.go)", `Bash(a\(b\)\\)`, "Read(//x/**),WebFetch(domain:*.a)", "Skill(a:*)", "mcp__*",
	} {
		f.Add(seed, "git status && rm x")
	}
	f.Add("Bash(a:*)", ":\xa1") // invalid UTF-8
	f.Fuzz(func(t *testing.T, value, text string) {
		o := permission.Options{CWD: cwd, Home: "/home/me"}
		for _, r := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
			o.Rules = append(o.Rules, permission.Rule{Behavior: permission.BehaviorDeny, Text: r})
		}
		p, err := permission.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Rules())+len(p.Warnings()) != len(o.Rules) {
			t.Fatalf("%d rules, %d warnings of %d", len(p.Rules()), len(p.Warnings()), len(o.Rules))
		}
		for _, name := range []string{"Bash", "Write", "Read", "WebFetch", "Skill", "mcp__s__t"} {
			p.Decide(newCall(name, "x"+text))
		}
		r := protocol.PermissionRule{ToolName: "Bash", RuleContent: text}
		if text == "" || text == "*" {
			return
		}
		p, err = permission.New(permission.Options{Rules: []permission.Rule{{Behavior: permission.BehaviorDeny, Text: permission.FormatRule(r)}}})
		if err != nil || len(p.Warnings()) > 0 {
			t.Fatalf("FormatRule(%q) does not read back: %v %q", text, err, p.Warnings())
		}
	})
}
