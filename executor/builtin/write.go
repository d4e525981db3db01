package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/internal/textdiff"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	contextLines = 3
	fileIsKnown  = " (file state is current in your context — no need to Read it back)"

	notRead       = "File has not been read yet. Read it first before writing to it."
	modifiedSince = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
)

type writeInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

type writeOutput struct {
	Type            string          `json:"type"` // create, update
	FilePath        string          `json:"filePath"`
	Content         string          `json:"content"`
	StructuredPatch []textdiff.Hunk `json:"structuredPatch"`
	OriginalFile    *string         `json:"originalFile"`
	UserModified    bool            `json:"userModified"`
}

func writeTool() tool {
	return tool{
		name:        "Write",
		description: "Writes a file, replacing what it held. Missing directories are made.",
		input: object(
			req("file_path", str("Path of the file")),
			req("content", str("The whole new content")),
		),
		prepare: func(in *ordered.Object) bool { return withoutTrailing(in, "content") },
		check: typedCheck(func(t *Tools, in writeInput) *protocol.ToolResult {
			path := t.path(in.FilePath)
			if r := t.shared(path); r != nil {
				return r
			}
			old, err := readRegular(path)
			if errors.Is(err, syscall.ENOTDIR) {
				r := protocol.UsageError("Error calling tool (Write): ENOTDIR: not a directory, stat '" + path + "'")
				return &r
			}
			if errors.Is(err, errDirectory) {
				r := refuse("%s is a directory, not a file. To create a file inside it, include the file name in file_path.", path)
				return &r
			}
			read, current, _ := t.knows(path, string(old))
			switch {
			case err != nil:
			case !read && !t.o.Readable(path):
				r := refuse(notRead)
				return &r
			case read && !current:
				r := refuse(modifiedSince)
				return &r
			}
			return nil
		}),
		run: typed(write),
	}
}

func write(_ context.Context, t *Tools, in writeInput) protocol.ToolResult {
	path := t.path(in.FilePath)
	old, err := readRegular(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("%s", describe(err, "open", path))
	}
	if why := foreign(old); why != "" {
		return fail("File %s %s", why, notWritten)
	}
	created := err != nil
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fail("%s", describe(err, "mkdir", filepath.Dir(path)))
	}
	if err := store(path, []byte(in.Content)); err != nil {
		return fail("%s", describe(err, "open", path))
	}
	t.know(path, in.Content)
	name := named(in.FilePath)
	out := writeOutput{Type: "create", FilePath: name, Content: in.Content, StructuredPatch: []textdiff.Hunk{}}
	if created {
		return text("File created successfully at: "+name+fileIsKnown, out)
	}
	original := string(old)
	out.Type, out.OriginalFile = "update", &original
	out.StructuredPatch = patch(original, in.Content)
	return text(updated(name)+fileIsKnown, out)
}

// store writes a file. One that is there keeps its old content until the new one
// is on disk; it is then another file, with the same mode, behind the same
// symbolic links, and its hard links stay with the old content (as 2.1.329 does).
func store(path string, content []byte) error {
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.WriteFile(path, content, 0o644); err != nil {
			_ = os.Remove(path) // half a file helps nobody
		}
		return err
	}
	if err != nil {
		return err
	}
	info, err := old.Stat()
	_ = old.Close() // nothing was written
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil { // its directory takes no new files
		return os.WriteFile(path, content, 0o644)
	}
	_, err = beside.Write(content)
	if err = errors.Join(err, beside.Chmod(info.Mode().Perm()), beside.Close()); err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(beside.Name()) // the error of writing is what counts
	}
	return err
}

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

// maxFile bounds what is read into memory.
const maxFile = 1 << 30

// readRegular reads a whole file; directories, devices and pipes are errors.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, errDevice
	case info.Size() > maxFile:
		return nil, errTooLarge
	}
	return os.ReadFile(path)
}

var (
	errDirectory = errors.New("EISDIR: illegal operation on a directory")
	errDevice    = errors.New("not a regular file: reading it would block or never end")
	errTooLarge  = errors.New("file is larger than 1 GB")
)

// describe words a file error as Node does.
func describe(err error, op, path string) string {
	code := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = "ENOENT: no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		code = "EACCES: permission denied"
	case errors.Is(err, errDirectory):
		op = "read"
		code = err.Error()
	default:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return err.Error() + ", " + op + " '" + path + "'"
	}
	return code + ", " + op + " '" + path + "'"
}

var lineEnds = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)[^\S\r\n]+(\r?)$`) })

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
	*in = (*in).With(key, quote(clean))
	return true
}
