package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type notebookEditInput struct {
	NotebookPath string `json:"notebook_path"`
	CellID       string `json:"cell_id"`
	NewSource    string `json:"new_source"`
	CellType     string `json:"cell_type"`
	EditMode     string `json:"edit_mode"`
}

type notebookEditOutput struct {
	NewSource    string `json:"new_source"`
	OldSource    string `json:"old_source,omitempty"`
	CellType     string `json:"cell_type"`
	Language     string `json:"language"`
	EditMode     string `json:"edit_mode"`
	CellID       string `json:"cell_id,omitempty"`
	Error        string `json:"error"`
	NotebookPath string `json:"notebook_path"`
	OriginalFile string `json:"original_file"`
	UpdatedFile  string `json:"updated_file"`
}

// NotebookEdit returns the tool that changes a cell of a notebook.
func NotebookEdit(f *SeenFileTracker) tool.Tool {
	return tool.Tool{
		Name: "NotebookEdit",
		Check: typedCheckForCaller(f, func(_ context.Context, f *SeenFileTracker, in notebookEditInput) *protocol.ToolResult {
			_, refusal := f.editNotebookInMemory(&in)
			return refusal
		}),
		Run: typedRunForCaller(f, runNotebookEdit),
	}
}

type unsavedNotebookEdit struct {
	path, contentBefore string
	notebook            *notebook
	output              notebookEditOutput
}

// editNotebookInMemory applies an edit to the cells in memory. An empty in.EditMode becomes "replace".
func (f *SeenFileTracker) editNotebookInMemory(in *notebookEditInput) (unsavedNotebookEdit, *protocol.ToolResult) {
	p := unsavedNotebookEdit{path: f.options.Paths.Path(in.NotebookPath)}
	in.EditMode = cmp.Or(in.EditMode, "replace")
	no := func(format string, args ...any) (unsavedNotebookEdit, *protocol.ToolResult) {
		return p, new(tool.Refuse(format, args...))
	}
	if !strings.HasSuffix(p.path, ".ipynb") {
		return no("File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool.")
	}
	if in.EditMode == "insert" && in.CellType == "" {
		return no("Cell type is required when using edit_mode=insert.")
	}
	data, err := readRegularFile(p.path)
	if read, current, _ := f.seenByModel.compareWithSeenContent(p.path, string(data)); !read {
		return no(notReadText)
	} else if err == nil && !current {
		return no(modifiedSinceText)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return no("Notebook file does not exist.")
	}
	if err != nil {
		return no("%s", fileErrorTextLikeNodeJS(err, "open", p.path))
	}
	p.contentBefore = string(data)
	if p.notebook, err = parseNotebook(data); err != nil {
		return no("Notebook is not valid JSON.")
	}
	if in.EditMode != "insert" && in.CellID == "" {
		return no("Cell ID must be specified when not inserting a new cell.")
	}
	var refusal *protocol.ToolResult
	p.output, refusal = p.notebook.editCell(*in, func() string { return strings.ReplaceAll(f.options.Clock.NewID(), "-", "") })
	return p, refusal
}

func runNotebookEdit(_ context.Context, f *SeenFileTracker, in notebookEditInput) protocol.ToolResult {
	p, refusal := f.editNotebookInMemory(&in)
	if refusal != nil {
		return *refusal
	}
	updated, err := p.notebook.marshal()
	if err != nil {
		return tool.Fail("%v", err)
	}
	if err := createOrReplaceFileKeepingMode(p.path, updated); err != nil {
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "open", p.path))
	}
	f.seenByModel.recordShown(p.path, string(updated))
	out := p.output
	out.NotebookPath, out.OriginalFile, out.UpdatedFile = p.path, p.contentBefore, string(updated)
	switch in.EditMode {
	case "insert":
		cell := "a new cell"
		if out.CellID != "" {
			cell = "cell " + out.CellID
		}
		return tool.TextResult(fmt.Sprintf("Inserted %s with %s", cell, in.NewSource), out)
	case "delete":
		return tool.TextResult("Deleted cell "+out.CellID, out)
	}
	return tool.TextResult(fmt.Sprintf("Updated cell %s with %s", out.CellID, in.NewSource), out)
}

