package permission_test

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestRealVerdicts checks the verdicts on command lines with rules against those of the real CLI
// 2.1.330 (security points A3 and A11).
func TestRealVerdicts(t *testing.T) {
	tests := []struct {
		name  string
		rules []string
		want  map[string][]string
	}{
		{
			"blanks and quotes under rules",
			[]string{"allow Bash(npm run build)", "allow Bash(xargs npm run x)", "allow Bash(npm test:*)", "allow Bash(git commit *)", "allow Bash(touch a b)"},
			map[string][]string{
				"allow": {
					"npm run build", "npm run build  > /dev/null", "'npm' run build", "xargs npm run x", "npm  test", "npm\ttest -u", "'npm'  test",
					"n\\pm test", "timeout 5 'npm' test", "NODE_ENV=a  npm run build", "git  commit -m x", "npm test 'a  b'", "builtin npm run build",
				},
				"ask": {
					"npm  run build", "npm run  build", "npm\trun build", "'npm'  run build", "npm run 'build'", "xargs  npm run x", "xargs npm  run x",
					"timeout 5 npm  run build", "ls && npm  run build", "touch a  b", "npm 'test'", "npm te\"st\"", "npm te\\st", "'npm' 'test'", "git 'commit' -m x",
					"timeout 5 npm 'test'", "NODE_ENV=a npm 'test'", "ls && npm 'test'",
				},
			},
		},
		{
			"no rules", nil,
			map[string][]string{
				"allow": {
					"jq '.a as $x | $x' f", "jq 'env_x' f", "jq 'important' f", "ps aux", "ps a u x", "ps -p 1", "ps -u root", "ip addr", "docker inspect x",
					"docker inspect -f '{{.}}' x", "cd -", "cd - && ls", "builtin ls", "builtin -- ls", "command builtin ls", "builtin git status", "command cd sub",
					"builtin timeout 5 ls", "xargs grep one", "xargs wc", "xargs printf", "xargs egrep x", "ls 'a", "ls |", "ls;;", "ls;;ls", "if ls", "while ls; do ls",
					"if ls; then ls; else", "ls; if ls",
				},
				"ask": {
					"jq 'env' f", "jq .env f", "jq . my.env", "jq 'import \"x\" as x; .' f", "jq '$ENV' f", "ps e", "ps auxe", "ps E", "ps -A e", "ps aux --sort=-e e",
					"ip addr x", "docker inspect -H x y", "cd -P sub", "cd -- sub", "cd sub x", "cd -1", "builtin cat ../x", "timeout 5 builtin ls",
					"builtin test -v 'a[0]'", "builtin [ a ]", "command -v ls", "ls <&-", "ls >&-", "echo $'a'", `echo $"a"`, "echo $", "ls 'a\n#b'", "time", "time; ls",
					`ls "a`, "ls ||", "ls; fi", "touch 'a", "touch a |", "if touch a", "ls;;touch a", "for i in a; do ls", "coproc ls",
				},
			},
		},
		{
			"denied commands and paths",
			[]string{"allow Bash", "deny Bash(rm:*)", "deny Read(.env)", "deny Edit(kept)"},
			map[string][]string{
				"deny": {
					"if rm a", "cat .env 'x", `cat .env "x`, "if cat .env", "cat .env |", "for i in a; do cat .env", "rm a ;;", "ls; rm a 'x", "rm a 'x", "(cat .env)",
					"X=$(cat .env)", "cat .env & ls", "timeout '5' rm a", "sudo -u $X rm a", "nohup $X rm a", "sudo $X rm a", "cat \"$PWD/.env\"",
					"diff --from-file .env a", "grep --file=.env a", "cd sub; echo a > ../kept", "rm $'a'",
				},
				"allow": {
					"ls 'x\nrm a", "diff --from-file=.env a", "wc --files0-from=.env", "coproc rm a", "coproc cat .env", "coproc { rm a; }", "time coproc rm a",
					"timeout $X rm a", `timeout "$X" rm a`, "timeout x rm a", "nice -n $X rm a", "stdbuf -o$X rm a", "timeout $X cat .env", "r\\\nm a", "ca\\\nt .env",
					"cat .e\\\nnv", "sudo $'rm' a", `$"rm" a`, "echo $(cat .env)", "echo `cat .env`", "cat .env; echo $(ls)", "{ cat .env; }", "cat <(cat .env)",
					"echo $X; cat .env",
				},
			},
		},
		{
			"a rule that names the command completely",
			[]string{"allow Bash(touch x)"},
			map[string][]string{
				"allow": {
					"nice touch x", "nice -n 5 touch x", "nice -5 touch x", "nohup touch x", "stdbuf -oL -e0 touch x", "timeout --signal=KILL 5 touch x",
					"timeout -k 1 5s touch x", "time touch x", "touch x > /dev/null", "touch x <a",
				},
				"ask": {
					"nice -n5 touch x", "nice --adjustment=5 touch x", "nice -- touch x", "ionice touch x", "setsid touch x", "nohup -- touch x", "time -p touch x",
					"stdbuf touch x", "stdbuf -o L touch x", "stdbuf -o1M touch x", "timeout -- 5 touch x", "timeout -p 5 touch x", "xargs touch x",
					"<a touch x", ">/dev/null touch x", "touch <a x", "touch 2>&1 x", "touch x <<<a", "LANG=C >/dev/null touch x",
				},
			},
		},
		{
			"forms without rules", nil,
			map[string][]string{
				"allow": {
					"! ! ls", "grep x [f]", "grep -r x a*", "echo $((16#ff + 0x1f))", "jq --arg a b .", "xargs -I {} echo {}", "xargs -n 1 -s 9 wc", "cat </dev/stdin",
					">/dev/null ls", "tree -L 2", "base64 -b 5", "grep -A 5 x f", "grep -A5 x f", "git log -S x", "git diff -u", "git blame -L 5 f", "ls 3>&1",
					"cat <<\\E\nx\nE", "cat \"$PWD/a\"",
				},
				"ask": {
					"ls <>/dev/null", "ls 10>/dev/null", "ls 01>/dev/null", "ls {fd}>/dev/null", "ls && # c\nls", "ls ||\n# c\nls", "cat <<E''\n$(ls)\nE", "cat <<\"E\"F\nx\nEF",
					"cat <<E\\F\nx\nEF", "cd \"$PWD\"", "ls \"$PWD\"", "[ a \\> b ]", "[ a '<' b ]", "ls >/dev/null -la", ">/dev/null LANG=C ls", "xargs -I % echo %", "xargs -n1 echo",
					"xargs -n echo", "grep -e", "grep -A x y", "grep -5 x", "help -m", "ps -M", "base64 -w x", "jq -1 .", "git log -M", "git diff -q", "rg x *", "sort *",
				},
			},
		},
		{
			"denied in other words",
			[]string{"allow Bash", "deny Bash(rm:*)", "deny Read(.env)", "deny Edit(kept)"},
			map[string][]string{
				"deny": {
					"`true` rm a", "A[0]=1 rm a", "export A=rm; $A a", "A=rm; B=$A; $B a", "A=r; $A\"m\" a", "! ! rm a", "rm\\\na", "xargs rm -f", "sudo xargs rm", "nice -5 rm a",
					"cat .ENV", "cat '.env '", "A=.env; cat $A", "declare A=.env; cat \"$A\"", "A=sub; cat $A/../.env", "A=cat; $A .env", "git -C sub diff .env", "git -C sub diff ../.env",
					"git grep x .env", "bin/tee kept", "/bin/cp a kept", "echo a > KEPT", "tee 'kept '", "coproc ls > kept", "/usr/bin/env cat .env",
				},
				"allow": {
					"nice -n5 rm a", "nice --adjustment 5 rm a", "xargs env rm", "xargs /bin/rm", "xargs sh -c 'rm a'", "A=b; A=.env; cat $A", "A=.env B=x; cat $A", "A=.env; cat < $A",
					"A='.e*'; cat $A", "/bin/cat .env", "git show .env", "git blame .env", "git grep .env", "join .env a", "split .env", "sed '' .env", "find -files0-from .env",
					"if ls; then ls; fi > $'kept'", "{touch,a}; sed -e 'w ../b/c' f", "cat .env <>x", "cat .env {fd}>x", "(cd sub && cat ../.env)", "export $(cat .env)", "cat < \"$PWD/.env\"", "cat <<E > kept\nx\nE", "echo a > ' kept'",
				},
				"ask": {
					"sh -c -- 'rm a'", "bash -c -x 'rm a'", "echo a > x.", "tee x.", "touch x.txt..", "echo a > x~1", "echo a > x.CON", "echo a > sub./x",
				},
			},
		},
	}
	for _, tt := range tests {
		p := newPolicy(t, files(permission.Options{AsksPerson: true}), tt.rules...)
		for want, commands := range tt.want {
			for _, command := range commands {
				if got, _, _ := strings.Cut(verdictText(p.Decide(newCall("Bash", command))), " "); got != want {
					t.Errorf("%s: %q: %s, want %s", tt.name, command, got, want)
				}
			}
		}
	}
}

