package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/textdiff"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type editInput struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

type editOutput struct {
	FilePath        string          `json:"filePath"`
	OldString       string          `json:"oldString"`
	NewString       string          `json:"newString"`
	OriginalFile    *string         `json:"originalFile"`
	StructuredPatch []textdiff.Hunk `json:"structuredPatch"`
	UserModified    bool            `json:"userModified"`
	ReplaceAll      bool            `json:"replaceAll"`
	// StaleRecovered is true if the edit succeeded although the file had changed after the model read it.
	StaleRecovered bool `json:"staleRecovered,omitempty"`
	NotInContext   bool `json:"contentNotInModelContext,omitempty"` // the model has not seen the content of the file
}

// Abridged implements [protocol.AbridgedResult].
func (o editOutput) Abridged() (withoutLargeOriginalFile any) {
	o.OriginalFile = originalContentOrNilIfTooLong(o.OriginalFile)
	return o
}

// Edit returns the tool that replaces a text in a file.
func Edit(f *SeenFileTracker) tool.Tool {
	return tool.Tool{
		Name: "Edit",
		Prepare: func(in *tool.OrderedObject) bool {
			renamed := in.Get("file_path") != nil && renameOldAndNewStrKeys(in)
			decoded := tool.DecodeUnicodeEscapesInStrings(in)
			trimmed := trimLineEndsUnlessMarkdown(in, "new_string")
			return addReplaceAllDefault(in) || trimmed || renamed || decoded
		},
		RenameAliases: func(in *tool.OrderedObject) (string, bool) {
			renamed := tool.RenameNonEmptyStringKey(in, "path", "file_path")
			renamed = renameOldAndNewStrKeys(in) || renamed
			return "", renamed && (addReplaceAllDefault(in) || renamed)
		},
		Check: typedCheckForCaller(f, func(_ context.Context, f *SeenFileTracker, in editInput) *protocol.ToolResult {
			_, refusal := f.planEdit(in)
			return refusal
		}),
		Run: typedRunForCaller(f, runEdit),
	}
}

type plannedEdit struct {
	path, contentBefore, contentAfter string
	replacedText                      string // the text to replace, as it is written in the file
	createsFile                       bool
	wasRead, isCurrent                bool // wasRead: the session has read the file; isCurrent: the file has not changed since then
	wasShown                          bool // the model has seen the whole file
	usesCRLF                          bool // the file has \r\n line ends; contentBefore and contentAfter have \n
}

func runEdit(ctx context.Context, f *SeenFileTracker, in editInput) protocol.ToolResult {
	p, refusal := f.planEdit(in)
	if refusal != nil {
		return *refusal
	}
	content := p.contentAfter
	if p.usesCRLF {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "mkdir", filepath.Dir(p.path)))
	}
	if err := createOrReplaceFileKeepingMode(p.path, []byte(content)); err != nil {
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "open", p.path))
	}
	name := in.FilePath
	out := editOutput{
		FilePath: name, OldString: p.replacedText, NewString: in.NewString, OriginalFile: &p.contentBefore,
		StructuredPatch: structuredPatch(p.contentBefore, p.contentAfter), ReplaceAll: in.ReplaceAll, UserModified: hasUserModifiedInputOfCall(ctx),
	}
	var note string
	if out.UserModified {
		note = ".  The user modified your proposed changes before accepting them. "
	}
	message := "The file " + name + " has been updated successfully" + note + "."
	if in.ReplaceAll {
		message = "The file " + name + " has been updated" + note + ". All occurrences were successfully replaced."
	}
	isKnown := (p.createsFile || p.wasShown) && !out.UserModified
	f.seenByModel.recordWritten(p.path, content, isKnown)
	switch {
	case isKnown:
		return tool.TextResult(message+fileIsCurrentNote, out)
	case p.wasRead && !p.isCurrent:
		message += " (note: the file had been modified on disk since you last read it — the edit applied cleanly, but the file " +
			"contains other changes not in your context. Read it before edits that depend on surrounding content.)"
		out.StaleRecovered = true
	}
	out.NotInContext = true
	return tool.TextResult(message, out)
}

