// Package shown converts the result of an MCP call into what the model and the
// event stream show.
//
// No part of a result is lost silently: oversized or binary content is saved to
// a file, or its size is reported.
package shown

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	// persistAbove is the number of characters above which a result is kept in
	// a file and shown in part; refuseTokens is the number of tokens above which
	// it is not shown at all (observed with 2.1.329, which has them counted).
	persistAbove = 50_000
	refuseTokens = 25_000
	previewRunes = 2000
	bytesPerWord = 4 // the usual estimate of bytes in a token
	warnAbove    = 10_000
	// Of an error above errorAbove characters errorShown are shown.
	errorAbove = 11_000
	errorShown = 10_000
)

// callResult is a tools/call result; unknown members are left where they are.
type callResult struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
	Meta              json.RawMessage `json:"_meta"`
	ToolResult        json.RawMessage `json:"toolResult"` // of servers before protocol 2024-11-05
}

// structuredOutput is tool_use_result where it is not the content itself.
type structuredOutput struct {
	Content           any             `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	ResourceLinks     []resourceLink  `json:"resourceLinks,omitempty"`
	Meta              json.RawMessage `json:"_meta,omitempty"`
}

type resourceLink struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Files keeps what is not shown and returns where.
type Files interface {
	SaveBlob(server, mime string, data []byte) (path string, err error)
	SaveText(tool protocol.Tool, name, text string) (path string, err error)
}

// Log gets a line about a result that is large.
type Log interface {
	Printf(format string, args ...any)
}

// View is how results are shown.
type View struct {
	Files     Files // nil = nothing is kept
	MaxTokens int   // MAX_MCP_OUTPUT_TOKENS; 0 = it is not set
	Log       Log   // required
}

// Result turns the result of a call into what the model and the stream see of
// it.
func (v View) Result(tool protocol.Tool, useID string, result json.RawMessage) protocol.ToolResult {
	var r callResult
	if err := json.Unmarshal(result, &r); err != nil {
		return Failure(fmt.Sprintf("MCP server %q tool %q: the result cannot be read: %v", tool.Server, tool.RawName, err))
	}
	if old := optional(r.ToolResult); old != nil && r.Content == nil {
		text := plainOrJSON(old)
		return protocol.ToolResult{Content: protocol.Content{Text: text}, Output: text}
	}
	var items []json.RawMessage
	switch kind := ordered.TypeOf(r.Content); kind {
	case "array":
		_ = json.Unmarshal(r.Content, &items) // of a message that was valid
	case "undefined":
	default:
		return Failure(malformed(tool.Server, kind))
	}
	b := blocks{files: v.Files, server: tool.Server}
	for _, item := range items {
		b.add(item)
	}
	if r.IsError {
		return b.failure(optional(r.StructuredContent))
	}
	return v.limit(tool, useID, b.success(tool.Name, optional(r.StructuredContent), optional(r.Meta)))
}

// failure is a result with isError.
func (b *blocks) failure(structured json.RawMessage) protocol.ToolResult {
	text := b.plain()
	if text == "" && structured != nil {
		text = compact(structured)
	}
	return Failure(cmp.Or(text, "Unknown error"))
}

// success is any other result, in full.
func (b *blocks) success(tool string, structured, meta json.RawMessage) protocol.ToolResult {
	nothing := protocol.Content{Text: fmt.Sprintf("(%s completed with no output)", tool)}
	r := protocol.ToolResult{Content: protocol.Content{Blocks: b.all}, Output: b.all}
	switch {
	case structured != nil:
		text := compact(structured)
		r.Content = protocol.Content{Text: text}
		r.Output = structuredOutput{Content: text, StructuredContent: structured, ResourceLinks: b.links, Meta: meta}
	case len(b.all) == 0:
		return protocol.ToolResult{Content: nothing, Output: []protocol.Block{}}
	case len(b.links) > 0 || meta != nil:
		r.Output = structuredOutput{Content: b.all, ResourceLinks: b.links, Meta: meta}
	}
	if out, ok := r.Output.(structuredOutput); ok {
		r.MCP = &protocol.MCPResult{Content: out.Content, Meta: meta, Structured: structured}
	}
	if structured == nil && !hasImage(b.all) && b.plain() == "" {
		r.Content = nothing
	}
	return r
}

// malformed is how the real CLI refuses a result whose content is no array.
func malformed(server, kind string) string {
	return fmt.Sprintf(`MCP server %q returned a malformed result that failed schema validation: Invalid result for tools/call: [
  {
    "expected": "array",
    "code": "invalid_type",
    "path": [
      "content"
    ],
    "message": "Invalid input: expected array, received %s"
  }
]`, server, kind)
}

// Failure is a failure; the middle of a long text is left out.
func Failure(text string) protocol.ToolResult {
	if runes := []rune(text); len(runes) > errorAbove {
		const half = errorShown / 2
		text = fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s",
			string(runes[:half]), len(runes)-errorShown, string(runes[len(runes)-half:]))
	}
	r := protocol.ErrorResult(text)
	r.Output = "Error: " + text
	return r
}

// optional is nil for a member that is absent or null.
func optional(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || bytes.Equal(v, []byte("null")) {
		return nil
	}
	return v
}

// plainOrJSON is a string itself, and anything else as JSON.
func plainOrJSON(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) != nil {
		return compact(v)
	}
	return text
}

// compact is JSON without white space, numbers and order as they were.
func compact(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// limit replaces a result that is too long to show: by the path of the file
// that has all of it when it is beyond the limit of tokens, else by a preview.
// What holds an image is shown.
func (v View) limit(tool protocol.Tool, useID string, r protocol.ToolResult) protocol.ToolResult {
	text := r.Content.Plain()
	if tokens := len(text) / bytesPerWord; tokens > warnAbove {
		v.Log.Printf("result of %s is large: about %d tokens", tool.RawName, tokens)
	}
	length := utf8.RuneCountInString(text)
	most := bytesPerWord * cmp.Or(v.MaxTokens, refuseTokens)
	switch {
	case v.Files == nil && v.MaxTokens == 0:
		return r
	case length > most:
		return v.refuse(tool, r)
	case length <= persistAbove || hasImage(r.Content.Blocks):
		return r
	}
	name := useID + ".txt"
	if r.Content.Blocks != nil {
		text, name = indented(r.Content.Blocks), useID+".json"
	}
	if path := v.saveText(tool, name, text); path != "" {
		r.Content = protocol.Content{Text: previewText(text, path)}
	}
	return r
}

// refuse puts the path of a file in place of a result.
func (v View) refuse(tool protocol.Tool, r protocol.ToolResult) protocol.ToolResult {
	text, single := r.Content.Text, len(r.Content.Blocks) == 1
	switch {
	case single:
		text = r.Content.Plain()
	case r.Content.Blocks != nil:
		text = indented(r.Content.Blocks)
	}
	size := grouped(utf8.RuneCountInString(text)) + " characters"
	if lines := strings.Count(text, "\n") + 1; single && lines == 1 {
		size += " across 1 line"
	} else if single {
		size += " across " + grouped(lines) + " lines"
	}
	refusal := "Error: result (" + size + ") exceeds maximum allowed tokens."
	if path := v.saveText(tool, "", text); path != "" {
		refusal += " Output has been saved to " + path + ".\n" + howToRead(single)
	}
	r.Content = protocol.Content{Text: refusal}
	if o, ok := r.Output.(structuredOutput); ok {
		o.Content = refusal
		r.Output, r.MCP.Content = o, refusal
	} else {
		r.Output = refusal
	}
	return r
}

func howToRead(plain bool) string {
	if plain {
		return "Format: Plain text\nRead all of the file in parts before you say anything about it, or say which part you have read.\n"
	}
	return "Format: JSON\nUse jq to take what you need from it. Say which part you have read if it was not all.\n"
}

// saveText keeps a text; "" = it is not kept.
func (v View) saveText(tool protocol.Tool, name, text string) string {
	if v.Files == nil {
		return ""
	}
	path, err := v.Files.SaveText(tool, name, text)
	if err != nil {
		return ""
	}
	return path
}

func hasImage(all []protocol.Block) bool {
	return slices.ContainsFunc(all, func(b protocol.Block) bool {
		_, is := b.(protocol.ImageBlock)
		return is
	})
}

// indented is how the real CLI writes content to a file.
func indented(all []protocol.Block) string {
	var b bytes.Buffer
	raw, err := protocol.Marshal(all)
	if err != nil || json.Indent(&b, raw, "", "  ") != nil {
		return protocol.Content{Blocks: all}.Plain()
	}
	return b.String()
}

// grouped writes a number with commas: 600,000.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func previewText(text, path string) string {
	runes := []rune(text)
	size := strings.TrimSuffix(strconv.FormatFloat(float64(len(runes))/1024, 'f', 1, 64), ".0")
	shown := string(runes[:min(previewRunes, len(runes))])
	if i := strings.LastIndexByte(shown, '\n'); i > len(shown)/2 {
		shown = shown[:i]
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%sKB). Full output saved to: %s\n\nPreview (first 2KB):\n%s\n...\n</persisted-output>",
		size, path, shown)
}

// blocks collects content items as blocks of a tool result.
type blocks struct {
	files  Files // nil = nothing is kept
	server string
	all    []protocol.Block
	links  []resourceLink
}

func (b *blocks) text(format string, args ...any) {
	b.all = append(b.all, protocol.Text(fmt.Sprintf(format, args...)))
}

// plain is the text of an error: text blocks as they are, others as JSON.
func (b *blocks) plain() string {
	return protocol.Content{Blocks: b.all}.Plain()
}

// add converts one content item. Kinds that are not known appear as JSON.
func (b *blocks) add(item json.RawMessage) {
	var c struct {
		Type        string          `json:"type"`
		Text        *string         `json:"text"`
		Data        string          `json:"data"`
		MIMEType    string          `json:"mimeType"`
		URI         string          `json:"uri"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Resource    json.RawMessage `json:"resource"`
	}
	if json.Unmarshal(item, &c) != nil {
		b.text("%s", compact(item))
		return
	}
	switch {
	case c.Type == "text" && c.Text != nil:
		b.text("%s", *c.Text)
	case c.Type == "image" && c.Data != "":
		b.image(c.MIMEType, c.Data)
	case c.Type == "audio" && c.Data != "":
		b.binary("Audio from "+b.server, c.MIMEType, c.Data)
	case c.Type == "resource_link" && c.URI != "":
		b.link(resourceLink{URI: c.URI, Name: c.Name, Description: c.Description, MIMEType: c.MIMEType})
	case c.Type == "resource" && ordered.TypeOf(c.Resource) == "object":
		b.resource(c.Resource)
	default:
		b.text("%s", compact(item))
	}
}

