package files

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// What the tools that change files have in common.

const (
	contextLines = 3
	fileIsKnown  = " (file state is current in your context — no need to Read it back)"

	notRead       = "File has not been read yet. Read it first before writing to it."
	modifiedSince = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
)

// patch is the difference that results show: tabs in front of a line are two
// blanks each there.
func patch(before, after string) []textdiff.Hunk {
	return textdiff.Hunks(untabbed(before), untabbed(after), contextLines)
}

func untabbed(text string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		rest := strings.TrimLeft(line, "\t")
		b.WriteString(strings.Repeat("  ", len(line)-len(rest)))
		b.WriteString(rest)
	}
	return b.String()
}

func updated(path string) string { return "The file " + path + " has been updated successfully." }

// lineEnds finds what JavaScript takes for space before the end of a line.
var lineEnds = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\t\v\f \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]+(\r|\n|\z)`)
})

// withoutTrailing takes the blanks from the line ends of a text that goes into
// a file; Markdown means something by them.
func withoutTrailing(in *ordered.Object, key string) bool {
	var path, text string
	if json.Unmarshal(in.Get("file_path"), &path) != nil || json.Unmarshal(in.Get(key), &text) != nil {
		return false
	}
	if lower := strings.ToLower(path); strings.HasSuffix(lower, ".md") || strings.HasSuffix(lower, ".mdx") {
		return false
	}
	clean := lineEnds().ReplaceAllString(text, "$1")
	if clean == text {
		return false
	}
	*in = (*in).With(key, tool.Quote(clean))
	return true
}
