package builtin

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

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// notebook is a Jupyter notebook; keys not named here are kept.
type notebook struct {
	keys  ordered.Object
	cells []ordered.Object
}

func parseNotebook(data []byte) (*notebook, error) {
	nb := &notebook{}
	if err := json.Unmarshal(data, &nb.keys); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(nb.keys.Get("cells"), &nb.cells); err != nil {
		return nil, errors.New("it has no list of cells")
	}
	for _, c := range nb.cells {
		if c == nil {
			return nil, errors.New("a cell is null")
		}
	}
	return nb, nil
}

// marshal writes the notebook as Jupyter does; keys keep their order.
func (nb *notebook) marshal() ([]byte, error) {
	cells, err := protocol.Marshal(nb.cells)
	if err != nil {
		return nil, err
	}
	nb.keys = nb.keys.With("cells", cells)
	data, err := protocol.Marshal(nb.keys)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, data, "", " ")
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

// withIDs says whether cells have ids (format 4.5 and later).
func (nb *notebook) withIDs() bool {
	var major, minor int
	_ = json.Unmarshal(nb.keys.Get("nbformat"), &major)
	_ = json.Unmarshal(nb.keys.Get("nbformat_minor"), &minor)
	return major > 4 || major == 4 && minor >= 5
}

var cellNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:cell-)?(\d{1,9})$`) })

// find returns the index of the cell with this id, or of "cell-N".
func (nb *notebook) find(id string) (int, bool) {
	for i, c := range nb.cells {
		if textOf(c.Get("id")) == id {
			return i, true
		}
	}
	if m := cellNumber().FindStringSubmatch(id); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(nb.cells) {
			return n, true
		}
	}
	return 0, false
}

// textOf reads a string or a list of strings, the two forms of notebook text.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []string
	_ = json.Unmarshal(raw, &parts) // any other form has no text
	return strings.Join(parts, "")
}

type notebookCell struct {
	CellType       string `json:"cellType"`
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

type notebookFile struct {
	FilePath string         `json:"filePath"`
	Cells    []notebookCell `json:"cells"`
}

// readNotebook shows a notebook cell by cell; false = it is none.
func readNotebook(path string, data []byte) (protocol.ToolResult, bool) {
	nb, err := parseNotebook(data)
	if err != nil {
		return protocol.ToolResult{}, false
	}
	var parts []string
	file := notebookFile{FilePath: path, Cells: []notebookCell{}}
	for i, c := range nb.cells {
		cell := notebookCell{CellType: textOf(c.Get("cell_type")), Source: textOf(c.Get("source")), CellID: textOf(c.Get("id"))}
		if cell.CellID == "" {
			cell.CellID = fmt.Sprintf("cell-%d", i)
		}
		kind := "<cell_type>" + cell.CellType + "</cell_type>"
		var outputs []cellOutput
		if cell.CellType == "code" {
			kind, cell.Language = "", nb.language()
			_ = json.Unmarshal(c.Get("execution_count"), &cell.ExecutionCount) // absent and null are nil
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
	_ = json.Unmarshal(raw, &list) // a strange list of outputs is shown as far as it was read
	var out []cellOutput
	for _, o := range list {
		s := textOf(o.Text)
		switch o.Type {
		case "execute_result", "display_data":
			s = textOf(o.Data["text/plain"])
		case "error":
			s = o.Name + ": " + o.Value + "\n" + strings.Join(o.Traceback, "\n")
		}
		out = append(out, cellOutput{o.Type, s})
	}
	return out
}

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

func notebookEditTool() tool {
	return tool{
		name:        "NotebookEdit",
		description: "Replaces, inserts or deletes one cell of a Jupyter notebook.",
		input: object(
			req("notebook_path", str("Path of the .ipynb file")),
			opt("cell_id", str("Cell to change; with insert the cell to insert after, none = at the start")),
			req("new_source", str("New source of the cell")),
			opt("cell_type", str("Kind of cell; needed to insert", "code", "markdown")),
			opt("edit_mode", str("What to do (default replace)", "replace", "insert", "delete")),
		),
		check: typedCheck(func(t *Tools, in notebookEditInput) *protocol.ToolResult {
			_, refusal := t.planNotebook(&in)
			return refusal
		}),
		run: typed(editNotebook),
	}
}

// plannedNotebook is a change of a notebook that is possible, not yet written.
type plannedNotebook struct {
	path, before string
	nb           *notebook
	out          notebookEditOutput
}

// planNotebook changes the cells in memory, or says why that is not possible.
// It fills in the default of the edit mode.
func (t *Tools) planNotebook(in *notebookEditInput) (plannedNotebook, *protocol.ToolResult) {
	p := plannedNotebook{path: t.path(in.NotebookPath)}
	in.EditMode = cmp.Or(in.EditMode, "replace")
	no := func(format string, args ...any) (plannedNotebook, *protocol.ToolResult) {
		r := refuse(format, args...)
		return p, &r
	}
	if !strings.HasSuffix(p.path, ".ipynb") {
		return no("File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool.")
	}
	if in.EditMode == "insert" && in.CellType == "" {
		return no("Cell type is required when using edit_mode=insert.")
	}
	data, err := readRegular(p.path)
	if read, current, _ := t.knows(p.path, string(data)); !read {
		return no(notRead)
	} else if err == nil && !current {
		return no(modifiedSince)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return no("Notebook file does not exist.")
	}
	if err != nil {
		return no("%s", describe(err, "open", p.path))
	}
	p.before = string(data)
	if p.nb, err = parseNotebook(data); err != nil {
		return no("Notebook is not valid JSON.")
	}
	if in.EditMode != "insert" && in.CellID == "" {
		return no("Cell ID must be specified when not inserting a new cell.")
	}
	var refusal *protocol.ToolResult
	p.out, refusal = p.nb.edit(*in, t.newCellID)
	return p, refusal
}

func editNotebook(_ context.Context, t *Tools, in notebookEditInput) protocol.ToolResult {
	p, refusal := t.planNotebook(&in)
	if refusal != nil {
		return *refusal
	}
	updated, err := p.nb.marshal()
	if err != nil {
		return fail("%v", err)
	}
	if err := store(p.path, updated); err != nil {
		return fail("%s", describe(err, "open", p.path))
	}
	t.know(p.path, string(updated))
	out := p.out
	out.NotebookPath, out.OriginalFile, out.UpdatedFile = p.path, p.before, string(updated)
	switch in.EditMode {
	case "insert":
		return text(fmt.Sprintf("Inserted cell %s with %s", out.CellID, in.NewSource), out)
	case "delete":
		return text("Deleted cell "+out.CellID, out)
	}
	return text(fmt.Sprintf("Updated cell %s with %s", out.CellID, in.NewSource), out)
}

func (t *Tools) newCellID() string {
	return strings.ReplaceAll(t.newName(), "-", "")
}

// edit changes the cells in memory.
func (nb *notebook) edit(in notebookEditInput, newID func() string) (notebookEditOutput, *protocol.ToolResult) {
	out := notebookEditOutput{
		NewSource: in.NewSource, CellID: in.CellID, CellType: cmp.Or(in.CellType, "code"), Language: nb.language(), EditMode: in.EditMode,
	}
	at, found := 0, true
	if in.CellID != "" {
		at, found = nb.find(in.CellID)
	}
	if !found {
		r := refuse("Cell with ID \"%s\" not found in notebook.", in.CellID)
		if m := cellNumber().FindStringSubmatch(in.CellID); m != nil {
			r = refuse("Cell with index %s does not exist in notebook.", m[1])
		}
		return out, &r
	}
	if in.EditMode == "insert" {
		if in.CellID != "" {
			at++
		}
		out.CellID = fmt.Sprintf("cell-%d", at)
		id := ""
		if nb.withIDs() {
			id = newID()
			id = id[:min(8, len(id))]
			out.CellID = id
		}
		nb.cells = slices.Insert(nb.cells, at, newCell(in, id))
		return out, nil
	}
	cell := &nb.cells[at]
	out.OldSource = textOf(cell.Get("source"))
	if in.EditMode == "delete" {
		nb.cells = slices.Delete(nb.cells, at, at+1)
		return out, nil
	}
	*cell = cell.With("source", quote(in.NewSource))
	if textOf(cell.Get("cell_type")) == "code" { // what it was, not what it becomes
		*cell = cell.With("execution_count", json.RawMessage("null")).With("outputs", json.RawMessage("[]"))
	}
	if in.CellType != "" {
		*cell = cell.With("cell_type", quote(in.CellType))
	}
	return out, nil
}

func newCell(in notebookEditInput, id string) ordered.Object {
	cell := ordered.Object{{Key: "cell_type", Value: quote(in.CellType)}}
	if id != "" {
		cell = cell.With("id", quote(id))
	}
	cell = cell.With("source", quote(in.NewSource)).With("metadata", json.RawMessage("{}"))
	if in.CellType == "code" {
		cell = cell.With("execution_count", json.RawMessage("null")).With("outputs", json.RawMessage("[]"))
	}
	return cell
}

// quote makes a JSON string; that cannot fail.
func quote(s string) json.RawMessage {
	raw, _ := protocol.Marshal(s)
	return raw
}
