// Package files implements the tools that read and change a single file: Read,
// Write, Edit and NotebookEdit.
//
// A file is changed only if the session has read its current content, or if no
// read is required.
package files

import (
	"encoding/json"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Where is what paths start from.
type Where interface {
	Dir() string
	// Path makes a path absolute.
	Path(string) string
}

// Access tells whether a file may be read without a question. One that may not
// is not written or edited either before it has been read.
type Access interface {
	Readable(path string) bool
}

// Options says where files are. Where and Clock are required.
type Options struct {
	Where  Where
	Clock  tool.Clock // names new cells
	Access Access     // nil = all files may be read
}

// Files is what a session has seen of files. Its methods may be called from
// many goroutines.
type Files struct {
	o    Options
	seen seenFiles
}

// New makes the files of a session. It touches none.
func New(o Options) *Files {
	if o.Access == nil {
		o.Access = open{}
	}
	return &Files{o: o, seen: seenFiles{of: map[string]seenContent{}}}
}

// open lets every file be read.
type open struct{}

func (open) Readable(string) bool { return true }

// Printed notes that a command has shown a file, if that is what it printed.
func (f *Files) Printed(file, printed string) {
	path := f.o.Where.Path(file)
	if data, err := readRegular(path); err == nil && string(data) == printed {
		f.seen.know(path, printed)
	}
}

// Touched names the file that a call reads or writes, as an absolute path;
// empty = none.
func (f *Files) Touched(call protocol.ToolUse) string {
	var in struct {
		Path     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Command  string `json:"command"`
	}
	if json.Unmarshal(call.Input, &in) != nil {
		return ""
	}
	path := ""
	switch call.Name {
	case "Read", "Write", "Edit":
		path = in.Path
	case "NotebookEdit":
		path = in.Notebook
	case "Bash":
		path = shell.Views(in.Command)
	}
	if path == "" {
		return ""
	}
	return f.o.Where.Path(path)
}

// Observed returns a call's input as hooks and hosts see it: the path of a file
// to read, write or edit is absolute there. Nil = the input itself.
func (f *Files) Observed(call protocol.ToolUse) json.RawMessage {
	switch call.Name {
	case "Read", "Write", "Edit":
	default:
		return nil
	}
	const key = "file_path"
	in, err := ordered.Parse(call.Input)
	var path string
	if err != nil || ordered.TypeOf(in.Get(key)) != "string" || json.Unmarshal(in.Get(key), &path) != nil {
		return nil
	}
	whole := f.o.Where.Path(path)
	if whole == path {
		return nil
	}
	out, err := in.With(key, tool.Quote(whole)).MarshalJSON()
	if err != nil {
		return nil
	}
	return out
}
