package permission_test

import (
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestRemovals checks which removals need approval in every mode, even if a rule allows them, and which
// removals bypassPermissions allows. The decisions are those of the real CLI 2.1.330 (security point A2).
func TestRemovals(t *testing.T) {
	asked := []string{
		"rm -rf ~/../*", "rm -rf ~/../..", "rm -rf /usr/lib/../*", "rm -rf /usr/lib/../..",
		"rm -rf $(echo ~)", "rm -rf $(pwd)", "rm -rf $(echo sub)", "rm -r $(echo sub)", "rm -R $(echo sub)", "rm --recursive $(echo sub)", "rm -rf `echo sub`",
		`rm -rf "$(echo sub)"`, "rm -rf ~/$(echo sub)", "rm -rf $HOME/$(echo x)", "rm -rf /$(echo x)", "rm -rf ./$(echo x)", "rm -rf /tmp/$(echo x)",
		"rm -rf $X/*", "rm -rf $HOME/$X", "rm -rf ${HOME}", "rm -rf ${HOME:?}", "rm -rf ~/.", "rm -rf ~/./", "rm -rf ~/*", "rm -rf ~/**",
		"bash -c 'rm -rf ~'", `bash -c "rm -rf ~"`, "(rm -rf ~)", "{ rm -rf ~; }", "rm -rf ~ &", "env rm -rf ~", "nohup rm -rf ~", "timeout 5 rm -rf ~",
		"command rm -rf ~", "builtin rm -rf ~", "\\rm -rf ~", "'rm' -rf ~", "/bin/rm -rf ~", "/usr/bin/rm -rf /", "rm -rf .", "rm -rf ./", "rm -rf ./*",
		"rm -rf *", "rm -rf ..", "rm -rf ../*", "rm -rf sub/..", "rm -rf /*", "rm -rf /usr", "rm -rf /usr/*", "rm -rf /home", "rm -rf /root", "rm -rf /tmp",
		"rm -rf /tmp/*", "rm -rf //", "rm -rf /./", "rm -rf /usr/", "rm -rf /nosuch", "rm /x", "rm ~", "rmdir ~", "rmdir /", "rmdir /usr", "cd ~ && rm -rf *",
		"cd / && rm -rf *", "cd sub && rm -rf *", "cd ~; rm -rf .", "pushd ~; rm -rf *", "rm -rf -- ~", "rm -rf ~ x", "rm -rf x ~", "if true; then rm -rf ~; fi",
		"rm -rf ~ > x", "echo $(rm -rf ~)", "echo `rm -rf ~`", "cat <(rm -rf ~)", "cat <<E\n$(rm -rf ~)\nE", `rm -rf "~"`, "rm -rf '~'", "rm -rf \\~",
		`rm -rf "$HOME"`, `rm -rf "$HOME"/`, "HOME=/x; rm -rf $HOME", "time rm -rf ~", "! rm -rf ~", "[[ -d x ]] && rm -rf ~",
		"true | rm -rf ~", "rm -rf $(cat list)", "rm -rf $(find . -name x)", "rm -rf $(git ls-files)", "rm -rf $(pwd)/*", "rm -rf ///", `rm -rf /""`, "rm -rf ''",
		`rm -rf ~""`, `rm -rf ""~`, "rm -rf /etc /x", "rm -rf /e*", "rm -rf /us?", "nice -n 5 rm -rf ~", "env -i rm -rf ~", "stdbuf -o0 rm -rf ~", "rm $X/*",
		"rm -rf ${X}/*", `rm -rf "$X"/*`, `rm -rf "$X/"*`, "rm -rf $X/**", "rm -rf $X/", "rm -rf $X/$Y", "rm -rf $X/$Y/*", "rm -rf $X/$Y/z", "rm -rf $X/usr",
		"rm -rf $X/usr/*", "rm -rf ${X%/}/*", "rm -rf $1/*", "rm -rf $(echo x)/", "rm -rf $(echo x)/.", "rm -rf $(echo x)/..", "rm -rf $(echo x)*",
		"rm -rf $(echo x)/*/*", "rm -rf $(echo x) sub", "rm -rf sub $(echo x)", "rm ~/$(echo x)", "rm ./$(echo x)", "rm /$(echo x)", "rm -rf $(echo x)$(echo y)",
		"rm -rf $X/$(echo x)", "rm -rf ~/$(echo y)/*", "sh -c 'rm -rf ~'", "zsh -c 'rm -rf ~'", "dash -c 'rm -rf ~'", "bash -lc 'rm -rf ~'",
		"env bash -c 'rm -rf ~'", `bash -c 'sh -c "rm -rf ~"'`, "bash -c 'rm -rf $(pwd)'", "bash -c 'cd sub; rm -rf *'", "cd sub && rm -rf ..",
		"cd sub && rm -rf ../*", "cd sub && rm -rf ./*", "cd sub && rm -rf .", "cd sub && rm -rf ../..", "cd sub && rm -rf /", "cd sub && rm -rf x/*",
		"cd sub && rm *", "cd sub; rm -f *", "cd sub && rm -rf ~", "cd sub && rm -rf $(ls)", "cd sub && rmdir *", "cd sub && rm -rf **", "cd sub && rm -rf ./",
		"cd sub && rm -rf */", "rm -rf * && cd sub", "cd sub && ls && rm -rf *", "cd sub | rm -rf *", "(cd sub && rm -rf *)", "pushd sub && rm -rf .",
		"popd; rm -rf *", "popd && rm -rf ..", "cd && rm -rf *", "cd $X && rm -rf *", "cd . && rm -rf *", "command cd sub && rm -rf *",
		"builtin cd sub && rm -rf *", "eval cd sub && rm -rf *", "rm -rf */", "rm -rf */*", "rm -rf **", "rm -rf ***", "rm -rf ./**", "rm -rf ./*/", "rm -rf ~/*/",
		"rm -rf ~/*/*", "rm -rf /*/", "rm -rf /*/*", "rm -rf /usr/*/", "rm -rf /usr/**", "rm -rf /.*", `rm -rf "*"`, "rm -rf '*'", "rm -rf \\*", "rm -rf './*'",
		"rm -rf ~/\\*", "rm -f *", "rm *", "rm ./*", "rm -i *", "rm .", "rm ..", "rm -rf -- *", "rm -rf -- /", "rm -- -rf /", "rm / -rf",
		"rm -rf --no-preserve-root /", "rm -rf --one-file-system ~", "rm -rf -x ~", "rm --rec $(echo x)", "rm --recursive=x $(echo y)", "rm $(echo y) -r",
		"rm -fr $(echo y)", "rm -frv $(echo y)", "rm -f -v -r -- $(echo y)", "/bin/rm -rf $(echo y)", "sudo rm -rf $(echo y)", "timeout 5 rm -rf $(echo y)",
		"timeout -k 3 5 rm -rf ~", "timeout -s KILL 5 rm -rf ~", "timeout --signal=KILL 5 rm -rf ~", "nice rm -rf ~", "nice -5 rm -rf ~", "env A=1 rm -rf ~",
		"env -u X rm -rf ~", "A=1 rm -rf ~", "command -- rm -rf ~", "command -p rm -rf ~", "stdbuf -o L rm -rf ~", "stdbuf -oL rm -rf ~", "nohup -- rm -rf ~",
		"nohup nice timeout 5 rm -rf ~", "for i in a; do rm -rf ~; done", "while true; do rm -rf ~; done", "until false; do rm -rf ~; done", "X=$(rm -rf ~)",
		"export X=$(rm -rf ~)", `echo "$(rm -rf ~)"`, "echo ${X:-$(rm -rf ~)}", "echo $((`rm -rf ~`))", "[[ $(rm -rf ~) ]]", "let x=$(rm -rf ~)", "rm -rf ~ # x",
		"rm -rf \\\n~", "rm -rf ~\\\n", "rm -rf ~ 2>/dev/null", "rm -rf ~ || true", "ls; rm -rf ~", "ls | rm -rf ~", "ls && rm -rf ~ && ls", "rm -rf ~ | cat",
		"rm -rf ~/ x", "rm -rf $HOME/ x", "rm -rf ${HOME}/", "rm -rf ${HOME}/*", "rm -rf ${HOME%/}", "rm -rf ${HOME:-x}", "rm -rf ${HOME/x/y}",
		`rm -rf "${HOME}"/*`, `rm -rf "$HOME/*"`, "rm -rf $X/etc", "rm -rf $X/tmp", "rm -rf $X/home", "rm -rf $X/lib64", "rm -rf $X/nix", "rm -rf $X/Users",
		"rm -rf $X/System", "rm -rf $X/opt", "rm -rf $X/mnt", "rm -rf $X/$Y/*/z", "rm -rf $X//", "rm -rf $X/var/*", "rm -rf x/*/*", "rm -rf ~",
		"sudo bash -c 'rm -rf ~'", "timeout 5 bash -c 'rm -rf ~'", "exec rm -rf $(x)", "doas rm -rf $(x)", "setsid rm -rf $(x)", "rm -rf ${X##*/}/*",
		"rm x 'y", "rm 'z", "cd sub; rm x y 'z", "cd sub && ls && rm ./x 'y", "cd sub\nrm x 'y", "cd sub | rm x 'y", "cd 'sub'; rm x 'y", "cd \"sub\"; rm x 'y", "rmdir x 'y", "rm -r '~x", "rm -r '/x",
	}
	asked = append(asked, removalsByVariable...)
	run := []string{
		"A=~; rm -rf $A", "A=sub; rm -rf $A", "A=$(echo sub); rm -rf $A", "A=$(mktemp -d); rm -rf $A", "A=$(pwd)/sub; rm -rf $A", "A=/; rm -rf ${A}", "A=/ rm -rf $A", "A=/ ls; rm -rf $A",
		"A=/; A=x; rm -rf $A", "A=x; A=/; rm -rf $A", "rm -rf $A; A=/", "A=/ B=x; rm -rf $A", "A+=/; rm -rf $A", "A=(/); rm -rf $A", "ls; A=/; rm -rf $A", "ls && A=/ && rm -rf $A",
		"A=/ || rm -rf $A", "A=/ | rm -rf $A", "A=/ & rm -rf $A", "(A=/); rm -rf $A", "{ A=/; }; rm -rf $A", "if true; then A=/; fi; rm -rf $A", "while A=/; do rm -rf $A; done",
		"A=/; (rm -rf $A)", "A=/; { rm -rf $A; }", "A=/; echo $X; rm -rf $A", "A=/; echo ${A}; rm -rf $A", "A=/; rm -rf $A $X", "A=/; echo $(rm -rf $A)", "A=/; f() { ls; }; rm -rf $A",
		"A=/; sudo rm -rf $A", "A=/; eval rm -rf $A", "A=/; rm -rf x/$A", "A=/; rm -rf x$A", "for A in /; do rm -rf $A; done", "export A=/; B=/; rm -rf $B", "A=sub; rm -rf $A/*", "A=sub; rm -rf $A/",
		"A=sub; rm -rf $A/etc", "A=sub; B=x; rm -rf $A/$B", "A='~'; rm -rf $A", "A='rm -rf ~'; $A", "A=$X; B=/; rm -rf $B", "A=/usr; rm -rf $A/ab", "A=/x/y; bash -c 'rm -rf $A'",
		"A=$(pwd); A=x; rm -rf $A", "A=$(pwd); A=$(mktemp -d); rm -rf $A", "(A=$(pwd)); rm -rf $A", "A=$(pwd) ls; rm -rf $A", "A=$(pwd); rm -rf ${A}", "A=$(pwd); rm -rf $A/x", "A=$(pwd); rm -rf x/$A",
		"A=$(pwd); rm -rf $A*", `A=$(pwd); rm -rf "${A%/}"`, `A=$(pwd); rm -rf "${A:+x}"`, "A=$(pwd); echo rm -rf $A", "A=$(pwd); find $A -delete", "A=$(pwd); git rm -rf $A", "A+=$(pwd); rm -rf $A",
		"A=$(pwd); for A in x; do rm -rf $A; done", "A=$(command pwd); rm -rf $A", "A=$(cd sub && pwd); rm -rf $A", "A=$(dirname x); rm -rf $A", "A=$(basename $(pwd)); rm -rf $A", "A=${PWD%/*}; rm -rf $A",
		"A=x$(pwd); rm -rf $A", "A=$(realpath $PWD); rm -rf $A",
		"cd sub; rm x \"y", "cd sub; rm x 'y z", "cd sub; rm x y'z", "rm 'yz", "rm 'ab/", "rm -rf x 'y; ls", "sudo rm x 'y", "rm x > 'y", "rm x;'y", "ls 'y", "rm $f 'y", "rm x 'y'; ls 'z", "(rm x 'y",
		"rm -rf ~/..", "rm -rf $HOME/..", "rm -rf /usr/lib/..",
		"rm -f $(echo sub)", "rm $(echo sub)", "rm -rf x/$(echo sub)", "rm -rf $(echo x)/sub", "rm -rf $(echo x)sub", "rm -rf $X", "rm -rf ${X}", `rm -rf "$X"`,
		"rm -rf $X/sub", "rm -rf ~/$X", "rm -rf ${X:-~}", "rm -rf x/$X", "rm -rf $PWD", "rm -rf $PWD/sub", "rm -rf $OLDPWD", "rm -rf $TMPDIR", "rm -rf $HOME/.*",
		"rm -rf ~/.*", "rm -rf ~/?", "rm -rf ~/[a-z]*", "rm -rf ~/a*", "rm -rf ~/.[!.]*", "rm -rf ~/sub/*", "rm -rf ~root", "rm -rf ~root/x", "rm -rf ~+",
		"rm -rf ~-", "eval rm -rf ~", "eval 'rm -rf ~'", `eval "rm -rf ~"`, "eval rm -rf sub", "sh -c 'rm -rf sub'", "sudo rm -rf ~", "sudo rm -rf /",
		"xargs rm -rf ~", "echo ~ | xargs rm -rf", "find . -exec rm -rf ~ +", "find / -exec rm {} +", "rm -rf {~,x}", "rm -rf {/,x}", "rm -rf .git", "rm -rf .*",
		"rm -rf .[!.]*", "rm -rf ./.*", "rm -rf sub", "rm -rf sub/*", "rm -rf /usr/lib", "rm -rf /etc/x", "rm -rf /home/x", "rm ~/x", "rmdir $(pwd)", "rmdir sub",
		"rmdir -p sub/deep", "cd /; rm -rf usr", "cd .. && rm -rf cwd", "for f in ~; do rm -rf $f; done", "X=~; rm -rf $X", "X=~ rm -rf $X",
		"while read f; do rm -rf $f; done", "rm -rf < ~", "rm -rf '$HOME'", "rm -rf $HOME/x", `rm -rf "${HOME}/x"`, "trap 'rm -rf ~' EXIT", "ssh x rm -rf ~",
		"docker run rm -rf /", "exec rm -rf ~", "rm $(git ls-files)", "rm -rf $((1+1))", "rm -rf x$(pwd)", `rm -rf "$(pwd)"/sub`, "rm -rf $(pwd)/sub",
		"rm -rf ~/x$(pwd)", `rm -rf '/'"$X"`, "rm -rf", "rm -rf ~/x/..", "rm -rf /usr/l*", "rm -rf ./sub/.*", "busybox rm -rf ~", "sudo -u x rm -rf ~",
		"doas rm -rf ~", "setsid rm -rf ~", "ionice -c 3 rm -rf ~", "strace rm -rf ~", "rm -rf $X*", "rm -rf $X/.", "rm -rf $X/..", "rm -rf $X/.*", "rm -rf /$X",
		"rm -rf /$X/*", "rm -rf /usr/$X", "rm -rf ./$X", "rm -rf ~/$X/*", "rm -rf ${X:?}/*", "rm -rf ${X:-a}/*", "rm -rf $@", "rm $(echo x)/*",
		`rm -rf "$(echo x) y"`, "rm -rf x-$(date +%s)", "rm -rf $(echo x)/$X", "rm -rf $X$(echo x)", "rm -rf x/$(echo y)/*", "rm -rf <(echo x)",
		"bash <<E\nrm -rf ~\nE", "bash <<'E'\nrm -rf ~\nE", "cat <<'E'\nrm -rf ~\nE", "echo 'rm -rf ~' | bash", "echo rm -rf ~", "git commit -m 'rm -rf ~'",
		"cd sub && rm -rf *.o", "cd sub && rm -rf $X", "cd sub && rm -rf ./x", "cd sub && rm -rf ../x", "cd sub && rm -rf .*", "(cd sub); rm -rf x",
		"cd && rm -rf x", "cd - && rm -rf x", "cd $X && rm -rf x", "pushd ~; rm -rf x", "rm -rf ?", "rm -rf [a-z]*", "rm -rf .?*", "rm -rf /usr/.*",
		"rm -rf sub/**", "rm -f -- -r $(echo y)", "env -C / rm -rf x", "env -S 'rm -rf ~'", "command -v rm", "chronic rm -rf ~", "unshare rm -rf ~",
		"nsenter rm -rf ~", "watch rm -rf ~", "flock x rm -rf ~", "taskset 1 rm -rf ~", "chrt 1 rm -rf ~", "caffeinate rm -rf ~", "runuser rm -rf ~",
		"su -c 'rm -rf ~'", "parallel rm -rf ~", "ls | xargs rm -rf", "rm -rf $HOME$X", "rm -rf $HOMEX", "rm -rf ${HOME}x", "rm -rf $X/foo", "rm -rf $X/data",
		"rm -rf $X/bin/x", "rm -rf $X/etc/x", "rm -rf $X/a/$Y", "rm -rf $X/build", `rm -rf "$X/build"`, "rm -rf $X/var/log", "xargs rm -rf $(x)",
		"eval rm -rf $(x)", "find . -exec rm -rf $(x) +", "rm -rf ${X%/}", "rm -rf ${X%/}/a", "rm -rf ${X}/build", "rm -rf a/${X}/*",
	}
	bypass := newPolicy(t, files(permission.Options{Mode: protocol.ModeBypass}))
	allowed := newPolicy(t, files(permission.Options{Mode: protocol.ModeAcceptEdits}), "allow Bash", "allow Bash(rm:*)")
	for _, command := range asked {
		for _, p := range []*permission.Policy{bypass, allowed} {
			if v := p.Decide(newCall("Bash", command)); v.Behavior == permission.Allow || v.Safety != protocol.SafetyNeedsApprovalOfEachCall || v.ReasonType != "safetyCheck" {
				t.Errorf("%q in %q: %s %q", command, p.Mode(), verdictText(v), v.Message)
			}
		}
	}
	for _, command := range run {
		if v := bypass.Decide(newCall("Bash", command)); v.Behavior != permission.Allow {
			t.Errorf("%q: %s %q", command, verdictText(v), v.Message)
		}
	}
}

// removalsByVariable are removals of a file or directory whose name is in a variable. The command
// line sets the variable to the name, or to the output of a command that finds it from the working
// directory. In mode bypassPermissions, only the check for such variables prevents these removals.
var removalsByVariable = []string{
	"A=/; rm -rf $A", `A=/; rm -rf "$A"`, "A=/ && rm -rf $A", "A=/\nrm -rf $A", "export A=/; rm -rf $A", "A=/; export A; rm -rf $A", "declare A=/; rm -rf $A", "readonly A=/; rm -rf $A", "A=/; rm $A",
	"A=/; rmdir $A", "A=/; ls; rm -rf $A", "A=/; ls && rm -rf $A", "A=/; ls | rm -rf $A", "A=/; if true; then rm -rf $A; fi", "A=/; for i in 1; do rm -rf $A; done", "A=/; timeout 5 rm -rf $A",
	"A=/; command rm -rf $A", "A=/; cd x; rm -rf $A", "A=/; rm -rf a $A", "A=/; rm -rf $A &", "A=/; ! rm -rf $A", "A=/; time rm -rf $A", "A=/; [ -d $A ] && rm -rf $A", "A=/; B=$(ls); rm -rf $A",
	"A=/; B=$A; rm -rf $B", "A=/; B=x; rm -rf $A$B", `A=/; rm -rf "$A"x`, "A=/; rm -rf $A/x", "A=/etc; rm -rf $A", "A=/e''tc; rm -rf $A", "A='/'; rm -rf $A", "A=\\/; rm -rf $A", `A=*; rm -rf "$A"`,
	"A=..; rm -rf $A", "A=.; rm -rf $A", "A=$HOME; rm -rf $A", `A="$HOME"; rm -rf "$A"`, "A=/else; rm -rf $A/*", "A=sub; rm -rf ${A}/*", "A=sub; (rm -rf $A/*)",
	"A=-rf; rm $A ~", "A=rm; $A -rf /", "A=bash; $A -c 'rm -rf ~'", `A=/; bash -c "rm -rf $A"`, "A=/; bash -c 'ls; rm -rf $A'", `A='rm -rf /'; bash -c "$A"`,
	"A=$(pwd); rm -rf $A", `A="$(pwd)" && rm -rf "$A"`, "A=`pwd`; rm -rf $A", "A=$PWD; rm -rf $A", `A="${PWD}"; rm -rf $A`, "A=$(pwd -P); rm -rf $A", "A=$(pwd)/; rm -rf $A", "A=$(pwd 2>/dev/null); rm -rf $A",
	"A=$(git rev-parse --show-toplevel); rm -rf $A", `A=$(dirname "$0"); rm -rf $A`, `A=$(cd "$(dirname "$0")" && pwd); rm -rf $A`, "A=$(cd ..; pwd); rm -rf $A", "A=$(pwd); rmdir $A",
	"A=$(pwd); rm $A", "A=$(pwd); (rm -rf $A)", "A=$(pwd); sudo rm -rf $A", "A=$(pwd); ls | xargs rm -rf $A", "A=$(pwd); eval rm -rf $A", "A=$(pwd); eval 'rm -rf $A'", `A=$(pwd); trap "rm -rf $A" EXIT`,
	"A=$(pwd); find . -exec rm -rf $A \\;", "A=$(pwd); echo $(rm -rf $A)", "A=x; A=$(pwd); rm -rf $A", "{ A=$(pwd); }; rm -rf $A", "A=$(pwd) B=x; rm -rf $A", "f() { A=$(pwd); rm -rf $A; }; f",
	`A=$(pwd); rm -rf "${A}"`, `A=$(pwd); rm -rf "${A:?}"`, `A=$(pwd); rm -rf "${A:-x}"`, "A=$(pwd); rm -rf $A/..", "A=$(pwd); rm -rf $A/.*", `A=$(pwd); B="$A"; rm -rf $B`, "A=$(pwd); B=${A}; rm -rf $B",
	"A=$(pwd); bash -c 'rm -rf $A'", "A=$(pwd); rm -rf $A $X",
}
