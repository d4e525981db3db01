// Package structure tests the rules of the tree: imports, the sizes of packages and functions, names, comments, and the
// references in documents.
package structure

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// Structure: ownership, measured on the type-checked tree. A figure over its limit usually means that a type is
// missing. Limits are only lowered; a limit with more than a tenth of slack is lowered (see checkSlack).
const (
	maxFields            = 22  // of a struct that is not a wire or file format
	maxFuncFields        = 5   // of a struct
	maxAllFuncFields     = 126 // in the whole tree
	maxMethodValues      = 80  // method values that are passed around
	maxCLIMethodValues   = 1
	maxMethods           = 40 // of one type
	maxTypeFiles         = 6  // over which the methods of one type are spread
	maxCycle             = 5  // files of a package that depend on each other in a cycle
	maxBackArrows        = 7  // percent of the references between files that point backwards, in the best order found
	maxNolint            = 4
	maxMethodSet         = 60 // methods of a type, including promoted ones
	maxSpread            = 4  // files over which the methods of most types are spread
	maxSpreadTypes       = 2  // types over more files
	maxPackages          = 95 // packages with sources other than tests
	maxSmallPackages     = 17 // packages of one or two files
	maxSingleImplemented = 10 // percent of the interfaces that one type implements, including test doubles
)

func TestStructure(t *testing.T) {
	t.Parallel()
	var fields, funcs, methods, sets, spread, knots, values []figure
	sumFuncs, sumValues, back, arrows, nolint, untyped, packages, small, wider := 0, 0, 0, 0, 0, 0, 0, 0, 0
	faces := []string{"internal/claude/control", "internal/claude/host", "internal/cli"}
	all := typedPackages(t)
	for _, p := range all {
		packages += min(1, len(p.files))
		if n := len(p.files); n == 1 || n == 2 {
			small++
		}
		sets = append(sets, methodSetsOf(p)...)
		for _, s := range structsOf(p) {
			if !s.format {
				fields = append(fields, figure{s.fields, s.where})
			}
			funcs = append(funcs, figure{s.funcs, s.where})
			sumFuncs += s.funcs
		}
		for _, m := range methodsOf(p) {
			methods = append(methods, figure{m.n, m.where})
			spread = append(spread, figure{m.files, m.where})
			if m.files > maxSpread {
				wider++
			}
		}
		n := methodValuesOf(p)
		values = append(values, figure{n, p.path})
		sumValues += n
		g := fileReferenceGraph(p)
		knots = append(knots, figure{g.largestCycle(), p.path})
		b, a := g.backReferences()
		back, arrows = back+b, arrows+a
		nolint += countNolints(p)
		if slices.Contains(faces, p.path) {
			untyped += untypedMaps(p)
		}
	}
	checkLimit(t, "fields of a struct", fields, maxFields)
	checkLimit(t, "func fields of a struct", funcs, maxFuncFields)
	checkLimit(t, "methods of a type", methods, maxMethods)
	checkLimit(t, "methods of a type, promoted ones too", sets, maxMethodSet)
	checkLimit(t, "files that hold one type's methods", spread, maxTypeFiles)
	checkTotal(t, fmt.Sprintf("types over more than %d files", maxSpread), wider, maxSpreadTypes)
	checkTotal(t, "packages", packages, maxPackages)
	checkTotal(t, "packages of one or two files", small, maxSmallPackages)
	one, of := singleImplementations(t, all)
	t.Logf("  interfaces with one implementation: %s", strings.Join(one, " "))
	checkMax(t, "percent of interfaces with one implementation", []figure{{len(one) * 100 / max(of, 1), fmt.Sprint(of, " interfaces")}}, maxSingleImplemented)
	checkLimit(t, "files in a knot", knots, maxCycle)
	checkTotal(t, "func fields", sumFuncs, maxAllFuncFields)
	checkTotal(t, "method values handed along", sumValues, maxMethodValues)
	for _, v := range values {
		if v.place == "internal/cli" {
			checkTotal(t, "method values handed along in internal/cli", v.n, maxCLIMethodValues)
		}
	}
	checkTotal(t, "percent of back arrows", back*100/max(arrows, 1), maxBackArrows)
	checkTotal(t, "nolint", nolint, maxNolint)
	checkTotal(t, "map[string]any in "+strings.Join(faces, ", "), untyped, 0)
	logTop(t, "method values", values)
	logTop(t, "knots", knots)
	logTop(t, "fields", fields)
	logTop(t, "methods", methods)
	logTop(t, "files of a type", spread)
}

