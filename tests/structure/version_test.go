package structure

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestVersionLiterals checks that every version of the real CLI is in internal/claudecode. Other packages use its
// profile, so that following a release changes only one package.
func TestVersionLiterals(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`\b2\.1\.\d+`)
	for _, s := range tree.Sources(t) {
		if s.IsTest() || s.Dir == "internal/claudecode" || strings.HasPrefix(s.Path, "tests/") {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && version.MatchString(lit.Value) {
				t.Errorf("%s:%d: the literal version %s belongs into internal/claudecode", s.Path, s.Line(lit), lit.Value)
			}
			return true
		})
	}
}
