package permission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// What each form of rule matches (contract 6.1).
func TestRuleMatches(t *testing.T) {
	tests := []struct {
		rule string
		yes  []protocol.ToolUse
		no   []protocol.ToolUse
	}{
		{"Bash", []protocol.ToolUse{use("Bash", "make")}, []protocol.ToolUse{use("Write", cwd+"/a")}},
		{"Bash(*)", []protocol.ToolUse{use("Bash", "make")}, nil},
		{"Bash(npm run *)", []protocol.ToolUse{use("Bash", "npm run a b"), use("Bash", "npm run")}, []protocol.ToolUse{use("Bash", "npm running"), use("Bash", "npm install")}},
		{"Bash(npm:*)", []protocol.ToolUse{use("Bash", "npm run a"), use("Bash", "npm")}, []protocol.ToolUse{use("Bash", "npmx")}},
		{"Bash(make all)", []protocol.ToolUse{use("Bash", "make all"), use("Bash", " make all ")}, []protocol.ToolUse{use("Bash", "make all x"), use("Bash", "make")}},
		{"Bash(git * main)", []protocol.ToolUse{use("Bash", "git merge main")}, []protocol.ToolUse{use("Bash", "git merge dev"), use("Bash", "git merge main; make")}},
		{"Bash( make:* )", nil, []protocol.ToolUse{use("Bash", "make")}},
		{"Bash(make *)", []protocol.ToolUse{
			use("Bash", "nohup make x"), use("Bash", "command -p make x"), use("Bash", "nice -n 5 make"), use("Bash", `"make"  x`),
			use("Bash", "timeout -k 1 5 make"), use("Bash", "stdbuf -o0 make"),
		}, []protocol.ToolUse{use("Bash", "env make x"), use("Bash", "sudo make x")}},
		{"*", nil, []protocol.ToolUse{use("Bash", "make"), use("Write", cwd+"/a"), use("mcp__s__a", "{}")}},
		{"W*", nil, []protocol.ToolUse{use("Write", cwd+"/a"), use("WebFetch", "https://example.com")}},
		{`Bash(make \(a\))`, nil, []protocol.ToolUse{use("Bash", "make a")}},

		{"mcp__s", []protocol.ToolUse{use("mcp__s__a", "{}")}, []protocol.ToolUse{use("mcp__sx__a", "{}")}},
		{"mcp__s__*", []protocol.ToolUse{use("mcp__s__a", "{}")}, []protocol.ToolUse{use("mcp__t__a", "{}")}},
		{"mcp__s__get_*", []protocol.ToolUse{use("mcp__s__get_a", "{}")}, []protocol.ToolUse{use("mcp__s__set_a", "{}")}},
		{"mcp__*", []protocol.ToolUse{use("mcp__s__a", "{}")}, []protocol.ToolUse{use("Bash", "make")}},
		{"mcp__s__a", []protocol.ToolUse{use("mcp__s__a", "{}")}, []protocol.ToolUse{use("mcp__s__ab", "{}")}},

		{"WebFetch(domain:example.com)", []protocol.ToolUse{use("WebFetch", "https://Example.com/x"), use("WebFetch", "http://example.com:8080")}, []protocol.ToolUse{use("WebFetch", "https://a.example.com"), use("WebFetch", "https://example.com.evil")}},
		{"WebFetch(domain:*.example.com)", []protocol.ToolUse{use("WebFetch", "https://a.example.com")}, []protocol.ToolUse{use("WebFetch", "https://example.com")}},
		{"Skill(pdf)", []protocol.ToolUse{use("Skill", "pdf")}, []protocol.ToolUse{use("Skill", "pdfs")}},
		{"Skill(pdf:*)", []protocol.ToolUse{use("Skill", "pdf:read"), use("Skill", "pdf"), use("Skill", "pdfs")}, []protocol.ToolUse{use("Skill", "apdf")}},

		{"Edit(src/**)", []protocol.ToolUse{use("Edit", cwd+"/src/a/b.go"), use("Write", cwd+"/src/a"), use("Write", "src/a")}, []protocol.ToolUse{use("Write", cwd+"/other"), use("Write", "/src/a")}},
		{"Edit(*.go)", []protocol.ToolUse{use("Write", cwd+"/a.go"), use("Write", cwd+"/x/y/a.go")}, []protocol.ToolUse{use("Write", cwd+"/a.god")}},
		{"Edit(/docs)", []protocol.ToolUse{use("Write", cwd+"/docs/a")}, []protocol.ToolUse{use("Write", cwd+"/x/docs/a"), use("Write", "/docs/a")}},
		{"Edit(//tmp/*.txt)", []protocol.ToolUse{use("Write", "/tmp/a.txt")}, []protocol.ToolUse{use("Write", "/tmp/b/a.txt"), use("Write", cwd+"/tmp/a.txt")}},
		{"Edit(~/notes/**)", []protocol.ToolUse{use("Write", "/home/me/notes/a"), use("Write", "~/notes/a")}, []protocol.ToolUse{use("Write", "/home/me/a")}},
		{"Edit(a/**/z)", []protocol.ToolUse{use("Write", cwd+"/a/z"), use("Write", cwd+"/a/b/c/z")}, []protocol.ToolUse{use("Write", cwd+"/a/zz")}},
		{"Edit(f[0-9]?.txt)", []protocol.ToolUse{use("Write", cwd+"/f1x.txt")}, []protocol.ToolUse{use("Write", cwd+"/fax.txt")}},
		{"Write(a)", nil, []protocol.ToolUse{use("Write", cwd+"/a"), use("Edit", cwd+"/a")}},
		{"Read(//etc/**)", []protocol.ToolUse{use("Read", "/etc/hosts"), use("Grep", "/etc/x")}, []protocol.ToolUse{use("Read", "/etcetera"), use("Write", "/etc/hosts")}},
		{"Edit(//etc/**)", []protocol.ToolUse{use("Read", "/etc/hosts")}, []protocol.ToolUse{use("Bash", "cat /etc/hosts")}},

		// What rules about paths open to commands.
		{"Read(//etc/**)", []protocol.ToolUse{
			use("Bash", "cat /etc/hosts"), use("Bash", "ls /etc"), use("Bash", "cd /etc && ls"), use("Bash", "cat < /etc/hosts"), use("Bash", "cat /etc/hosts | wc -l"),
		}, []protocol.ToolUse{use("Bash", "cat /etc/hosts /usr/x"), use("Bash", "cp /etc/hosts q")}},
		{"Edit(src/**)", []protocol.ToolUse{use("Bash", "echo x > src/a"), use("Bash", "ls > src/a")}, []protocol.ToolUse{use("Bash", "make > src/a"), use("Bash", "touch src/a"), use("Bash", "echo x > a")}},
		{"Edit(//tmp/q/**)", []protocol.ToolUse{use("Bash", "echo x > /tmp/q/a")}, []protocol.ToolUse{use("Bash", "cat /tmp/q/a")}},
	}
	for _, tt := range tests {
		p := policy(t, permission.Options{Home: "/home/me", AskSkill: func(string) bool { return true }}, "allow "+tt.rule)
		for _, u := range tt.yes {
			if got := outcome(p.Decide(u)); got != "allow rule" && (u.Name != "Bash" || got != "allow subcommandResults") {
				t.Errorf("%s on %s %s: got %q, want it allowed", tt.rule, u.Name, u.Input, got)
			}
		}
		for _, u := range tt.no {
			if got := outcome(p.Decide(u)); strings.HasPrefix(got, "allow") {
				t.Errorf("%s on %s %s: got %q, want it not allowed", tt.rule, u.Name, u.Input, got)
			}
		}
	}
	for _, rule := range []string{"Agent", "Task"} {
		p := policy(t, permission.Options{}, "deny "+rule)
		for _, name := range []string{"Agent", "Task"} {
			if got := outcome(p.Decide(use(name, "Explore"))); got != "deny rule" {
				t.Errorf("%s on %s: %q", rule, name, got)
			}
		}
	}
}

