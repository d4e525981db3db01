package files

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/textdiff"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// Texts of Read, observed with 2.1.329 (spec: cli-observed 7).
const (
	nulBytes      = "has NUL bytes in its first 8 KB: binary data, UTF-16/UTF-32 without a byte-order mark, or text with embedded NULs."
	legacyBytes   = "is not valid UTF-8: it uses a legacy encoding such as Windows-1252, Shift-JIS or GBK, or it is binary."
	refusedLater  = " Edit and Write will refuse it: change it with a shell command that keeps its encoding, or ask the user whether to convert it to UTF-8.]"
	fileIsKnown   = " (file state is current in your context — no need to Read it back)"
	modifiedSince = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
	notWritten    = "These tools write UTF-8 (or UTF-16LE behind its byte-order mark) and never convert a file's encoding on their own, so nothing " +
		"was written. If the file is text, make the change with a shell command that reads and writes it in its own encoding (iconv, or PowerShell " +
		"Get-Content/Set-Content -Encoding), or ask the user whether to convert it to UTF-8 first. To replace the whole file with new UTF-8 text " +
		"anyway, delete it first, then Write it."
)

// edited is the structured result of an edit.
type edited struct {
	StructuredPatch []textdiff.Hunk
	NotInContext    bool `json:"contentNotInModelContext"`
}

func TestReadText(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "five.txt", "1\n2\n3\n4\n5")
	tooltest.WriteFile(t, dir, "crlf.txt", "a\r\nb\r\n")
	tooltest.WriteFile(t, dir, "empty.txt", "")
	tooltest.WriteFile(t, dir, "bom.txt", "\xef\xbb\xbfa")
	tooltest.WriteFile(t, dir, "utf16.txt", "\xff\xfea\x00b\x00")
	tooltest.WriteFile(t, dir, "nul", "a\x00")
	tooltest.WriteFile(t, dir, "wide.txt", strings.Repeat("é", 5000))
	tooltest.WriteFile(t, dir, "large.txt", strings.Repeat("0123456789abcde\n", 17<<10))
	tests := []struct {
		name    string
		input   tooltest.Input
		isError bool
		want    string
	}{
		{"whole", tooltest.Input{"file_path": "five.txt"}, false, "1\t1\n2\t2\n3\t3\n4\t4\n5\t5"},
		{"absolute", tooltest.Input{"file_path": filepath.Join(dir, "five.txt"), "limit": 1}, false, "1\t1"},
		{"offset and limit", tooltest.Input{"file_path": "five.txt", "offset": 2, "limit": 2}, false, "2\t2\n3\t3"},
		{"offset 0", tooltest.Input{"file_path": "five.txt", "offset": 0, "limit": 2}, false, "0\t1\n1\t2"},
		{"offset below 0", tooltest.Input{"file_path": "five.txt", "offset": -1, "limit": 1}, false, "1\t1"},
		{"limit 0", tooltest.Input{"file_path": "five.txt", "limit": 0}, false, "1\t1\n2\t2\n3\t3\n4\t4\n5\t5"},
		{"byte-order mark", tooltest.Input{"file_path": "bom.txt"}, false, "1\ta"},
		{"utf-16", tooltest.Input{"file_path": "utf16.txt"}, false, "1\tab"},
		{"similar", tooltest.Input{"file_path": "five.tx"}, true, "File does not exist. Note: your current working directory is " + dir + ". Did you mean five.txt?"},
		{"NUL", tooltest.Input{"file_path": "nul"}, false, "1\ta\x00" + "\n\n[This file " + nulBytes + refusedLater},
		{"offset only", tooltest.Input{"file_path": "five.txt", "offset": 4}, false, "4\t4\n5\t5"},
		{"crlf", tooltest.Input{"file_path": "crlf.txt"}, false, "1\ta\n2\tb\n3\t"},
		{"empty", tooltest.Input{"file_path": "empty.txt"}, false, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"},
		{
			"beyond",
			tooltest.Input{"file_path": "five.txt", "offset": 9},
			false,
			"<system-reminder>Warning: the file exists but is shorter than the provided offset (9). The file has 5 lines.</system-reminder>",
		},
		{"wide", tooltest.Input{"file_path": "wide.txt"}, false, "1\t" + strings.Repeat("é", 5000)},
		{"missing", tooltest.Input{"file_path": "nosuch"}, true, "File does not exist. Note: your current working directory is " + dir + "."},
		{"directory", tooltest.Input{"file_path": "."}, true, "EISDIR: illegal operation on a directory, read '" + dir + "'"},
		{"device", tooltest.Input{"file_path": "/dev/zero"}, true, "Cannot read '/dev/zero': this device file would block or produce infinite output."},
		{"large", tooltest.Input{"file_path": "large.txt"}, true, "File content (272KB) exceeds maximum allowed size (256KB). Use offset and limit parameters to read " +
			"specific portions of the file, or search for specific content instead of reading the whole file. To read it anyway, up to what " +
			"still fits in your context, call Read again with allow_large: true — only if you genuinely need all of it or the user asked " +
			"for the whole file."},
		{"many tokens", tooltest.Input{"file_path": "large.txt", "limit": 10000}, true, "File content (42507 tokens) exceeds maximum allowed tokens (25000). Use offset and limit " +
			"parameters to read specific portions of the file, or search for specific content instead of reading the whole file. To read it " +
			"anyway, up to what still fits in your context, call Read again with allow_large: true — only if you genuinely need all of it or " +
			"the user asked for the whole file."},
		{"large by limit", tooltest.Input{"file_path": "large.txt", "offset": 3, "limit": 1}, false, "3\t0123456789abcde"},
	}
	tools := newTools(t, testOptions{CWD: dir})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tooltest.WantText
			if tt.isError {
				want = tooltest.WantError
			}
			want(t, call(t, tools, "Read", tt.input).ToolResult, tt.want)
		})
	}
}

