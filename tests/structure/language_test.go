package structure

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// bannedNames are words that no type, file or package may have as its name, each with a better kind of name. A name
// must be a noun of the field.
var bannedNames = map[string]string{ // constant: only read
	"asked": "the thing that was asked: question, request", "told": "what was communicated: context, notification",
	"tried": "the outcome: result, attempt", "played": "playback, progress", "mirrored": "copy, mirror", "instructed": "instructions",
	"unclosed": "nopCloser", "undone": "unsavedWork, pending", "again": "retry, continuation", "behind": "background", "aside": "sideQuestion",
	"nowhere": "unknownLocation", "somewhere": "unknownLocation", "out": "emitter, output", "here": "location", "now": "snapshot", "desk": "scheduler, queue",
	"errands": "pendingRequests", "greetings": "initialization", "ledger": "totals", "books": "totals", "wall": "faultRun",
	"fate": "closeReason, lifetime", "yard": "pool", "shelf": "store", "bench": "workspace", "pen": "writer", "folk": "clients", "servant": "callbacks",
	"edge": "wrapper", "witness": "supervisor", "persona": "clientInfo", "talk": "conversation", "older": "legacy", "stuck": "blocked",
	"hider": "redactor", "teller": "describer", "greeter": "initializer", "settler": "updater", "asker": "prompter", "eager": "prefetcher",
	"spoiler": "faultWriter", "commons": "shared", "news": "pendingUpdates", "guests": "dynamicServers", "wish": "request", "heard": "previousReply",
	"halt": "pauseInfo", "points": "breakpointSet", "wide": "otherPattern",
	"glued": "concatenated", "dialect": "patternRewriter", "fault_of": "patternError", "shadow": "hidden", "unhonoured": "unsupported",
	"mend": "repair", "whole": "append, complete", "sight": "seenFiles", "gather": "results", "called": "executedCall",
	"flat": "flatItems", "fake": "replacedResult", "relayed": "pendingEval", "nothing": "noRedaction", "needs": "literals",
}

// allowedNames are packages, files and types that have a banned word as their name because the word is a technical term
// there.
var allowedNames = map[string]bool{ // constant: only read

}

// TestBannedNames checks that no type, file or package has a name from the list.
func TestBannedNames(t *testing.T) {
	check := func(where, name string) {
		if use, banned := bannedNames[strings.ToLower(name)]; banned && !allowedNames[where] {
			t.Errorf("%s: the name %q says nothing to a stranger; use a noun of the field (%s)", where, name, use)
		}
	}
	packages := map[string]bool{}
	for _, s := range tree.Sources(t) {
		if s.IsTest() {
			continue
		}
		check(s.Path, strings.TrimSuffix(filepath.Base(s.Path), ".go"))
		if !packages[s.Dir] {
			packages[s.Dir] = true
			check(s.Dir, filepath.Base(s.Dir))
		}
		for _, d := range s.File.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					check(s.Dir+"."+ts.Name.Name, ts.Name.Name)
				}
			}
		}
	}
}

// TestMethodComments checks that the comment of an interface method begins with the name of the method. Renaming tools
// leave these comments unchanged.
func TestMethodComments(t *testing.T) {
	for _, s := range tree.Sources(t) {
		if s.IsTest() {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			list, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			for _, m := range list.Methods.List {
				first, _, _ := strings.Cut(m.Doc.Text(), " ")
				if len(m.Names) == 1 && first != "" && first != m.Names[0].Name {
					t.Errorf("%s:%d: the comment of the method %s begins with %q", s.Path, s.Line(m), m.Names[0].Name, first)
				}
			}
			return false
		})
	}
}

// idiomPattern matches the clipped phrases that readers had to read twice.
var idiomPattern = regexp.MustCompile(`(?i)\b(its one invariant|it must not know|there is none|there are none|that there (is|are)|(is|are) told|nobody|whoever|anew|` +
	`beside (it|them|that|the)|what (stands|came|comes|becomes)|in the place of|(is|are) no [a-km-z]+|so as it|stands?|comes of|of (its|their) own|by itself|` +
	`any ?more|whatever|wherever|says? so|put off|goes? on|is over|hears?|somebody|for good|all the same|takes? up|left behind|comes along)\b`)

// maxIdioms is how many idioms 1,000 lines of comments may have.
const maxIdioms = 3

// TestPlainComments counts clipped idioms in the comments of Go files and of
// the scripts in tests/testdata.
func TestPlainComments(t *testing.T) {
	lines, found := 0, 0
	count := func(comment string) {
		lines += strings.Count(comment, "\n") + 1
		found += len(idiomPattern.FindAllString(comment, -1))
	}
	for _, s := range tree.Sources(t) {
		for _, group := range s.File.Comments {
			for _, c := range group.List {
				count(c.Text)
			}
		}
	}
	for _, file := range tree.Files(t) {
		if !strings.HasPrefix(file, "tests/testdata/script/") {
			continue
		}
		for line := range strings.Lines(tree.ReadFile(t, file)) {
			if strings.HasPrefix(line, "# ") {
				count(line)
			}
		}
	}
	checkMax(t, "clipped idioms in 1,000 lines of comments", []figure{{found * 1000 / lines, "Go files and scripts"}}, maxIdioms)
}
