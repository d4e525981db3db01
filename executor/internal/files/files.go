// Package files implements the tools that read and change a file (Read, Write,
// Edit, NotebookEdit) and those that find files (Glob, Grep), which leave out files
// that a permission rule hides.
//
// A file is changed only if the session has read its current content, or if no read
// is required.
package files

import (
	"encoding/json"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Access says whether a file may be read without asking. A file that may not is
// also not written or edited before it has been read.
type Access interface {
	Readable(path string) bool
}

// Options configure Files. Paths and Clock are required.
type Options struct {
	Paths  *tool.Shell // its working directory
	Clock  tool.Clock  // provides ids of new cells
	Access Access      // nil = all files may be read
}

// Tools returns the tools of this package.
func Tools(f *Files) []tool.Tool { return []tool.Tool{Edit(f), NotebookEdit(f), Read(f), Write(f)} }

// Files holds what a session knows about files. Its methods may be called from many
// goroutines.
type Files struct {
	o    Options
	seen seenFiles
}

// New returns the Files of a session; it accesses no file.
func New(o Options) *Files {
	if o.Access == nil {
		o.Access = openAccess{}
	}
	return &Files{o: o, seen: seenFiles{byPath: map[string]seenContent{}}}
}

// openAccess allows reading every file.
type openAccess struct{}

func (openAccess) Readable(string) bool { return true }

// RecordPrinted records that a command has printed the content of a file, if printed is
// that content.
func (f *Files) RecordPrinted(file, printed string) {
	path := f.o.Paths.Path(file)
	if data, err := readRegular(path); err == nil && string(data) == printed {
		f.seen.recordShown(path, printed)
	}
}

// Reread returns the file that a call wrote if its content is another since, and takes note of that
// content, which the model has not seen; "" = none.
func (f *Files) Reread(call protocol.ToolUse) string {
	if call.Name != "Edit" && call.Name != "Write" {
		return ""
	}
	path := f.TargetFile(call)
	data, err := readRegular(path)
	if err != nil {
		return ""
	}
	read, current, _ := f.seen.lookup(path, string(data))
	if !read || current {
		return ""
	}
	f.seen.record(path, string(data), false)
	return path
}

// TargetFile returns the file that a call reads or writes, as an absolute path; empty
// = none.
func (f *Files) TargetFile(call protocol.ToolUse) string {
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
		path = tool.ViewedFile(in.Command)
	}
	if path == "" {
		return ""
	}
	return f.o.Paths.Path(path)
}

// ObservedInput returns a call's input as hooks and hosts see it: with the path of a
// read, written or edited file made absolute. Nil = the input is unchanged.
func (f *Files) ObservedInput(call protocol.ToolUse) json.RawMessage {
	switch call.Name {
	case "Read", "Write", "Edit":
	default:
		return nil
	}
	const key = "file_path"
	in, err := plainjson.Parse(call.Input)
	var path string
	if err != nil || plainjson.TypeOf(in.Get(key)) != "string" || json.Unmarshal(in.Get(key), &path) != nil {
		return nil
	}
	whole := f.o.Paths.Path(path)
	if whole == path {
		return nil
	}
	out, err := in.With(key, tool.Quote(whole)).MarshalJSON()
	if err != nil {
		return nil
	}
	return out
}
