package permission_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// small is a file system: links and what globs find.
type small struct{}

func (small) Resolve(p string) string {
	links := map[string]string{cwd + "/out": "/else", cwd + "/link": "/else/secret", cwd + "/dangling": "/else/none", cwd + "/env": cwd + "/.env"}
	for link, target := range links {
		if p == link || strings.HasPrefix(p, link+"/") {
			return target + strings.TrimPrefix(p, link)
		}
	}
	return p
}

func (small) Glob(pattern string) (found []string) {
	for _, name := range []string{".env", "link", "env", "a", "f"} {
		if ok, err := path.Match(path.Clean(pattern), cwd+"/"+name); ok && err == nil {
			found = append(found, cwd+"/"+name)
		}
	}
	return found
}

func (small) IsDir(string) bool { return false }

// files puts policies in front of the small file system.
func files(o permission.Options) permission.Options {
	o.Home, o.Disk = "/home/me", small{}
	return o
}

// Command lines that write or execute although they look as if they only read
// run in no mode unasked, but for bypassPermissions.
func TestLooksReadOnly(t *testing.T) {
	for _, command := range []string{
		`[[ 'a[$(touch x)]' -eq 1 ]]`, `[[ -v 'a[$(touch x)]' ]]`, `test -v 'a[$(touch x)]'`, `[ -v 'a[$(touch x)]' ]`,
		`[[ a && ( b || ! 'a[$(touch x)]' -lt 2 ) ]]`, `[[ -R 'a[0]' ]]`, `test 'a[$(touch x)]' -eq 1`,
		"sort --o=x f", "sort --random-source -- -o x f", "git ls-remote --u='touch x;' .", "git ls-remote 'ext::touch x'",
		"date --s=2020-01-01", "x='b[$(touch y)]'; a[x]=1", "a=([x]=1)", "echo {a[x]}<f", "for ((i = x; i < 1; i++)); do ls; done",
		"HOME=/etc; cat $HOME/hostname", "git cat-file --filters HEAD:f", "lsof -Db", "tput init", "coproc ls", "X=1; ls",
	} {
		for _, mode := range []protocol.PermissionMode{"", protocol.ModePlan, protocol.ModeDontAsk, protocol.ModeAcceptEdits, protocol.ModeAuto} {
			p := policy(t, files(permission.Options{Mode: mode}))
			if v := p.Decide(use("Bash", command)); v.Behavior == permission.Allow {
				t.Errorf("%s in %q: %s", command, mode, outcome(v))
			}
		}
	}
}

// Deny rules hold however a command line is built, in every mode and beside a
// rule that allows all of Bash. What may break one and cannot be read is asked
// about.
func TestDenyHolds(t *testing.T) {
	tests := []struct {
		want     string
		commands []string
	}{
		{"deny", []string{
			"{ cat; } < .env", "while read l; do echo; done < .env", "(cat) < .env", "if true; then cat; fi < .env", "(echo x) > kept",
			"{ echo x; } >> kept", "cat .env\n)", "cat .env; (", "rm q\nif true", "cat .e*", "cat ./.e??", "cat .[e]nv", "cat .{env,x}",
			"cat <> .env", `cat $'\x2eenv'`, `$'\x72m' q`, `cat "$HOME/../../work/project/.env"`, `cat "$HOME"/../../work/project/.env`,
			"cd sub; echo > ../kept", "cd sub && cat ../.env", "grep -e. .env", "grep -f .env a", "grep --regexp=. .env", "cat env", "cat e*",
			"diff --from-file=.env a", "env -u X rm q", "env -C sub -u X rm q", "timeout -s KILL 5 rm q", "timeout -k 3 -s KILL 5 rm q",
			"xargs -I {} rm {}", "xargs -n 1 rm", "stdbuf -o L rm q", "exec rm q", "exec -a x rm q", "sudo -u root rm q", "nice -n 5 rm q",
			"flock x rm q", "busybox rm q", "time -p rm q", "eval rm q", `eval "rm q"`, "bash -c 'rm q'", "sh -lc 'rm q'",
			"nohup bash -c 'true; rm q'", "bash -c \"sh -c 'rm q'\"", "find . -exec rm {} +", `find . -name 'a b' -execdir rm {} \;`,
			"{rm,q}", "{r,}m q", "bash -c 'cat < .env'", "trap 'rm q' EXIT", `echo "$(<.env)"`, "cp -t sub .env", "mv -tkept a", "cp -vtkept a", "cd sub && bash -c 'echo > ../kept'",
			"cd sub && cd . && find . -maxdepth 0 -exec touch ../kept +", "cd sub; eval cat ../.env", "cd sub; bash -c 'cd ..; eval cat .env'", "awk 1 .env", ". .env", "< .env cat",
		}},
		{"ask", []string{
			"X=rm; $X q", "$(echo rm) q", "/bin/r? q", "echo 'rm q' | bash", `bash -c "$X"`, `eval "$X"`, "cat $X", "cat < $X", "echo x > $X",
			"cat ~root/x", "cat ~-/x", "ls; (", "for f in *; do cat $f; done",
		}},
		{"allow", []string{
			"cat a", "echo rm", "npm test", "grep rm a", "cat a | head -5", "{ cat a; } < a", "find . -name '.env'", "echo 'cat .env'",
			"bash -c 'cat a'", "timeout 5 ls", `cat "$HOME/x"`, "echo $X", "./build.sh", "for f in a b; do npm test; done", "cat f*",
		}},
	}
	for _, tt := range tests {
		for _, mode := range []protocol.PermissionMode{"", protocol.ModeBypass, protocol.ModeAcceptEdits} {
			p := policy(t, files(permission.Options{Mode: mode, HasAsker: true}), "allow Bash", "deny Bash(rm:*)", "deny Read(.env)", "deny Edit(kept)")
			for _, command := range tt.commands {
				if got, _, _ := strings.Cut(outcome(p.Decide(use("Bash", command))), " "); got != tt.want {
					t.Errorf("%s in %q: %s, want %s", command, mode, got, tt.want)
				}
			}
		}
	}
}

