package permission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// suggestionTexts abbreviates suggestions: "Bash(touch *)", "dir /w", "mode acceptEdits"; "none" if the host gets no list.
func suggestionTexts(v permission.Verdict) string {
	if v.Suggestions == nil {
		return "none"
	}
	var out []string
	for _, u := range v.Suggestions {
		switch u.Type {
		case "addRules":
			for _, r := range u.Rules {
				out = append(out, permission.FormatRule(r))
			}
		case "addDirectories":
			out = append(out, "dir "+strings.Join(u.Directories, ","))
		default:
			out = append(out, fmt.Sprintf("mode %s", u.Mode))
		}
	}
	return strings.Join(out, "; ")
}

// TestShellQuestions checks the message, the suggestions and the blocked path of approval requests for Bash calls.
func TestShellQuestions(t *testing.T) {
	const (
		inside   = " needs approval. The path is inside the working directories for this session ('/work/project'), and Claude Code asks before a shell command creates, changes or removes files there."
		outside  = " needs approval. The path is outside the working directories for this session ('/work/project'). Allowing runs the command as written."
		approval = "This command requires approval"
		cdWrite  = "Commands that change directories and perform write operations require explicit approval to ensure paths are evaluated correctly. For security, Claude Code cannot automatically determine the final working directory when 'cd' is used in compound commands."
	)
	tests := []struct {
		command string
		want    string // the message
		reason  string // type
		offers  string
		blocked string
	}{
		{"touch a b", "touch in '/work/project/a'" + inside, "", "Bash(touch a *); dir /work/project; mode acceptEdits", "/work/project/a"},
		{"cp a.txt /w/b", "cp in '/w/b'" + outside, "", "Bash(cp a.txt /w/b); dir /w; mode acceptEdits", "/w/b"},
		{"timeout 5 touch x", "touch in '/work/project/x'" + inside, "", "Bash(timeout 5 touch x); dir /work/project; mode acceptEdits", "/work/project/x"},
		{"echo hi > f", "Output redirection to '/work/project/f'" + inside, "", "Bash(echo hi *); dir /work/project", "/work/project/f"},
		{"ls ~/d", "ls in '/home/me/d' was blocked. For security, Claude Code may only list files in the allowed working directories for this session: '/work/project'.", "", "Bash(ls ~/d); Read(//home/me/**)", "/home/me/d"},
		{"grep a $HOME/f", "grep in '/home/me/f' was blocked. For security, Claude Code may only search for patterns in files from the allowed working directories for this session: '/work/project'.", "", "Bash(grep a *); Read(//home/me/**)", "/home/me/f"},
		{"cat < /etc/hosts", "Input redirection from '/etc/hosts' was blocked. For security, Claude Code may only read files in the allowed working directories for this session: '/work/project'.", "", "Bash(cat < /etc/hosts); Read(//etc/**)", "/etc/hosts"},
		{"npm test", approval, "other", "Bash(npm test *)", ""},
		{"nohup touch x", "touch in '/work/project/x'" + inside, "", "Bash(nohup touch x); dir /work/project; mode acceptEdits", "/work/project/x"},
		{"env A=1 touch x", "touch in '/work/project/x'" + inside, "", "Bash(env A=1 touch x); dir /work/project; mode acceptEdits", "/work/project/x"},
		{"python3 f.py", approval, "other", "Bash(python3 f.py)", ""},
		{"sudo rm x", approval, "other", "Bash(sudo rm x)", ""},
		{"FOO=1 npm test", approval, "other", "Bash(FOO=1 npm test)", ""},
		{"time ls", approval, "other", "Bash(time ls)", ""},
		{"git commit -m \"$(cat <<'E'\nmsg\nE\n)\"", approval, "other", "Bash(git commit *)", ""},
		{"cat > x <<'E'\nhi\nE", "Output redirection to '/work/project/x'" + inside, "", "Bash(cat > *); dir /work/project", "/work/project/x"},
		{"cat > x <<E\nhi\nE", "Heredoc with unquoted delimiter undergoes shell expansion", "other", "", ""},
		{"cd a && touch x", cdWrite, "other", "Bash(cd a *); mode acceptEdits", ""},
		{"cd ./a && touch x", "touch in '/work/project/a/x'" + inside, "", "Bash(cd ./a && touch x); dir /work/project/a; mode acceptEdits", "/work/project/a/x"},
		{"cd /work/project/a && echo hi > ../f", "Output redirection to '/work/project/f'" + inside, "", "Bash(cd /work/project/a && echo hi > ../f); dir /work/project", "/work/project/f"},
		{"cd ./a; touch x", cdWrite, "other", "Bash(cd ./a; touch x); mode acceptEdits", ""},
		{"cd ./a && touch 'x;y'", cdWrite, "other", "Bash(cd ./a && touch 'x;y'); mode acceptEdits", ""},
		{"cd ./a && git status", "This command changes directory before running a version-control command, which can pick up untrusted hooks or repository configuration from the target directory. Approve only if you trust it.", "other", "none", ""},
		{"cd /work/project; npm test", approval, "other", "Bash(npm test *)", ""},
		{"cd /tmp && touch x", "This Bash command contains multiple operations. The following parts require approval: cd /tmp, touch x", "subcommandResults", "none", ""},
		{"mkdir q && cd q && touch z", "This Bash command contains multiple operations. The following parts require approval: mkdir q, touch z", "subcommandResults", "none", ""},
		{"cd /tmp/d && python3 -c 1", "This Bash command contains multiple operations. The following parts require approval: cd /tmp/d, python3 -c 1", "subcommandResults", "Read(//tmp/**); Bash(python3 -c 1)", ""},
		{"ls && touch x", "touch in '/work/project/x'" + inside, "", "Bash(ls && touch x); dir /work/project; mode acceptEdits", "/work/project/x"},
		{"touch x; npm test", "This Bash command contains multiple operations. The following parts require approval: touch x, npm test", "subcommandResults", "Bash(touch x *); Bash(npm test *)", ""},
		{"ls | xargs rm", "This Bash command contains multiple operations. The following part requires approval: xargs rm", "subcommandResults", "Bash(xargs rm)", ""},
		{"echo a | tee x", "This Bash command contains multiple operations. The following part requires approval: tee x", "subcommandResults", "Bash(echo a *); dir /work/project; mode acceptEdits", ""},
		{"echo $(ls)", "A nested command in this command can't be checked before it runs", "other", "", ""},
		{`echo "$(ls)"`, "Quoted text in this command can't be checked before it runs", "other", "", ""},
		{"for f in a; do cat $f; done", "A variable in this command can't be checked before it runs", "other", "", ""},
		{"X=1; echo $X", "A variable set in this command can't be checked before it runs", "other", "", ""},
		{"echo ${X}", "A variable in braces in this command can't be checked before it runs", "other", "", ""},
		{"true && { ls; }", "A group in braces or double parentheses in this command can't be checked before it runs", "other", "", ""},
		{"f() { ls; }; f", "A function definition in this command can't be checked before it runs", "other", "", ""},
		{"cat <<E\nhi\nE", "Heredoc with unquoted delimiter undergoes shell expansion", "other", "", ""},
		{"cat <<'E' > x\nhi\nE", "A file redirect in this command can't be checked before it runs", "other", "", ""},
		{"diff <(ls) <(ls)", "A command used as a file in this command can't be checked before it runs", "other", "", ""},
		{"ls {a,b}", "Brace expansion", "other", "", ""},
		{"eval ls", "'eval' evaluates arguments as shell code", "other", "", ""},
		{"(ls)", "This command uses shell operators that require approval for safety", "other", "none", ""},
		{"npm start &", approval, "other", "none", ""},
		{"sleep 1 &", "This command uses the `&` background operator, which defers execution past approval-time safety checks. Approve only if you trust it.", "safetyCheck", "none", ""},
		{"find . -delete", "find with '-delete' executes commands or modifies files — cannot be auto-allowed by a Bash(find:*) prefix rule", "other", "", ""},
		{"cd a && cd b", "Multiple directory changes in one command require approval for clarity", "other", "none", ""},
		{"cd a && git status", "This command changes directory before running a version-control command, which can pick up untrusted hooks or repository configuration from the target directory. Approve only if you trust it.", "other", "none", ""},
		{"rm *.o", "Glob patterns are not allowed in write operations. Please specify an exact file path.", "other", "Bash(rm *.o); dir /work/project; mode acceptEdits", "*.o"},
		{"rm -rf ~", "Dangerous rm operation detected: '/home/me'\n\nThis command would remove a critical system directory. This requires explicit approval and cannot be auto-allowed by permission rules.", "safetyCheck", "", ""},
		{"echo x >> .bashrc", "Claude requested permissions to edit /work/project/.bashrc which is a sensitive file.", "safetyCheck", "dir /work/project", "/work/project/.bashrc"},
		{"ls (", "Parse error", "other", "", ""},
	}
	for _, tt := range tests {
		p := newPolicy(t, permission.Options{AsksPerson: true, Home: "/home/me"})
		v := p.Decide(newCall("Bash", tt.command))
		got := []string{v.Message, v.ReasonType, suggestionTexts(v), v.BlockedPath}
		if diff := cmp.Diff([]string{tt.want, tt.reason, tt.offers, tt.blocked}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.command, diff)
		}
	}
}

