package tests

import (
	"go/ast"
	"go/parser"
	"strings"
	"testing"
)

// Start-up is the whole cost of most runs: no package of the binary compiles a
// regular expression before it is needed (docs/performance.md).
func TestNothingIsCompiledAtStart(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, s := range sources(t, parser.SkipObjectResolution) {
		if s.isTest() || strings.HasPrefix(s.path, "tests/") {
			continue
		}
		for _, decl := range s.file.Decls {
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
						t.Errorf("%s:%d: compiled when the process starts; sync.OnceValue does it when it is needed", s.path, s.line(n))
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
