package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	// persistAbove is the length from which a result is kept in a file and
	// shown in part.
	persistAbove = 100_000
	previewBytes = 2000
	bytesPerWord = 4 // the usual estimate of bytes in a token
	warnAbove    = 10_000
)

// callResult is a tools/call result; unknown members are left where they are.
type callResult struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
	Meta              json.RawMessage `json:"_meta"`
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
}

// convert turns a result into what the model and the stream see of it.
func (m *Manager) convert(tool protocol.Tool, result json.RawMessage) protocol.ToolResult {
	var r callResult
	if err := json.Unmarshal(result, &r); err != nil {
		return errorResult(fmt.Sprintf("MCP server %q tool %q: the result cannot be read: %v", tool.Server, tool.RawName, err))
	}
	var items []json.RawMessage
	if optional(r.Content) != nil && json.Unmarshal(r.Content, &items) != nil {
		items = []json.RawMessage{r.Content} // one block, or nonsense: shown as JSON
	}
	b := blocks{m: m, server: tool.Server}
	for _, item := range items {
		b.add(item)
	}
	switch structured := optional(r.StructuredContent); {
	case r.IsError:
		text := b.plain()
		if text == "" && structured != nil {
			text = compact(structured)
		}
		if text == "" {
			text = "Unknown error"
		}
		return errorResult(text)
	case structured != nil:
		text := compact(structured)
		out := protocol.ToolResult{
			Content: protocol.Content{Text: text},
			Output:  structuredOutput{Content: text, StructuredContent: structured, ResourceLinks: b.links, Meta: optional(r.Meta)},
		}
		return m.limit(tool, out)
	case len(b.all) == 0:
		return protocol.ToolResult{
			Content: protocol.Content{Text: fmt.Sprintf("(%s completed with no output)", tool.Name)},
			Output:  []protocol.Block{},
		}
	case len(b.links) > 0 || optional(r.Meta) != nil:
		out := protocol.ToolResult{
			Content: protocol.Content{Blocks: b.all},
			Output:  structuredOutput{Content: b.all, ResourceLinks: b.links, Meta: optional(r.Meta)},
		}
		return m.limit(tool, out)
	default:
		return m.limit(tool, protocol.ToolResult{Content: protocol.Content{Blocks: b.all}, Output: b.all})
	}
}

func errorResult(text string) protocol.ToolResult {
	r := protocol.ErrorResult(text)
	r.Output = "Error: " + text
	return r
}

// compact is JSON without white space, numbers and order as they were.
func compact(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// limit replaces a result that is too long to show. A token limit that was set
// gives an error text; else long results become a preview.
func (m *Manager) limit(tool protocol.Tool, r protocol.ToolResult) protocol.ToolResult {
	text := r.Content.Plain()
	if tokens := len(text) / bytesPerWord; tokens > warnAbove {
		m.debug.Log(tool.Server).Printf("result of %s is large: about %d tokens", tool.RawName, tokens)
	}
	tooManyTokens := m.o.MaxOutputTokens > 0 && len(text) > m.o.MaxOutputTokens*bytesPerWord
	if !tooManyTokens && len(text) <= persistAbove {
		return r
	}
	path := ""
	if m.o.SaveText != nil {
		var err error
		if path, err = m.o.SaveText(tool.Name, text); err != nil {
			path = ""
		}
	}
	if tooManyTokens {
		r.Content = protocol.Content{Text: tooLongText(text, path)}
		r.Output = r.Content.Text
		return r
	}
	if path != "" {
		r.Content = protocol.Content{Text: previewText(text, path)}
	}
	return r
}

func tooLongText(text, path string) string {
	out := fmt.Sprintf("Error: result (%d characters", utf8.RuneCountInString(text))
	if lines := strings.Count(text, "\n") + 1; lines > 1 {
		out += fmt.Sprintf(" across %d lines", lines)
	}
	out += ") exceeds maximum allowed tokens."
	if path != "" {
		out += fmt.Sprintf(" Output has been saved to %s.\nRead the parts you need from that file, or ask the tool for less.", path)
	}
	return out
}

func previewText(text, path string) string {
	cut := previewBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%.1fKB). Full output saved to: %s\n\nPreview (first 2KB):\n%s\n...\n</persisted-output>",
		float64(len(text))/1024, path, text[:cut])
}

// blocks collects content items as blocks of a tool result.
type blocks struct {
	m      *Manager
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
		b.link(resourceLink{URI: c.URI, Name: c.Name, Description: c.Description})
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
		b.binary("Image", mime, data)
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
	if b.m.o.SaveBlob == nil {
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return ""
	}
	path, err := b.m.o.SaveBlob(b.server, mime, decoded)
	if err != nil {
		return ""
	}
	return path
}