// logTop logs the largest figures, which are the first to look at.
func logTop(t *testing.T, what string, figures []figure) {
	t.Helper()
	slices.SortStableFunc(figures, func(a, b figure) int { return cmp.Compare(b.n, a.n) })
	for _, f := range figures[:min(8, len(figures))] {
		t.Logf("  %s: %d %s", what, f.n, f.place)
	}
}

// structType has the measurements of one struct of the tree.
type structType struct {
	where         string
	fields, funcs int
	format        bool // its fields are named by tags: a wire or file format
}

func structsOf(p checkedPackage) []structType {
	var all []structType
	for _, f := range p.files {
		if ast.IsGenerated(f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			def, ok := p.info.Defs[spec.Name]
			if !ok {
				return true
			}
			st, ok := def.Type().Underlying().(*types.Struct)
			if _, literal := spec.Type.(*ast.StructType); !ok || !literal {
				return true
			}
			s := structType{where: p.path + "." + spec.Name.Name, fields: st.NumFields()}
			tagged := 0
			for i := range st.NumFields() {
				if _, ok := st.Field(i).Type().Underlying().(*types.Signature); ok {
					s.funcs++
				}
				if tag := reflect.StructTag(st.Tag(i)); tag != "" {
					tagged++
				}
			}
			s.format = tagged*2 > s.fields
			all = append(all, s)
			return true
		})
	}
	return all
}

type typeMethods struct {
	where    string
	n, files int
}

func methodsOf(p checkedPackage) []typeMethods {
	n, files := map[string]int{}, map[string]map[string]bool{}
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := receiver(fn)
			n[name]++
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][p.file(fn.Pos())] = true
		}
	}
	var all []typeMethods
	for _, name := range slices.Sorted(maps.Keys(n)) {
		all = append(all, typeMethods{p.path + "." + name, n[name], len(files[name])})
	}
	return all
}

// methodSetsOf measures the method sets of a package's types, including embedded methods.
func methodSetsOf(p checkedPackage) []figure {
	var all []figure
	for _, name := range p.pkg.Scope().Names() {
		if def, ok := p.pkg.Scope().Lookup(name).(*types.TypeName); ok && !def.IsAlias() && !types.IsInterface(def.Type()) {
			all = append(all, figure{types.NewMethodSet(types.NewPointer(def.Type())).Len(), p.path + "." + name})
		}
	}
	return all
}

// singleImplementations returns the interfaces of the tree that exactly one type implements, and the number of all
// interfaces. A type of a test is also an implementation if it has methods with the same names, because it is the
// reason for the interface.
func singleImplementations(t *testing.T, ps []checkedPackage) (one []string, all int) {
	t.Helper()
	var implementers []map[string]string // method name → signature; "" means any
	doubles := map[string]map[string]string{}
	for _, s := range tree.Sources(t) {
		for _, d := range s.File.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && s.IsTest() {
				key := s.Dir + "." + receiver(fn)
				if doubles[key] == nil {
					doubles[key] = map[string]string{}
				}
				doubles[key][fn.Name.Name] = ""
			}
		}
	}
	implementers = slices.AppendSeq(implementers, maps.Values(doubles))
	interfaces := map[string]map[string]string{}
	for _, p := range ps {
		for _, name := range p.pkg.Scope().Names() {
			def, ok := p.pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || def.IsAlias() {
				continue
			}
			named, ok := def.Type().(*types.Named)
			if !ok || named.TypeParams().Len() > 0 {
				continue
			}
			if it, ok := named.Underlying().(*types.Interface); !ok {
				implementers = append(implementers, signatures(types.NewMethodSet(types.NewPointer(named))))
			} else if it.IsMethodSet() && it.NumMethods() > 0 {
				interfaces[p.path+"."+name] = signatures(types.NewMethodSet(named))
			}
		}
	}
	for _, where := range slices.Sorted(maps.Keys(interfaces)) {
		n := 0
		for _, has := range implementers {
			if implementsAll(has, interfaces[where]) {
				n++
			}
		}
		if n == 1 {
			one = append(one, where)
		}
	}
	return one, len(interfaces)
}

func implementsAll(has, wants map[string]string) bool {
	for name, signature := range wants {
		if s, ok := has[name]; !ok || s != "" && s != signature {
			return false
		}
	}
	return true
}