// Nothing outside the working directory is read or written unasked, whatever
// names it.
func TestOutsideIsAsked(t *testing.T) {
	for _, command := range []string{
		`cat "$HOME"/x`, `cat "$HOME/x"`, "cat $HOME/x", "cat ~/x", "cat ~root/../x", "cat ~+/../x", "cat ~-/x", "cd ~- && cat x", "cd - && cat x",
		"cd -", "cd", "echo ../x | xargs head", "xargs -n 1 head", "cat f | xargs grep x", "find . -printf ../x | xargs head", "cat lin*", "cat link",
		"cat l?nk", "cat out/x", "cat out/*", "cat out/../x", "cat a/../../x", "diff --from-file=../x a", "diff --to-f=../x a", "grep -f ../x a",
		"grep -f../x a", "grep --file=../x a", "wc --files0-from=../x", "find . -newer ../x", "rg -f ../x a", "jq -f ../x a",
		"git diff --no-index a ../x", "git grep --no-index a ../x", "man ../x", "cat < ../x", "cat {a,../x}", `cat $'..\x2fx'`, "cat <> ../x",
		"touch dangling", "echo x > dangling", "cp f dangling", "touch out/new", "touch out/../new", "echo x > out/new", "cp --target-directory=../o f",
		"cp f --target-directory=../o", "mv -t../o f", "mv f -t../o", "sed -e 'w ../o' f", "sed s/a/b/ f -e 'w ../o'", "sed --file=../o f",
		"sed -n --expression='w ../o' f", "touch ../x", "mkdir -p ../d", "rm link/../../x", "tee ../x", "echo x >& ../o", "echo x >| ../o",
	} {
		for _, mode := range []protocol.PermissionMode{"", protocol.ModeAcceptEdits} {
			p := policy(t, files(permission.Options{Mode: mode}))
			if v := p.Decide(use("Bash", command)); v.Behavior == permission.Allow {
				t.Errorf("%s in %q: %s", command, mode, outcome(v))
			}
		}
	}
	p := policy(t, files(permission.Options{Mode: protocol.ModeAcceptEdits}))
	for _, command := range []string{
		"cat f*", "cat ./f", "cat ../project/a", "find . -name x | xargs grep y", "git ls-files | sort | xargs wc -l", "touch new",
		"sed -i s/x/y/ f", "cp a b", "echo x > new", "grep -e x a", "cut -d/ -f1 a", "ls | xargs echo",
	} {
		if v := p.Decide(use("Bash", command)); v.Behavior != permission.Allow {
			t.Errorf("%s: %s %q", command, outcome(v), v.Message)
		}
	}
}

// Monitor runs a command and obeys the rules of Bash beside its own.
func TestMonitorRules(t *testing.T) {
	tests := []struct {
		rules         []string
		command, want string
	}{
		{nil, "rm q", "ask"},
		{nil, "echo x", "allow"},
		{[]string{"allow Monitor", "deny Bash(rm:*)"}, "rm q", "deny"},
		{[]string{"allow Monitor", "deny Bash"}, "echo x", "deny"},
		{[]string{"allow Monitor", "deny Monitor(rm:*)"}, "true && rm q", "deny"},
		{[]string{"allow Monitor", "deny Read(.env)"}, "cat .env", "deny"},
		{[]string{"allow Monitor", "ask Bash(rm:*)"}, "rm q", "ask"},
		{[]string{"allow Monitor"}, "rm q", "allow"},
		{[]string{"allow Bash"}, "touch q", "ask"},
		{[]string{"allow Bash(touch:*)"}, "touch q", "allow"},
		{[]string{"allow Monitor(touch:*)"}, "touch q", "ask"},
	}
	for _, tt := range tests {
		p := policy(t, files(permission.Options{HasAsker: true}), tt.rules...)
		input, err := json.Marshal(map[string]string{"command": tt.command, "description": "d"})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(outcome(p.Decide(use("Monitor", string(input)))), " "); got != tt.want {
			t.Errorf("%v: %s: %s, want %s", tt.rules, tt.command, got, tt.want)
		}
	}
}