// A file with too many tokens is returned in part. It may be edited, but not overwritten, until it is read as a whole.
func TestReadTruncated(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "many.txt", strings.Repeat("0123456789abcde\n", 8000))
	tooltest.WriteFile(t, dir, "wide.txt", strings.Repeat("é", 60_000))
	tools := newTools(t, testOptions{CWD: dir})
	r := call(t, tools, "Read", tooltest.Input{"file_path": "many.txt"})
	if lines := strings.Count(r.Content.Text, "\n") + 1; lines != 4999 {
		t.Errorf("%d lines", lines)
	}
	notice := r.EventsAfter[0].(*protocol.AttachmentAdded).Rendered[0]
	if want := "many.txt: showing lines 1-4999 of 8001 total (34008 tokens, cap 25000). Call Read with offset=5000 limit=4999 "; !strings.Contains(notice, want) {
		t.Errorf("notice %q, want %q", notice, want)
	}
	r = call(t, tools, "Read", tooltest.Input{"file_path": "wide.txt"})
	notice = r.EventsAfter[0].(*protocol.AttachmentAdded).Rendered[0]
	if want := "wide.txt: showing the first 42488 of 60000 characters (30008 tokens, cap 25000); "; !strings.Contains(notice, want) {
		t.Errorf("notice %q, want %q", notice, want)
	}
	write := protocol.ToolUse{Name: "Write", Input: json.RawMessage(`{"file_path":"many.txt","content":""}`)}
	if r := tools.Precheck(t.Context(), write); r == nil || !strings.Contains(r.Content.Text, "File has not been read yet") {
		t.Errorf("Write after a partial view: %v", r)
	}
	call(t, tools, "Read", tooltest.Input{"file_path": "many.txt", "allow_large": true})
	if r := tools.Precheck(t.Context(), write); r != nil {
		t.Error(r.Content.Text)
	}
}

