package files

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// Texts and limits of the tools that change files.

const (
	contextLines  = 3
	fileKnownNote = " (file state is current in your context — no need to Read it back)"

	notReadText       = "File has not been read yet. Read it first before writing to it."
	modifiedSinceText = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
)

// abridgedOriginal returns the previous content of a changed file for the transcript. It returns nil if the content is
// long (observed with 2.1.330).
func abridgedOriginal(original *string) *string {
	const longest = 10_000 // UTF-16 units
	if original != nil && len(*original) > longest && len(utf16.Encode([]rune(*original))) > longest {
		return nil
	}
	return original
}

// structuredPatch returns the changes of a file for results. Each leading tab is shown as two spaces.
func structuredPatch(before, after string) []textdiff.Hunk {
	return textdiff.Hunks(expandLeadingTabs(before), expandLeadingTabs(after), contextLines)
}

func expandLeadingTabs(text string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		rest := strings.TrimLeft(line, "\t")
		b.WriteString(strings.Repeat("  ", len(line)-len(rest)))
		b.WriteString(rest)
	}
	return b.String()
}

// trailingSpacePattern matches white space, as JavaScript defines it, before the end of a line.
var trailingSpacePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[\t\v\f \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]+(\r|\n|\z)`)
})

// trimTrailingSpace removes trailing white space from the lines of the text at key, which will be written to a file. It
// reports whether it changed the input. Markdown files are excluded, because the spaces have a meaning there.
func trimTrailingSpace(in *plainjson.Object, key string) bool {
	var path, text string
	if json.Unmarshal(in.Get("file_path"), &path) != nil || json.Unmarshal(in.Get(key), &text) != nil {
		return false
	}
	if lower := strings.ToLower(path); strings.HasSuffix(lower, ".md") || strings.HasSuffix(lower, ".mdx") {
		return false
	}
	clean := trailingSpacePattern().ReplaceAllString(text, "$1")
	if clean == text {
		return false
	}
	*in = (*in).With(key, tool.Quote(clean))
	return true
}
