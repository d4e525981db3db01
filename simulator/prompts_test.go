package simulator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMentions(t *testing.T) {
	for text, want := range map[string][]Mention{
		"no mention, but a@b.c and an @ alone": nil,
		"@a.txt":                               {{Path: "a.txt"}},
		"see @src/a.go, @b.go. And @a-b/c_d?":  {{Path: "src/a.go"}, {Path: "b.go"}, {Path: "a-b/c_d"}},
		"twice @x @x":                          {{Path: "x"}},
		"a directory @src/ is one":             {{Path: "src"}},
		"quoted @\"my file.txt\" and @y":       {{Path: "my file.txt"}, {Path: "y"}},
		"lines @a.go#L3 @b.go#L3-5 @c#L7-L9":   {{"a.go", 3, 1}, {"b.go", 3, 3}, {"c", 7, 3}},
		"backwards @a#L9-3":                    {{"a", 9, 1}},
		"line\n@/abs/path\nline":               {{Path: "/abs/path"}},
	} {
		if diff := cmp.Diff(want, findFileMentions(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