func TestReadOutput(t *testing.T) {
	dir := t.TempDir()
	path := tooltest.WriteFile(t, dir, "five.txt", "1\n2\n3\n4\n5")
	tools := newTools(t, testOptions{CWD: dir})
	for _, name := range []string{path, "five.txt"} { // the output has the path of the call, absolute or not
		r := call(t, tools, "Read", tooltest.Input{"file_path": name, "offset": 2, "limit": 2})
		tooltest.WantOutput(t, r.ToolResult, fmt.Sprintf(`{"type":"text","file":{"filePath":%q,"content":"2\n3","numLines":2,"startLine":2,"totalLines":5}}`, name))
	}
}

// A one-pixel image.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestReadImage(t *testing.T) {
	dir := t.TempDir()
	data, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WriteFile(t, dir, "p.png", string(data))
	tooltest.WriteFile(t, dir, "none.png", "")
	tools := newTools(t, testOptions{CWD: dir})
	r := call(t, tools, "Read", tooltest.Input{"file_path": "p.png"})
	if diff := cmp.Diff(protocol.Content{Blocks: []protocol.Block{protocol.Image("image/png", pixel)}}, r.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	tooltest.WantOutput(t, r.ToolResult, fmt.Sprintf(`{"type":"image","file":{"base64":%q,"type":"image/png","originalSize":%d,`+
		`"dimensions":{"originalWidth":1,"originalHeight":1,"displayWidth":1,"displayHeight":1}}}`, pixel, len(data)))
	tooltest.WantError(t, call(t, tools, "Read", tooltest.Input{"file_path": "none.png"}).ToolResult, "Image file is empty: "+filepath.Join(dir, "none.png"))
}

const exampleNotebook = `{"cells":[{"cell_type":"markdown","metadata":{},"source":["# T\n","x"]},` +
	`{"cell_type":"code","id":"abc","execution_count":2,"metadata":{},"outputs":[{"output_type":"stream","name":"stdout","text":["hi\n"]}],"source":"print('hi')"}],` +
	`"metadata":{"language_info":{"name":"julia"}},"nbformat":4,"nbformat_minor":5}`

func TestReadNotebook(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "n.ipynb", exampleNotebook)
	tools := newTools(t, testOptions{CWD: dir})
	r := call(t, tools, "Read", tooltest.Input{"file_path": "n.ipynb"})
	tooltest.WantText(t, r.ToolResult, "<cell id=\"cell-0\"><cell_type>markdown</cell_type># T\nx</cell id=\"cell-0\">\n"+
		"<cell id=\"abc\">print('hi')</cell id=\"abc\">\n\nhi\n")
	tooltest.WantOutput(t, r.ToolResult, `{"type":"notebook","file":{"filePath":"n.ipynb","cells":[{"cellType":"markdown","source":"# T\nx","cell_id":"cell-0"},`+
		`{"cellType":"code","source":"print('hi')","execution_count":2,"cell_id":"abc","language":"julia","outputs":[{"output_type":"stream","text":"hi\n"}]}]}}`)
	const none = `Notebook file is not a valid Jupyter notebook (top-level "cells" must be an array of cell objects, each with a string or string-array "source").`
	const broken = "Notebook file is not valid JSON (it may be truncated, corrupted, or still being written): JSON Parse error: "
	for text, want := range map[string]string{
		"": broken + "Unexpected EOF", "{bad": broken + "Expected '}'", "x": broken + `Unexpected identifier "x"`,
		"{}": none, "null": none, "[]": none, `{"cells":5}`: none, `{"cells":[5]}`: none, `{"cells":[null]}`: none,
		`{"cells":[{"cell_type":"code"}]}`: none, `{"cells":[{"source":5}]}`: none, `{"cells":[{"source":["a",1]}]}`: none,
	} {
		tooltest.WriteFile(t, dir, "broken.ipynb", text)
		tooltest.WantError(t, call(t, tools, "Read", tooltest.Input{"file_path": "broken.ipynb"}).ToolResult, want)
	}
	tooltest.WantError(t, call(t, tools, "NotebookEdit", tooltest.Input{"notebook_path": "broken.ipynb", "cell_id": "cell-0", "new_source": "x"}).ToolResult,
		"<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>")
	tooltest.WriteFile(t, dir, "bare.ipynb", `{"cells":[{"source":"x"}]}`)
	r = call(t, tools, "Read", tooltest.Input{"file_path": "bare.ipynb"})
	tooltest.WantText(t, r.ToolResult, `<cell id="cell-0"><cell_type>undefined</cell_type>x</cell id="cell-0">`)
	tooltest.WantOutput(t, r.ToolResult, `{"type":"notebook","file":{"filePath":"bare.ipynb","cells":[{"source":"x","cell_id":"cell-0"}]}}`)
}

