package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

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
		Name:        "NotebookEdit",
		Description: "Replaces, inserts or deletes one cell of a Jupyter notebook.",
		Input: tool.Object(
			tool.Required("notebook_path", tool.String("Path of the .ipynb file")),
			tool.Optional("cell_id", tool.String("Cell to change; with insert, the cell after which to insert (default: at the start)")),
			tool.Required("new_source", tool.String("New source of the cell")),
			tool.Optional("cell_type", tool.String("Kind of cell; needed to insert", "code", "markdown")),
			tool.Optional("edit_mode", tool.String("What to do (default replace)", "replace", "insert", "delete")),
		),
		Check: typedCheck(f, func(_ context.Context, f *SeenFileTracker, in notebookEditInput) *protocol.ToolResult {
			_, refusal := f.planNotebook(&in)
			return refusal
		}),
		Run: typedRun(f, editNotebook),
	}
}

type plannedNotebookEdit struct {
	path, contentBefore string
	notebook            *notebook
	output              notebookEditOutput
}

// planNotebook applies an edit to the cells in memory. An empty in.EditMode becomes "replace".
func (f *SeenFileTracker) planNotebook(in *notebookEditInput) (plannedNotebookEdit, *protocol.ToolResult) {
	p := plannedNotebookEdit{path: f.options.Paths.Path(in.NotebookPath)}
	in.EditMode = cmp.Or(in.EditMode, "replace")
	no := func(format string, args ...any) (plannedNotebookEdit, *protocol.ToolResult) {
		return p, new(tool.Refuse(format, args...))
	}
	if !strings.HasSuffix(p.path, ".ipynb") {
		return no("File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool.")
	}
	if in.EditMode == "insert" && in.CellType == "" {
		return no("Cell type is required when using edit_mode=insert.")
	}
	data, err := readRegularFile(p.path)
	if read, current, _ := f.seen.lookup(p.path, string(data)); !read {
		return no(notReadText)
	} else if err == nil && !current {
		return no(modifiedSinceText)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return no("Notebook file does not exist.")
	}
	if err != nil {
		return no("%s", describeError(err, "open", p.path))
	}
	p.contentBefore = string(data)
	if p.notebook, err = parseNotebook(data); err != nil {
		return no("Notebook is not valid JSON.")
	}
	if in.EditMode != "insert" && in.CellID == "" {
		return no("Cell ID must be specified when not inserting a new cell.")
	}
	var refusal *protocol.ToolResult
	p.output, refusal = p.notebook.editCells(*in, f.newCellID)
	return p, refusal
}

func editNotebook(_ context.Context, f *SeenFileTracker, in notebookEditInput) protocol.ToolResult {
	p, refusal := f.planNotebook(&in)
	if refusal != nil {
		return *refusal
	}
	updated, err := p.notebook.marshal()
	if err != nil {
		return tool.Fail("%v", err)
	}
	if err := createOrReplaceFileKeepingMode(p.path, updated); err != nil {
		return tool.Fail("%s", describeError(err, "open", p.path))
	}
	f.seen.recordShown(p.path, string(updated))
	out := p.output
	out.NotebookPath, out.OriginalFile, out.UpdatedFile = p.path, p.contentBefore, string(updated)
	switch in.EditMode {
	case "insert":
		cell := "a new cell"
		if out.CellID != "" {
			cell = "cell " + out.CellID
		}
		return tool.Text(fmt.Sprintf("Inserted %s with %s", cell, in.NewSource), out)
	case "delete":
		return tool.Text("Deleted cell "+out.CellID, out)
	}
	return tool.Text(fmt.Sprintf("Updated cell %s with %s", out.CellID, in.NewSource), out)
}

func (f *SeenFileTracker) newCellID() string {
	return strings.ReplaceAll(f.options.Clock.NewID(), "-", "")
}

func (nb *notebook) editCells(in notebookEditInput, newID func() string) (notebookEditOutput, *protocol.ToolResult) {
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
	out.OldSource = tool.TextOfJSONStringOrStringList(cell.Get("source"))
	if in.EditMode == "delete" {
		nb.cells = slices.Delete(nb.cells, at, at+1)
		return out, nil
	}
	*cell = cell.With("source", tool.Quote(in.NewSource))
	if tool.TextOfJSONStringOrStringList(cell.Get("cell_type")) == "code" { // the previous type of the cell, not the new one
		*cell = cell.With("execution_count", json.RawMessage("null")).With("outputs", json.RawMessage("[]"))
	}
	if in.CellType != "" {
		*cell = cell.With("cell_type", tool.Quote(in.CellType))
	}
	return out, nil
}

func newCell(in notebookEditInput, id string) plainjson.Object {
	cell := plainjson.Object{{Key: "cell_type", Value: tool.Quote(in.CellType)}}
	if id != "" {
		cell = cell.With("id", tool.Quote(id))
	}
	cell = cell.With("source", tool.Quote(in.NewSource)).With("metadata", json.RawMessage("{}"))
	if in.CellType == "code" {
		cell = cell.With("execution_count", json.RawMessage("null")).With("outputs", json.RawMessage("[]"))
	}
	return cell
}