// signatures returns the methods of a set in a form that does not depend on the names of parameters.
func signatures(set *types.MethodSet) map[string]string {
	all := map[string]string{}
	for m := range set.Methods() {
		sig, ok := m.Obj().Type().(*types.Signature)
		if !ok {
			continue
		}
		var b strings.Builder
		for _, tuple := range []*types.Tuple{sig.Params(), sig.Results()} {
			for v := range tuple.Variables() {
				b.WriteString(types.TypeString(v.Type(), nil) + ",")
			}
			b.WriteString(";")
		}
		all[m.Obj().Name()] = fmt.Sprint(b.String(), sig.Variadic())
	}
	return all
}

func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}

// methodValuesOf counts methods that are named without being called.
func methodValuesOf(p checkedPackage) int {
	n := 0
	for _, f := range p.files {
		called := map[ast.Expr]bool{}
		ast.Inspect(f, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				called[ast.Unparen(call.Fun)] = true
			}
			return true
		})
		for sel, s := range p.info.Selections {
			if s.Kind() == types.MethodVal && !called[sel] && f.FileStart <= sel.Pos() && sel.Pos() < f.FileEnd {
				n++
			}
		}
	}
	return n
}

func countNolints(p checkedPackage) int {
	n := 0
	for _, f := range p.files {
		for _, g := range f.Comments {
			for _, c := range g.List {
				if strings.HasPrefix(c.Text, "//nolint") {
					n++
				}
			}
		}
	}
	return n
}

// untypedMaps counts maps with values of any type, which a struct type could replace.
func untypedMaps(p checkedPackage) int {
	n := 0
	for _, f := range p.files {
		ast.Inspect(f, func(node ast.Node) bool {
			if m, ok := node.(*ast.MapType); ok && types.TypeString(p.info.TypeOf(m), nil) == "map[string]any" {
				n++
			}
			return true
		})
	}
	return n
}

// fileReferences is the graph of files: an edge leads from a file to a file with a declaration that it uses.
type fileReferences map[string]map[string]bool

func fileReferenceGraph(p checkedPackage) fileReferences {
	g := fileReferences{}
	for _, f := range p.files {
		g[p.file(f.Pos())] = map[string]bool{}
	}
	use := func(pos token.Pos, obj types.Object) {
		if obj == nil || obj.Pkg() != p.pkg || !obj.Pos().IsValid() {
			return
		}
		from, to := p.file(pos), p.file(obj.Pos())
		if from != to {
			g[from][to] = true
		}
	}
	for id, obj := range p.info.Uses {
		use(id.Pos(), obj)
	}
	return g
}

// largestCycle returns the size of the largest set of files that need each other.
func (g fileReferences) largestCycle() int {
	largest := 0
	for _, c := range g.components() {
		largest = max(largest, len(c))
	}
	return largest
}

// components returns the strongly connected components, by Tarjan's algorithm.
func (g fileReferences) components() [][]string {
	var (
		out      [][]string
		stack    []string
		index    = map[string]int{}
		low      = map[string]int{}
		on       = map[string]bool{}
		nextFile func(v string)
	)
	nextFile = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack = append(stack, v)
		on[v] = true
		for _, w := range slices.Sorted(maps.Keys(g[v])) {
			if index[w] == 0 {
				nextFile(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		for _, w := range stack[i:] {
			on[w] = false
		}
		out = append(out, slices.Clone(stack[i:]))
		stack = stack[:i]
	}
	for _, v := range slices.Sorted(maps.Keys(g)) {
		if index[v] == 0 {
			nextFile(v)
		}
	}
	return out
}

// backReferences counts the references that point upwards in the best order of the files that a local search finds, and all
// references.
func (g fileReferences) backReferences() (back, arrows int) {
	order := slices.Sorted(maps.Keys(g))
	for _, to := range g {
		arrows += len(to)
	}
	for better := true; better; {
		better = false
		for i := range order {
			if at := g.bestPosition(order, i); at != i {
				v := order[i]
				order = slices.Insert(slices.Delete(order, i, i+1), at, v)
				better = true
			}
		}
	}
	place := map[string]int{}
	for i, v := range order {
		place[v] = i
	}
	for from, to := range g {
		for v := range to {
			if place[v] < place[from] {
				back++
			}
		}
	}
	return back, arrows
}

// bestPosition returns the position at which file i of the order has the fewest references backwards.
func (g fileReferences) bestPosition(order []string, i int) int {
	v, best, at := order[i], 0, i
	for _, dir := range []int{-1, 1} {
		gain := 0
		for j := i + dir; j >= 0 && j < len(order); j += dir {
			w := order[j]
			switch { // v passes w
			case g[v][w] && !g[w][v]:
				gain -= dir
			case g[w][v] && !g[v][w]:
				gain += dir
			}
			if gain > best {
				best, at = gain, j
			}
		}
	}
	return at
}