func TestNotebookEdit(t *testing.T) {
	sources := func(t *testing.T, path string) []string {
		t.Helper()
		var nb struct {
			Cells []struct {
				Type   string          `json:"cell_type"`
				Source json.RawMessage `json:"source"`
			}
		}
		if err := json.Unmarshal([]byte(tooltest.FileText(t, path)), &nb); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range nb.Cells {
			out = append(out, c.Type+":"+tool.JSONStringOrConcatenatedList(c.Source))
		}
		return out
	}
	tests := []struct {
		name  string
		input tooltest.Input
		text  string
		cells []string
	}{
		{"replace", tooltest.Input{"cell_id": "abc", "new_source": "y"}, "Updated cell abc with y", []string{"markdown:# T\nx", "code:y"}},
		{"replace by number", tooltest.Input{"cell_id": "cell-0", "new_source": "y"}, "Updated cell cell-0 with y", []string{"markdown:y", "code:print('hi')"}},
		{"change type", tooltest.Input{"cell_id": "0", "new_source": "y", "cell_type": "code"}, "Updated cell 0 with y", []string{"code:y", "code:print('hi')"}},
		{
			"insert first",
			tooltest.Input{"new_source": "y", "cell_type": "code", "edit_mode": "insert"},
			"Inserted cell 12345678 with y",
			[]string{"code:y", "markdown:# T\nx", "code:print('hi')"},
		},
		{
			"insert after",
			tooltest.Input{"cell_id": "abc", "new_source": "y", "cell_type": "markdown", "edit_mode": "insert"},
			"Inserted cell 12345678 with y",
			[]string{"markdown:# T\nx", "code:print('hi')", "markdown:y"},
		},
		{"delete", tooltest.Input{"cell_id": "cell-0", "new_source": "", "edit_mode": "delete"}, "Deleted cell cell-0", []string{"code:print('hi')"}},
	}
	for _, tt := range tests {
		for _, end := range []string{"", "\n"} {
			t.Run(tt.name+end, func(t *testing.T) {
				dir := t.TempDir()
				path := tooltest.WriteFile(t, dir, "n.ipynb", exampleNotebook+end)
				tt.input["notebook_path"] = path
				tools := newTools(t, testOptions{CWD: dir, Clock: tooltest.Clock{ID: "1234-56789"}})
				call(t, tools, "Read", tooltest.Input{"file_path": path})
				tooltest.WantText(t, call(t, tools, "NotebookEdit", tt.input).ToolResult, tt.text)
				if diff := cmp.Diff(tt.cells, sources(t, path)); diff != "" {
					t.Errorf("cells (-want +got):\n%s", diff)
				}
				if got := tooltest.FileText(t, path); !strings.HasSuffix(got, "}"+end) {
					t.Errorf("its end: %q, want that of the file before", got[len(got)-3:])
				}
				var keys map[string]json.RawMessage
				if err := json.Unmarshal([]byte(tooltest.FileText(t, path)), &keys); err != nil || keys["metadata"] == nil {
					t.Errorf("other keys are gone: %v", err)
				}
			})
		}
	}
}

