package scenarios

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// TestBindPlain checks that bindIfOnlyTypeAndText accepts only the simple form, with the same result as the general code (D2).
func TestBindPlain(t *testing.T) {
	for src, plain := range map[string]bool{
		`type = "exact", text = "a"`: true, `type = "contains", text = ""`: true, `type = "regex", pattern = "a+"`: true, `type = "glob", pattern = "*"`: true,
		`text = "a", type = "exact"`: false, `type = "exact", pattern = "a"`: false, `type = "regex", text = "a"`: false, `type = "any"`: false,
		`type = "exact", text = 1`: false, `type = "exakt", text = "a"`: false, `type = "exact", text = "a", x = 1`: false,
	} {
		ix := diag.IndexTOML("p.toml", []byte("p = { "+src+" }\n"))
		v, _ := ix.Root().Field("p")
		var quick Pattern
		if got := quick.bindIfOnlyTypeAndText(v); got != plain {
			t.Errorf("%s: %v", src, got)
			continue
		}
		if !plain {
			continue
		}
		var slow struct {
			P plainPattern `toml:"p"`
		}
		if list := ix.BindFileTo(&slow); list != nil {
			t.Errorf("%s: %v", src, list)
		}
		if diff := cmp.Diff(Pattern(slow.P), quick); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
}

type plainPattern Pattern