func (b *blocks) link(l resourceLink) {
	text := fmt.Sprintf("[Resource link: %s] %s", l.Name, l.URI)
	if l.Description != "" {
		text += " (" + l.Description + ")"
	}
	b.text("%s", text)
	b.links = append(b.links, l)
}

// image shows an image the API can take, and names the file it was saved to.
func (b *blocks) image(mime, data string) {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		b.binary("Image from "+b.server, mime, data)
		return
	}
	b.all = append(b.all, protocol.Image(mime, data))
	if path := b.save(mime, data); path != "" {
		b.text("[Image: source: %s]", path)
	}
}

func (b *blocks) resource(raw json.RawMessage) {
	var r struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	}
	if json.Unmarshal(raw, &r) != nil {
		b.text("%s", compact(raw))
		return
	}
	if r.Text != nil {
		b.text("[Resource from %s at %s] %s", b.server, r.URI, *r.Text)
		return
	}
	b.binary(fmt.Sprintf("Resource from %s at %s", b.server, r.URI), r.MIMEType, r.Blob)
}

// binary stands for data the model cannot see.
func (b *blocks) binary(what, mime, data string) {
	size := base64.StdEncoding.DecodedLen(len(data))
	if decoded, err := base64.StdEncoding.DecodeString(data); err == nil {
		size = len(decoded)
	}
	if path := b.save(mime, data); path != "" {
		b.text("[%s] Binary content (%s, %d bytes) saved to %s", what, mime, size, path)
		return
	}
	b.text("[%s] Binary content (%s, %d bytes)", what, mime, size)
}

// save keeps base64 data as a file; it returns "" when it is not kept.
func (b *blocks) save(mime, data string) string {
	if b.files == nil {
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return ""
	}
	path, err := b.files.SaveBlob(b.server, mime, decoded)
	if err != nil {
		return ""
	}
	return path
}
