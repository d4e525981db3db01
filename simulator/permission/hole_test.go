package permission_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// testFS is a file system of links and glob results.
type testFS struct{}

func (testFS) Resolve(p string) string {
	p = path.Clean(p) // as the operating system does
	links := map[string]string{cwd + "/out": "/else", cwd + "/link": "/else/secret", cwd + "/dangling": "/else/none", cwd + "/env": cwd + "/.env"}
	for link, target := range links {
		if p == link || strings.HasPrefix(p, link+"/") {
			return target + strings.TrimPrefix(p, link)
		}
	}
	return p
}

func (testFS) Glob(pattern string) (found []string) {
	for _, name := range []string{".env", "link", "env", "a", "f"} {
		if ok, err := path.Match(path.Clean(pattern), cwd+"/"+name); ok && err == nil {
			found = append(found, cwd+"/"+name)
		}
	}
	return found
}

func (testFS) IsDir(string) bool { return false }

// files returns the options of a policy that uses testFS.
func files(o permission.Options) permission.Options {
	o.Home, o.FileSystem = "/home/me", testFS{}
	return o
}

// Command lines that write or execute although they look read-only need permission in every mode except
// bypassPermissions.
func TestLooksReadOnly(t *testing.T) {
	for _, command := range []string{
		`[[ 'a[$(touch x)]' -eq 1 ]]`, `[[ -v 'a[$(touch x)]' ]]`, `test -v 'a[$(touch x)]'`, `[ -v 'a[$(touch x)]' ]`,
		`[[ a && ( b || ! 'a[$(touch x)]' -lt 2 ) ]]`, `[[ -R 'a[0]' ]]`, `test 'a[$(touch x)]' -eq 1`,
		"sort --o=x f", "sort --random-source -- -o x f", "git ls-remote --u='touch x;' .", "git ls-remote 'ext::touch x'",
		"date --s=2020-01-01", "x='b[$(touch y)]'; a[x]=1", "a=([x]=1)", "echo {a[x]}<f", "for ((i = x; i < 1; i++)); do ls; done",
		"HOME=/etc; cat $HOME/hostname", "git cat-file --filters HEAD:f", "lsof -Db", "tput init", "coproc ls", "X=1; ls",
	} {
		for _, mode := range []protocol.PermissionMode{"", protocol.ModePlan, protocol.ModeDontAsk, protocol.ModeAcceptEdits, protocol.ModeAuto} {
			p := newPolicy(t, files(permission.Options{Mode: mode}))
			if v := p.Decide(newCall("Bash", command)); v.Behavior == permission.Allow {
				t.Errorf("%s in %q: %s", command, mode, verdictText(v))
			}
		}
	}
}

