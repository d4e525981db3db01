// Package tests tests claudeless from outside: scripts run the binary, captured
// runs of the real CLI are played back, and the rules of the source tree
// (imports, sizes, documents) are checked.
//
// The only product code that is imported is the entry point, which the test
// binary runs as `claudeless`. docs/testing.md describes the script commands.
package tests

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the tests generate: cmp files of scripts, the package table in docs/architecture.md")

const (
	root   = ".."
	module = "github.com/claudeless/claudeless"
)

// source is one parsed Go file of the tree.
type source struct {
	path string // slash-separated, from the root
	pkg  string // directory, from the root; "." is the root
	file *ast.File
	fset *token.FileSet
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// sources parses every Go file of the tree, in path order. go test notices new
// and changed files, because the test itself opens them.
func sources(t *testing.T, mode parser.Mode) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	for _, path := range treeFiles(t) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, path), nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{path: path, pkg: filepath.ToSlash(filepath.Dir(path)), file: f, fset: fset})
	}
	return all
}

// treeFiles lists the files of the tree, slash-separated and sorted, without
// .git, test data and build output.
func treeFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || name == "bin" || name == "node_modules" || strings.HasPrefix(name, "dist") || (strings.HasPrefix(name, ".") && rel != "." && name != ".ci") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir // a separate module with its own rules
			}
			return nil
		}
		if rel == ".git" {
			return nil // of a linked work tree, where it is a file
		}
		files = append(files, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
