package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/textdiff"
	"github.com/claudeless/claudeless/simulator/protocol"
)

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
		Name:        "Write",
		Description: "Writes a file and replaces its content. Missing directories are created.",
		Input:       tool.Object(tool.Required("file_path", tool.String("Path of the file")), tool.Required("content", tool.String("The whole new content"))),
		Prepare: func(in *tool.Keys) bool {
			decoded := tool.DecodeUnicodeEscapesInStrings(in)
			return trimTrailingSpace(in, "content") || decoded
		},
		RenameAliases: func(in *tool.Keys) (string, bool) {
			return "Note: Write's parameters are named `file_path` and `content`. `path` was read as `file_path`.", tool.RenameStringKey(in, "path", "file_path")
		},
		Check: typedCheck(f, checkWritable),
		Run:   typedRun(f, runWrite),
	}
}

// subagentForbiddenReportNamePattern matches the names of files that sub-agents may not write (observed with 2.1.330).
var subagentForbiddenReportNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(REPORT|SUMMARY|FINDINGS|ANALYSIS).*\.md$`) })

// checkWritable refuses a file that cannot be replaced, or whose current content the session has not read.
func checkWritable(_ context.Context, f *SeenFileTracker, in writeInput) *protocol.ToolResult {
	path := f.options.Paths.Path(in.FilePath)
	if f.usedByAgent && subagentForbiddenReportNamePattern().MatchString(filepath.Base(path)) {
		return new(tool.Refuse("Subagents should return findings as text, not write report files. Include this content in your final response instead."))
	}
	old, err := readRegularFile(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return new(protocol.UsageError("Error calling tool (Write): ENOTDIR: not a directory, stat '" + path + "'"))
	}
	if errors.Is(err, errDirectory) {
		return new(tool.Refuse("%s is a directory, not a file. To create a file inside it, include the file name in file_path.", in.FilePath))
	}
	read, current, _ := f.seen.lookup(path, string(old))
	switch {
	case err != nil:
	case !read && !f.options.Access.IsReadable(path):
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
		return tool.Fail("%s", describeError(err, "open", path))
	}
	if why := encodingProblem(old); why != "" {
		return tool.Fail("File %s %s", why, encodingNotWrittenText)
	}
	created := len(old) == 0 // an empty file counts as new
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return tool.Fail("%s", describeError(err, "mkdir", filepath.Dir(path)))
	}
	if err := createOrReplaceFileKeepingMode(path, []byte(in.Content)); err != nil {
		return tool.Fail("%s", describeError(err, "open", path))
	}
	modified, note := hasUserModifiedInputOfCall(ctx), fileIsCurrentNote
	if modified {
		note = " The user modified your proposed content before accepting it."
	}
	f.seen.recordWritten(path, in.Content, !modified)
	name := in.FilePath
	out := writeOutput{Type: "create", FilePath: name, Content: in.Content, StructuredPatch: []textdiff.Hunk{}, UserModified: modified}
	if created {
		return tool.Text("File created successfully at: "+name+note, out)
	}
	original := strings.ReplaceAll(string(old), "\r\n", "\n")
	out.Type, out.OriginalFile = "update", &original
	out.StructuredPatch = structuredPatch(original, in.Content)
	return tool.Text("The file "+name+" has been updated successfully."+note, out)
}
