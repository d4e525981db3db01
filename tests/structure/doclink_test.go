package structure

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// docLink is a name in brackets as doc comments write it: [Name], [Type.Field],
// [*pkg.Type].
var docLink = regexp.MustCompile(`\[\*?([A-Z]\w*(?:\.\w+)?|[a-z]\w*\.[A-Za-z]\w*(?:\.\w+)?)\]`)

// A name in brackets in a comment must exist: the links of go doc, and fields.
func TestDocLinks(t *testing.T) {
	t.Parallel()
	links := 0
	for _, p := range typedPackages(t) {
		for _, f := range p.files {
			for _, c := range f.Comments {
				for _, found := range docLink.FindAllStringSubmatch(c.Text(), -1) {
					scope, rest := scopeOf(p, f, found[1])
					if scope == nil {
						continue // a table of TOML, a placeholder
					}
					if links++; !nameExists(scope, rest) {
						t.Errorf("%s: [%s] names nothing", p.fset.Position(c.Pos()), found[1])
					}
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links are seen", links)
	}
}

// scopeOf returns the scope of a dotted name: that of the package itself, or that of an imported package, and then rest
// does not contain the package name; nil means that it is not a Go name.
func scopeOf(p checkedPackage, f *ast.File, name string) (scope *types.Scope, rest []string) {
	parts := strings.Split(name, ".")
	switch other := importedPackage(p, f, parts[0]); {
	case strings.ToUpper(parts[len(parts)-1]) == parts[len(parts)-1]:
		return nil, nil
	case p.pkg.Scope().Lookup(parts[0]) != nil, ast.IsExported(parts[0]) && types.Universe.Lookup(parts[0]) == nil:
		return p.pkg.Scope(), parts
	case other != nil && ast.IsExported(parts[1]):
		return other.Scope(), parts[1:]
	default:
		return nil, nil
	}
}

// nameExists reports whether a name exists, with its field or method.
func nameExists(scope *types.Scope, parts []string) bool {
	obj := scope.Lookup(parts[0])
	if obj == nil || len(parts) == 1 {
		return obj != nil
	}
	member, _, _ := types.LookupFieldOrMethod(obj.Type(), true, obj.Pkg(), parts[1])
	return member != nil
}

// importedPackage returns the package that a file imports under that name.
func importedPackage(p checkedPackage, f *ast.File, name string) *types.Package {
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		for _, other := range p.pkg.Imports() {
			if other.Path() == path && (other.Name() == name || i.Name != nil && i.Name.Name == name) {
				return other
			}
		}
	}
	return nil
}
