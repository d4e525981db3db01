package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	defaultHeadLimit = 250
	maxSearched      = 64 << 20 // bytes; larger files are passed over
	maxColumns       = 500      // longer lines are left out
)

type grepInput struct {
	Pattern      string  `json:"pattern"`
	Path         string  `json:"path"`
	Glob         string  `json:"glob"`
	OutputMode   string  `json:"output_mode"`
	Before       number  `json:"-B"`
	After        number  `json:"-A"`
	Around       number  `json:"-C"`
	Context      number  `json:"context"`
	Numbers      *bool   `json:"-n"`
	IgnoreCase   bool    `json:"-i"`
	OnlyMatching bool    `json:"-o"`
	Type         string  `json:"type"`
	HeadLimit    *number `json:"head_limit"`
	Offset       number  `json:"offset"`
	Multiline    bool    `json:"multiline"`
}

type grepOutput struct {
	Mode          string   `json:"mode"`
	NumFiles      int      `json:"numFiles"`
	Filenames     []string `json:"filenames"`
	Content       *string  `json:"content,omitempty"`
	NumLines      *int     `json:"numLines,omitempty"`
	TotalLines    *int     `json:"totalLines,omitempty"`
	NumMatches    *int     `json:"numMatches,omitempty"`
	TotalFiles    *int     `json:"totalFiles,omitempty"`
	AppliedLimit  int      `json:"appliedLimit,omitempty"`
	AppliedOffset int      `json:"appliedOffset,omitempty"`
}

func grepTool() tool {
	return tool{
		name: "Grep", readOnly: true,
		description: "Searches files for a regular expression (RE2).",
		input: object(
			req("pattern", str("The regular expression")),
			opt("path", str("File or directory to search (default the working directory)")),
			opt("glob", str("Only files that match, such as *.{ts,tsx}")),
			opt("output_mode", str("What to show (default files_with_matches)", "content", "files_with_matches", "count")),
			opt("-B", num("Lines to show before a match")),
			opt("-A", num("Lines to show after a match")),
			opt("-C", num("Lines to show around a match")),
			opt("context", num("The same as -C")),
			opt("-n", boolean("Show line numbers (default true)")),
			opt("-i", boolean("Ignore case")),
			opt("-o", boolean("Show only what matched")),
			opt("type", str("Only files of a kind, such as go, js, py")),
			opt("head_limit", num("Most lines or files to show (default 250, 0 = all)")),
			opt("offset", num("Lines or files to pass over first")),
			opt("multiline", boolean("A match may span lines, and . matches newlines")),
		),
		check: typedCheck(func(t *Tools, in grepInput) *protocol.ToolResult {
			return t.searchable(in)
		}),
		run: typed(grep),
	}
}

// search is one Grep call, checked and compiled.
type search struct {
	grepInput
	root    string
	single  bool // root is a file
	re      *regexp.Regexp
	filters []string
	name    func(path string) string // path as shown
	hidden  func(path string) bool   // passed over
}

// searchable refuses to search what is not there.
func (t *Tools) searchable(in grepInput) *protocol.ToolResult {
	if _, err := os.Stat(t.path(in.Path)); err != nil {
		r := refuse("Path does not exist: %s. Note: your current working directory is %s.", in.Path, t.Dir())
		return &r
	}
	return nil
}

func (t *Tools) newGrep(in grepInput) (*search, *protocol.ToolResult) {
	if refusal := t.searchable(in); refusal != nil {
		return nil, refusal
	}
	s := &search{grepInput: in, root: t.path(in.Path), name: t.relative, hidden: t.hidden}
	if info, err := os.Stat(s.root); err == nil {
		s.single = !info.IsDir()
	}
	flags := ""
	if in.IgnoreCase {
		flags += "i"
	}
	if in.Multiline {
		flags += "ms"
	}
	pattern := in.Pattern
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	var err error
	if s.re, err = regexp.Compile(pattern); err != nil {
		r := rejected("regex parse error:\n    (?:%s)\nerror: %s", in.Pattern, regexFault(err))
		return nil, &r
	}
	for _, g := range globs(in.Glob) {
		if !doublestar.ValidatePattern(strings.TrimPrefix(g, "!")) {
			r := badGlob(g)
			return nil, &r
		}
	}
	if in.Type != "" {
		patterns := fileType(in.Type)
		if patterns == nil {
			r := rejected("unrecognized file type: %s", in.Type)
			return nil, &r
		}
		s.filters = append(s.filters, "{"+strings.Join(patterns, ",")+"}")
	}
	return s, nil
}