// The removal of what nobody can do without is asked about in every mode and
// beside every rule.
func TestDangerousRemoval(t *testing.T) {
	for _, mode := range []protocol.PermissionMode{"", protocol.ModeBypass, protocol.ModeAcceptEdits} {
		p := policy(t, files(permission.Options{Mode: mode}), "allow Bash", "allow Bash(rm:*)")
		for _, command := range []string{
			"rm -rf ~", "rm -rf $HOME/*", "rm -rf ~/*", `rm -rf "$HOME"`, `rm -rf "$HOME/"*`, "rm -r -- ~/", "rm -rf /", "rm -rf /*", "rm -rf /usr",
			"rm -rf /home", "(rm -rf ~)", "{ rm -rf ~; }", "rm -rf ~ &", "true && rm -rf ~", "nohup rm -rf ~", "bash -c 'rm -rf ~'",
			"/bin/rm -rf ~", "rmdir ~", "rm -rf .", "rm -rf *", "rm -rf ../project", "rm -rf ..", "cd ~ && rm -rf *",
			"rm -rf ~; (",
			"cd ~ && bash -c 'rm -rf *'",
		} {
			v := p.Decide(use("Bash", command))
			if v.Behavior == permission.Allow || !strings.HasPrefix(v.Message, "Dangerous rm") || v.Safety != protocol.SafetyDangerous {
				t.Errorf("%s in %q: %s %q", command, mode, outcome(v), v.Message)
			}
		}
		for _, command := range []string{"rm -rf ~/x", "rm -rf sub", "rm -rf sub/*", "rm *.o", "rm -rf ./sub/..x"} {
			if v := p.Decide(use("Bash", command)); v.Safety == protocol.SafetyDangerous || mode == protocol.ModeBypass && v.Behavior != permission.Allow {
				t.Errorf("%s in %q: %s %q", command, mode, outcome(v), v.Message)
			}
		}
	}
}

// Sensitive files are protected from command lines of every form.
func TestSensitiveHolds(t *testing.T) {
	for _, command := range []string{
		"{ echo x; } > .git/config", "(rm .git/config)", "echo a > b; echo x >> .bashrc", "true && tee .mcp.json", "bash -c 'echo x > .git/config'",
		"for i in 1; do touch .claude/settings.json; done", "rm .git/c* .git/config", "nohup touch .git/x &", "cat <<E > .git/config\nx\nE",
	} {
		p := policy(t, files(permission.Options{Mode: protocol.ModeAcceptEdits}), "allow Bash")
		if v := p.Decide(use("Bash", command)); v.Behavior == permission.Allow || v.ReasonType != "safetyCheck" {
			t.Errorf("%s: %s %q", command, outcome(v), v.Message)
		}
	}
}

// Rules for paths of Write neither deny nor ask, as those of Edit do, and whoever
// starts with one hears of it.
func TestIdleRules(t *testing.T) {
	for _, behavior := range []string{permission.BehaviorDeny, permission.BehaviorAsk} {
		o := permission.Options{Mode: protocol.ModeAcceptEdits, CWD: cwd}
		for _, text := range []string{"Write(a)", "Write(/sub/**)", "Edit(b)"} {
			o.Rules = append(o.Rules, permission.Rule{Behavior: behavior, Source: "userSettings", Text: text})
		}
		p, err := permission.New(o)
		if err != nil {
			t.Fatal(err)
		}
		w := p.Warnings()
		if len(w) != 2 || !strings.Contains(w[0], `permission rule "Write(a)" (userSettings): has no effect`) || !strings.Contains(w[1], "write Edit(/sub/**)") {
			t.Errorf("%s: warnings %q", behavior, w)
		}
		for _, tool := range []string{"Write", "Edit"} {
			if v := p.Decide(use(tool, cwd+"/a")); v.Behavior != permission.Allow {
				t.Errorf("%s Write(a): %s of a is %s", behavior, tool, outcome(v))
			}
			if v := p.Decide(use(tool, cwd+"/b")); v.Behavior == permission.Allow {
				t.Errorf("%s Edit(b): %s of b is allowed", behavior, tool)
			}
		}
	}
}
