package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// notebook is a Jupyter notebook; keys not named here are kept.
type notebook struct {
	keys  map[string]json.RawMessage
	cells []map[string]json.RawMessage
}

func parseNotebook(data []byte) (*notebook, error) {
	nb := &notebook{}
	if err := json.Unmarshal(data, &nb.keys); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(nb.keys["cells"], &nb.cells); err != nil {
		return nil, errors.New("it has no list of cells")
	}
	for _, c := range nb.cells {
		if c == nil {
			return nil, errors.New("a cell is null")
		}
	}
	return nb, nil
}

// marshal writes the notebook as Jupyter does, keys in alphabetical order.
func (nb *notebook) marshal() ([]byte, error) {
	cells, err := protocol.Marshal(nb.cells)
	if err != nil {
		return nil, err
	}
	nb.keys["cells"] = cells
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
	if json.Unmarshal(nb.keys["metadata"], &meta) != nil || meta.LanguageInfo.Name == "" {
		return "python"
	}
	return meta.LanguageInfo.Name
}

// withIDs says whether cells have ids (format 4.5 and later).
func (nb *notebook) withIDs() bool {
	var major, minor int
	_ = json.Unmarshal(nb.keys["nbformat"], &major)
	_ = json.Unmarshal(nb.keys["nbformat_minor"], &minor)
	return major > 4 || major == 4 && minor >= 5
}

var cellNumber = regexp.MustCompile(`^(?:cell-)?(\d{1,9})$`)

// find returns the index of the cell with this id, or of "cell-N".
func (nb *notebook) find(id string) (int, bool) {
	for i, c := range nb.cells {
		if textOf(c["id"]) == id {
			return i, true
		}
	}
	if m := cellNumber.FindStringSubmatch(id); m != nil {
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
	CellID         string `json:"cell_id"`
	ExecutionCount *int   `json:"execution_count,omitempty"`
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
	content := protocol.Content{Blocks: []protocol.Block{}}
	file := notebookFile{FilePath: path, Cells: []notebookCell{}}
	for i, c := range nb.cells {
		cell := notebookCell{CellType: textOf(c["cell_type"]), Source: textOf(c["source"]), CellID: textOf(c["id"])}
		if cell.CellID == "" {
			cell.CellID = fmt.Sprintf("cell-%d", i)
		}
		kind := "<cell_type>" + cell.CellType + "</cell_type>"
		var outputs []cellOutput
		if cell.CellType == "code" {
			kind, cell.Language = "", nb.language()
			_ = json.Unmarshal(c["execution_count"], &cell.ExecutionCount) // absent and null are nil
			outputs = cellOutputs(c["outputs"])
		}
		content.Blocks = append(content.Blocks,
			protocol.Text(fmt.Sprintf("<cell id=%q>%s%s</cell id=%[1]q>", cell.CellID, kind, cell.Source)))
		for _, o := range outputs {
			content.Blocks = append(content.Blocks, protocol.Text("\n"+o.Text))
		}
		if outputs != nil {
			cell.Outputs = outputs
		}
		file.Cells = append(file.Cells, cell)
	}
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
	CellID       string `json:"cell_id,omitempty"`
	CellType     string `json:"cell_type"`
	Language     string `json:"language"`
	EditMode     string `json:"edit_mode"`
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
		run: typed(editNotebook),
	}
}

func editNotebook(_ context.Context, t *Tools, in notebookEditInput) protocol.ToolResult {
	path := t.path(in.NotebookPath)
	if !strings.HasSuffix(path, ".ipynb") {
		return refuse("File must be a Jupyter notebook (.ipynb file). For editing other file types, use the Edit tool.")
	}
	if in.EditMode == "" {
		in.EditMode = "replace"
	}
	if in.EditMode == "insert" && in.CellType == "" {
		return refuse("Cell type is required when using edit_mode=insert.")
	}
	if in.EditMode != "insert" && in.CellID == "" {
		return refuse("Cell ID must be specified when not inserting a new cell.")
	}
	data, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("Notebook file does not exist.")
	}
	if err != nil {
		return fail("%s", describe(err, "open", path))
	}
	nb, err := parseNotebook(data)
	if err != nil {
		return refuse("Notebook is not valid JSON.")
	}
	out, refusal := nb.edit(in, t.newCellID)
	if refusal != nil {
		return *refusal
	}
	updated, err := nb.marshal()
	if err != nil {
		return fail("%v", err)
	}
	if err := os.WriteFile(path, updated, 0o644); err != nil {
		return fail("%s", describe(err, "open", path))
	}
	out.NotebookPath, out.OriginalFile, out.UpdatedFile = path, string(data), string(updated)
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
		NewSource: in.NewSource, CellID: in.CellID, CellType: in.CellType, Language: nb.language(), EditMode: in.EditMode,
	}
	at, found := 0, true
	if in.CellID != "" {
		at, found = nb.find(in.CellID)
	}
	if !found {
		r := refuse("Cell with ID \"%s\" not found in notebook.", in.CellID)
		return out, &r
	}
	if in.EditMode == "insert" {
		if in.CellID != "" {
			at++
		}
		cell := newCell(in)
		if out.CellID = fmt.Sprintf("cell-%d", at); nb.withIDs() {
			id := newID()
			out.CellID = id[:min(8, len(id))]
			cell["id"] = quote(out.CellID)
		}
		nb.cells = append(nb.cells[:at:at], append([]map[string]json.RawMessage{cell}, nb.cells[at:]...)...)
		return out, nil
	}
	cell := nb.cells[at]
	out.OldSource = textOf(cell["source"])
	if in.EditMode == "delete" {
		out.CellType = textOf(cell["cell_type"])
		nb.cells = append(nb.cells[:at:at], nb.cells[at+1:]...)
		return out, nil
	}
	cell["source"] = quote(in.NewSource)
	if in.CellType != "" {
		cell["cell_type"] = quote(in.CellType)
	}
	if out.CellType = textOf(cell["cell_type"]); out.CellType == "code" {
		cell["execution_count"] = json.RawMessage("null")
		cell["outputs"] = json.RawMessage("[]")
	}
	return out, nil
}

func newCell(in notebookEditInput) map[string]json.RawMessage {
	cell := map[string]json.RawMessage{
		"cell_type": quote(in.CellType), "metadata": json.RawMessage("{}"), "source": quote(in.NewSource),
	}
	if in.CellType == "code" {
		cell["execution_count"] = json.RawMessage("null")
		cell["outputs"] = json.RawMessage("[]")
	}
	return cell
}

// quote makes a JSON string; that cannot fail.
func quote(s string) json.RawMessage {
	raw, _ := protocol.Marshal(s)
	return raw
}