// TestDenyRules checks which calls deny rules refuse if another rule allows all of Bash. The real
// CLI 2.1.330 makes the same decisions in every mode (security point A3).
func TestDenyRules(t *testing.T) {
	tests := []struct {
		want     string
		commands []string
	}{
		{"deny", []string{
			"cd sub && cat ../.env", "grep -e. .env", "grep -f .env a", "grep --regexp=. .env", "env -u X rm q", "env -C sub -u X rm q", "env rm q", "env A=1 rm q",
			"timeout -s KILL 5 rm q", "timeout -k 3 -s KILL 5 rm q", "timeout 5 rm q", "xargs rm", "ls | xargs rm", "exec rm q", "exec -a x rm q", "sudo rm q",
			"sudo -u root rm q", "doas rm q", "nice -n 5 rm q", "nice rm q", "nohup rm q", "time rm q", "flock x rm q", "time -p rm q", "cp -t sub .env", "cp .env x",
			"mv .env x", "mv -tkept a", "cp a kept", "cp -vtkept a", "awk 1 .env", "< .env cat", "X=rm; $X q", "/bin/rm q", "\\rm q", "'rm' q", `"rm" q`, `r""m q`,
			"r\\m q", "command rm q", "command -p rm q", "builtin rm q", "unshare rm q", "unshare -r rm q", "nsenter rm q", "nsenter -t 1 rm q", "setsid rm q",
			"ionice rm q", "ionice -c 3 rm q", "chrt 1 rm q", "taskset 1 rm q", "strace rm q", "ltrace rm q", "watch rm q", "script -c 'rm q'", "rm q &", "(rm q)",
			"{ rm q; }", "f() { rm q; }; f", "f() { rm q; }", "if true; then rm q; fi", "for i in a; do rm q; done", "while rm q; do ls; done",
			"case x in x) rm q;; esac", "[[ $(rm q) ]]", "! rm q", "echo `rm q`", "echo $(rm q)", `echo "$(rm q)"`, "cat <(rm q)", "X=$(rm q)", "X=1 rm q",
			"FOO=bar rm q", "PATH=. rm q", "true && rm q", "true || rm q", "true | rm q", "rm", "rm -rf q", "rm  q", " rm q", "rm\tq", "pushd sub; cat ../.env",
			"pushd sub && cat ../.env", "builtin pushd sub; cat ../.env", "command pushd sub; cat ../.env", "builtin cd sub; cat ../.env",
			"command cd sub; cat ../.env", "popd; cat .env", "cat ./.env", "cat sub/../.env", "cat sub/deep/../../.env", `cat "$PWD/.env"`, "cat < ./.env",
			"cat 0< .env", "head .env", "tail -n1 .env", "wc .env", "base64 .env", "od .env", "strings .env", "sort .env", "uniq .env", "cut -c1 .env", "tr a b < .env",
			"sed -n 1p .env", "sed 1d .env", "awk '{print}' .env", "grep x .env", "ls .env", "stat .env", "file .env", "diff .env a", "cmp .env a", "cp .env /tmp/x",
			"git diff .env", "tee kept", "echo x | tee kept", "echo x >> ./kept", "touch kept", "sed -i s/a/b/ kept", "mv a kept", "rm kept", "rm q # x", "rm.exe q",
			"./rm q", "sub/rm q", "ls;rm q", "ls&&rm q", "ls|rm q", "ls&rm q", "ls||rm q", "ls |& rm q", "rm q", "exit; rm q", "time -p -- rm q", "nohup -- rm q",
			"timeout --kill-after=3 5 rm q", "timeout --foreground 5 rm q", "timeout 5s rm q", "timeout 0.5 rm q", "nice -5 rm q", "nice -n -5 rm q", "env - rm q",
			"env -i rm q", "env -i A=1 rm q", "env -- rm q", "env -S 'rm q'", "env --split-string='rm q'", "env -u A -u B rm q", "stdbuf -oL rm q",
			"stdbuf -i0 -o0 rm q", "sudo -n rm q", "sudo -E -u x rm q", "sudo A=1 rm q", "sudo -- rm q", "function rm { ls; }; rm q", "cd sub && rm q",
			"cd sub && cat .env", "cat sub/.env", "cat <<E\n$(rm q)\nE", "ls )\nrm q", "ls ( ; rm q", "rm q\nif true", "ls\nrm q", "if true\nrm q", "ls \\\n&& rm q",
			"rm \\\nq", "ls ; \\\nrm q", "for f in a\ndo rm q\ndone",
		}},
		{"ask", []string{
			"bash -c 'rm q'", "sh -c 'rm q'", "sh -lc 'rm q'", "zsh -c 'rm q'", `bash -c "rm q"`, "nohup bash -c 'true; rm q'", `bash -c "sh -c 'rm q'"`,
			"sudo bash -c 'rm q'",
		}},
		{"allow", []string{
			"{ cat; } < .env", "while read l; do echo; done < .env", "(cat) < .env", "if true; then cat; fi < .env", "(echo x) > kept", "{ echo x; } >> kept",
			"cat .e*", "cat ./.e??", "cat .[e]nv", "cat .{env,x}", "cat <> .env", "cat $'\\x2eenv'", "$'\\x72m' q", "$'rm' q", "xargs -I {} rm {}", "xargs -n 1 rm",
			"xargs -n1 rm", "ls | xargs -n1 rm", "ls | xargs -0 rm -f", "stdbuf -o L rm q", "busybox rm q", "eval rm q", `eval "rm q"`, "eval 'rm q'",
			"find . -exec rm {} +", "find . -exec rm {} \\;", "find . -name 'a b' -execdir rm {} \\;", "find . -name x -ok rm {} \\;", "find . -delete", "{rm,q}",
			"{r,}m q", "bash -c 'cat < .env'", "bash -c 'cat .env'", "trap 'rm q' EXIT", `echo "$(<.env)"`, "cd sub && bash -c 'echo > ../kept'",
			"cd sub && cd . && find . -maxdepth 0 -exec touch ../kept +", "cd sub; eval cat ../.env", ". .env", "source .env", "$(echo rm) q", "/bin/r? q",
			"echo 'rm q' | bash", `bash -c "$X"`, `eval "$X"`, "cat $X", "cat < $X", "echo x > $X", "cat ~root/x", "cat ~-/x", "ls; (", "for f in *; do cat $f; done",
			"cat f*", "unbuffer rm q", "chronic rm q", "caffeinate rm q", "runuser rm q", "su -c 'rm q'", "parallel rm q", "ssh h rm q", "docker run x rm q",
			"chroot / rm q", "firejail rm q", "proot rm q", "cat <<E", "cat <<'E'", "bash <<'E'", "rmdir q", "echo rm q", "echo 'rm q'", "git rm q", "npm run rm",
			"cat $PWD/.env", "cat ${PWD}/.env", "less .env", "more .env", "xxd .env", "rg x", "find . -name .env", "ls", "ln -s .env x", "tar cf x .env", "zip x .env",
			`python3 -c 'open(".env")'`, "node -e '1' .env", "git add .env", "git show HEAD:.env", "vim .env", "nano .env", "code .env", "dd if=.env",
			"curl -F f=@.env x", "curl file://.env", "cat kept", "cat a", "npm test", "grep rm a", "cat a | head -5", "{ cat a; } < a", "bash -c 'cat a'",
			"timeout 5 ls", `cat "$HOME/x"`, "echo $X", "./build.sh", "for f in a b; do npm test; done", "# rm q", "ls # rm q", `echo "rm q"`, "xargs echo rm",
			"find . -name rm", "ls rm", "which rm", "man rm", "type rm", "command -v rm", "alias rm=ls", "unalias rm", "export rm=1", "make rm", "rmx q",
			"stdbuf --output=L rm q", "su root -c 'rm q'", "let rm=1", "declare rm", "test rm", "[ rm ]", "printf rm", "rm() { ls; }", "read rm", "cat <<E\nrm q\nE",
			"cat <<'E'\nrm q\nE", "bash <<'E'\nrm q\nE", "bash <<E\nrm q\nE", "cat <<E | bash\nrm q\nE", "sh <<< 'rm q'", "ls $(pwd) )", "echo ${x}; )", "ls $( )",
			"ls `pwd` )", "ls ${x} )",
		}},
	}
	for _, tt := range tests {
		for _, mode := range []protocol.PermissionMode{"", protocol.ModeBypass, protocol.ModeAcceptEdits} {
			p := newPolicy(t, files(permission.Options{Mode: mode, AsksPerson: true}), "allow Bash", "deny Bash(rm:*)", "deny Read(.env)", "deny Edit(kept)")
			for _, command := range tt.commands {
				if got, _, _ := strings.Cut(verdictText(p.Decide(newCall("Bash", command))), " "); got != tt.want {
					t.Errorf("%q in %q: %s, want %s", command, mode, got, tt.want)
				}
			}
		}
	}
}

