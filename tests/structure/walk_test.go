package structure

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestWalks checks the lists of calls in docs/architecture.md: every name exists and is declared in the given file.
func TestWalks(t *testing.T) {
	t.Parallel()
	_, walks, found := strings.Cut(tree.ReadFile(t, "docs/architecture.md"), "\n## Three inputs, followed through the code\n")
	walks, _, ended := strings.Cut(walks, "\n## ")
	if !found || !ended {
		t.Fatal("the section about the three inputs is missing")
	}
	declared := declarations(t)
	last := ""
	for _, m := range regexp.MustCompile("`([\\w./]+)`").FindAllStringSubmatch(walks, -1) {
		switch name := m[1]; {
		case strings.HasSuffix(name, ".go"):
			if !slices.Contains(declared[last], name) {
				t.Errorf("%s is not in %s but in %v", last, name, declared[last])
			}
		case !strings.Contains(name, "/"):
			if last = name; declared[name] == nil {
				t.Errorf("%s: there is no such thing", name)
			}
		}
	}
}

// declarations returns the functions, methods and types of the tree by the names that documents use for them (name,
// package.Name, Type.Method), each with its files.
func declarations(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, s := range tree.Sources(t) {
		if s.IsTest() {
			continue
		}
		add := func(name string) {
			all[name] = append(all[name], s.Path)
			all[path.Base(s.Dir)+"."+name] = append(all[path.Base(s.Dir)+"."+name], s.Path)
		}
		for _, d := range s.File.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name.Name)
				} else {
					name := receiver(d) + "." + d.Name.Name
					all[name] = append(all[name], s.Path)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						add(spec.Name.Name)
					}
				}
			}
		}
	}
	return all
}