// A rule about an agent type allows the call, but the agent does not start.
func TestDeniedAgent(t *testing.T) {
	for _, rule := range []string{"Agent(Explore)", "Task(Explore)"} {
		p := policy(t, permission.Options{}, "ask "+rule, "deny "+rule)
		if got := outcome(p.Decide(use("Agent", "Explore"))); got != "allow" {
			t.Errorf("%s: the call is %q", rule, got)
		}
		if text, source := p.DeniedAgent("Explore"); text != "Agent(Explore)" || source != "userSettings" {
			t.Errorf("%s: denied by %q from %q", rule, text, source)
		}
		if text, _ := p.DeniedAgent("Plan"); text != "" {
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
		{"deny Bash(run_in_background:true)", use("Bash", `{"command":"ls","run_in_background":true}`), "deny rule: Permission to use Bash with run_in_background:true has been denied."},
		{"deny Bash(run_in_background:true)", use("Bash", "ls"), "allow subcommandResults: "},
		{"deny Bash(timeout:*)", use("Bash", `{"command":"ls","timeout":5000}`), "deny rule: Permission to use Bash with timeout:* has been denied."},
		{"deny Bash(description:x)", use("Bash", `{"command":"ls","description":"xx"}`), "allow subcommandResults: "},
		{"deny Bash(command:ls*)", use("Bash", "ls"), "allow subcommandResults: "},
		{"deny Agent(model:opus)", use("Agent", `{"subagent_type":"Explore","model":"opus"}`), "deny rule: Permission to use Agent with model:opus has been denied."},
		{"deny Write(content:x*)", use("Write", `{"file_path":"a","content":"xy"}`), "deny rule: Permission to use Write with content:x* has been denied."},
		{"deny Edit(replace_all:true)", use("Write", `{"file_path":"a","replace_all":true}`), "ask: Claude requested permissions to write to " + cwd + "/a, but you haven't granted it yet."},
		{"deny Read(limit:5)", use("Read", `{"file_path":"a","limit":5}`), "deny rule: Permission to use Read with limit:5 has been denied."},
		{"deny Read(file_path:*)", use("Read", `{"file_path":"a"}`), "allow mode: "},
		{"ask Bash(run_in_background:true)", use("Bash", `{"command":"ls","run_in_background":true}`), "ask rule: Claude requested permissions to use Bash, but you haven't granted it yet."},
		{"allow Bash(run_in_background:true)", use("Bash", `{"command":"make","run_in_background":true}`), "ask other: This command requires approval"},
	}
	for _, tt := range tests {
		v := policy(t, permission.Options{}, tt.rule).Decide(tt.use)
		if diff := cmp.Diff(tt.want, outcome(v)+": "+v.Message); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", tt.rule, tt.use.Input, diff)
		}
	}
}