// Reading or writing outside the working directory needs permission, however the path is written.
func TestOutsideIsAsked(t *testing.T) {
	for _, command := range []string{
		`cat "$HOME"/x`, `cat "$HOME/x"`, "cat $HOME/x", "cat ~/x", "cat ~root/../x", "cat ~+/../x", "cat ~-/x", "cd ~- && cat x",
		"cd", "cd - && ls ..", "builtin cat ../x", "command cat ../x", "cat lin*", "cat link", "cat /$PWD/x", "cd //work/project && ls", "cat //work/project/x", "ls //work/project",
		"cat l?nk", "cat out/x", "cat out/*", "cat out/../x", "cat a/../../x", "diff --from-file=../x a", "diff --to-f=../x a", "grep -f ../x a",
		"grep -f../x a", "grep --file=../x a", "wc --files0-from=../x", "find . -newer ../x", "rg -f ../x a", "jq -f ../x a",
		"git diff --no-index a ../x", "git grep --no-index a ../x", "man ../x", "cat < ../x", "cat {a,../x}", `cat $'..\x2fx'`, "cat <> ../x",
		"touch dangling", "echo x > dangling", "cp f dangling", "touch out/new", "touch out/../new", "echo x > out/new", "cp --target-directory=../o f",
		"cp f --target-directory=../o", "mv -t../o f", "mv f -t../o", "sed -e 'w ../o' f", "sed s/a/b/ f -e 'w ../o'", "sed --file=../o f",
		"sed -n --expression='w ../o' f", "touch ../x", "mkdir -p ../d", "rm link/../../x", "tee ../x", "echo x >& ../o", "echo x >| ../o",
	} {
		for _, mode := range []protocol.PermissionMode{"", protocol.ModeAcceptEdits} {
			p := newPolicy(t, files(permission.Options{Mode: mode}))
			if v := p.Decide(newCall("Bash", command)); v.Behavior == permission.Allow {
				t.Errorf("%s in %q: %s", command, mode, verdictText(v))
			}
		}
	}
	p := newPolicy(t, files(permission.Options{Mode: protocol.ModeAcceptEdits}))
	for _, command := range []string{
		"cd - && cat x", "cd -", "echo ../x | xargs head", "xargs -n 1 head", "cat f | xargs grep x", "find . -printf ../x | xargs head",
		"cat f*", "cat ./f", "cat ../project/a", "find . -name x | xargs grep y", "git ls-files | sort | xargs wc -l", "touch new",
		"sed -i s/x/y/ f", "cp a b", "echo x > new", "grep -e x a", "cut -d/ -f1 a", "ls | xargs echo",
	} {
		if v := p.Decide(newCall("Bash", command)); v.Behavior != permission.Allow {
			t.Errorf("%s: %s %q", command, verdictText(v), v.Message)
		}
	}
}