func (f *SeenFileTracker) planEdit(in editInput) (plannedEdit, *protocol.ToolResult) {
	p := plannedEdit{path: f.options.Paths.Path(in.FilePath), replacedText: in.OldString}
	no := func(format string, args ...any) (plannedEdit, *protocol.ToolResult) {
		return p, new(tool.Refuse(format, args...))
	}
	if in.OldString == in.NewString {
		return no("No changes to make: old_string and new_string are exactly the same.")
	}
	data, err := readRegularFile(p.path)
	p.contentBefore = string(data)
	p.wasRead, p.isCurrent, p.wasShown = f.seenByModel.compareWithSeenContent(p.path, p.contentBefore)
	switch {
	case errors.Is(err, fs.ErrNotExist) && in.OldString == "":
		p.contentAfter, p.createsFile = in.NewString, true
		return p, nil
	case errors.Is(err, fs.ErrNotExist):
		return no("%s", missingFileText(f.options.Paths.Dir(), p.path))
	case errors.Is(err, errDirectory):
		return p, new(protocol.UsageErrorResult("Error calling tool (Edit): " + errDirectory.Error() + ", read"))
	case err != nil:
		return no("%s", fileErrorTextLikeNodeJS(err, "open", p.path))
	case encodingProblem(data) != "":
		return no("File %s %s", encodingProblem(data), encodingNotWrittenText)
	case in.OldString == "" && strings.TrimSpace(string(data)) != "":
		return no("Cannot create new file - file already exists.")
	case strings.HasSuffix(p.path, ".ipynb"):
		return no("File is a Jupyter Notebook. Use the NotebookEdit to edit this file.")
	case !p.wasRead && !f.options.Access.IsChangeableUnread(p.path, f.agent):
		return no(notReadText)
	}
	n := strings.Count(p.contentBefore, "\r\n")
	if p.usesCRLF = n > 0 && n == strings.Count(p.contentBefore, "\n"); p.usesCRLF {
		p.contentBefore, in.NewString = strings.ReplaceAll(p.contentBefore, "\r\n", "\n"), strings.ReplaceAll(in.NewString, "\r\n", "\n")
	}
	if in.OldString == "" {
		p.contentAfter = in.NewString
		return p, nil
	}
	in.OldString, in.NewString = useQuotesAndUnicodeEscapesOfFile(p.contentBefore, in.OldString, in.NewString)
	p.replacedText = in.OldString
	switch n := strings.Count(p.contentBefore, in.OldString); {
	case n == 0 && p.wasRead && !p.isCurrent:
		return no(modifiedSinceText)
	case n == 0:
		return no("String to replace not found in file.\nString: %s", in.OldString)
	case n > 1 && !in.ReplaceAll && p.wasRead && !p.isCurrent:
		return no(modifiedSinceText)
	case n > 1 && !in.ReplaceAll:
		return no("Found %d matches of the string to replace, but replace_all is false. To replace all occurrences, set replace_all to true. "+
			"To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: %s", n, in.OldString)
	}
	p.contentAfter = in.replaceIn(p.contentBefore)
	return p, nil
}

// useQuotesAndUnicodeEscapesOfFile adapts an edit to the notation of a file, which may have other quotes or \uXXXX escapes.
func useQuotesAndUnicodeEscapesOfFile(fileContent, old, replacement string) (adaptedOld string, adaptedReplacement string) {
	if strings.Contains(fileContent, old) {
		return old, replacement
	}
	if found := findIgnoringQuotes(fileContent, old); found != "" {
		return found, applyQuoteStyle(found, replacement)
	}
	if escaped := escapeNonASCIIAsUTF16Units(old); strings.Contains(fileContent, escaped) {
		return escaped, escapeNonASCIIAsUTF16Units(replacement)
	}
	return old, replacement
}

