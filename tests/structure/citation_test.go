package structure

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// wireOf lists the documents of docs/wire with the requirements that the tests of a directory refer to. The longest
// prefix applies; "" means any document.
var wireOf = [...]struct{ prefix, docs string }{
	{"", ""},
	{"fixtures", "mcp"},
	{"mcp", "mcp debug-protocol"},
	{"internal/cli/mcpcmd", "mcp debug-protocol"},
	{"internal/debug", "debug-protocol"},
	{"internal/api", "messages-api"},
	{"internal/parity", "messages-api"},
	{"internal/exec/runner", "exec"},
	{"internal/exec/verdict", "exec"},
	{"simtest", "exec"},
	{"internal/importer", "importing"},
	{"internal/record/redact", "importing"},
}

var (
	citation             = regexp.MustCompile(`\(spec: ([^)]+)\)`)
	section              = regexp.MustCompile(`(?m)^#{2,3} ([0-9]+[A-Z]?(?:\.[0-9]+)?)\.? `)
	requirement          = regexp.MustCompile(`\b([MSCLRP])0?([0-9]{1,3})(?:(?:[–-]| to )([MSCLRP]?)0?([0-9]{1,3}))?\b`)
	namedRequirement     = regexp.MustCompile(`_([MSCLRP])([0-9]{1,3})`)
	commentedRequirement = regexp.MustCompile(`\b([MSCLRP])([0-9]{1,3})\b`)
)

// TestCitations checks that every fact that code cites, and every requirement that a test names, is in docs/wire.
func TestCitations(t *testing.T) {
	t.Parallel()
	docs := wireDocs(t)
	shapes := tree.ReadFile(t, "tests/testdata/cli-shapes.json")
	found := 0
	for _, s := range tree.Sources(t) {
		for _, g := range s.File.Comments {
			for _, m := range citation.FindAllStringSubmatch(strings.Join(strings.Fields(g.Text()), " "), -1) {
				found++
				if missing := unresolved(m[1], docs, shapes); missing != "" {
					t.Errorf("%s:%d: (spec: %s): nothing is at %s", s.Path, s.Line(g), m[1], missing)
				}
			}
		}
		if s.IsTest() {
			checkRequirements(t, s, docs)
		}
	}
	if found < 20 {
		t.Errorf("%d citations found: does the expression still fit?", found)
	}
}

// unresolved returns the first reference of a citation that does not exist; "" means that all exist. References are
// separated by commas and "and". A number alone refers to the document named before it. Text after a semicolon is a
// remark.
func unresolved(places string, docs map[string]wireDoc, shapes string) string {
	places, _, _ = strings.Cut(places, ";")
	doc := ""
	for place := range strings.SplitSeq(strings.ReplaceAll(places, " and ", ", "), ", ") {
		name, number, ok := strings.Cut(place, " ")
		switch {
		case ok:
			doc = name
		case doc == "" || place == "cli-shapes":
			doc = place
			continue
		default:
			number = place
		}
		if doc == "cli-shapes" && strings.Contains(shapes, strconv.Quote(number)) {
			continue
		}
		if !docs[doc].sections[number] {
			return place
		}
	}
	return ""
}

// wireDoc is one document: its section numbers and requirement ids.
type wireDoc struct{ sections, ids map[string]bool }

func wireDocs(t *testing.T) map[string]wireDoc {
	t.Helper()
	docs := map[string]wireDoc{}
	for _, file := range tree.Files(t) {
		name, ok := strings.CutPrefix(file, "docs/wire/")
		if !ok {
			continue
		}
		text := tree.ReadFile(t, file)
		d := wireDoc{sections: map[string]bool{}, ids: map[string]bool{}}
		for _, m := range section.FindAllStringSubmatch(text, -1) {
			d.sections[m[1]] = true
		}
		for _, m := range requirement.FindAllStringSubmatch(text, -1) {
			from, _ := strconv.Atoi(m[2])
			to, _ := strconv.Atoi(m[4])
			for n := from; n <= max(from, to); n++ {
				d.ids[m[1]+strconv.Itoa(n)] = true
			}
		}
		docs[strings.TrimSuffix(name, ".md")] = d
	}
	return docs
}

// checkRequirements checks that the requirements in the names of a file's tests, and in its
// comments, exist in docs/wire.
func checkRequirements(t *testing.T, s tree.Source, docs map[string]wireDoc) {
	t.Helper()
	var where []string
	longest := -1
	for _, w := range wireOf {
		if strings.HasPrefix(s.Path, w.prefix) && len(w.prefix) > longest {
			where, longest = strings.Fields(w.docs), len(w.prefix)
		}
	}
	if len(where) == 0 {
		where = slices.Sorted(maps.Keys(docs))
	}
	resolve := func(at, letter, number string) {
		n, _ := strconv.Atoi(number)
		id := fmt.Sprint(letter, n)
		if !slices.ContainsFunc(where, func(d string) bool { return docs[d].ids[id] }) {
			t.Errorf("%s: no requirement %s in docs/wire (%s)", at, id, strings.Join(where, ", "))
		}
	}
	for _, g := range s.File.Comments {
		at := fmt.Sprintf("%s:%d", s.Path, s.Line(g))
		for _, m := range commentedRequirement.FindAllStringSubmatch(g.Text(), -1) {
			resolve(at, m[1], m[2])
		}
	}
	for _, d := range s.File.Decls {
		at := fmt.Sprintf("%s:%d", s.Path, s.Line(d))
		for _, m := range namedRequirement.FindAllStringSubmatch(declaredName(d), -1) {
			resolve(at, m[1], m[2])
		}
	}
}

func declaredName(d ast.Decl) string {
	if fn, ok := d.(*ast.FuncDecl); ok {
		return fn.Name.Name
	}
	return ""
}