// TestBrokenRemovals checks removals in command lines that cannot be parsed or that the real CLI
// 2.1.330 does not analyse, in mode bypassPermissions and without rules.
func TestBrokenRemovals(t *testing.T) {
	p := newPolicy(t, files(permission.Options{Mode: protocol.ModeBypass, AsksPerson: true}))
	for want, commands := range map[string][]string{
		"ask": {
			"rm -rf / 'x", `rm -rf / "x`, "rm -rf '/", "rm -rf / |", "if rm -rf /", "rm -rf /)", "ls ) ; rm -rf /", "for i in a; rm -rf /", "while ls; rm -rf /",
			"then rm -rf /", "& rm -rf /", "rm -rf / > ", "fi; rm -rf /", "rm -rf / && 'x",
		},
		"allow": {
			"rm -rf $'/'", `rm -rf $"/"`, "rm $'-rf' /", "$'rm' -rf /", "coproc rm -rf /", "timeout $X rm -rf /", "nice -n $X rm -rf /", "r\\\nm -rf /", "(rm -rf /",
			"rm -rf / ||", "'\nrm -rf /", "ls \"x\nrm -rf /", "f() { rm -rf /",
		},
	} {
		for _, command := range commands {
			if got, _, _ := strings.Cut(verdictText(p.Decide(newCall("Bash", command))), " "); got != want {
				t.Errorf("%q: %s, want %s", command, got, want)
			}
		}
	}
}

