package structure

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestPackageDocs checks that every package has one package comment, in one file, that begins as godoc expects.
func TestPackageDocs(t *testing.T) {
	t.Parallel()
	docs, files := map[string][]string{}, map[string]string{}
	for _, s := range tree.Sources(t) {
		if s.IsTest() {
			continue
		}
		files[s.Dir] = s.Path
		if s.File.Doc == nil {
			continue
		}
		docs[s.Dir] = append(docs[s.Dir], s.Path)
		want := "Package " + s.File.Name.Name + " "
		if s.File.Name.Name == "main" {
			want = "Command " + path.Base(s.Dir) + " "
		}
		if text := s.File.Doc.Text(); !strings.HasPrefix(text, want) {
			t.Errorf("%s: the package comment begins with %q, want %q", s.Path, firstLine(text), want)
		}
	}
	for pkg, file := range files {
		if n := len(docs[pkg]); n != 1 {
			t.Errorf("%s: %d package comments %v, want one (is it %s?)", pkg, n, docs[pkg], file)
		}
	}
}

// TestNoState checks that there are no init functions, except the one that makes a test binary claude, and no package
// variables that could change: maps, slices and mutexes at package level are state, or look like state. A table that is
// only read is a function or an array. If neither is possible, a comment on its line that begins with "constant:" gives
// the reason.
func TestNoState(t *testing.T) {
	t.Parallel()
	for _, s := range tree.Sources(t) {
		if s.IsTest() {
			continue
		}
		for _, decl := range s.File.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" && s.Path != "simtest/binary.go" {
					t.Errorf("%s:%d: init function", s.Path, s.Line(d))
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					checkVars(t, s, d)
				}
			}
		}
	}
}

func checkVars(t *testing.T, s tree.Source, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		if mayBeAssigned(v) && !strings.HasPrefix(v.Comment.Text(), "constant:") {
			t.Errorf("%s:%d: package variable %s can change", s.Path, s.Line(v), v.Names[0].Name)
		}
	}
}

// mayBeAssigned reports whether a variable may be changed, judged by its written type or its
// literal. Maps, slices, channels and everything of package sync may be.
func mayBeAssigned(v *ast.ValueSpec) bool {
	types := []ast.Expr{v.Type}
	for _, val := range v.Values {
		switch e := val.(type) {
		case *ast.CompositeLit:
			types = append(types, e.Type)
		case *ast.CallExpr:
			if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "make" && len(e.Args) > 0 {
				types = append(types, e.Args[0])
			}
		}
	}
	return slices.ContainsFunc(types, func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.MapType, *ast.ChanType:
			return true
		case *ast.ArrayType:
			return e.Len == nil
		case *ast.SelectorExpr:
			id, ok := e.X.(*ast.Ident)
			return ok && (id.Name == "sync" || id.Name == "atomic")
		}
		return false
	})
}

// TestDocumentSizes limits the length of the documents that everyone reads.
func TestDocumentSizes(t *testing.T) {
	for name, most := range map[string]int{"README.md": 200, "Makefile": 79} {
		if n := strings.Count(tree.ReadFile(t, name), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d", name, n, most)
		}
	}
}

// TestMakeTargets checks that every target that a document names exists, and that every target is listed in .PHONY and
// in the help.
func TestMakeTargets(t *testing.T) {
	makefile := tree.ReadFile(t, "Makefile")
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(makefile, -1) {
		targets[m[1]] = true
		if !regexp.MustCompile(`(?m)^` + m[1] + `:.*## `).MatchString(makefile) {
			t.Errorf("Makefile: target %s has no help text (## …)", m[1])
		}
	}
	named := regexp.MustCompile("(?m)(?:`|^\\s*\\$? ?)make ([a-z][a-z0-9-]*)")
	for _, doc := range tree.MarkdownFiles(t) {
		for _, m := range named.FindAllStringSubmatch(tree.ReadFile(t, doc), -1) {
			if !targets[m[1]] {
				t.Errorf("%s names `make %s`, which the Makefile does not have", doc, m[1])
			}
		}
	}
	for want := range strings.FieldsSeq("build test race lint fmt update fuzz bench docs ci nightly help") {
		if !targets[want] {
			t.Errorf("Makefile: no target %s", want)
		}
	}
}

// TestDocumentLinks checks that the target of every relative link of every document exists.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, doc := range tree.MarkdownFiles(t) {
		for _, m := range link.FindAllStringSubmatch(tree.ReadFile(t, doc), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := doc
			if target != "" {
				file = path.Join(path.Dir(doc), target)
			}
			if _, err := os.Stat(filepath.Join(tree.Root, file)); err != nil {
				t.Errorf("%s: link %s leads nowhere", doc, m[1])
			} else if fragment != "" && !slices.Contains(headingAnchors(tree.ReadFile(t, file)), fragment) {
				t.Errorf("%s: link %s: no such heading", doc, m[1])
			}
		}
	}
}

// TestNamedFiles checks that every path in backquotes in a document exists in the tree, such as `simulator/turn.go`.
func TestNamedFiles(t *testing.T) {
	files := tree.Files(t)
	known := map[string]bool{}
	for _, f := range files {
		for d := f; d != "."; d = path.Dir(d) {
			known[d] = true
		}
	}
	named := regexp.MustCompile("`((?:cmd|simulator|scenarios|executor|mcp|fixtures|internal|tests|docs)/[\\w./-]+)`")
	for _, doc := range tree.MarkdownFiles(t) {
		for _, m := range named.FindAllStringSubmatch(tree.ReadFile(t, doc), -1) {
			name := strings.TrimSuffix(m[1], "/")
			if _, err := os.Stat(filepath.Join(tree.Root, name)); err != nil && !known[name] {
				t.Errorf("%s names %s, which does not exist", doc, m[1])
			}
		}
	}
}

// TestNothingLocal checks that no file contains paths of the machine on which it was written, or hosts of package
// registries.
func TestNothingLocal(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	local := regexp.MustCompile(regexp.QuoteMeta(dir) + `\b|/work/(main|shared|\.library)\b|/root/go/|registry\.[a-z]+js\.org|\bpypi\.org/simple\b|GOPROXY=http`)
	for _, f := range tree.Files(t) {
		if f == "tests/structure/document_test.go" {
			continue
		}
		text := tree.ReadFile(t, f)
		mayMatch := slices.ContainsFunc([]string{dir, "/work/", "/root/go/", "registry.", "pypi.org/simple", "GOPROXY=http"}, func(part string) bool { return strings.Contains(text, part) })
		if !mayMatch || strings.Contains(text, "\x00") { // the latter is a binary
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if local.MatchString(line) {
				t.Errorf("%s:%d: a path or host of one machine: %s", f, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// headingAnchors returns the fragments of a document's headings, as GitHub makes them.
func headingAnchors(text string) []string {
	var all []string
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