// A deny rule for reading refuses commands that read the path, even after a cd, and calls of file tools that change it.
func TestReadDenied(t *testing.T) {
	const file = "<tool_use_error>File is covered by a Read deny rule in your permission settings and cannot be "
	denied := func(command string) string {
		return "Permission to use Bash with command " + command + " has been denied."
	}
	after := func(command, path string) string {
		return command + " from '" + cwd + "/" + path + "' was blocked by a deny rule."
	}
	tests := []struct {
		use  protocol.ToolUse
		want string // the result; empty means the call runs
	}{
		{newCall("Bash", "ls d"), denied("ls d")},
		{newCall("Bash", "ls d/"), denied("ls d/")},
		{newCall("Bash", "ls x/d"), denied("ls x/d")},
		{newCall("Bash", "cat d/b.txt"), denied("cat d/b.txt")},
		{newCall("Bash", "cd d"), denied("cd d")},
		{newCall("Bash", "cd d && pwd"), denied("cd d && pwd")},
		{newCall("Bash", "cd d && ls"), after("ls", "d")},
		{newCall("Bash", "cd d && cat b.txt"), after("cat", "d/b.txt")},
		{newCall("Bash", "cd src; ls ../d"), after("ls", "d")},
		{newCall("Bash", "cp .env q"), denied("cp .env q")},
		{newCall("Bash", "mv .env q"), denied("mv .env q")},
		{newCall("Bash", "sed -i s/a/b/ .env"), denied("sed -i s/a/b/ .env")},
		{newCall("Bash", "nohup cat .env"), denied("nohup cat .env")},
		{newCall("Bash", "cat a && cat < .env"), denied("cat a && cat < .env")},
		{newCall("Bash", "echo hi | cat .env"), denied("cat .env")},
		{newCall("Bash", "cp a d/k"), ""},
		{newCall("Bash", "touch .env"), ""},
		{newCall("Bash", "echo x > .env"), ""},
		{newCall("Bash", "ls src"), ""},
		{newCall("Write", cwd+"/.env"), file + "written.</tool_use_error>"},
		{newCall("Edit", cwd+"/d/b.txt"), file + "edited.</tool_use_error>"},
		{newCall("Grep", cwd+"/d"), "Permission to read " + cwd + "/d has been denied."},
		{newCall("Write", cwd+"/a"), ""},
	}
	for _, tt := range tests {
		p := newPolicy(t, permission.Options{}, "deny Read(d/**)", "deny Read(.env)", "allow Bash", "allow Write", "allow Edit", "allow Grep")
		v, got := p.Decide(tt.use), ""
		if v.Behavior != permission.Allow {
			r, _ := v.Denial()
			got = r.Content.Text
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.use.Name, tt.use.Input, diff)
		}
		early, refused := p.FileDenialByRule(tt.use)
		if refused != strings.HasPrefix(tt.want, "<tool_use_error>") {
			t.Errorf("%s %s: refused before its tool looks: %v", tt.use.Name, tt.use.Input, early)
		}
	}
}

