package shellcmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A script with a syntax error is read as the real CLI reads it (2.1.330).
func TestMended(t *testing.T) {
	for _, tt := range []struct {
		in     string
		want   string // the commands
		broken bool
	}{
		{in: "ls 'a", want: "ls a"},
		{in: "ls 'a\nrm b", want: "ls a\nrm b"},
		{in: "ls; rm 'a", want: "ls; rm a"},
		{in: `rm "a`, want: "rm a", broken: true},
		{in: "ls |", want: "ls"},
		{in: "ls |&", want: "ls"},
		{in: "ls | cat |\n", want: "ls; cat"},
		{in: "ls;;", want: "ls"},
		{in: "ls;;rm a", want: "ls; rm a"},
		{in: "if rm a", want: "rm a"},
		{in: "if ls; then", want: "ls"},
		{in: "if ls; then rm a", want: "ls; rm a"},
		{in: "while ls", want: "ls"},
		{in: "until ls; do rm a", want: "ls; rm a"},
		{in: "ls && if rm 'a", want: "ls; rm a"},
		{in: "if ls; then if ls", want: "ls; ls"},
		{in: "for i in a; do rm b", want: "rm b", broken: true},
		{in: "while ls; do", want: "ls"},
		{in: "! ! ls", want: "ls"},
		{in: `if ls; then echo "a"`, want: "ls; echo a"},
		{in: `echo "a" 'b`, want: "echo a b"},
		{in: "ls '" + strings.Repeat("a", maxRepairableScriptBytes-4), want: "ls " + strings.Repeat("a", maxRepairableScriptBytes-4)},
		{in: "ls ||", want: "", broken: true},
		{in: "ls; fi", want: "ls", broken: true},
		{in: "{ ls", want: "", broken: true},
		{in: "ls 'a" + strings.Repeat(" ", maxRepairableScriptBytes), want: "", broken: true},
	} {
		s, err := Parse(tt.in)
		var got []string
		for _, c := range s.Commands {
			got = append(got, strings.Join(c.Args, " "))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("commands of %q (-want +got):\n%s", tt.in, diff)
		}
		if (err != nil) != tt.broken || errors.Is(err, ErrUncertain) {
			t.Errorf("Parse(%q): %v, want an error: %v", tt.in, err, tt.broken)
		}
	}
}

// Quoting that prevents a decision about a script, as in the real CLI (2.1.330).
func TestQuotingObstacles(t *testing.T) {
	for kind, commands := range map[ObstacleKind][]string{
		ObstacleDollarQuotedText:         {"ls $'a'", `ls $"a"`, "ls x$'a'", "cat <<< $'a'", "ls < $'a'"},
		ObstacleLoneDollar:               {"echo $", "echo a$", "echo $ a"},
		ObstacleRedirectClosesDescriptor: {"ls <&-", "ls >&-", "ls 2>&-", "ls >& -", "ls 2>&1-", "ls >&-; ls"},
		ObstacleQuotedHashLine:           {"ls 'a\n#b'", "ls \"a\n \t# b\"", "ls '\n#'", "ls a'\n'#b", "test 'a\n#b'", "cat < 'a\n#b'", "ls > /dev/null 'a\n#b'"},
		NoObstacle:                       {"ls >&2", "ls 2>&1", "ls '#a\nb'", "ls 'a\nb #c'", "echo '$x'", "ls &>-", "cat <<'E'\n# $\nE", "echo \"a$\""},
	} {
		for _, command := range commands {
			if s, err := Parse(command); err != nil || s.Obstacle.Kind != kind {
				t.Errorf("%q: obstacle %q (%v), want %q", command, s.Obstacle.Kind, err, kind)
			}
		}
	}
}

// SourceFromWord keeps the quotes of all words except the first.
func TestFrom(t *testing.T) {
	for _, tt := range []struct {
		in     string
		at     int
		want   string
		spaced bool
	}{
		{"npm 'test' x", 0, "npm 'test' x", false},
		{"'npm' te\"st\"", 0, `npm te"st"`, false},
		{"timeout 5 'npm'  run", 2, "npm run", true},
		{"timeout  5 npm run", 2, "npm run", false},
		{"npm\trun", 0, "npm run", true},
		{"npm run >/dev/null  x", 0, "npm run x", false},
		{"npm  run", 0, "npm run", true},
	} {
		s, err := Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if text, spaced := s.Commands[0].SourceFromWord(tt.at); text != tt.want || spaced != tt.spaced {
			t.Errorf("%q from %d: %q, %v; want %q, %v", tt.in, tt.at, text, spaced, tt.want, tt.spaced)
		}
	}
}