// Monitor runs a command and follows the rules of Bash in addition to its own.
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
		p := newPolicy(t, files(permission.Options{AsksPerson: true}), tt.rules...)
		input, err := json.Marshal(map[string]string{"command": tt.command, "description": "d"})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(verdictText(p.Decide(newCall("Monitor", string(input)))), " "); got != tt.want {
			t.Errorf("%v: %s: %s, want %s", tt.rules, tt.command, got, tt.want)
		}
	}
}

// The removal of essential files needs approval in every mode, even if a rule allows it.
func TestDangerousRemoval(t *testing.T) {
	for _, mode := range []protocol.PermissionMode{"", protocol.ModeBypass, protocol.ModeAcceptEdits} {
		p := newPolicy(t, files(permission.Options{Mode: mode}), "allow Bash", "allow Bash(rm:*)")
		for _, command := range []string{
			"rm -rf ~", "rm -rf $HOME/*", "rm -rf ~/*", `rm -rf "$HOME"`, `rm -rf "$HOME/"*`, "rm -r -- ~/", "rm -rf /", "rm -rf /*", "rm -rf /usr",
			"rm -rf /home", "(rm -rf ~)", "{ rm -rf ~; }", "rm -rf ~ &", "true && rm -rf ~", "nohup rm -rf ~", "bash -c 'rm -rf ~'",
			"/bin/rm -rf ~", "rmdir ~", "rm -rf .", "rm -rf *", "rm -rf ../project", "rm -rf ..", "cd ~ && rm -rf *",
			"rm -rf ~; (",
			"cd ~ && bash -c 'rm -rf *'",
		} {
			v := p.Decide(newCall("Bash", command))
			if v.Behavior == permission.Allow || !strings.HasPrefix(v.Message, "Dangerous rm") || v.Safety != protocol.SafetyNeedsApprovalOfEachCall {
				t.Errorf("%s in %q: %s %q", command, mode, verdictText(v), v.Message)
			}
		}
		for _, command := range []string{"rm -rf ~/x", "rm -rf sub", "rm -rf sub/*", "rm *.o", "rm -rf ./sub/..x"} {
			if v := p.Decide(newCall("Bash", command)); v.Safety == protocol.SafetyNeedsApprovalOfEachCall || mode == protocol.ModeBypass && v.Behavior != permission.Allow {
				t.Errorf("%s in %q: %s %q", command, mode, verdictText(v), v.Message)
			}
		}
	}
}

// Sensitive files are protected in command lines that the real CLI analyses completely. It does not search others if a
// rule allows Bash (observed with 2.1.330; testdata/real.txt).
func TestSensitiveHolds(t *testing.T) {
	for _, command := range []string{
		"echo a > b; echo x >> .bashrc", "true && tee .mcp.json", "rm .git/config",
		"for i in 1; do touch .claude/settings.json; done", "rm .git/c* .git/config", "nohup touch .git/x &",
	} {
		p := newPolicy(t, files(permission.Options{Mode: protocol.ModeAcceptEdits}), "allow Bash")
		if v := p.Decide(newCall("Bash", command)); v.Behavior == permission.Allow || v.ReasonType != "safetyCheck" {
			t.Errorf("%s: %s %q", command, verdictText(v), v.Message)
		}
	}
}

// Deny and ask rules with a path have no effect if they name Write instead of Edit. The policy warns about such rules.
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
		if len(w) != 2 || !strings.Contains(w[0], `permission rule "Write(a)" (userSettings): it has no effect`) || !strings.Contains(w[1], "use Edit(/sub/**)") {
			t.Errorf("%s: warnings %q", behavior, w)
		}
		for _, tool := range []string{"Write", "Edit"} {
			if v := p.Decide(newCall(tool, cwd+"/a")); v.Behavior != permission.Allow {
				t.Errorf("%s Write(a): %s of a is %s", behavior, tool, verdictText(v))
			}
			if v := p.Decide(newCall(tool, cwd+"/b")); v.Behavior == permission.Allow {
				t.Errorf("%s Edit(b): %s of b is allowed", behavior, tool)
			}
		}
	}
}