// regexFault words the common mistakes as ripgrep does.
func regexFault(err error) string {
	var fault *syntax.Error
	if !errors.As(err, &fault) {
		return err.Error()
	}
	switch fault.Code {
	case syntax.ErrMissingParen:
		return "unclosed group"
	case syntax.ErrUnexpectedParen:
		return "unopened group"
	case syntax.ErrMissingBracket:
		return "unclosed character class"
	case syntax.ErrInvalidCharRange:
		return "invalid character class range, the start must be <= the end"
	case syntax.ErrMissingRepeatArgument:
		return "repetition operator missing expression"
	default:
		return fault.Code.String()
	}
}

func grep(ctx context.Context, t *Tools, in grepInput) protocol.ToolResult {
	s, refusal := t.newGrep(in)
	if refusal != nil {
		return *refusal
	}
	found, err := s.run(ctx)
	switch {
	case ctx.Err() != nil:
		return executor.Interrupted()
	case err != nil:
		return fail("%v", err)
	}
	switch in.OutputMode {
	case "content":
		return s.content(found)
	case "count":
		return s.count(found)
	}
	return s.files(found)
}

// matches is one file with at least one match.
type matches struct {
	dated
	lines []string
	hits  []hit
}

// hit is a line with a match.
type hit struct {
	line  int      // from 0
	parts []string // what matched in it, for -o
	count int      // matches that begin here
}

func (s *search) run(ctx context.Context) ([]matches, error) {
	var found []matches
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // what cannot be read does not match
		case d.IsDir():
			if path != s.root && (isRepository(d.Name()) || s.hidden(path)) {
				return fs.SkipDir
			}
			return nil
		case path != s.root && (!d.Type().IsRegular() || !s.wants(path) || s.hidden(path)):
			return nil
		}
		if m, ok := s.file(path); ok {
			found = append(found, m)
		}
		return nil
	})
	return found, err
}

func (s *search) wants(p string) bool {
	rel, err := filepath.Rel(s.root, p)
	if err != nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	for _, f := range s.filters {
		if !matchGlob(f, rel) {
			return false
		}
	}
	positive, matched := false, false
	for _, g := range globs(s.Glob) {
		if negated, ok := strings.CutPrefix(g, "!"); ok {
			if matchGlob(negated, rel) {
				return false
			}
			continue
		}
		positive = true
		matched = matched || matchGlob(g, rel)
	}
	return matched || !positive
}

func (s *search) file(path string) (matches, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSearched {
		return matches{}, false
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 {
		return matches{}, false
	}
	m := matches{dated: dated{s.name(path), info.ModTime()}}
	content := strings.ReplaceAll(string(data), "\r\n", "\n")
	m.lines = strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if s.Multiline {
		m.hits = s.acrossLines(content, len(m.lines))
	} else {
		m.hits = s.inLines(m.lines)
	}
	return m, len(m.hits) > 0
}

func (s *search) inLines(lines []string) []hit {
	var hits []hit
	for i, l := range lines {
		if !s.re.MatchString(l) {
			continue
		}
		h := hit{line: i, count: 1}
		if s.OnlyMatching {
			h.parts = s.re.FindAllString(l, -1)
		}
		hits = append(hits, h)
	}
	return hits
}

func (s *search) acrossLines(content string, lines int) []hit {
	var hits []hit
	line, counted := 0, 0
	for _, m := range s.re.FindAllStringIndex(content, -1) {
		line += strings.Count(content[counted:m[0]], "\n")
		counted = m[0]
		for i, part := range strings.Split(strings.TrimSuffix(content[m[0]:m[1]], "\n"), "\n") {
			n := line + i
			if n >= lines {
				break
			}
			if len(hits) == 0 || hits[len(hits)-1].line != n {
				hits = append(hits, hit{line: n})
			}
			h := &hits[len(hits)-1]
			h.parts = append(h.parts, part)
			if i == 0 {
				h.count++
			}
		}
	}
	return hits
}

// page cuts what offset and head_limit leave out and notes what was applied.
func page[T any](s *search, items []T, out *grepOutput) []T {
	offset := max(0, int(s.Offset))
	limit := defaultHeadLimit
	if s.HeadLimit != nil {
		limit = max(0, int(*s.HeadLimit))
	}
	items = items[min(offset, len(items)):]
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		out.AppliedLimit = limit
	}
	out.AppliedOffset = offset
	return items
}

