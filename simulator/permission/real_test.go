package permission_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Each line of testdata/real.txt is a command with the decision of CLI 2.1.330, under the mode and the rules of its group.
func TestRealDecisions(t *testing.T) {
	policies := map[string]*permission.Policy{
		"bypass":     newPolicy(t, files(permission.Options{Mode: protocol.ModeBypass})),
		"allow":      newPolicy(t, files(permission.Options{AsksPerson: true}), "allow Bash"),
		"sensitive":  newPolicy(t, files(permission.Options{AsksPerson: true}), "allow Bash"),
		"accepting":  newPolicy(t, files(permission.Options{AsksPerson: true, Mode: protocol.ModeAcceptEdits})),
		"default":    newPolicy(t, files(permission.Options{AsksPerson: true})),
		"removal":    newPolicy(t, files(permission.Options{AsksPerson: true}), "allow Bash", "deny Bash(rm:*)"),
		"denied":     newPolicy(t, files(permission.Options{AsksPerson: true}), "allow Bash", "deny Read(./.env)"),
		"plan":       newPolicy(t, files(permission.Options{AsksPerson: true, Mode: protocol.ModePlan})),
		"plandenied": newPolicy(t, files(permission.Options{AsksPerson: true, Mode: protocol.ModePlan}), "allow Bash", "deny Read(./.env)"),
		"allowedits": newPolicy(t, files(permission.Options{AsksPerson: true, Mode: protocol.ModeAcceptEdits}), "allow Bash"),
		"editdenied": newPolicy(t, files(permission.Options{AsksPerson: true}), "allow Bash", "deny Edit(kept)"),
	}
	// In the group progs, a rule allows each of these programs with any arguments.
	var rules []string
	for program := range strings.FieldsSeq(`strace ltrace unshare nsenter setsid flock watch ionice taskset chrt sandbox-exec coproc trap enable hash alias let mapfile
		complete script eval exec xargs compgen compopt bind builtin readarray shopt set unalias source wait read printf fc declare ls
		time ssh chroot sudo parallel entr at batch tmux screen expect rlwrap gdb setarch runuser su capsh prlimit numactl systemd-run
		busybox zsh bash find jq fd unset wait test . type dirs pushd ulimit umask exit return local export typeset readonly getopts
		shift times suspend kill jobs bg disown zmodload emulate autoload sysopen zpty ztcp zf_rm syswrite sysread zsocket vared print
		noglob nocorrect - caller logout rg git sed awk perl nohup env nice test`) {
		rules = append(rules, "allow Bash("+program+":*)")
	}
	policies["progs"] = newPolicy(t, files(permission.Options{AsksPerson: true}), rules...)
	text, err := os.ReadFile("testdata/real.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		group, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		want, quoted, _ := strings.Cut(rest, " ")
		command, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		v := policies[group].Decide(newCall("Bash", command))
		if got, _, _ := strings.Cut(verdictText(v), " "); got != want {
			t.Errorf("%s: %q is %s %q, want %s", group, command, verdictText(v), v.Message, want)
		}
	}
}