func (nb *notebook) editCell(in notebookEditInput, newID func() string) (notebookEditOutput, *protocol.ToolResult) {
	out := notebookEditOutput{NewSource: in.NewSource, CellID: in.CellID, CellType: cmp.Or(in.CellType, "code"), Language: nb.language(), EditMode: in.EditMode}
	at, found := 0, true
	if in.CellID != "" {
		at, found = nb.findCell(in.CellID)
	}
	if !found {
		r := tool.Refuse("Cell with ID \"%s\" not found in notebook.", in.CellID)
		if m := cellNumberPattern().FindStringSubmatch(in.CellID); m != nil {
			r = tool.Refuse("Cell with index %s does not exist in notebook.", m[1])
		}
		return out, &r
	}
	if in.EditMode == "insert" {
		if in.CellID != "" {
			at++
		}
		out.CellID = ""
		if nb.hasCellIDs() {
			id := newID()
			out.CellID = id[:min(8, len(id))]
		}
		nb.cells = slices.Insert(nb.cells, at, newCell(in, out.CellID))
		return out, nil
	}
	cell := &nb.cells[at]
	out.OldSource = tool.JSONStringOrConcatenatedList(cell.Get("source"))
	if in.EditMode == "delete" {
		nb.cells = slices.Delete(nb.cells, at, at+1)
		return out, nil
	}
	*cell = cell.Set("source", tool.Quote(in.NewSource))
	if tool.JSONStringOrConcatenatedList(cell.Get("cell_type")) == "code" { // the previous type of the cell, not the new one
		*cell = cell.Set("execution_count", json.RawMessage("null")).Set("outputs", json.RawMessage("[]"))
	}
	if in.CellType != "" {
		*cell = cell.Set("cell_type", tool.Quote(in.CellType))
	}
	return out, nil
}

func newCell(in notebookEditInput, id string) plainjson.Object {
	cell := plainjson.Object{{Key: "cell_type", Value: tool.Quote(in.CellType)}}
	if id != "" {
		cell = cell.Set("id", tool.Quote(id))
	}
	cell = cell.Set("source", tool.Quote(in.NewSource)).Set("metadata", json.RawMessage("{}"))
	if in.CellType == "code" {
		cell = cell.Set("execution_count", json.RawMessage("null")).Set("outputs", json.RawMessage("[]"))
	}
	return cell
}

// notebook is a Jupyter notebook. It keeps unknown keys and the order of keys.
type notebook struct {
	keys            plainjson.Object
	cells           []plainjson.Object
	endsWithNewline bool // the file ends with a newline
}

func parseNotebook(data []byte) (*notebook, error) {
	nb := &notebook{endsWithNewline: bytes.HasSuffix(data, []byte("\n"))}
	if err := plainjson.JavaScriptSyntaxErrorOf(data); err != nil {
		return nil, invalidNotebookError("not valid JSON (it may be truncated, corrupted, or still being written): " + err.Error())
	}
	if json.Unmarshal(data, &nb.keys) != nil || json.Unmarshal(nb.keys.Get("cells"), &nb.cells) != nil || slices.ContainsFunc(nb.cells, hasInvalidSource) {
		return nil, invalidNotebookError(`not a valid Jupyter notebook (top-level "cells" must be an array of cell objects, each with a string or string-array "source").`)
	}
	return nb, nil
}

// invalidNotebookError describes an invalid notebook in the words of the real CLI (observed with 2.1.330).
type invalidNotebookError string

func (e invalidNotebookError) Error() string { return "Notebook file is " + string(e) }

func hasInvalidSource(cell plainjson.Object) bool {
	var line string
	var lines []string
	source := cell.Get("source")
	return source == nil || json.Unmarshal(source, &line) != nil && json.Unmarshal(source, &lines) != nil
}

// marshal encodes the notebook in the format of Jupyter, with the keys in their original order.
func (nb *notebook) marshal() ([]byte, error) {
	cells, err := protocol.Marshal(nb.cells)
	if err != nil {
		return nil, err
	}
	nb.keys = nb.keys.Set("cells", cells)
	data, err := protocol.Marshal(nb.keys)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, data, "", " ")
	if nb.endsWithNewline {
		b.WriteByte('\n')
	}
	return b.Bytes(), err
}

func (nb *notebook) language() string {
	var meta struct {
		LanguageInfo struct{ Name string } `json:"language_info"`
	}
	if json.Unmarshal(nb.keys.Get("metadata"), &meta) != nil || meta.LanguageInfo.Name == "" {
		return "python"
	}
	return meta.LanguageInfo.Name
}

