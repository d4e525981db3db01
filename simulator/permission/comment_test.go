package permission_test

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// A comment that ends in a backslash does not hide the next line, which the shell runs (security
// point A1). The real CLI does not allow any of these command lines, in any of the modes.
func TestCommentHidesNothing(t *testing.T) {
	variants := []string{
		"ls #\\\nX", "ls # x\\\nX", "ls # x\\\\\nX", "ls # x\\\\\\\nX", "ls\t#\\\nX", "ls | cat #\\\nX", "ls |#\\\nX", "ls && #\\\nX", "ls; #\\\nX", "ls &#\\\nX",
		"(ls #\\\nX)", "{ ls; #\\\nX; }", "echo $(ls #\\\nX\n)", "echo `ls #\\\nX\n`", "cat <(ls #\\\nX)", "#\\\nX", "# a\\\nX\nls", "ls\n#\\\n#\\\nX",
		"cat <<'E'\nx\nE\n#\\\nX", "cat <<E #\\\nx\nE\nX", "cat <<'E'\n#\\\nE\nls #\\\nX", "if true; then ls #\\\nX; fi", "for i in a; do ls #\\\nX; done",
		"ls \\\n#\\\nX", "ls # x\\\r\nX", "ls # x\r\nX", "ls # 'x\\\nX #'", "ls # $(\\\nX", "ls # <<E\\\nX",
	}
	programs := []string{"python3 -c 'print(1)'", "rm -rf /else/x"}
	for _, mode := range []protocol.PermissionMode{"", protocol.ModePlan, protocol.ModeDontAsk, protocol.ModeAcceptEdits, protocol.ModeBypass} {
		for _, rules := range [][]string{nil, {"deny Bash(rm:*)"}, {"allow Bash", "deny Bash(rm:*)"}} {
			p := newPolicy(t, files(permission.Options{Mode: mode}), rules...)
			for _, variant := range variants {
				for _, program := range programs {
					denied := rules != nil && program == programs[1]
					if !denied && (mode == protocol.ModeBypass || len(rules) > 1) {
						continue // everything is allowed
					}
					command := strings.ReplaceAll(variant, "X", program)
					v := p.Decide(newCall("Bash", command))
					if v.Behavior == permission.Allow {
						t.Errorf("%q in %q with %q: %s", command, mode, rules, verdictText(v))
					}
				}
			}
		}
	}
}

// TestTextQuestions checks the messages of approval requests for command lines that cannot be analysed.
// A script with a syntax error gets one request about the whole script (observed with 2.1.330).
func TestTextQuestions(t *testing.T) {
	tests := []struct{ command, want string }{
		{"ls 'a\\ b'", "Contains backslash-escaped whitespace"},
		{"ls #\\\nls", "Contains backslash-escaped whitespace"},
		{"ls\u00a0-la", "Contains Unicode whitespace"},
		{"ls '~[x]'", "Contains zsh ~[ dynamic directory syntax"},
		{"ls =ls", "Contains zsh =cmd equals expansion"},
		{"=ls {'x' )", "Contains zsh =cmd equals expansion"},
		{"echo {'a',b}", "Contains brace with quote character (expansion obfuscation)"},
		{"ls )", "Parse error"},
		{"ls a\\", "Parse error"},
		{"ls '=1'", "Shell expansion syntax in paths requires manual approval"},
		{"cat 'a$b'", "Shell expansion syntax in paths requires manual approval"},
		{"cat 'a`b'", "Shell expansion syntax in paths requires manual approval"},
		{"ls '~x'", "Tilde expansion variants (~user, ~+, ~-) in paths require manual approval"},
		{"grep 'a$' f", "This command requires approval"},
		{"ls | grep 'a$'", "This Bash command contains multiple operations. The following part requires approval: grep 'a$'"},
		{"cat a \\\n  | head", "This Bash command contains multiple operations. The following part requires approval: cat a \\"},
		{"ls | \\\n cat", "This Bash command contains multiple operations. The following part requires approval: \\\n cat"},
	}
	p := newPolicy(t, files(permission.Options{}))
	bypass := newPolicy(t, files(permission.Options{Mode: protocol.ModeBypass}))
	for _, tt := range tests {
		if v := p.Decide(newCall("Bash", tt.command)); v.Behavior != permission.Ask || v.Message != tt.want {
			t.Errorf("%q: %s %q, want %q", tt.command, verdictText(v), v.Message, tt.want)
		}
		if v := bypass.Decide(newCall("Bash", tt.command)); v.Behavior != permission.Allow {
			t.Errorf("%q in bypassPermissions: %s", tt.command, verdictText(v))
		}
	}
	for _, command := range []string{"ls ${x", "ls ${#\\\nls}", "echo \"$(ls\""} {
		for _, p := range []*permission.Policy{p, bypass} {
			if v := p.Decide(newCall("Bash", command)); v.Behavior != permission.Ask || v.Safety != protocol.SafetyNeedsApprovalOfEachCall {
				t.Errorf("%q in %q: %s", command, p.Mode(), verdictText(v))
			}
		}
	}
}