// A rule for a server compares the server's name, not a part of the tool's name.
func TestRuleForServer(t *testing.T) {
	o := permission.Options{Tool: func(name string) (protocol.Tool, bool) {
		return protocol.Tool{Name: name, Server: "my server__x"}, true
	}}
	call := use("mcp__my_server__x__t", "{}")
	if got := outcome(policy(t, o, "allow mcp__my_server__x").Decide(call)); got != "allow rule" {
		t.Errorf("its server: %q", got)
	}
	if got := outcome(policy(t, o, "allow mcp__my_server").Decide(call)); got != "ask" {
		t.Errorf("another server: %q", got)
	}
}

// Conditions of hooks are rules about any part of a call.
func TestCovers(t *testing.T) {
	p := policy(t, permission.Options{CWD: cwd})
	tests := []struct {
		rule string
		use  protocol.ToolUse
		want bool
	}{
		{"Bash", use("Bash", "make"), true},
		{"Bash", use("Read", cwd+"/a"), false},
		{"Bash(ls *)", use("Bash", "make && ls x"), true},
		{"Bash(cp *)", use("Bash", "make && ls x"), false},
		{"Read(*.txt)", use("Read", cwd+"/a.txt"), true},
		{"Read(*.txt)", use("Read", cwd+"/a.go"), false},
		{"Agent", use("Agent", "general-purpose"), true},
		{"Agent(general-purpose)", use("Agent", "general-purpose"), false},
		{"Bash(", use("Bash", "make"), false},
	}
	for _, tt := range tests {
		if got := p.Covers(tt.rule, tt.use); got != tt.want {
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
	if got := outcome(p.Decide(use("Write", "/home/me/settings/a"))); got != "allow rule" {
		t.Errorf("below the root: %q", got)
	}
	if got := outcome(p.Decide(use("Write", cwd+"/a"))); got != "ask" {
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
	f.Add("Bash(a:*)", ":\xa1") // no UTF-8
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
			p.Decide(use(name, "x"+text))
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