// hasCellIDs reports whether the cells of the notebook have ids. They do in format 4.5 and later.
func (nb *notebook) hasCellIDs() bool {
	var major, minor int
	_ = json.Unmarshal(nb.keys.Get("nbformat"), &major)
	_ = json.Unmarshal(nb.keys.Get("nbformat_minor"), &minor)
	return major > 4 || major == 4 && minor >= 5
}

var cellNumberPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:cell-)?(\d{1,9})$`) })

// findCell returns the index of a cell by its id or by its number, as in "cell-3".
func (nb *notebook) findCell(id string) (int, bool) {
	for i, c := range nb.cells {
		if tool.JSONStringOrConcatenatedList(c.Get("id")) == id {
			return i, true
		}
	}
	if m := cellNumberPattern().FindStringSubmatch(id); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(nb.cells) {
			return n, true
		}
	}
	return 0, false
}

type notebookCell struct {
	CellType       string `json:"cellType,omitempty"`
	Source         string `json:"source"`
	ExecutionCount *int   `json:"execution_count,omitempty"`
	CellID         string `json:"cell_id"`
	Language       string `json:"language,omitempty"`
	Outputs        any    `json:"outputs,omitempty"`
}

type cellOutput struct {
	Type string `json:"output_type"`
	Text string `json:"text"`
}

type notebookReadOutput struct {
	FilePath string         `json:"filePath"`
	Cells    []notebookCell `json:"cells"`
}

// notebookReadResult returns the result of reading a notebook, cell by cell, or an error result and false.
func notebookReadResult(path string, notebookJSON []byte) (result protocol.ToolResult, isValidNotebook bool) {
	nb, err := parseNotebook(notebookJSON)
	if err != nil {
		return tool.Fail("%s", err), false
	}
	var parts []string
	file := notebookReadOutput{FilePath: path, Cells: []notebookCell{}}
	for i, c := range nb.cells {
		cell := notebookCell{CellType: tool.JSONStringOrConcatenatedList(c.Get("cell_type")), Source: tool.JSONStringOrConcatenatedList(c.Get("source")), CellID: tool.JSONStringOrConcatenatedList(c.Get("id"))}
		cell.CellID = cmp.Or(cell.CellID, fmt.Sprintf("cell-%d", i))
		kind := "<cell_type>" + cmp.Or(cell.CellType, "undefined") + "</cell_type>"
		var outputs []cellOutput
		if cell.CellType == "code" {
			kind, cell.Language = "", nb.language()
			_ = json.Unmarshal(c.Get("execution_count"), &cell.ExecutionCount) // ExecutionCount stays nil if the key is absent or null
			outputs = cellOutputs(c.Get("outputs"))
		}
		parts = append(parts, fmt.Sprintf("<cell id=%q>%s%s</cell id=%[1]q>", cell.CellID, kind, cell.Source))
		for _, o := range outputs {
			parts = append(parts, "\n"+o.Text)
		}
		if outputs != nil {
			cell.Outputs = outputs
		}
		file.Cells = append(file.Cells, cell)
	}
	if len(parts) == 0 {
		return tool.TextResult("(Read completed with no output)", readOutput{"notebook", file}), true
	}
	content := protocol.Content{Blocks: []protocol.Block{protocol.Text(strings.Join(parts, "\n"))}}
	return protocol.ToolResult{Content: content, Output: readOutput{"notebook", file}}, true
}

func cellOutputs(raw json.RawMessage) []cellOutput {
	var list []struct {
		Type      string                     `json:"output_type"`
		Text      json.RawMessage            `json:"text"`
		Data      map[string]json.RawMessage `json:"data"`
		Name      string                     `json:"ename"`
		Value     string                     `json:"evalue"`
		Traceback []string                   `json:"traceback"`
	}
	_ = json.Unmarshal(raw, &list) // if the list is invalid, the outputs before the error are still decoded
	var out []cellOutput
	for _, o := range list {
		s := tool.JSONStringOrConcatenatedList(o.Text)
		switch o.Type {
		case "execute_result", "display_data":
			s = tool.JSONStringOrConcatenatedList(o.Data["text/plain"])
		case "error":
			s = o.Name + ": " + o.Value + "\n" + strings.Join(o.Traceback, "\n")
		}
		out = append(out, cellOutput{o.Type, s})
	}
	return out
}
