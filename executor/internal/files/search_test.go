package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// createFiles creates files, the newest first in name order.
func createFiles(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, n := range names {
		path := tooltest.WriteFile(t, dir, n, "needle in "+n+"\n")
		mtime := time.Unix(int64(1_700_000_000-i), 0)
		if err := os.Chtimes(path, mtime, mtime); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGlob(t *testing.T) {
	dir := createFiles(t, "z.go", "sub/a.go", "sub/deep/m.go", "sub/x.txt", ".hidden/h.go", ".git/g.go")
	tests := []struct{ pattern, path, want string }{
		{"**/*.go", "", ".hidden/h.go\nsub/deep/m.go\nsub/a.go\nz.go"},
		{"*.go", "", ".hidden/h.go\nsub/deep/m.go\nsub/a.go\nz.go"},
		{"sub/*.go", "", "sub/a.go"},
		{"./sub/*.go", "", "No files found"},
		{"**/*.{txt,md}", "", "sub/x.txt"},
		{"*.go", "sub", "sub/deep/m.go\nsub/a.go"},
		{"deep/*", "sub", "sub/deep/m.go"},
		{filepath.Join(dir, "sub", "*.go"), "", "sub/a.go"},
		{".git/*", "", ".git/g.go"},
		{"*.rs", "", "No files found"},
	}
	tools := newTools(t, testOptions{CWD: dir})
	for _, tt := range tests {
		input := tooltest.Input{"pattern": tt.pattern}
		if tt.path != "" {
			input["path"] = tt.path
		}
		if diff := cmp.Diff(tt.want, call(t, tools, "Glob", input).Content.Text); diff != "" {
			t.Errorf("%s in %q (-want +got):\n%s", tt.pattern, tt.path, diff)
		}
	}
}

func TestGlobOutside(t *testing.T) {
	other := createFiles(t, "a.go")
	r := call(t, newTools(t, testOptions{}), "Glob", tooltest.Input{"pattern": "*.go", "path": other})
	tooltest.WantText(t, r.ToolResult, filepath.Join(other, "a.go"))
}

func TestGlobTruncates(t *testing.T) {
	dir := t.TempDir()
	const most = 100
	for i := range most + 3 {
		tooltest.WriteFile(t, dir, fmt.Sprintf("f%03d", i), "")
	}
	r := call(t, newTools(t, testOptions{CWD: dir}), "Glob", tooltest.Input{"pattern": "*"})
	out := tooltest.Output[struct {
		NumFiles, TotalMatches int
		Truncated              bool
	}](t, r.ToolResult)
	if !out.Truncated || out.NumFiles != most || out.TotalMatches != most+3 {
		t.Errorf("output %d of %d, truncated %v", out.NumFiles, out.TotalMatches, out.Truncated)
	}
	if !strings.HasSuffix(r.Content.Text, "\n(Results are truncated. Consider using a more specific path or pattern.)") {
		t.Errorf("text ends with %q", r.Content.Text[len(r.Content.Text)-80:])
	}
}

func TestSearchRefusals(t *testing.T) {
	dir := createFiles(t, "a.go")
	tools := newTools(t, testOptions{CWD: dir})
	for _, tt := range []struct {
		tool  string
		input tooltest.Input
		want  string
	}{
		{"Glob", tooltest.Input{"pattern": "*", "path": "nosuch"}, "Directory does not exist: nosuch. Note: your current working directory is " + dir + "."},
		{"Glob", tooltest.Input{"pattern": "*", "path": "a.go"}, "Path is not a directory: a.go"},
		{"Grep", tooltest.Input{"pattern": "x", "path": "nosuch"}, "Path does not exist: nosuch. Note: your current working directory is " + dir + "."},
	} {
		if diff := cmp.Diff(tool.Fail("%s", tt.want), call(t, tools, tt.tool, tt.input).ToolResult); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tt.tool, tt.input, diff)
		}
	}
	const rejected = "Search failed — ripgrep rejected the pattern, glob, or file type without searching:\nrg: "
	for _, tt := range []struct {
		tool  string
		input tooltest.Input
		want  string
	}{
		{"Glob", tooltest.Input{"pattern": "a/[x"}, "error parsing glob 'a/[x': unclosed character class; missing ']'"},
		{"Glob", tooltest.Input{"pattern": "{a,b"}, "error parsing glob '{a,b': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"},
		{"Grep", tooltest.Input{"pattern": "x", "glob": "["}, "error parsing glob '[': unclosed character class; missing ']'"},
		{"Grep", tooltest.Input{"pattern": "("}, "regex parse error:\n    (?:()\n    ^\nerror: unclosed group"},
		{"Grep", tooltest.Input{"pattern": "x", "type": "cobol"}, "unrecognized file type: cobol"},
	} {
		tooltest.WantError(t, call(t, tools, tt.tool, tt.input).ToolResult, rejected+tt.want)
	}
}

