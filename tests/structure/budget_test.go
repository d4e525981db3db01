package structure

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// The budgets. A figure over its limit is a reason to divide the code, not to raise the limit. A limit with more than a
// tenth of slack is lowered.
const (
	maxFunctionLines    = 70
	maxFileLines        = 500
	maxFanOut           = 8 // imports from this module
	maxParams           = 5
	maxInterfaceMethods = 6
	maxDepth            = 11 // packages on the longest import path
	maxNesting          = 4
	maxLines            = 135_900 // of the whole tree, without tests and generated files
)

// wideImports are the packages that may import more packages, and the reasons.
var wideImports = map[string]int{ // constant: only read
	"internal/cli":             24, // it builds all parts
	"internal/cli/filecmd":     11, // it reads files of every format of our own
	"internal/parity/suite":    12, // programs in their environment, with the API that plays the model
	"simtest":                  10, // the binary, its terminal and the verdict in one test process
	"internal/exec/runner":     9,  // guard, API, terminal and verdict of one command
	"internal/claude/terminal": 11, // a session, its commands, the labels and the pages of its screen
	"internal/cli/screenscmd":  10, // it puts books, tapes, comparisons, checks and the terminal of tests together
	"internal/claude/host":     16, // it answers questions about every part of a session
	"internal/cli/execcmd":     9,  // it suggests the nearest flag
	"internal/claude/launch":   16, // it resolves the precedence of all options
	"internal/claude/session":  32, // the only package that connects the parts
}

// figure is one measured number with its position.
type figure struct {
	n     int
	place string
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	var functions, files, params, methods, nesting []figure
	exported, unexported := 0, 0
	for _, s := range tree.Sources(t) {
		if s.IsTest() || ast.IsGenerated(s.File) {
			continue
		}
		files = append(files, figure{s.Fset.File(s.File.Pos()).LineCount(), s.Path})
		ast.Inspect(s.File, func(n ast.Node) bool {
			where := ""
			if n != nil {
				where = fmt.Sprintf("%s:%d", s.Path, s.Line(n))
			}
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.IsExported() {
					exported++
				} else {
					unexported++
				}
				where += " " + n.Name.Name
				params = append(params, figure{n.Type.Params.NumFields(), where})
				if n.Body != nil {
					lines := s.Fset.Position(n.Body.Rbrace).Line - s.Fset.Position(n.Body.Lbrace).Line - 1
					functions = append(functions, figure{max(lines, 1), where})
					nesting = append(nesting, figure{nestingOf(n.Body), where})
				}
				if n.Name.IsExported() && hasBoolParam(n.Type) {
					t.Errorf("%s: a bool parameter of an exported function picks a mode nobody can read at the call", where)
				}
			case *ast.InterfaceType:
				methods = append(methods, figure{n.Methods.NumFields(), where})
			}
			return true
		})
	}
	fanOut, depth := importGraph(t)

	t.Logf("functions: %d, median %d, p95 %d lines; exported:unexported %d:%d", len(functions), quantile(functions, 50), quantile(functions, 95), exported, unexported)
	t.Logf("files: %d, median %d lines; interfaces: %d", len(files), quantile(files, 50), len(methods))
	lines := 0
	for _, f := range files {
		if !strings.HasPrefix(f.place, "tests/") { // programs of tests
			lines += f.n
		}
	}
	checkTotal(t, "lines without tests", lines, maxLines)
	checkLimit(t, "lines in a function", functions, maxFunctionLines)
	checkLimit(t, "lines in a file", files, maxFileLines)
	checkLimit(t, "module imports of a package", checkExceptions(t, "module imports of a package", fanOut, wideImports, maxFanOut), maxFanOut)
	checkLimit(t, "parameters", params, maxParams)
	checkMax(t, "methods in an interface", methods, maxInterfaceMethods)
	checkLimit(t, "import depth", depth, maxDepth)
	checkLimit(t, "nesting", nesting, maxNesting)
}

// checkLimit reports the largest figure. It fails for each figure over the budget, and for a budget that is too large.
func checkLimit(t *testing.T, what string, figures []figure, budget int) {
	t.Helper()
	if len(figures) == 0 {
		return
	}
	checkSlack(t, what, checkMax(t, what, figures, budget), budget)
}

