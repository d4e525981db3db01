package shellcmd

import "testing"

// The arguments of a script replace its positional parameters, except in single quotes and after a backslash.
func TestScriptArguments(t *testing.T) {
	for line, want := range map[string]string{
		`bash -c 'rm "$1" $2' x ~ 'a b'`:         `rm "$HOME" 'a b'`,
		`bash -c 'rm $0 "$@" ${1:?}' x a "b c"`:  `rm x "a" "b c" a`,
		`bash -c 'rm $* ${2} $3.' x a ~/b`:       `rm a "$HOME"/b "$HOME"/b .`,
		`bash -c 'rm "$3"' x a`:                  `rm ""`,
		`bash -c 'rm ${10}' 0 1 2 3 4 5 6 7 8 9`: `rm `,
		`bash -c 'rm \$1 $#' x a`:                `rm \$1 $#`,
		`bash -c "rm '\$1' \"\$1\"" x a`:         `rm '$1' "a"`,
		`bash -c 'rm $1\' x a`:                   `rm a\`,
		`bash -c 'rm $1'`:                        `rm $1`,
		`bash -c "rm $1" x a`:                    `rm $1`,
		`bash x -c`:                              ``,
	} {
		script, err := Parse(line)
		if err != nil || len(script.Commands) != 1 {
			t.Fatalf("%s: %v", line, err)
		}
		if got := script.Commands[0].ShellScript(); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