// In plan mode, an MCP tool that may change something needs permission even if a rule allows it.
// Rules also match a host name that ends with a dot (observed with 2.1.330).
func TestRulesThatDoNotReach(t *testing.T) {
	tool := func(name string) (protocol.Tool, bool) {
		return protocol.Tool{Name: name, Server: "desk", ReadOnly: strings.HasSuffix(name, "list")}, true
	}
	p := newPolicy(t, permission.Options{Mode: protocol.ModePlan, AsksPerson: true, Tool: tool}, "allow mcp__desk")
	for name, want := range map[string]permission.Behavior{"mcp__desk__list": permission.Allow, "mcp__desk__add": permission.Ask} {
		if v := p.Decide(protocol.ToolUse{Name: name, Input: []byte("{}")}); v.Behavior != want {
			t.Errorf("%s: %s", name, verdictText(v))
		}
	}
	p = newPolicy(t, permission.Options{AsksPerson: true}, "allow WebFetch(domain:good.com)", "deny WebFetch(domain:evil.com)")
	for url, want := range map[string]permission.Behavior{
		"https://evil.com./": permission.Deny, "https://EVIL.com../a": permission.Deny, "https://x.evil.com./": permission.Ask, "https://good.com./": permission.Allow,
	} {
		if v := p.Decide(protocol.ToolUse{Name: "WebFetch", Input: []byte(`{"url":"` + url + `","prompt":"x"}`)}); v.Behavior != want {
			t.Errorf("%s: %s", url, verdictText(v))
		}
	}
}

