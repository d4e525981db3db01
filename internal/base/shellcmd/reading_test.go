package shellcmd

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
)

// A comment ends with its line, for every kind of line ending (security point A1).
func TestCommentsEndWithTheirLine(t *testing.T) {
	tests := []struct {
		in   string
		want string // the commands
	}{
		{"ls #\\\nrm x", "ls; rm x"},
		{"ls # a\\\nrm x", "ls; rm x"},
		{"ls # a\\\\\nrm x", "ls; rm x"},
		{"ls # a\\\\\\\nrm x", "ls; rm x"},
		{"ls\t#\\\n#\\\nrm x", "ls; rm x"},
		{"#\\\nrm x", "rm x"},
		{"ls | cat #\\\nrm x", "ls; cat; rm x"},
		{"ls && #\\\nrm x", "ls; rm x"},
		{"(ls #\\\nrm x)", "ls; rm x"},
		{"{ ls #\\\nrm x; }", "ls; rm x"},
		{"echo $(ls #\\\nrm x\n)", "echo $(ls #\\\nrm x\n); ls; rm x"},
		{"if true #\\\nthen ls #\\\nrm x; fi", "true; ls; rm x"},
		{"cat <<'E'\n#\\\nE\nls #\\\nrm x", "cat; ls; rm x"},
		{"ls '#'\\\nrm x", "ls #rm x"},
		{"ls a#\\\nrm x", "ls a#rm x"},
		{"ls \\#\\\nrm x", "ls #rm x"},
		{"ls \\\n#\\\nrm x", "ls; rm x"},
		{"ls \\\n  -la # x", "ls -la"},
		{"ls # 'a\nrm x", "ls; rm x"},
		{"ls #", "ls"},
		{"ls # x\necho a \\\n b", "ls; echo a b"},
	}
	for _, tt := range tests {
		s, err := Parse(tt.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		var got []string
		for _, c := range s.Commands {
			got = append(got, strings.Join(c.Args, " "))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("commands of %q (-want +got):\n%s", tt.in, diff)
		}
	}
}

// A parse that omits a part of the script or joins two lines is not confirmed.
func TestSecondReading(t *testing.T) {
	tests := []struct {
		parsed, script string // both have the same length
		want           bool
	}{
		{"ls; rm x", "ls; rm x", true},
		{"ls ## x\\\nrm x", "ls ## x\\\nrm x", false}, // the parser's result without the confirmation
		{"ls     ", "ls; rm x"[:7], false},
		{"ls;ls", "ls#ls", true},
		{"ls  -la", "ls;#-la", false},
		{"ls  -la", "ls\n -la", false},
		{"ls  \n-la", "ls \\\n-la", true},
		{"ls <<E\nx\nE\n     ", "ls <<E\nx\nE\nrm x ", false},
		{"ls <<E\nx\nE\n", "ls <<E\nx\nE\n", true},
		{"ls <<E\nE\nls", "ls <<E\nE\nls", true},
		{"ls <<-'E'\n\tE\n", "ls <<-'E'\n\tE\n", true},
		{"ls -la", "ls", false},
		{"echo \"$(ls    )\"", "echo \"$(ls x x)\"", false},
		{"cat <(ls  )", "cat <(ls x)", false},
		{"echo ` ls`", "echo `xls`", false},
		{"time -p ls", "time -p ls", true},
		{"echo `echo \\`ls\\``", "echo `echo \\`ls\\``", true},
	}
	for _, tt := range tests {
		stmts, err := parseStatements(tt.parsed)
		if err != nil {
			t.Fatal(err)
		}
		c := newParseResultChecker(tt.script)
		for _, s := range stmts {
			syntax.Walk(s, c.recordWordBytesOfNode)
		}
		if got := c.isParseResultConfirmed(); got != tt.want {
			t.Errorf("%q read as %q: confirmed = %v, want %v", tt.script, tt.parsed, got, tt.want)
		}
	}
}

func TestUncertain(t *testing.T) {
	for _, in := range []string{
		"ls ${x", "ls ${#\nrm}", "ls $(", "echo ${x'y'}", "ls ${x#\\\nrm x}", "ls ${(f)x}", "echo \"$(ls\"", strings.Repeat("ls #\\\n", 2*maxReparsesForBackslashAfterComment) + "ls",
	} {
		if _, err := Parse(in); !errors.Is(err, ErrUncertain) {
			t.Errorf("Parse(%q): %v", in, err)
		}
	}
	for _, in := range []string{"ls )", "ls $(pwd) )", "echo ${x}; )", `ls "x`, "ls a\\", "\\", "ls a\\\\\\"} {
		if _, err := Parse(in); err == nil || errors.Is(err, ErrUncertain) {
			t.Errorf("Parse(%q): %v", in, err)
		}
	}
}

// Obstacles in the plain text of a command, as the real CLI decides them (2.1.330).
func TestTextObstacle(t *testing.T) {
	for kind, commands := range map[ObstacleKind][]string{
		ObstacleUnicodeSpaceCharacter: {"ls\u00a0x", "ls '\u3000'", "ls \u200b", "ls \ufeff", "ls \u2029"},
		ObstacleBackslashBeforeSpaceOrLineEnd: {
			"ls a\\ b", "ls 'a\\ b'", "ls # a\\ b", "ls a\\\\ b", "ls a\\\tb", "\\\nls", "l\\\ns", "ls a\\\n", "ls;\\\npwd", "ls \\\n\\\npwd",
			"ls \\\\\\\npwd", "ls a\\\\\\\npwd", "'a\\\nb'", "ls # x\\\nrm",
		},
		ObstacleZshDynamicNamedDirectory: {"ls ~[x]", "ls '~['", "ls #~["},
		ObstacleZshEqualsExpansion:       {"=ls", "ls =ls", "ls;=ls", "ls # =ls", "ls ' =ls'", "ls\n=_"},
		ObstacleQuoteInsideBraces:        {"echo {'a',b}", "echo {a 'b'}", "echo \\{'a'", "echo {\"a\":1}", "{ echo 'a'; }", "echo # {'a'", "echo '' {\"a\"", `echo 'a\' {"b"`, `echo \' {"a"}`, "echo ${x:-'y'}", "echo {a\"b"},
		NoObstacle: {
			"ls é", " \\\nls", `echo \a 'b'`, "ls \u2060", "ls \\\n-la", "ls\t\\\n-la", "ls a\\\\\npwd", "ls \\\\\n", "ls \"x \\\n y\"", "ls ~/[x]", "[ a = b ]", "ls a=ls", "ls (=ls", "ls =1",
			"echo {a} 'b'", "echo '{' 'x}'", "echo \"{\" 'x'", "echo {}'a'", "echo '{\"a\":1}'", "echo \"\\\"{\" 'x'", "{ echo a; }", "echo \"${x:-'y'}\"",
		},
	} {
		for _, in := range commands {
			if got := textObstacle(in); got.Kind != kind || got.IsFoundWithoutParsing() != (kind != NoObstacle) {
				t.Errorf("textObstacle(%q) = %+v, want %q", in, got, kind)
			}
		}
	}
}

// A continued line next to a pipe is part of the command's text.
func TestContinuedPipe(t *testing.T) {
	for in, want := range map[string][]string{
		"cat a \\\n  | head":        {"cat a \\", "head"},
		"ls | \\\n cat":             {"ls", "\\\n cat"},
		"ls | cat \\\n | \\\n head": {"ls", "cat \\", "\\\n head"},
		"ls \\\n && cat":            {"ls", "cat"},
		"ls \\\n -a | cat":          {"ls -a", "cat"},
	} {
		s, err := Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range s.Commands {
			got = append(got, c.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
		continued := slices.ContainsFunc(s.Commands, func(c Command) bool { return c.IsContinued })
		if continued != strings.Contains(strings.Join(want, ""), `\`) || continued == s.IsReadOnly() {
			t.Errorf("%q: continued = %v, read-only = %v", in, continued, s.IsReadOnly())
		}
	}
}
