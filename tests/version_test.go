package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// TestVersionLiterals wants every version of the real CLI in internal/claudecode: another package
// asks its profile, so that following a release changes one package.
func TestVersionLiterals(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`\b2\.1\.\d+`)
	for _, s := range sources(t, parser.SkipObjectResolution) {
		if s.isTest() || s.pkg == "internal/claudecode" || strings.HasPrefix(s.path, "tests/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && version.MatchString(lit.Value) {
				t.Errorf("%s:%d: the literal version %s belongs into internal/claudecode", s.path, s.line(lit), lit.Value)
			}
			return true
		})
	}
}