// TestRealVerdictsOnFiles checks the verdicts on file tools in all modes against those of the real
// CLI 2.1.330 (security point A11).
func TestRealVerdictsOnFiles(t *testing.T) {
	accepting := newPolicy(t, files(permission.Options{AsksPerson: true, Mode: protocol.ModeAcceptEdits}))
	for command, want := range map[string]string{
		"sed -E -i s/a/b/ kept": "allow", "sed --in-place s/a/b/m kept": "allow", "sed -Ei --posix s/a/b/ kept": "allow", "sed -z s/a/b/ kept": "ask", "sed -i s/a/b/gi kept": "allow", "sed -i 's/a/b word/' kept": "ask", "sed -i s/a/b/ w": "ask", "sed -i s/yes/no/ kept": "ask", "sed s/a/b/": "allow", "ls > kept": "allow",
		"if ls; then ls; fi > kept": "ask", "while ls; do ls; done 2>&1": "ask", "[[ -f a ]] > /dev/null": "ask", "[ a ] > kept": "ask", ">kept ls": "ask", "ls >kept -la": "ask",
		"echo x <> kept": "ask", "'touch' x": "ask", "touch x": "allow",
	} {
		if got, _, _ := strings.Cut(verdictText(accepting.Decide(newCall("Bash", command))), " "); got != want {
			t.Errorf("%q: %s, want %s", command, got, want)
		}
	}
	for _, tt := range []struct {
		rules            []string
		tool, path, want string
	}{
		{[]string{"deny Read(.env)"}, "Read", ".ENV", "deny"},
		{[]string{"deny Edit(KEPT)", "allow Edit"}, "Write", "kept", "deny"},
		{[]string{"deny Read(kept)"}, "Read", " kept", "deny"},
		{[]string{"deny Read(kept)"}, "Read", "\tkept\u00a0\ufeff\n", "deny"},
		{[]string{"deny Read(kept)"}, "Read", "kept\u0085", "allow"},
		{[]string{"deny Edit(kept)"}, "Write", " kept ", "deny"},
		{[]string{"allow Edit(kept)"}, "Write", "kept ", "allow"},
		{nil, "Read", "kept ", "allow"},
		{nil, "Read", "kept. ", "ask"},
		{nil, "Read", "sub /x", "ask"},
		{nil, "Read", "~", "ask"},
		{nil, "Read", " ~/x", "ask"},
		{nil, "Read", ".. ", "ask"},
		{[]string{"allow Read(*)"}, "Read", "/else/x", "ask"},
		{[]string{"allow Read(*)"}, "Read", "a", "allow"},
		{[]string{"allow Write(*)"}, "Write", "a", "allow"},
		{[]string{"allow Write(*)"}, "Write", "../a", "ask"},
		{nil, "Read", "a.txt.", "ask"},
		{nil, "Read", "GIT~1", "ask"},
		{[]string{"allow Read(//**)"}, "Read", "GIT~1", "ask"},
		{[]string{"allow Read"}, "Read", "GIT~1", "allow"},
		{[]string{"allow WebFetch(domain:example.*)"}, "WebFetch", "https://example.org", "allow"},
		{[]string{"allow WebFetch(domain:example.*)"}, "WebFetch", "https://example.co.uk", "ask"},
		{[]string{"allow WebFetch(domain:*example.com)"}, "WebFetch", "https://xexample.com", "allow"},
		{[]string{"allow WebFetch(domain:*example.com)"}, "WebFetch", "https://x.example.com", "ask"},
		{[]string{"allow WebFetch(domain:e?ample.com)"}, "WebFetch", "https://example.com", "ask"},
		{[]string{"allow WebFetch(domain:*.example.com)"}, "WebFetch", "https://.example.com", "ask"},
		{[]string{"allow WebFetch(domain:*)"}, "WebFetch", "data:text/plain,x", "allow"},
		{[]string{"allow WebFetch", "deny WebFetch(domain:*.evil.com)"}, "WebFetch", "https://example.com\u3002evil.com", "deny"},
		{[]string{"allow WebFetch", "deny WebFetch(domain:evil.com)"}, "WebFetch", "https://\uff45vil.com", "deny"},
	} {
		p := newPolicy(t, files(permission.Options{AsksPerson: true}), tt.rules...)
		if got, _, _ := strings.Cut(verdictText(p.Decide(newCall(tt.tool, tt.path))), " "); got != tt.want {
			t.Errorf("%q: %s %s: %s, want %s", tt.rules, tt.tool, tt.path, got, tt.want)
		}
	}
}