func TestNotebookEditRefusals(t *testing.T) {
	dir := t.TempDir()
	tools := newTools(t, testOptions{CWD: dir})
	for _, name := range []string{"n.ipynb", "gone.ipynb", "changed.ipynb"} {
		tooltest.WriteFile(t, dir, name, exampleNotebook)
		call(t, tools, "Read", tooltest.Input{"file_path": name})
	}
	tooltest.WriteFile(t, dir, "changed.ipynb", exampleNotebook+" ")
	if err := os.Remove(filepath.Join(dir, "gone.ipynb")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		input tooltest.Input
		want  string
	}{
		{tooltest.Input{"notebook_path": "a.txt", "new_source": ""}, "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool."},
		{tooltest.Input{"notebook_path": "n.ipynb", "new_source": "x"}, "Cell ID must be specified when not inserting a new cell."},
		{tooltest.Input{"notebook_path": "n.ipynb", "new_source": "x", "edit_mode": "insert"}, "Cell type is required when using edit_mode=insert."},
		{tooltest.Input{"notebook_path": "no.ipynb", "new_source": "x", "cell_id": "a"}, "File has not been read yet. Read it first before writing to it."},
		{tooltest.Input{"notebook_path": "gone.ipynb", "new_source": "x", "cell_id": "a"}, "Notebook file does not exist."},
		{tooltest.Input{"notebook_path": "changed.ipynb", "new_source": "x", "cell_id": "a"}, modifiedSince},
		{tooltest.Input{"notebook_path": "n.ipynb", "new_source": "x", "cell_id": "cell-2"}, `Cell with index 2 does not exist in notebook.`},
		{tooltest.Input{"notebook_path": "n.ipynb", "new_source": "x", "cell_id": "nosuch"}, `Cell with ID "nosuch" not found in notebook.`},
	} {
		if diff := cmp.Diff(tool.Refuse("%s", tt.want), call(t, tools, "NotebookEdit", tt.input).ToolResult); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.input, diff)
		}
	}
}

