package structure

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// Most of the time of most runs is start-up, so no package of the binary may compile a regular expression before it is
// needed (docs/performance.md).
func TestNothingIsCompiledAtStart(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, s := range tree.Sources(t) {
		if s.IsTest() || strings.HasPrefix(s.Path, "tests/") {
			continue
		}
		for _, decl := range s.File.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			seen++
			ast.Inspect(g, func(n ast.Node) bool {
				if _, later := n.(*ast.FuncLit); later {
					return false
				}
				if call, ok := n.(*ast.CallExpr); ok {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "MustCompile") {
						t.Errorf("%s:%d: compiled when the process starts; sync.OnceValue does it when it is needed", s.Path, s.Line(n))
					}
				}
				return true
			})
		}
	}
	if seen == 0 {
		t.Error("no declaration was looked at")
	}
}