// paging words what page applied.
func (o grepOutput) paging() string {
	var parts []string
	if o.AppliedLimit > 0 {
		parts = append(parts, "limit: "+strconv.Itoa(o.AppliedLimit))
	}
	if o.AppliedOffset > 0 {
		parts = append(parts, "offset: "+strconv.Itoa(o.AppliedOffset))
	}
	return strings.Join(parts, ", ")
}

func (s *search) content(found []matches) protocol.ToolResult {
	var lines []string
	for _, m := range found {
		if len(lines) > 0 && s.context() {
			lines = append(lines, "--")
		}
		lines = append(lines, s.render(m)...)
	}
	out := grepOutput{Mode: "content", Filenames: []string{}}
	shown := page(s, lines, &out)
	content := strings.Join(shown, "\n")
	out.Content, out.NumLines, out.TotalLines = &content, new(len(shown)), new(len(lines))
	return text(s.withPaging(content, "No matches found", out), out)
}

func (s *search) withPaging(content, none string, out grepOutput) string {
	if content == "" {
		content = none
	}
	if p := out.paging(); p != "" {
		content += "\n\n[Showing results with pagination = " + p + "]"
	}
	return content
}

func (s *search) count(found []matches) protocol.ToolResult {
	out := grepOutput{Mode: "count", Filenames: []string{}, TotalFiles: new(len(found))}
	shown := page(s, found, &out)
	total := 0
	var lines []string
	for _, m := range shown {
		n := 0
		for _, h := range m.hits {
			n += h.count
		}
		total += n
		lines = append(lines, m.name+":"+strconv.Itoa(n))
	}
	content := strings.Join(lines, "\n")
	out.NumFiles, out.Content, out.NumMatches = len(shown), &content, &total
	summary := fmt.Sprintf("\n\nFound %d total %s across %d %s.",
		total, plural(total, "occurrence"), len(shown), plural(len(shown), "file"))
	if p := out.paging(); p != "" {
		summary += " with pagination = " + p
	}
	if content == "" {
		return text("No matches found"+summary, out)
	}
	return text(content+summary, out)
}

func (s *search) files(found []matches) protocol.ToolResult {
	all := make(datedFiles, len(found))
	for i, m := range found {
		all[i] = m.dated
	}
	all.sort()
	out := grepOutput{Mode: "files_with_matches", Filenames: []string{}, TotalFiles: new(len(all))}
	for _, f := range page(s, all, &out) {
		out.Filenames = append(out.Filenames, f.name)
	}
	out.NumFiles = len(out.Filenames)
	if out.NumFiles == 0 {
		return text("No files found", out)
	}
	head := fmt.Sprintf("Found %d %s", out.NumFiles, plural(out.NumFiles, "file"))
	if p := out.paging(); p != "" {
		head += " " + p
	}
	return text(head+"\n"+strings.Join(out.Filenames, "\n"), out)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func (s *search) context() bool { return s.Before > 0 || s.After > 0 || s.Around > 0 || s.Context > 0 }

// render shows the matching lines of one file with their context.
func (s *search) render(m matches) []string {
	before, after := s.Before, s.After
	if around := max(s.Around, s.Context); around > 0 {
		before, after = around, around
	}
	var out []string
	next := 0 // first line not shown yet
	for i, h := range m.hits {
		from := max(next, h.line-clamp(before))
		if i > 0 && from > next && s.context() {
			out = append(out, "--")
		}
		for ; from < h.line; from++ {
			out = append(out, s.line(m, from, "-", m.lines[from]))
		}
		for _, l := range h.texts(m, s.OnlyMatching) {
			out = append(out, s.line(m, h.line, ":", l))
		}
		next = h.line + 1
		last := min(h.line+clamp(after), len(m.lines)-1)
		if i+1 < len(m.hits) {
			last = min(last, m.hits[i+1].line-1)
		}
		for ; next <= last; next++ {
			out = append(out, s.line(m, next, "-", m.lines[next]))
		}
	}
	return out
}

func clamp(n number) int { return int(max(0, min(n, 1<<20))) }

func (h hit) texts(m matches, onlyMatching bool) []string {
	if !onlyMatching {
		return []string{m.lines[h.line]}
	}
	return slices.DeleteFunc(slices.Clone(h.parts), func(p string) bool { return p == "" })
}

func (s *search) line(m matches, n int, separator, content string) string {
	var b strings.Builder
	if !s.single {
		b.WriteString(m.name + separator)
	}
	if s.Numbers == nil || *s.Numbers {
		b.WriteString(strconv.Itoa(n+1) + separator)
	}
	if len(content) > maxColumns {
		content = "[Omitted long matching line]"
	}
	b.WriteString(content)
	return b.String()
}
