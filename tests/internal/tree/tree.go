// Package tree reads the source tree for the tests of its structure, its documents and its scripts.
//
// Paths are slash-separated and relative to the root of the tree.
package tree

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Update is set if the tests rewrite generated files instead of comparing them.
var Update = flag.Bool("update", false, "rewrite what the tests generate: cmp files of scripts, the package table in docs/architecture.md")

const (
	// Root is the path of the tree's root from a directory of tests.
	Root = "../.."
	// Module is the path of the tree's module.
	Module = "github.com/claudeless/claudeless"
)

// Source is one parsed Go file of the tree.
type Source struct {
	Path string
	Dir  string // the directory of its package; "." is the root
	File *ast.File
	Fset *token.FileSet
}

// IsTest reports whether only tests use the file.
func (s Source) IsTest() bool { return strings.HasSuffix(s.Path, "_test.go") }

// Line returns the line on which a node of the file begins, counted from 1.
func (s Source) Line(n ast.Node) int { return s.Fset.Position(n.Pos()).Line }

// Sources parses every Go file of the tree with its comments, in path order. go test notices new and changed files,
// because the test itself opens them. All tests of a package share the files, so they must not change them.
func Sources(t *testing.T) []Source {
	t.Helper()
	parsed.Do(func() { parsed.sources = parseAll(t) })
	if parsed.sources == nil {
		t.Fatal("the tree could not be parsed")
	}
	return parsed.sources
}

var parsed struct { // constant: written once
	sync.Once
	sources []Source
}

func parseAll(t *testing.T) []Source {
	t.Helper()
	var all []Source
	fset := token.NewFileSet()
	for _, path := range Files(t) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(Root, path), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Source{Path: path, Dir: filepath.ToSlash(filepath.Dir(path)), File: f, Fset: fset})
	}
	return all
}

// Files lists the files of the tree, slash-separated and sorted, without .git, test data and build output.
func Files(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(Root, path)
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
			return nil // in a linked work tree, .git is a file
		}
		files = append(files, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ReadFile returns the content of a file.
func ReadFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ReplaceSection checks, or with -update rewrites, the text between two markers.
func ReplaceSection(t *testing.T, path, begin, end, want string) {
	t.Helper()
	text := ReadFile(t, path)
	before, rest, ok1 := strings.Cut(text, begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s: markers %q and %q not found", path, begin, end)
	}
	if got == want {
		return
	}
	if !*Update {
		t.Fatalf("%s is out of date; run `make update`", path)
	}
	if err := os.WriteFile(filepath.Join(Root, path), []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// MarkdownFiles lists the Markdown files of the tree.
func MarkdownFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(Files(t), func(f string) bool { return !strings.HasSuffix(f, ".md") })
}