// Searches skip files that a deny rule protects from reading.
func TestSearchHidden(t *testing.T) {
	dir := createFiles(t, "a.txt", ".env", "secret/b.txt")
	for _, name := range []string{"a.txt", ".env", "secret/b.txt"} {
		tooltest.WriteFile(t, dir, name, "needle\n")
	}
	tools := newTools(t, testOptions{CWD: dir, Access: tooltest.Access{Readable: "/", Hidden: func(path string) bool {
		return filepath.Base(path) == ".env" || strings.Contains(path, "/secret")
	}}})
	for _, mode := range []string{"content", "files_with_matches", "count"} {
		if got := call(t, tools, "Grep", tooltest.Input{"pattern": "needle", "output_mode": mode}).Content.Text; strings.Contains(got, ".env") || strings.Contains(got, "secret") || !strings.Contains(got, "a.txt") {
			t.Errorf("Grep %s: %q", mode, got)
		}
	}
	for _, pattern := range []string{"*", "**/*", ".env", "secret/*", filepath.Join(dir, "secret", "*")} {
		if got := call(t, tools, "Glob", tooltest.Input{"pattern": pattern}).Content.Text; strings.Contains(got, ".env") || strings.Contains(got, "secret") {
			t.Errorf("Glob %s: %q", pattern, got)
		}
	}
}

func TestGrepContent(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "a.txt", "one\ntwo needle needle\nthree\nfour\nfive\nsix NEEDLE\nseven\n")
	tooltest.WriteFile(t, dir, "b.go", "x\r\nneedle\r\n")
	tooltest.WriteFile(t, dir, "wide.txt", strings.Repeat("w", 500)+"wide needle\n")
	tooltest.WriteFile(t, dir, "bin", "needle\x00")
	tooltest.WriteFile(t, dir, ".git/c.txt", "needle\n")
	tests := []struct {
		name  string
		input tooltest.Input
		want  string
	}{
		{"plain", tooltest.Input{"pattern": "needle", "glob": "!wide*"}, "a.txt:2:two needle needle\nb.go:2:needle"},
		{"end of line", tooltest.Input{"pattern": "needle$", "type": "go"}, "b.go:2:needle"},
		{"no numbers", tooltest.Input{"pattern": "^three", "-n": false}, "a.txt:three"},
		{"ignore case", tooltest.Input{"pattern": "needle", "-i": true, "glob": "a.*"}, "a.txt:2:two needle needle\na.txt:6:six NEEDLE"},
		{"only matching", tooltest.Input{"pattern": "need.e", "-o": true, "glob": "a.txt"}, "a.txt:2:needle\na.txt:2:needle"},
		{
			"context",
			tooltest.Input{"pattern": "needle", "-i": true, "-C": 1, "glob": "a.txt"},
			"a.txt-1-one\na.txt:2:two needle needle\na.txt-3-three\n--\na.txt-5-five\na.txt:6:six NEEDLE\na.txt-7-seven",
		},
		{
			"context meets",
			tooltest.Input{"pattern": "needle", "-i": true, "context": 2, "glob": "a.txt"},
			"a.txt-1-one\na.txt:2:two needle needle\na.txt-3-three\na.txt-4-four\na.txt-5-five\na.txt:6:six NEEDLE\na.txt-7-seven",
		},
		{"before", tooltest.Input{"pattern": "three", "-B": 5, "glob": "a.txt"}, "a.txt-1-one\na.txt-2-two needle needle\na.txt:3:three"},
		{"after", tooltest.Input{"pattern": "six", "-A": 5, "glob": "a.txt"}, "a.txt:6:six NEEDLE\na.txt-7-seven"},
		{"between files", tooltest.Input{"pattern": "needle", "-A": 1, "glob": "a.txt b.go"}, "a.txt:2:two needle needle\na.txt-3-three\n--\nb.go:2:needle"},
		{"one file", tooltest.Input{"pattern": "needle", "path": "a.txt"}, "2:two needle needle"},
		{"multiline", tooltest.Input{"pattern": "three.four", "multiline": true}, "a.txt:3:three\na.txt:4:four"},
		{"multiline only matching", tooltest.Input{"pattern": "ree.fo", "multiline": true, "-o": true}, "a.txt:3:ree\na.txt:4:fo"},
		{"not multiline", tooltest.Input{"pattern": "three.four"}, "No matches found"},
		{"long line", tooltest.Input{"pattern": "wide needle"}, "wide.txt:1:[Omitted long matching line]"},
		{"glob list", tooltest.Input{"pattern": "needle", "glob": "*.{go,rs}"}, "b.go:2:needle"},
		{"glob commas", tooltest.Input{"pattern": "needle", "glob": "*.go,*.rs"}, "b.go:2:needle"},
		{
			"head_limit",
			tooltest.Input{"pattern": "e", "glob": "a.txt", "head_limit": 2},
			"a.txt:1:one\na.txt:2:two needle needle\n\n[Showing results with pagination = limit: 2]",
		},
		{
			"offset",
			tooltest.Input{"pattern": "e", "glob": "a.txt", "head_limit": 1, "offset": 1},
			"a.txt:2:two needle needle\n\n[Showing results with pagination = limit: 1, offset: 1]",
		},
	}
	tools := newTools(t, testOptions{CWD: dir})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.input["output_mode"] = "content"
			tooltest.WantText(t, call(t, tools, "Grep", tt.input).ToolResult, tt.want)
		})
	}
}

