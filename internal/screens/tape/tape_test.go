package tape

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/diag"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, list := Parse("dir/trust.toml", []byte(`doc = "the trust dialog"
fresh = ["trust"]
args = ["--permission-mode", "default"]
env = ["K=V", "-L"]
steps = [
  { wait = "trust", snapshot = "trust", state = "dialog/trust", enter = "quits" },
  { key = "Down C-c M-Enter x", exit = 0, timeout_ms = 5000 },
]
[files]
"a.txt" = "one\n"
`))
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	if got.Name != "trust" || got.Files["a.txt"] != "one\n" || got.Steps[1].Line != 7 || *got.Steps[1].Exit != 0 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"\x1b[B", "\x03", "\x1b\r", "x"}, got.Steps[1].keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got.Steps[0].Snapshot != "trust" || len(got.Steps) != 2 {
		t.Errorf("steps %+v", got.Steps)
	}
}

// All mistakes are reported at once, with position, caret and the nearest name.
func TestParseReportsEverything(t *testing.T) {
	t.Parallel()
	_, list := Parse("bad.toml", []byte(`fresh = ["trsut", "onboarding"]
env = ["KV"]
setp = "x"
steps = [
  { wiat = "x", snapshot = "One", state = "bussy" },
  { key = "Entr", snapshot = "two", state = "idle" },
  { snapshot = "two", state = "idle", enter = "accept" },
  { wait_re = "(", snapshot = "three" },
  { state = "idle" },
]
`))
	var b strings.Builder
	diag.Render(&b, list)
	for _, part := range []string{
		"`fresh` cannot contain \"onboarding\"", "`env` has the invalid entry `KV`", "unknown key `setp`", "did you mean `setup`?", "unknown key `wiat`", "did you mean `wait`?",
		"invalid snapshot name: `One`", "unknown state `bussy`", "did you mean `busy`?", "unknown key name `Entr`", "did you mean `Enter`?",
		"an earlier step already has the snapshot `two`", "`enter` cannot be \"accept\"", "missing closing )", "the snapshot three needs a `state`", "`state` requires `snapshot` in the same step", "bad.toml:5:5", "^",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in:\n%s", part, b.String())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("steps = [{ wait = \"x\" }]")
	f.Add("fresh = [1]\nsteps = [{ key = \"C-\" , exit = -1 }]")
	f.Fuzz(func(t *testing.T, text string) {
		tape, list := Parse("x.toml", []byte(text))
		if list.Err() == nil && tape == nil {
			t.Fatal("neither a tape nor a problem")
		}
	})
}