// Write replaces the content of a file and keeps its mode (spec: cli-observed 7).
func TestWriteUpdate(t *testing.T) {
	dir := t.TempDir()
	path := tooltest.WriteFile(t, dir, "a.txt", "old\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	r := call(t, newTools(t, testOptions{CWD: dir}), "Write", tooltest.Input{"file_path": path, "content": "new\n"})
	tooltest.WantText(t, r.ToolResult, "The file "+path+" has been updated successfully. (file state is current in your context — no need to Read it back)")
	tooltest.WantOutput(t, r.ToolResult, fmt.Sprintf(`{"type":"update","filePath":%q,"content":"new\n","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,`+
		`"lines":["-old","+new"]}],"originalFile":"old\n","userModified":false}`, path))
	if got := tooltest.FileText(t, path); got != "new\n" {
		t.Errorf("file holds %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode changed: %v %v", info.Mode(), err)
	}
}

// The model does not know the changes that a host has made to its call (observed with 2.1.331).
func TestChangesByHost(t *testing.T) {
	dir := t.TempDir()
	path := tooltest.WriteFile(t, dir, "a.txt", "old\n")
	tools := newTools(t, testOptions{CWD: dir})
	run := func(name, input string) tool.Result {
		r := tools.Execute(t.Context(), protocol.ToolUse{Name: name, Input: json.RawMessage(input), UserModified: true})
		output, err := protocol.Marshal(r.Output)
		if err != nil || !strings.Contains(string(output), `"userModified":true`) {
			t.Errorf("%s: output %s (%v)", name, output, err)
		}
		return r
	}
	tooltest.WantText(t, run("Write", `{"file_path":"a.txt","content":"one one\n"}`).ToolResult,
		"The file a.txt has been updated successfully. The user modified your proposed content before accepting it.")
	call(t, tools, "Read", tooltest.Input{"file_path": path})
	tooltest.WantText(t, run("Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two","replace_all":true}`).ToolResult,
		"The file a.txt has been updated.  The user modified your proposed changes before accepting them. . All occurrences were successfully replaced.")
}

func TestWriteMakesDirectories(t *testing.T) {
	dir := t.TempDir()
	r := call(t, newTools(t, testOptions{CWD: dir}), "Write", tooltest.Input{"file_path": "x/y/z.txt", "content": "c"})
	if r.IsError || tooltest.FileText(t, filepath.Join(dir, "x/y/z.txt")) != "c" {
		t.Errorf("result %+v", r)
	}
}

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "file", "")
	tools := newTools(t, testOptions{CWD: dir})
	for _, path := range []string{".", "file/below", "/dev/zero"} {
		if r := call(t, tools, "Write", tooltest.Input{"file_path": path, "content": "x"}); !r.IsError {
			t.Errorf("%s: no error: %+v", path, r)
		}
	}
}

// TestEdit checks the results of Edit (spec: cli-observed 7).
func TestEdit(t *testing.T) {
	const known = fileIsKnown
	tests := []struct {
		name, before  string
		input         tooltest.Input
		after         string
		want, refusal string // FILE represents the path
	}{
		{"one", "a b c", tooltest.Input{"old_string": "b", "new_string": "X"}, "a X c", "The file FILE has been updated successfully." + known, ""},
		{
			"all", "a b a",
			tooltest.Input{"old_string": "a", "new_string": "X", "replace_all": true},
			"X b X",
			"The file FILE has been updated. All occurrences were successfully replaced." + known, "",
		},
		{"delete", "a\nb\n", tooltest.Input{"old_string": "a\n", "new_string": ""}, "b\n", "The file FILE has been updated successfully." + known, ""},
		{"crlf", "a\r\nb\r\n", tooltest.Input{"old_string": "a\nb", "new_string": "x\ny"}, "x\r\ny\r\n", "The file FILE has been updated successfully." + known, ""},
		{"crlf in input", "a\r\nb\r\n", tooltest.Input{"old_string": "a\r\nb", "new_string": "x\r\ny"}, "a\r\nb\r\n", "", "String to replace not found in file.\nString: a\r\nb"},
		{"mixed line ends stay", "a\r\nb\n", tooltest.Input{"old_string": "b", "new_string": "x"}, "a\r\nx\n", "The file FILE has been updated successfully." + known, ""},
		{"fill empty", " \n", tooltest.Input{"old_string": "", "new_string": "x"}, "x", "The file FILE has been updated successfully." + known, ""},
		{"no match", "a", tooltest.Input{"old_string": "zzz", "new_string": "x"}, "a", "", "String to replace not found in file.\nString: zzz"},
		{"several", "a a a", tooltest.Input{"old_string": "a", "new_string": "x"}, "a a a", "", "Found 3 matches of the string to replace, but replace_all is false. " +
			"To replace all occurrences, set replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: a"},
		{"same", "a", tooltest.Input{"old_string": "a", "new_string": "a"}, "a", "", "No changes to make: old_string and new_string are exactly the same."},
		{"exists", "a", tooltest.Input{"old_string": "", "new_string": "x"}, "a", "", "Cannot create new file - file already exists."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := tooltest.WriteFile(t, dir, "f.txt", tt.before)
			tt.input["file_path"] = path
			tools := newTools(t, testOptions{CWD: dir})
			call(t, tools, "Read", tooltest.Input{"file_path": path})
			r := call(t, tools, "Edit", tt.input)
			if tt.refusal != "" {
				if diff := cmp.Diff(tool.Refuse("%s", tt.refusal), r.ToolResult); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				raw, _ := protocol.Marshal(tt.input)
				if tools.Precheck(t.Context(), protocol.ToolUse{Name: "Edit", Input: raw}) == nil {
					t.Error("Check lets the call pass")
				}
			} else {
				tooltest.WantText(t, r.ToolResult, strings.ReplaceAll(tt.want, "FILE", path))
			}
			if got := tooltest.FileText(t, path); got != tt.after {
				t.Errorf("file holds %q, want %q", got, tt.after)
			}
		})
	}
}

// Edit can change a file that was not read before (spec: cli-observed 7).
func TestEditUnreadFile(t *testing.T) {
	dir := t.TempDir()
	path := tooltest.WriteFile(t, dir, "a.txt", "a\n")
	r := call(t, newTools(t, testOptions{CWD: dir}), "Edit", tooltest.Input{"file_path": path, "old_string": "a", "new_string": "b"})
	tooltest.WantText(t, r.ToolResult, "The file "+path+" has been updated successfully.")
	if out := tooltest.Output[edited](t, r.ToolResult); !out.NotInContext {
		t.Errorf("output %+v does not tell that the model has not read the file", r.Output)
	}
}

func TestEditNewFile(t *testing.T) {
	dir := t.TempDir()
	tools := newTools(t, testOptions{CWD: dir})
	r := call(t, tools, "Edit", tooltest.Input{"file_path": "sub/n.txt", "old_string": "", "new_string": "x\n"})
	path := filepath.Join(dir, "sub/n.txt")
	if r.IsError || tooltest.FileText(t, path) != "x\n" {
		t.Fatalf("result %+v", r)
	}
	want := []textdiff.Hunk{{OldStart: 1, NewStart: 1, NewLines: 1, Lines: []string{"+x"}}}
	if diff := cmp.Diff(want, tooltest.Output[edited](t, r.ToolResult).StructuredPatch); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	r = call(t, tools, "Edit", tooltest.Input{"file_path": "nosuch", "old_string": "a", "new_string": "b"})
	if diff := cmp.Diff(tool.Refuse("File does not exist. Note: your current working directory is %s.", dir), r.ToolResult); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestHomePath(t *testing.T) {
	home := t.TempDir()
	tooltest.WriteFile(t, home, "a.txt", "x")
	tools := newTools(t, testOptions{Environ: []string{"HOME=/nowhere", "HOME=" + home}})
	tooltest.WantText(t, call(t, tools, "Read", tooltest.Input{"file_path": "~/a.txt"}).ToolResult, "1\tx")
}

// The content of a file that the session has recorded and the content that the model has seen can
// differ (observed with 2.1.329).
func TestEditTellsWhatIsKnown(t *testing.T) {
	read, part, cat := tooltest.Input{"file_path": "a.txt"}, tooltest.Input{"file_path": "a.txt", "limit": 1}, tooltest.Input{"printed": "one\ntwo\n"}
	edit, write := tooltest.Input{"file_path": "a.txt", "old_string": "one", "new_string": "1"}, tooltest.Input{"file_path": "a.txt", "content": "x"}
	head, change := tooltest.Input{"printed": "one\n"}, tooltest.Input{"appended": "more\n"}
	const known, plain, stale, refused = fileIsKnown, "", " (note: the file had been modified on disk", "<tool_use_error>" + modifiedSince
	for _, tt := range []struct {
		name   string
		before []tooltest.Input
		last   tooltest.Input
		want   string // suffix, or text that follows, of the expected result
	}{
		{"not read", nil, edit, plain},
		{"read", []tooltest.Input{read}, edit, known},
		{"read in part", []tooltest.Input{part}, edit, plain},
		{"printed by a command", []tooltest.Input{cat}, edit, known},
		{"printed in part", []tooltest.Input{head}, edit, plain},
		{"changed", []tooltest.Input{read, change}, edit, stale},
		{"changed, to be overwritten", []tooltest.Input{read, change}, write, refused},
		{"changed and edited, then overwritten", []tooltest.Input{read, change, edit}, write, known},
		{"edited without reading, then overwritten", []tooltest.Input{edit}, write, known},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tooltest.WriteFile(t, dir, "a.txt", "one\ntwo\n")
			tools := newTools(t, testOptions{CWD: dir})
			do := func(input tooltest.Input) protocol.ToolResult {
				switch {
				case input["printed"] != nil:
					tools.tracker.RecordSeenIfPrintedWhole("a.txt", input["printed"].(string))
					return protocol.ToolResult{}
				case input["appended"] != nil:
					tooltest.WriteFile(t, dir, "a.txt", tooltest.FileText(t, filepath.Join(dir, "a.txt"))+input["appended"].(string))
					return protocol.ToolResult{}
				case input["content"] != nil:
					use := protocol.ToolUse{Name: "Write", Input: []byte(`{"file_path":"a.txt","content":"x"}`)}
					if r := tools.Precheck(t.Context(), use); r != nil {
						return *r
					}
					return call(t, tools, "Write", input).ToolResult
				case input["old_string"] != nil:
					return call(t, tools, "Edit", input).ToolResult
				}
				return call(t, tools, "Read", input).ToolResult
			}
			for _, input := range tt.before {
				do(input)
			}
			got := strings.TrimPrefix(do(tt.last).Content.Text, "The file a.txt has been updated successfully.")
			if tt.want == plain && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("text goes on %q, want %q", got, tt.want)
			}
		})
	}
}

// Files in an encoding that Edit and Write would destroy are not changed.
func TestForeignEncodings(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "latin", "caf\xe9\n")
	tooltest.WriteFile(t, dir, "nul", "a\x00\n")
	tools := newTools(t, testOptions{CWD: dir})
	for name, why := range map[string]string{"latin": legacyBytes, "nul": nulBytes} {
		tooltest.WantError(t, call(t, tools, "Write", tooltest.Input{"file_path": name, "content": "x"}).ToolResult, "File "+why+" "+notWritten)
		tooltest.WantError(t, call(t, tools, "Edit", tooltest.Input{"file_path": name, "old_string": "a", "new_string": "b"}).ToolResult,
			"<tool_use_error>File "+why+" "+notWritten+"</tool_use_error>")
	}
	tooltest.WantText(t, call(t, tools, "Read", tooltest.Input{"file_path": "latin"}).ToolResult,
		"1\tcaf�\n2\t\n\n[This file "+legacyBytes+" Its undecodable bytes show above as U+FFFD."+refusedLater)
}

// A file that needs permission to be read can be changed only after it was read (observed with 2.1.329).
func TestUnreadOutside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	path := tooltest.WriteFile(t, outside, "a.txt", "one\n")
	tools := newTools(t, testOptions{CWD: dir, Access: tooltest.Access{Readable: dir}})
	const notYet = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>"
	calls := []protocol.ToolUse{
		{Name: "Write", Input: []byte(`{"file_path":"` + path + `","content":"two\n"}`)},
		{Name: "Edit", Input: []byte(`{"file_path":"` + path + `","old_string":"none","new_string":"two"}`)},
	}
	for _, use := range calls {
		if r := tools.Precheck(t.Context(), use); r == nil || r.Content.Plain() != notYet {
			t.Errorf("%s: %+v", use.Name, r)
		}
	}
	if r := tools.Precheck(t.Context(), protocol.ToolUse{Name: "Write", Input: []byte(`{"file_path":"` + outside + `/new","content":""}`)}); r != nil {
		t.Errorf("a new file: %+v", r)
	}
	call(t, tools, "Read", `{"file_path":"`+path+`"}`)
	if r := tools.Precheck(t.Context(), calls[0]); r != nil {
		t.Errorf("once it is read: %+v", r)
	}
}
