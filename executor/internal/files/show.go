package files

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	defaultHeadLimit              = 250
	maxBytesOfUnomittedSearchLine = 500 // longer lines are omitted
)

type grepOutput struct {
	Mode       string   `json:"mode"`
	NumFiles   int      `json:"numFiles"`
	Filenames  []string `json:"filenames"`
	Content    *string  `json:"content,omitempty"`
	NumLines   *int     `json:"numLines,omitempty"`
	TotalLines *int     `json:"totalLines,omitempty"`
	NumMatches *int     `json:"numMatches,omitempty"`
	appliedPage
}

// grepFilesOutput is the output of a search in the mode files_with_matches.
type grepFilesOutput struct {
	Mode       string   `json:"mode"`
	Filenames  []string `json:"filenames"`
	NumFiles   int      `json:"numFiles"`
	TotalFiles int      `json:"totalFiles"`
	appliedPage
}

type appliedPage struct {
	Limit  int `json:"appliedLimit,omitempty"`
	Offset int `json:"appliedOffset,omitempty"`
}

func pageOfResults[T any](s *grepSearch, items []T, out *appliedPage) []T {
	offset := max(0, int(s.Offset))
	limit := defaultHeadLimit
	if s.HeadLimit != nil {
		limit = max(0, int(*s.HeadLimit))
	}
	items = items[min(offset, len(items)):]
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		out.Limit = limit
	}
	out.Offset = offset
	return items
}

func (a appliedPage) paginationText() (noteOrEmpty string) {
	var parts []string
	if a.Limit > 0 {
		parts = append(parts, "limit: "+strconv.Itoa(a.Limit))
	}
	if a.Offset > 0 {
		parts = append(parts, "offset: "+strconv.Itoa(a.Offset))
	}
	return strings.Join(parts, ", ")
}

func (s *grepSearch) contentResult(found []fileMatches) protocol.ToolResult {
	var lines []string
	for _, m := range found {
		if len(lines) > 0 && s.wantsContextLines() {
			lines = append(lines, "--")
		}
		lines = append(lines, s.formatMatches(m)...)
	}
	out := grepOutput{Mode: "content", Filenames: []string{}}
	shown := pageOfResults(s, lines, &out.appliedPage)
	content := strings.Join(shown, "\n")
	out.Content, out.NumLines, out.TotalLines = &content, new(len(shown)), new(len(lines))
	return tool.TextResult(s.appendPagingNote(content, "No matches found", out), out)
}

func (s *grepSearch) appendPagingNote(content, textIfEmpty string, out grepOutput) string {
	content = cmp.Or(content, textIfEmpty)
	if p := out.paginationText(); p != "" {
		content += "\n\n[Showing results with pagination = " + p + "]"
	}
	return content
}

func (s *grepSearch) countResult(found []fileMatches) protocol.ToolResult {
	out := grepOutput{Mode: "count", NumFiles: len(found), Filenames: []string{}}
	total := 0
	var lines []string
	for _, m := range found {
		n := 0
		for _, h := range m.hits {
			n += h.count
		}
		total += n
		lines = append(lines, m.name+":"+strconv.Itoa(n))
	}
	content := strings.Join(pageOfResults(s, lines, &out.appliedPage), "\n")
	out.Content, out.NumMatches = &content, &total
	summary := fmt.Sprintf("\n\nFound %s across %s.", diag.FormatCount(total, "total occurrence"), diag.FormatCount(len(found), "file"))
	if p := out.paginationText(); p != "" {
		summary += " with pagination = " + p
	}
	if content == "" {
		return tool.TextResult("No matches found"+summary, out)
	}
	return tool.TextResult(content+summary, out)
}

func (s *grepSearch) filesResult(found []fileMatches) protocol.ToolResult {
	all := make(filesWithModificationTimes, len(found))
	for i, m := range found {
		all[i] = m.fileWithModificationTime
	}
	all.sortNewestFirstThenByName()
	out := grepFilesOutput{Mode: "files_with_matches", Filenames: []string{}, TotalFiles: len(all)}
	for _, f := range pageOfResults(s, all, &out.appliedPage) {
		out.Filenames = append(out.Filenames, f.name)
	}
	out.NumFiles = len(out.Filenames)
	if out.NumFiles == 0 {
		return tool.TextResult("No files found", out)
	}
	head := "Found " + diag.FormatCount(out.NumFiles, "file")
	if p := out.paginationText(); p != "" {
		head += " " + p
	}
	return tool.TextResult(head+"\n"+strings.Join(out.Filenames, "\n"), out)
}

func (s *grepSearch) wantsContextLines() bool {
	return s.Before > 0 || s.After > 0 || s.Around > 0 || s.Context > 0
}

func (s *grepSearch) formatMatches(m fileMatches) []string {
	before, after := s.Before, s.After
	if around := max(s.Around, s.Context); around > 0 {
		before, after = around, around
	}
	var out []string
	next := 0 // index of the first line that is not shown yet
	for i, h := range m.hits {
		from := max(next, h.number-clampContextLineCount(before))
		if i > 0 && from > next && s.wantsContextLines() {
			out = append(out, "--")
		}
		for ; from < h.number; from++ {
			out = append(out, s.formatLine(m, from, "-", m.lines[from]))
		}
		for _, l := range h.matchedTexts(m, s.OnlyMatching) {
			out = append(out, s.formatLine(m, h.number, ":", l))
		}
		next = h.number + 1
		last := min(h.number+clampContextLineCount(after), len(m.lines)-1)
		if i+1 < len(m.hits) {
			last = min(last, m.hits[i+1].number-1)
		}
		for ; next <= last; next++ {
			out = append(out, s.formatLine(m, next, "-", m.lines[next]))
		}
	}
	return out
}

func clampContextLineCount(n tool.IntFromJSONNumber) int { return int(max(0, min(n, 1<<20))) }

func (h matchedLine) matchedTexts(m fileMatches, onlyMatching bool) []string {
	if !onlyMatching {
		return []string{m.lines[h.number]}
	}
	return slices.DeleteFunc(slices.Clone(h.parts), func(p string) bool { return p == "" })
}

func (s *grepSearch) formatLine(m fileMatches, n int, separator, content string) string {
	var b strings.Builder
	if !s.singleFile {
		b.WriteString(m.name + separator)
	}
	if s.Numbers == nil || *s.Numbers {
		b.WriteString(strconv.Itoa(n+1) + separator)
	}
	if len(content) > maxBytesOfUnomittedSearchLine {
		content = "[Omitted long matching line]"
	}
	b.WriteString(content)
	return b.String()
}
