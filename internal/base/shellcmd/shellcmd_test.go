package shellcmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// literalWord returns a literal word.
func literalWord(name string) Word { return Word{Paths: []Path{{Name: name}}, Shape: name} }

func TestParse(t *testing.T) {
	tests := []struct {
		in   string
		want Script
	}{
		{"echo 'a b' \"c $x\" d\\ e > out 2>&1", Script{Commands: []Command{{
			Args: []string{"echo", "a b", `"c $x"`, "d e"}, Text: `echo 'a b' "c $x" d\ e`,
			Words:     []Word{literalWord("echo"), literalWord("a b"), {IsDynamic: true, Shape: "c \x02"}, {Paths: []Path{{Name: "d e"}}, Shape: "d e\x03"}},
			Clarity:   ClarityBracesOrEscapes,
			Redirects: []Redirect{{Op: ">", Target: "out", WritesFile: true, Word: literalWord("out")}, {Op: ">&", Target: "1", Word: literalWord("1")}},
		}}, Obstacle: Obstacle{Kind: ObstacleBackslashBeforeSpaceOrLineEnd}}},
		{"A=1 npm run build", Script{Commands: []Command{{
			Args: []string{"npm", "run", "build"}, Text: "A=1 npm run build", Assignments: []string{"A=1"},
			Words: []Word{literalWord("npm"), literalWord("run"), literalWord("build")}, Redirects: []Redirect{},
		}}}},
		{"{ ls; } >/dev/null", Script{
			Commands:  []Command{{Args: []string{"ls"}, Text: "ls", Words: []Word{literalWord("ls")}, Redirects: []Redirect{}}},
			Redirects: []Redirect{{Op: ">", Target: "/dev/null", Word: literalWord("/dev/null")}},
			Obstacle:  Obstacle{Kind: ObstacleBraceGroupOrArithmeticCommand},
		}},
		{"> made", Script{Commands: []Command{{Redirects: []Redirect{{Op: ">", Target: "made", WritesFile: true, Word: literalWord("made")}}}}}},
	}
	for _, tt := range tests {
		got, err := Parse(tt.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		source := cmpopts.IgnoreFields(Word{}, "Source", "resolved") // see TestFrom and TestFacts
		if diff := cmp.Diff(tt.want, got, source); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestParseNamesEveryCommand(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"cd x && npm test | tee log; rm -rf y", []string{"cd", "npm", "tee", "rm"}},
		{"echo $(touch a) `touch b` <(touch c)", []string{"echo", "touch", "touch", "touch"}},
		{"for f in *; do if test -f $f; then (cat $f); fi; done", []string{"test", "cat"}},
		{"f() { rm x; }; f", []string{"rm", "f"}},
		{"X=$(touch y)", []string{"", "touch"}},
		{"cat <<E\n$(touch z)\nE", []string{"cat", "touch"}},
		{"export A=1; ls", []string{"export", "ls"}},
	}
	for _, tt := range tests {
		s, err := Parse(tt.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		var got []string
		for _, c := range s.Commands {
			got = append(got, c.Name())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("commands of %q (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestParseError(t *testing.T) {
	for _, in := range []string{`echo "x`, "for i in a; do b", "a &&", "(", strings.Repeat("a", maxScriptBytes+1)} {
		if _, err := Parse(in); err == nil {
			t.Errorf("Parse(%.99q) gave no error", in)
		}
	}
	if _, err := Parse(strings.Repeat("a", maxScriptBytes)); err != nil {
		t.Error(err)
	}
}

// Checklist row 24: echo, ls, cat, pwd and false are allowed without asking, touch needs a question.
func TestReadOnly(t *testing.T) {
	tests := []struct {
		in   string
		want bool
	}{
		{"echo hi", true},
		{"ls -la *.go", true},
		{"cat a | grep x | wc -l", true},
		{"cd sub && pwd", true},
		{"false", true},
		{"echo out; echo err >&2", true},
		{"ls 2>/dev/null", true},
		{"echo $HOME", true},
		{`find . -name "*.go" -type f`, true},
		{"git status && git log --oneline", true},
		{"git branch", true},
		{"git remote -v", true},
		{"sed -n 1,20p file", true},
		{"LC_ALL=C sort a", true},
		{"[ -f x ] && cat x", true},
		{"[[ -f x ]] && cat x", true},
		{"node --version", true},
		{"sleep 2", true},
		{"timeout 5 ls", true},
		{"find . -name x | xargs -0 wc -l", true},
		{"date -d yesterday", true},
		{"git diff HEAD~1", true},
		{"docker ps -a", true},
		{"history 5", true},
		{"man -k x", true},
		{"ss -tlnp", true},

		{"[[ 1 -eq 1 && -v name ]] && ls", true},
		{"test -n x -a 1 -lt 2", false},
		{"[ -e $'a b' ]", true},
		{"sort -t , -k 2 -rn f", true},
		{"sort -k 1,1 -- -o", true},
		{"grep -rn -C2 --include='*.go' x .", true},
		{"git branch --list 'a*'", true},

		{"", false},
		{"X=1", false},
		{"x=1; echo $x", false},
		{"a[x]=1", false},
		{"a=(1 2)", false},
		{"[[ 'a[$(touch x)]' -eq 1 ]]", false},
		{"[[ 1 -lt x ]]", false},
		{"! [[ a || ( -n b && -v 'a[0]' ) ]]", false},
		{"[[ -v 'a[$(touch x)]' ]]", false},
		{"[[ -n $x ]]", false},
		{"for ((i = x; i < 1; i++)); do ls; done", false},
		{"echo ${a[x]}", false},
		{"echo ${a:x}", false},
		{"echo ${!a}", false},
		{"sort --o=x f", false},
		{"sort --random-source -- -o x f", false},
		{"sort -k -- -ox f", false},
		{"sort -ro x f", false},
		{"git ls-remote --u='touch x;' .", false},
		{"git ls-remote 'ext::sh -c x'", false},
		{"git diff --outp=x", false},
		{"git cat-file --filters HEAD:f", false},
		{"git tag -l -d x", false},
		{"date --s=2020-01-01", false},
		{"date --se 2020-01-01", false},
		{"date -us 2020-01-01", false},
		{"tree --outp x", false},
		{"file -Cm x", false},
		{"lsof -Db", false},
		{"tput init", false},
		{"jq --rawf a b .", false},
		{"xargs -I -- touch x", false},
		{"xargs -n1 touch", false},
		{"find . -files0-from f", false},
		{"sed -n 1p -i f", false},
		{"sed -n --expression='w x' 1p f", false},
		{"cat <> f", false},
		{"touch made", false},
		{"echo x > file", false},
		{"echo x >> file", false},
		{"echo x &> file", false},
		{"echo x >& file", false},
		{"cat <> file", false},
		{"{ echo x; } > file", false},
		{"(ls) > file", false},
		{"echo $(touch made)", false},
		{"cat <(rm x)", false},
		{"ls | tee out", false},
		{"find . -delete", false},
		{"find . -exec rm {} +", false},
		{"find . $X", false},
		{"sort -uo f f", false},
		{"sort --out=f f", false},
		{"uniq a b", false},
		{"date -s 2020-01-01", false},
		{"date 01010000", false},
		{"sed -i s/a/b/ f", false},
		{"sed -n 'w out' f", false},
		{"git push", false},
		{"git branch new", false},
		{"git log --output=f", false},
		{"git grep -O x", false},
		{"git remote add o u", false},
		{"git -c core.pager=x log", false},
		{"PATH=. ls", false},
		{"PATH=.; ls", false},
		{"export A=1", false},
		{"ls &", false},
		{"ls() { rm x; }; ls", false},
		{"$CMD", false},
		{"l''s", true},
		{"/tmp/ls", false},
		{"printf -v PATH x", false},
		{"echo ${x:=1}", false},
		{"bash -c 'rm x'", false},
		{"> made", false},
		{"((x=1))", false},
		{"env rm x", false},
		{"command rm x", false},
		{"fd -x rm", false},
		{"rg --pre rm x", false},
		{"xargs rm", false},
		{"time ls", false},
		{"timeout 5 rm x", false},
		{"timeout -s KILL 5 ls", false},
		{"exit 1", false},
		{"env", false},
		{"history -c", false},
		{"man -P x ls", false},
		{"ss -K", false},
		{"nohup ls", false},
		{"git --no-pager log", false},
	}
	for _, tt := range tests {
		s, err := Parse(tt.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		if got := s.IsReadOnly(); got != tt.want {
			t.Errorf("%q: ReadOnly = %v, want %v", tt.in, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"ls", "echo $(x) > y", "a='b' c", "cat <<E\nx\nE", "[ \\", "${x:-${y}}", "\xff|\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse(in)
		if err != nil {
			return
		}
		s.IsReadOnly()
		for _, c := range s.Commands {
			if len(c.Args) != len(c.Words) {
				t.Fatalf("%q: %d args, %d words", in, len(c.Args), len(c.Words))
			}
		}
	})
}

// The commands inside programs that run other programs are found.
func TestPrograms(t *testing.T) {
	tests := []struct {
		in      string
		want    []string
		wrapped string
	}{
		{"rm x", []string{"rm x"}, "rm x"},
		{"A=1 /bin/rm x", []string{"rm x"}, "/bin/rm x"},
		{"sudo -n timeout 5s rm x", []string{"sudo -n timeout 5s rm x", "timeout 5s rm x", "rm x"}, "sudo -n timeout 5s rm x"},
		{"env -i FOO=1 npm test", []string{"env -i FOO=1 npm test", "npm test"}, "npm test"},
		{"nohup nice -n 5 ls", []string{"nohup nice -n 5 ls", "nice -n 5 ls", "ls"}, "ls"},
		{"nohup", []string{"nohup"}, "nohup"},
		{"`x` rm a", []string{"`x` rm a", "rm a"}, "`x` rm a"},
		{"`x`y rm a", []string{"`x`y rm a"}, "`x`y rm a"},
		{"$(x) rm a", []string{"$(x) rm a"}, "$(x) rm a"},
	}
	for _, tt := range tests {
		s, err := Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, s.Commands[0].UnwrappedCommandLines()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
		if got := strings.Join(s.Commands[0].WithoutUnprivilegedWrappers().Args, " "); got != tt.wrapped {
			t.Errorf("%q: wrapped is %q, want %q", tt.in, got, tt.wrapped)
		}
	}
}

func TestHasOnlyHarmlessAssignments(t *testing.T) {
	tests := []struct {
		in             string
		want, readOnly bool // whether a rule for mytool, or a command that only reads, may follow the assignments
	}{
		{"", true, true},
		{"CI=1", true, true},
		{"CI=1 NODE_ENV=test LANG=C", true, true},
		{"CI=1 FOO=1", false, false},
		{"CI=a,b", false, true},
		{"CI='a b'", false, true},
		{`CI="$X"`, false, false},
		{"CI=$(date)", false, false},
		{"CI=/x", false, false},
		{"CI=a/../b", false, false},
		{"CI=a/b", true, true},
		{"CI=~", false, false},
		{"CI+=1", false, false},
		{"LANG=en_US.UTF-8", true, true},
		{"LANG=en_US.ISO8859-1", false, false},
		{"LANG=", false, true},
		{"LC_ALL=", false, false},
		{"LC_MESSAGES=C", false, false},
		{"PATH=x", false, false},
	}
	for _, tt := range tests {
		s, err := Parse(tt.in + " ls")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Commands[0].AreAssignmentsHarmless(); got != tt.want {
			t.Errorf("%s: harmless and plain: %t, want %t", tt.in, got, tt.want)
		}
		if got := s.Commands[0].IsReadOnly(); got != tt.readOnly {
			t.Errorf("%s ls: reads only: %t, want %t", tt.in, got, tt.readOnly)
		}
	}
	for in, want := range map[string]bool{"CI=1": true, "CI=$HOME": true, "CI=~": false, "LANG=C": false, "FOO=1": false, "CI=1 > f": false, "LINES=5": true, "LINES=$(tput lines)": false} {
		s, err := Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Commands[0].IsReadOnly(); got != want {
			t.Errorf("%s alone: reads only: %t, want %t", in, got, want)
		}
	}
}