// checkMax reports and returns the largest figure. It fails for each figure over the budget.
func checkMax(t *testing.T, what string, figures []figure, budget int) int {
	t.Helper()
	largest := slices.MaxFunc(figures, compareFigures)
	t.Logf("%s: at most %d (budget %d): %s", what, largest.n, budget, largest.place)
	for _, f := range figures {
		if f.n > budget {
			t.Errorf("%s: %s: %d, budget %d", f.place, what, f.n, budget)
		}
	}
	return largest.n
}

// checkTotal compares one figure of the whole tree with its budget.
func checkTotal(t *testing.T, what string, n, budget int) {
	t.Helper()
	t.Logf("%s: %d (budget %d)", what, n, budget)
	if n > budget {
		t.Errorf("%s: %d, budget %d", what, n, budget)
	}
	checkSlack(t, what, n, budget)
}

// checkSlackFlag makes unused budget an error. It is off while several changes reduce the figures at the same time.
// After that, the budgets are lowered.
var checkSlackFlag = flag.Bool("ratchet", false, "budgets with more than a tenth of slack fail")

// checkSlack fails for a budget that has more than a tenth of slack.
func checkSlack(t *testing.T, what string, n, budget int) {
	t.Helper()
	if *checkSlackFlag && budget-n > budget/10 {
		t.Errorf("%s: measured %d, budget %d: lower it", what, n, budget)
	}
}

// checkExceptions checks the packages that have a separate budget, and returns the figures of the others. Separate budgets
// are exceptions from the common one.
func checkExceptions(t *testing.T, what string, measured, own map[string]int, common int) []figure {
	t.Helper()
	var others []figure
	for _, p := range slices.Sorted(maps.Keys(measured)) {
		budget, ok := own[p]
		switch n := measured[p]; {
		case !ok:
			others = append(others, figure{n, p})
		case *checkSlackFlag && n <= common:
			t.Errorf("%s: %s: %d needs no exception", p, what, n)
		case n > budget:
			t.Errorf("%s: %s: %d, budget %d", p, what, n, budget)
		default:
			checkSlack(t, p+": "+what, n, budget)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(own)) {
		if _, ok := measured[p]; !ok {
			t.Errorf("%s: %s: there is no such package", p, what)
		}
	}
	return others
}

func compareFigures(a, b figure) int { return cmp.Compare(a.n, b.n) }

func quantile(figures []figure, percent int) int {
	if len(figures) == 0 {
		return 0
	}
	slices.SortFunc(figures, compareFigures)
	return figures[(len(figures)-1)*percent/100].n
}

func hasBoolParam(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		id, ok := p.Type.(*ast.Ident)
		return ok && id.Name == "bool"
	})
}

// nestingOf counts how deep loops and branches are nested; an
// else-if chain is one level, a function literal starts again.
func nestingOf(n ast.Node) int {
	deepest := 0
	ast.Inspect(n, func(c ast.Node) bool {
		if c == nil || c == n {
			return true
		}
		switch c := c.(type) {
		case *ast.IfStmt:
			inner := nestingOf(c.Body) + 1
			for e := c.Else; e != nil; {
				elseIf, ok := e.(*ast.IfStmt)
				if !ok {
					inner = max(inner, nestingOf(e)+1)
					break
				}
				inner = max(inner, nestingOf(elseIf.Body)+1)
				e = elseIf.Else
			}
			deepest = max(deepest, inner)
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			deepest = max(deepest, nestingOf(c)+1)
			return false
		case *ast.FuncLit:
			deepest = max(deepest, nestingOf(c.Body))
			return false
		}
		return true
	})
	return deepest
}

// importGraph measures the import graph of the module without its tests.
func importGraph(t *testing.T) (fanOut map[string]int, depth []figure) {
	t.Helper()
	fanOut = map[string]int{}
	imports := map[string][]string{}
	for _, s := range tree.Sources(t) {
		if s.IsTest() {
			continue
		}
		for _, spec := range s.File.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if local, ok := strings.CutPrefix(imp, tree.Module+"/"); ok && !slices.Contains(imports[s.Dir], local) {
				imports[s.Dir] = append(imports[s.Dir], local)
			}
		}
	}
	var longest func(pkg string, seen []string) int
	longest = func(pkg string, seen []string) int {
		if slices.Contains(seen, pkg) {
			t.Fatalf("import cycle: %v", append(seen, pkg))
		}
		n := 0
		for _, p := range imports[pkg] {
			n = max(n, longest(p, append(slices.Clip(seen), pkg)))
		}
		return n + 1
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		fanOut[pkg] = len(imports[pkg])
		depth = append(depth, figure{longest(pkg, nil), pkg})
	}
	return fanOut, depth
}