func TestGrepFiles(t *testing.T) {
	dir := createFiles(t, "z.go", "a.go", "sub/m.go")
	tools := newTools(t, testOptions{CWD: dir})
	r := call(t, tools, "Grep", tooltest.Input{"pattern": "needle"})
	tooltest.WantText(t, r.ToolResult, "Found 3 files\nz.go\na.go\nsub/m.go")
	tooltest.WantOutput(t, r.ToolResult, `{"mode":"files_with_matches","filenames":["z.go","a.go","sub/m.go"],"numFiles":3,"totalFiles":3}`)
	r = call(t, tools, "Grep", tooltest.Input{"pattern": "needle", "head_limit": 1, "glob": "/*.go"})
	tooltest.WantText(t, r.ToolResult, "Found 1 file limit: 1\nz.go")
	tooltest.WantOutput(t, r.ToolResult, `{"mode":"files_with_matches","filenames":["z.go"],"numFiles":1,"totalFiles":2,"appliedLimit":1}`)
	tooltest.WantText(t, call(t, tools, "Grep", tooltest.Input{"pattern": "nosuch"}).ToolResult, "No files found")
}

// The position of a syntax error is marked as ripgrep marks it (texts observed with 2.1.329).
func TestGrepFaults(t *testing.T) {
	tools := newTools(t, testOptions{})
	const pcre = "\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."
	for pattern, want := range map[string]string{
		`interface{}`:     "    (?:interface{})\n                 ^\nerror: repetition quantifier expects a valid decimal",
		`a{2`:             "    (?:a{2)\n        ^^\nerror: unclosed counted repetition",
		`a{2,`:            "    (?:a{2,)\n           ^\nerror: repetition quantifier expects a valid decimal",
		`a{,3}`:           "    (?:a{,3})\n         ^\nerror: repetition quantifier expects a valid decimal",
		`x|{`:             "    (?:x|{)\n         ^\nerror: repetition operator missing expression",
		`({)`:             "    (?:({))\n        ^\nerror: repetition operator missing expression",
		`a{2x}`:           "    (?:a{2x})\n        ^^\nerror: unclosed counted repetition",
		`func main() {`:   "    (?:func main() {)\n                    ^\nerror: repetition quantifier expects a valid decimal",
		`a{2}{`:           "    (?:a{2}{)\n            ^\nerror: repetition quantifier expects a valid decimal",
		`^{`:              "    (?:^{)\n         ^\nerror: repetition quantifier expects a valid decimal",
		`(?i){`:           "    (?:(?i){)\n           ^\nerror: repetition operator missing expression",
		`a(b`:             "    (?:a(b)\n    ^\nerror: unclosed group",
		`a((b`:            "    (?:a((b)\n        ^\nerror: unclosed group",
		`(?<n>a`:          "    (?:(?<n>a)\n    ^\nerror: unclosed group",
		`héé(`:            "    (?:héé()\n    ^\nerror: unclosed group",
		`[(]\((`:          "    (?:[(]\\(()\n    ^\nerror: unclosed group",
		`a\`:              "    (?:a\\)\n    ^\nerror: unclosed group",
		`a)b`:             "    (?:a)b)\n          ^\nerror: unopened group",
		`[z-a]`:           "    (?:[z-a])\n        ^^^\nerror: invalid character class range, the start must be <= the end",
		`*a`:              "    (?:*a)\n       ^\nerror: repetition operator missing expression",
		`b*|*`:            "    (?:b*|*)\n          ^\nerror: repetition operator missing expression",
		`a{2,1}`:          "    (?:a{2,1})\n        ^^^^^\nerror: invalid repetition count range, the start must be <= the end",
		`[a`:              "    (?:[a)\n       ^\nerror: unclosed character class",
		`\p{Foo}`:         "    (?:\\p{Foo})\n       ^^^^^^^\nerror: Unicode property not found",
		`\q`:              "    (?:\\q)\n       ^^\nerror: unrecognized escape sequence",
		`\xZZ`:            "    (?:\\xZZ)\n         ^\nerror: invalid hexadecimal digit",
		`[a-\d]`:          "    (?:[a-\\d])\n          ^^\nerror: invalid range boundary, must be a literal",
		`(?z)a`:           "    (?:(?z)a)\n         ^\nerror: unrecognized flag",
		`\Qa\E`:           "    (?:\\Qa\\E)\n       ^^\nerror: unrecognized escape sequence",
		`a{99999999999}`:  "    (?:a{99999999999})\n         ^^^^^^^^^^^\nerror: decimal literal invalid",
		`a**(`:            "    (?:a**()\n    ^\nerror: unclosed group",
		`(b{1000}){1000}`: "    (?:(b{1000}){1000})\n                ^^^^^^\nerror: ripgrep allows this count, but the simulated search does not",
		`a\1`:             "    (?:a\\1)\n        ^^\nerror: backreferences are not supported" + pcre,
		`(?=a)`:           "    (?:(?=a))\n       ^^^\nerror: look-around, including look-ahead and look-behind, is not supported" + pcre,
		`(?<!a)b`:         "    (?:(?<!a)b)\n       ^^^^\nerror: look-around, including look-ahead and look-behind, is not supported" + pcre,
		"a\nb(":           strings.Repeat("~", 79) + "\n1: (?:a\n   ^\n2: b()\n" + strings.Repeat("~", 79) + "\nerror: unclosed group",
	} {
		tooltest.WantError(t, call(t, tools, "Grep", tooltest.Input{"pattern": pattern}).ToolResult,
			"Search failed — ripgrep rejected the pattern, glob, or file type without searching:\nrg: regex parse error:\n"+want)
	}
}

// Braces are literal, or a repetition count.
func TestGrepBraces(t *testing.T) {
	tools := newTools(t, testOptions{})
	for _, pattern := range []string{`[{]a`, `\{`, `a}`, `a{2}`, `a{2,}`, `a{2,3}`, `\x{41}`, `\p{L}`, `(?P<x>a){3}`, `[^]{]`, `a{ 2}`} {
		tooltest.WantText(t, call(t, tools, "Grep", tooltest.Input{"pattern": pattern}).ToolResult, "No files found")
	}
}

// Patterns that Go's engine refuses or reads differently match as in ripgrep.
func TestGrepDialect(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "f.txt", "a\naaa\nN1\nb [x]\nhello\nzz\n")
	tools := newTools(t, testOptions{CWD: dir})
	for pattern, want := range map[string]string{
		`a**`: "6", `a+*`: "6", `a?+`: "6", `^a++$`: "2", `^a{1}{3}$`: "1", `^(a|b)**$`: "2",
		`^a*?+$`: "2", `(?i)^A**$`: "2", `^a{ 3}$`: "1", `\<hel`: "1", `lo\>`: "1", `\<ello`: "0", `\b{start}h`: "1", `\u{61}{3}`: "1", `é**`: "6", `[*]*`: "6", `\**`: "6",
	} {
		got := call(t, tools, "Grep", tooltest.Input{"pattern": pattern, "output_mode": "content"}).Content.Text
		n := strings.Count(got, "f.txt:")
		if strconv.Itoa(n) != want || n == 0 && got != "No matches found" {
			t.Errorf("%s: %d lines, want %s: %.300s", pattern, n, want, got)
		}
	}
}

func TestGrepCount(t *testing.T) {
	dir := createFiles(t, "a.go", "b.go")
	tooltest.WriteFile(t, dir, "b.go", "needle\nx\nneedle needle\n")
	tools := newTools(t, testOptions{CWD: dir})
	r := call(t, tools, "Grep", tooltest.Input{"pattern": "needle", "output_mode": "count"})
	tooltest.WantText(t, r.ToolResult, "a.go:1\nb.go:2\n\nFound 3 total occurrences across 2 files.")
	tooltest.WantOutput(t, r.ToolResult, `{"mode":"count","numFiles":2,"filenames":[],"content":"a.go:1\nb.go:2","numMatches":3}`)
	r = call(t, tools, "Grep", tooltest.Input{"pattern": "needle", "output_mode": "count", "head_limit": 1}) // lines that are not shown are counted
	tooltest.WantText(t, r.ToolResult, "a.go:1\n\nFound 3 total occurrences across 2 files. with pagination = limit: 1")
	tooltest.WantOutput(t, r.ToolResult, `{"mode":"count","numFiles":2,"filenames":[],"content":"a.go:1","numMatches":3,"appliedLimit":1}`)
	tooltest.WantText(t, call(t, tools, "Grep", tooltest.Input{"pattern": "nosuch", "output_mode": "count"}).ToolResult,
		"No matches found\n\nFound 0 total occurrences across 0 files.")
}