func escapeNonASCIIAsUTF16Units(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		if unit < utf8.RuneSelf {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// replaceIn returns content with in.OldString replaced by in.NewString. content must contain in.OldString.
func (in editInput) replaceIn(content string) string {
	limit := 1
	if in.ReplaceAll {
		limit = -1
	}
	old := in.OldString
	if in.NewString == "" && !strings.HasSuffix(old, "\n") && strings.Contains(content, old+"\n") {
		old += "\n" // if a whole line is deleted, its line end is deleted, too
	}
	return strings.Replace(content, old, in.NewString, limit)
}

// renameOldAndNewStrKeys renames the keys old_str and new_str, which other editors use, and reports whether the input had them.
func renameOldAndNewStrKeys(in *tool.OrderedObject) bool {
	old := tool.RenameNonEmptyStringKey(in, "old_str", "old_string")
	return tool.RenameKey(in, "new_str", "new_string") || old
}

// addReplaceAllDefault adds "replace_all": false, as the CLI does, to an input that has exactly the keys file_path, old_string and
// new_string. If the input now has exactly these four keys, it orders them with replace_all first. It reports whether it changed the input.
func addReplaceAllDefault(in *plainjson.Object) bool {
	if slices.ContainsFunc([]string{"file_path", "old_string", "new_string"}, func(key string) bool { return in.Get(key) == nil }) {
		return false
	}
	switch plainjson.TypeOf(in.Get("old_string")) {
	case "string", "array": // JavaScript's length exists for these values
	default:
		return false
	}
	if len(*in) == 3 {
		*in = append(*in, plainjson.Member{Key: "replace_all", Value: json.RawMessage("false")})
	}
	return len(*in) == 4 && in.Get("replace_all") != nil && in.SortKeys([]string{"replace_all", "file_path", "old_string", "new_string"})
}

var straightQuotes = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`)

// findIgnoringQuotes returns the part of content that equals old except for the kind of quotes; "" means none.
func findIgnoringQuotes(content, old string) string {
	from := []rune(content)
	at := strings.Index(straightQuotes.Replace(content), straightQuotes.Replace(old))
	if at < 0 {
		return ""
	}
	start := len([]rune(straightQuotes.Replace(content)[:at]))
	return string(from[start : start+len([]rune(old))])
}

// applyQuoteStyle makes the double quotes in text curly if those in old are curly, and likewise the single quotes.
func applyQuoteStyle(old, text string) string {
	double, single := strings.ContainsAny(old, "“”"), strings.ContainsAny(old, "‘’")
	runes := []rune(text)
	opens := func(i int) bool { return i == 0 || strings.ContainsRune(" \t\n\r([{—–", runes[i-1]) }
	letter := func(i int) bool { return i >= 0 && i < len(runes) && unicode.IsLetter(runes[i]) }
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '"' && double && opens(i):
			b.WriteRune('“')
		case r == '"' && double:
			b.WriteRune('”')
		case r == '\'' && single && opens(i) && (!letter(i-1) || !letter(i+1)):
			b.WriteRune('‘')
		case r == '\'' && single:
			b.WriteRune('’')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Texts and limits that Edit, Write and NotebookEdit share.

const (
	contextLines      = 3
	fileIsCurrentNote = " (file state is current in your context — no need to Read it back)"

	notReadText       = "File has not been read yet. Read it first before writing to it."
	modifiedSinceText = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
)

// originalContentOrNilIfTooLong returns the old content of a changed file for the transcript. It returns nil if the content has
// more than 10,000 UTF-16 units (observed with 2.1.330).
func originalContentOrNilIfTooLong(originalContent *string) *string {
	const longest = 10_000 // UTF-16 units
	if originalContent != nil && len(*originalContent) > longest && len(utf16.Encode([]rune(*originalContent))) > longest {
		return nil
	}
	return originalContent
}

// structuredPatch returns the changes of a file in the form of tool results. Each leading tab is shown as two spaces.
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

// trimLineEndsUnlessMarkdown removes trailing white space from each line of the text at key, which will be written to a
// file. It reports whether it changed the input. In Markdown files, trailing spaces have a meaning, so they are kept.
func trimLineEndsUnlessMarkdown(in *plainjson.Object, key string) bool {
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
	*in = (*in).Set(key, tool.Quote(clean))
	return true
}

type writeInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

type writeOutput struct {
	Type            string          `json:"type"` // create or update
	FilePath        string          `json:"filePath"`
	Content         string          `json:"content"`
	StructuredPatch []textdiff.Hunk `json:"structuredPatch"`
	OriginalFile    *string         `json:"originalFile"`
	UserModified    bool            `json:"userModified"`
}

// Abridged implements [protocol.AbridgedResult].
func (o writeOutput) Abridged() (withoutLargeOriginalFile any) {
	o.OriginalFile = originalContentOrNilIfTooLong(o.OriginalFile)
	return o
}

// Write returns the tool that writes a whole file.
func Write(f *SeenFileTracker) tool.Tool {
	return tool.Tool{
		Name: "Write",
		Prepare: func(in *tool.OrderedObject) bool {
			decoded := tool.DecodeUnicodeEscapesInStrings(in)
			ordered := len(*in) == 2 && in.Get("content") != nil && in.Get("file_path") != nil && in.SortKeys([]string{"file_path", "content"})
			return trimLineEndsUnlessMarkdown(in, "content") || decoded || ordered
		},
		RenameAliases: func(in *tool.OrderedObject) (string, bool) {
			return "Note: Write's parameters are named `file_path` and `content`. `path` was read as `file_path`.", tool.RenameNonEmptyStringKey(in, "path", "file_path")
		},
		Check: typedCheckForCaller(f, refuseUnwritableFile),
		Run:   typedRunForCaller(f, runWrite),
	}
}

// subagentForbiddenReportNamePattern matches the names of files that sub-agents may not write (observed with 2.1.330).
var subagentForbiddenReportNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(REPORT|SUMMARY|FINDINGS|ANALYSIS).*\.md$`) })

