package structure

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// checkedPackage is one type-checked package of the tree, without its tests.
type checkedPackage struct {
	path  string // from the tree.Root
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	pkg   *types.Package
}

// file returns the name of the file that contains a position.
func (p checkedPackage) file(pos token.Pos) string {
	return filepath.Base(p.fset.Position(pos).Filename)
}

// goListPackage is the output of `go list` for a package.
type goListPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// typedPackages type-checks every package of the tree against the export data in the build cache. The tests share the
// packages, so they must not change them.
func typedPackages(t *testing.T) []checkedPackage {
	t.Helper()
	typed.Do(func() { typed.packages = checkPackages(t) })
	if typed.packages == nil {
		t.Fatal("the tree could not be type-checked")
	}
	return typed.packages
}

var typed struct { // constant: written once
	sync.Once
	packages []checkedPackage
}

func checkPackages(t *testing.T) []checkedPackage {
	t.Helper()
	exports := map[string]string{}
	var product []goListPackage
	for _, p := range goList(t) {
		exports[p.ImportPath] = p.Export
		rel, ours := strings.CutPrefix(p.ImportPath, tree.Module+"/")
		if ours && !strings.HasPrefix(rel, "tests/") {
			product = append(product, p)
		}
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []checkedPackage
	for _, p := range product {
		all = append(all, check(t, fset, imp, p))
	}
	return all
}

func goList(t *testing.T) []goListPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir = tree.Root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goListPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goListPackage
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func check(t *testing.T, fset *token.FileSet, imp types.Importer, p goListPackage) checkedPackage {
	t.Helper()
	rel := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, tree.Module), "/")
	out := checkedPackage{path: rel, fset: fset, info: &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
	}}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out.files = append(out.files, f)
	}
	conf := types.Config{Importer: imp}
	pkg, err := conf.Check(p.ImportPath, fset, out.files, out.info)
	if err != nil {
		t.Fatal(fmt.Errorf("checking %s: %w", p.ImportPath, err))
	}
	out.pkg = pkg
	return out
}