// Subshells with a list hide files from a deny rule for reading, as in the real CLI 2.1.330.
func TestSubshellPaths(t *testing.T) {
	p := newPolicy(t, permission.Options{}, "deny Read(.env)", "deny Edit(kept)", "deny Bash(touch:*)", "allow Bash")
	for command, want := range map[string]permission.Behavior{
		"(cat .env)": permission.Deny, "(ls && cat .env)": permission.Deny, "(ls | cat .env)": permission.Deny, "(ls\ncat .env)": permission.Deny,
		"( (cat .env) )": permission.Deny, "(if true; then cat f; cat .env; fi)": permission.Deny, "ls; (cat .env)": permission.Deny, "(ls; touch t)": permission.Deny,
		"(ls; cat .env)": permission.Allow, "(cat .env;)": permission.Allow, "(ls & cat .env)": permission.Allow, "(ls; cat .env) | sort": permission.Allow,
		"! (ls; cat .env)": permission.Allow, "( (ls; ls) && cat .env)": permission.Allow, "ls; (ls; cat .env)": permission.Allow, "(ls; echo a > kept)": permission.Allow,
	} {
		if got := p.Decide(newCall("Bash", command)).Behavior; got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

// Changes of files that configure commands that run automatically, and removals of whole directory
// trees, need approval. Only bypassPermissions allows them; no other mode and no rule does.
func TestSensitiveFiles(t *testing.T) {
	own := ", but you haven't granted it yet."
	tests := []struct {
		path string
		want string // end of the message; empty means an ordinary file
	}{
		{".git/config", " which is a sensitive file."},
		{"sub/.GIT/hooks/x", " which is a sensitive file."},
		{".mcp.json", " which is a sensitive file."},
		{".bashrc", " which is a sensitive file."},
		{".config/git/config", " which is a sensitive file."},
		{".claude/hooks/x", " which is a sensitive file."},
		{".claude/settings.json", own},
		{".claude/agents/x.md", own},
		{".claude/worktrees/x", ""},
		{".gitignore", ""},
		{".env", ""},
		{"package.json", ""},
	}
	for _, tt := range tests {
		for _, o := range []permission.Options{{Mode: protocol.ModeAcceptEdits}, {Mode: protocol.ModeBypass}, {}} {
			p := newPolicy(t, o, "allow Write", "allow Bash")
			for _, call := range []protocol.ToolUse{newCall("Write", cwd+"/"+tt.path), newCall("Bash", "echo x > "+tt.path), newCall("Bash", "rm "+tt.path)} {
				v := p.Decide(call)
				free := tt.want == "" || o.Mode == protocol.ModeBypass
				if (v.Behavior == permission.Allow) != free || !free && !strings.HasSuffix(v.Message, tt.path+tt.want) {
					t.Errorf("%s %s in %q: %s %q", call.Name, call.Input, o.Mode, verdictText(v), v.Message)
				}
				if !free && (v.ReasonType != "safetyCheck" || v.Safety != protocol.SafetyApprovableByRuleOrClassifier) {
					t.Errorf("%s %s: reason %q, safety %q", call.Name, call.Input, v.ReasonType, v.Safety)
				}
			}
		}
	}
	p := newPolicy(t, permission.Options{}, "allow Bash")
	if v := p.Decide(newCall("Bash", "rm -rf /usr")); v.Safety != protocol.SafetyNeedsApprovalOfEachCall {
		t.Errorf("rm -rf /usr: %s", verdictText(v))
	}
}

// Paths in calls are relative to the directory of the shell. Working directories and rules are relative to the
// directory in which the session started.
func TestDirOfTheShell(t *testing.T) {
	p := newPolicy(t, permission.Options{Dir: func() string { return cwd + "/sub" }, AsksPerson: true})
	if v := p.Decide(newCall("Bash", "touch x")); v.BlockedPath != cwd+"/sub/x" {
		t.Errorf("touch x asks about %q", v.BlockedPath)
	}
	if v := p.Decide(newCall("Bash", "cat ../x")); v.Behavior != permission.Allow {
		t.Errorf("cat ../x: %s", v.Message)
	}
}