// refuseUnwritableFile refuses a file that cannot be replaced, or whose current content the session must read first.
func refuseUnwritableFile(_ context.Context, f *SeenFileTracker, in writeInput) *protocol.ToolResult {
	path := f.options.Paths.Path(in.FilePath)
	if f.agent != nil && subagentForbiddenReportNamePattern().MatchString(filepath.Base(path)) {
		return new(tool.Refuse("Subagents should return findings as text, not write report files. Include this content in your final response instead."))
	}
	old, err := readRegularFile(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return new(protocol.UsageErrorResult("Error calling tool (Write): ENOTDIR: not a directory, stat '" + path + "'"))
	}
	if errors.Is(err, errDirectory) {
		return new(tool.Refuse("%s is a directory, not a file. To create a file inside it, include the file name in file_path.", in.FilePath))
	}
	read, current, _ := f.seenByModel.compareWithSeenContent(path, string(old))
	switch {
	case err != nil:
	case !read && !f.options.Access.IsChangeableUnread(path, f.agent), f.seenByModel.isReadTruncated(path):
		return new(tool.Refuse(notReadText))
	case read && !current:
		return new(tool.Refuse(modifiedSinceText))
	}
	return nil
}

func runWrite(ctx context.Context, f *SeenFileTracker, in writeInput) protocol.ToolResult {
	path := f.options.Paths.Path(in.FilePath)
	old, err := readRegularFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "open", path))
	}
	if why := encodingProblem(old); why != "" {
		return tool.Fail("File %s %s", why, encodingNotWrittenText)
	}
	created := len(old) == 0 // an empty file counts as new
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "mkdir", filepath.Dir(path)))
	}
	if err := createOrReplaceFileKeepingMode(path, []byte(in.Content)); err != nil {
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "open", path))
	}
	modified, note := hasUserModifiedInputOfCall(ctx), fileIsCurrentNote
	if modified {
		note = " The user modified your proposed content before accepting it."
	}
	f.seenByModel.recordWritten(path, in.Content, !modified)
	name := in.FilePath
	out := writeOutput{Type: "create", FilePath: name, Content: in.Content, StructuredPatch: []textdiff.Hunk{}, UserModified: modified}
	if created {
		return tool.TextResult("File created successfully at: "+name+note, out)
	}
	original := strings.ReplaceAll(string(old), "\r\n", "\n")
	out.Type, out.OriginalFile = "update", &original
	out.StructuredPatch = structuredPatch(original, in.Content)
	return tool.TextResult("The file "+name+" has been updated successfully."+note, out)
}
