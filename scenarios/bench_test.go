package scenarios

import (
	"fmt"
	"strings"
	"testing"
)

// manyRules returns the source of a scenario with n rules of one kind. The prompt "prompt N end",
// where N is n-1, matches the last rule.
func manyRules(kind string, n int) []byte {
	var b strings.Builder
	b.WriteString("name = \"many\"\n")
	for i := range n {
		pattern := fmt.Sprintf(`{ type = "contains", text = "prompt %d end" }`, i)
		switch kind {
		case "regex":
			pattern = fmt.Sprintf(`{ type = "regex", pattern = 'prompt %d (?P<word>\w+)$' }`, i)
		case "glob":
			pattern = fmt.Sprintf(`{ type = "glob", pattern = "prompt %d *" }`, i)
		}
		fmt.Fprintf(&b, "\n[[responses]]\npattern = %s\nresponse = \"answer %d\"\n", pattern, i)
	}
	return []byte(b.String())
}

func BenchmarkLoadAndMatch(b *testing.B) {
	for _, kind := range []string{"contains", "regex", "glob"} {
		for _, n := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				src := manyRules(kind, n)
				b.ReportAllocs()
				for b.Loop() {
					s, err := Parse("many.toml", src, LoadOptions{})
					if err != nil {
						b.Fatal(err)
					}
					reply, err := NewEngine(s, EngineOptions{}).Next(b.Context(), Request{Prompt: fmt.Sprintf("prompt %d end", n-1)})
					if err != nil || reply.IsUnmatched {
						b.Fatal(reply, err)
					}
				}
			})
		}
	}
}

func TestLibraryLoads(t *testing.T) {
	for _, name := range LibraryNames() {
		if _, err := LoadLibraryScenario(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadLibraryScenario("quickstrat"); err == nil || !strings.Contains(err.Error(), "quickstrat") {
		t.Errorf("unknown name: %v", err)
	}
}

// Loading takes time linear in the size of the file, for any content.
func BenchmarkLoadTurns(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var src strings.Builder
			for i := range n {
				fmt.Fprintf(&src, "[[responses]]\npattern.type = \"any\"\n[[responses.turns]]\nexpect.type = \"any\"\n[tool_execution.tools.T%d]\nauto_approve = true\n", i)
			}
			for b.Loop() {
				if _, err := Parse("t.toml", []byte(src.String()), LoadOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
