package structure

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestTypesOnOtherSystems checks that the tree compiles for other systems: a rename misses files that are not built here. It reads the
// sources of all imports instead of compiling them, and of packages outside the tree only the declarations.
func TestTypesOnOtherSystems(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap", "./...")
			cmd.Dir, cmd.Stderr = tree.Root, os.Stderr
			cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			checkTypesFromSources(t, strings.NewReader(string(out)))
		})
	}
}

// checkTypesFromSources checks packages as `go list -deps -json` prints them: each one after its imports.
func checkTypesFromSources(t *testing.T, list io.Reader) {
	t.Helper()
	checked := importedPackages{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for dec := json.NewDecoder(list); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		ours := strings.HasPrefix(p.ImportPath, tree.Module+"/")
		config := types.Config{Importer: vendoredImports{checked, p.ImportMap}, IgnoreFuncBodies: !ours, FakeImportC: true, Error: func(err error) {
			if ours {
				t.Error(err)
			}
		}}
		checked[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil) // errors are reported above
	}
}

type importedPackages map[string]*types.Package

// vendoredImports finds the packages that the standard library imports from its own copy.
type vendoredImports struct {
	importedPackages
	vendored map[string]string
}

func (v vendoredImports) Import(path string) (*types.Package, error) {
	if actual, ok := v.vendored[path]; ok {
		path = actual
	}
	return v.importedPackages[path], nil
}
