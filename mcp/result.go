package mcp

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

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	// If a result has more than maxInlineResultRunes characters, it is saved to a file, and only its beginning is shown. A result
	// of more than maxResultTokens tokens is not shown at all (observed with 2.1.329, which counts the tokens through the API).
	maxInlineResultRunes  = 50_000
	maxResultTokens       = 25_000
	maxResultPreviewRunes = 2000
	bytesPerToken         = 4 // the usual estimate of bytes per token
	resultWarningTokens   = 10_000
	// An error of more than maxErrorRunes characters is shortened to shownErrorRunes characters.
	maxErrorRunes   = 11_000
	shownErrorRunes = 10_000
)

type callResult struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           json.RawMessage `json:"isError"`
	Meta              json.RawMessage `json:"_meta"`
	ToolResult        json.RawMessage `json:"toolResult"` // sent by servers older than protocol 2024-11-05
}

// toolUseResult is the tool_use_result of a call whose result has structured content, resource links or metadata.
type toolUseResult struct {
	Content           any                     `json:"content"`
	StructuredContent json.RawMessage         `json:"structuredContent,omitempty"`
	ResourceLinks     []protocol.ResourceLink `json:"resourceLinks,omitempty"`
	Meta              json.RawMessage         `json:"_meta,omitempty"`
}

// resultConverter converts the result of a call into what the model receives and the event stream shows. If content is
// too long or binary, the model gets a notice with the path of the saved file or at least with the size.
type resultConverter struct {
	Files     ResultFileStore // nil means nothing is stored
	MaxTokens int             // MAX_MCP_OUTPUT_TOKENS; 0 means not set
	Log       *debugLog       // required
}

func (v resultConverter) Convert(tool calledTool, useID string, result json.RawMessage) protocol.ToolResult {
	var r callResult
	if err := json.Unmarshal(result, &r); err != nil {
		return shortenedErrorResult(fmt.Sprintf("MCP server %q tool %q: the result cannot be read: %v", tool.Server, tool.RawName, err))
	}
	if old := plainjson.NilIfNull(r.ToolResult); old != nil && r.Content == nil && !tool.isModern {
		text, isText := plainjson.StringValue(old)
		if !isText {
			text = string(plainjson.Compact(old))
		}
		return protocol.ToolResult{Content: protocol.Content{Text: text}, Output: text}
	}
	check := connection.ToolResultDefects
	if tool.isModern {
		check = connection.ModernToolResultDefects
	}
	if defects := check(result); defects != "" {
		return shortenedErrorResult(fmt.Sprintf("MCP server %q %v", tool.Server, connection.NewMalformedResultError("tools/call", defects)))
	}
	items := plainjson.DecodeIgnoringErrors[[]json.RawMessage](r.Content) // it may be absent
	b, isFailed := blockBuilder{files: v.Files, server: tool.Server}, string(r.IsError) == "true"
	for _, item := range items {
		if kind := contentKind(item); !isFailed || kind == "text" || kind == "resource_link" { // a failed result loses other contents
			b.addItemSavingBinaries(item)
		}
	}
	if isFailed {
		text := b.plainText()
		if structured := plainjson.NilIfNull(r.StructuredContent); text == "" && structured != nil {
			text = string(plainjson.Compact(structured))
		}
		failed := shortenedErrorResult(cmp.Or(text, "Unknown error"))
		failed.UnsentSchema = tool.InputSchema
		return failed
	}
	if defect := tool.outputSchemaViolation(r.StructuredContent); defect != "" {
		return shortenedErrorResult(defect)
	}
	return v.saveOrReplaceIfTooLong(tool.Tool, useID, b.successResult(tool.Name, r.StructuredContent, plainjson.NilIfNull(r.Meta)))
}

// successResult converts a result without isError. It does not limit the size of the result.
func (b *blockBuilder) successResult(tool string, structured, meta json.RawMessage) protocol.ToolResult {
	nothing := protocol.Content{Text: fmt.Sprintf("(%s completed with no output)", tool)}
	r := protocol.ToolResult{Content: protocol.Content{Blocks: b.blocks}, Output: b.blocks}
	switch {
	case structured != nil:
		text := string(plainjson.Compact(structured))
		r.Content, r.Output = protocol.Content{Text: text}, text
		var content any = text
		if b.nonTextBlocks != nil {
			r.Content = protocol.Content{Blocks: append(b.nonTextBlocks, protocol.Text(text))}
			content = r.Content.Blocks
		}
		if text != "null" {
			r.Output = toolUseResult{Content: content, StructuredContent: structured, ResourceLinks: b.links, Meta: meta}
		}
	case len(b.blocks) == 0:
		return protocol.ToolResult{Content: nothing, Output: []protocol.Block{}}
	case len(b.links) > 0 || meta != nil:
		r.Output = toolUseResult{Content: b.blocks, ResourceLinks: b.links, Meta: meta}
	}
	if out, ok := r.Output.(toolUseResult); ok {
		r.MCP = &protocol.MCPResult{Content: out.Content, Meta: meta, Structured: structured, ResourceLinks: b.links}
	}
	if structured == nil && !hasImage(b.blocks) && b.plainText() == "" {
		r.Content = nothing
	}
	return r
}

func shortenedErrorResult(text string) protocol.ToolResult {
	if runes := []rune(text); len(runes) > maxErrorRunes {
		const half = shownErrorRunes / 2
		text = fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s", string(runes[:half]), len(runes)-shownErrorRunes, string(runes[len(runes)-half:]))
	}
	r := protocol.ErrorResult(text)
	r.Output = "Error: " + text
	return r
}

// saveOrReplaceIfTooLong shortens a result that is too long. If the result has too many tokens, it is replaced by the
// path of a file with the whole result. If it has fewer tokens, but more than maxInlineResultRunes characters, it is
// replaced by a preview, unless it contains an image. If neither Files nor MaxTokens is set, results are not limited.
func (v resultConverter) saveOrReplaceIfTooLong(tool protocol.Tool, useID string, r protocol.ToolResult) protocol.ToolResult {
	text := r.Content.Plain()
	if tokens := len(text) / bytesPerToken; tokens > resultWarningTokens {
		v.Log.Printf("result of %s is large: about %d tokens", tool.RawName, tokens)
	}
	length := utf8.RuneCountInString(text)
	most := bytesPerToken * cmp.Or(v.MaxTokens, maxResultTokens)
	switch {
	case v.Files == nil && v.MaxTokens == 0:
		return r
	case length > most:
		return v.saveAndReplaceByRefusal(tool, r)
	case length <= maxInlineResultRunes || hasImage(r.Content.Blocks):
		return r
	}
	name := useID + ".txt"
	if r.Content.Blocks != nil {
		text, name = indentedContentJSON(r.Content.Blocks), useID+".json"
	}
	if path := v.saveTextFile(tool, name, text); path != "" {
		r.Content = protocol.Content{Text: savedResultPreview(text, path)}
	}
	return r
}

func (v resultConverter) saveAndReplaceByRefusal(tool protocol.Tool, r protocol.ToolResult) protocol.ToolResult {
	text, single := r.Content.Text, len(r.Content.Blocks) == 1
	switch {
	case single:
		text = r.Content.Plain()
	case r.Content.Blocks != nil:
		text = indentedContentJSON(r.Content.Blocks)
	}
	size := formatThousands(utf8.RuneCountInString(text)) + " characters"
	hint := "Format: JSON\nUse jq to take what you need from it. Say which part you have read if it was not all.\n"
	if single {
		hint = "Format: Plain text\nRead all of the file in parts before you say anything about it, or say which part you have read.\n"
		if lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1; lines == 1 {
			size += " across 1 line"
		} else {
			size += " across " + formatThousands(lines) + " lines"
		}
	}
	refusal := "Error: result (" + size + ") exceeds maximum allowed tokens."
	if path := v.saveTextFile(tool, "", text); path != "" {
		refusal += " Output has been saved to " + path + ".\n" + hint
	}
	r.Content = protocol.Content{Text: refusal}
	if o, ok := r.Output.(toolUseResult); ok {
		o.Content = refusal
		r.Output, r.MCP.Content = o, refusal
	} else {
		r.Output = refusal
	}
	return r
}

// saveTextFile stores a text and returns its path; "" means not stored.
func (v resultConverter) saveTextFile(tool protocol.Tool, name, text string) (path string) {
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

// indentedContentJSON encodes content as the real CLI does in files.
func indentedContentJSON(blocks []protocol.Block) string {
	var b bytes.Buffer
	if raw, err := protocol.Marshal(blocks); err != nil || json.Indent(&b, raw, "", "  ") != nil {
		return protocol.Content{Blocks: blocks}.Plain()
	}
	return b.String()
}

func formatThousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func savedResultPreview(resultText, filePath string) string {
	runes := []rune(resultText)
	size := strings.TrimSuffix(strconv.FormatFloat(float64(len(runes))/1024, 'f', 1, 64), ".0")
	shown := string(runes[:min(maxResultPreviewRunes, len(runes))])
	if i := strings.LastIndexByte(shown, '\n'); i > len(shown)/2 {
		shown = shown[:i]
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%sKB). Full output saved to: %s\n\nPreview (first 2KB):\n%s\n...\n</persisted-output>",
		size, filePath, shown)
}

type blockBuilder struct {
	files         ResultFileStore // nil means nothing is stored
	server        string
	blocks        []protocol.Block
	links         []protocol.ResourceLink
	nonTextBlocks []protocol.Block // blocks of items other than text
}

func (b *blockBuilder) addText(format string, args ...any) {
	b.blocks = append(b.blocks, protocol.Text(fmt.Sprintf(format, args...)))
}

func (b *blockBuilder) plainText() string { return protocol.Content{Blocks: b.blocks}.Plain() }

func contentKind(item json.RawMessage) string {
	return plainjson.DecodeIgnoringErrors[struct{ Type string }](item).Type
}

// addItemSavingBinaries converts one content item. Unknown kinds become JSON text.
func (b *blockBuilder) addItemSavingBinaries(item json.RawMessage) {
	var c struct {
		Type     string          `json:"type"`
		Text     *string         `json:"text"`
		Data     string          `json:"data"`
		Resource json.RawMessage `json:"resource"`
		protocol.ResourceLink
	}
	_ = json.Unmarshal(item, &c) // it has been checked against its schema
	before := len(b.blocks)
	if c.Type != "text" {
		defer func() { b.nonTextBlocks = append(b.nonTextBlocks, b.blocks[before:]...) }()
	}
	switch {
	case c.Type == "text" && c.Text != nil:
		b.addText("%s", *c.Text)
	case c.Type == "image" && c.Data != "":
		b.saveAndAddImage(c.MIMEType, c.Data)
	case c.Type == "audio" && c.Data != "":
		b.saveBinaryAndAddNote("Audio from "+b.server, c.MIMEType, c.Data)
	case c.Type == "resource_link" && c.URI != "":
		b.addLink(c.ResourceLink)
	case c.Type == "resource" && plainjson.TypeOf(c.Resource) == "object":
		b.addResourceSavingBlob(c.Resource)
	default:
		b.addText("%s", string(plainjson.Compact(item)))
	}
}

func (b *blockBuilder) addLink(l protocol.ResourceLink) {
	text := fmt.Sprintf("[Resource link: %s] %s", l.Name, l.URI)
	if l.Description != "" {
		text += " (" + l.Description + ")"
	}
	b.addText("%s", text)
	b.links = append(b.links, l)
}

// saveAndAddImage adds an image in a format that the API accepts, and the path under which it was saved.
func (b *blockBuilder) saveAndAddImage(mime, data string) {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		b.saveBinaryAndAddNote("Image from "+b.server, mime, data)
		return
	}
	b.blocks = append(b.blocks, protocol.Image(mime, data))
	if path := b.saveBlobFile(mime, data); path != "" {
		b.addText("[Image: source: %s]", path)
	}
}

func (b *blockBuilder) addResourceSavingBlob(raw json.RawMessage) {
	var r struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	}
	if json.Unmarshal(raw, &r) != nil {
		b.addText("%s", string(plainjson.Compact(raw)))
		return
	}
	if r.Text != nil {
		b.addText("[Resource from %s at %s] %s", b.server, r.URI, *r.Text)
		return
	}
	b.saveBinaryAndAddNote(fmt.Sprintf("Resource from %s at %s", b.server, r.URI), r.MIMEType, r.Blob)
}

// saveBinaryAndAddNote adds a text that describes binary data, because the model cannot see the data itself.
func (b *blockBuilder) saveBinaryAndAddNote(label, mime, data string) {
	size := base64.StdEncoding.DecodedLen(len(data))
	if decoded, err := base64.StdEncoding.DecodeString(data); err == nil {
		size = len(decoded)
	}
	if path := b.saveBlobFile(mime, data); path != "" {
		b.addText("[%s] Binary content (%s, %d bytes) saved to %s", label, mime, size, path)
		return
	}
	b.addText("[%s] Binary content (%s, %d bytes)", label, mime, size)
}

// saveBlobFile stores base64 data as a file and returns the path; "" means not stored.
func (b *blockBuilder) saveBlobFile(mime, data string) (savedPath string) {
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

type calledTool struct {
	protocol.Tool
	isModern     bool                 // results are those of revision 2026-07-28
	outputSchema *outputschema.Schema // nil means any structured content
}

// outputSchemaToEnforce returns the schema that a tool's results must match. nil means that results are not checked: the tool
// has no schema, or the server uses a revision before 2026-07-28. If the schema is invalid, outputSchemaToEnforce returns an
// error with the text of the real CLI, and the tool is not called.
func (s *server) outputSchemaToEnforce(tool string) (*outputschema.Schema, error) {
	st, _ := s.statusAndChangeSignal()
	if st.initResult.ProtocolVersion != connection.ModernVersion {
		return nil, nil
	}
	for i, t := range st.lists.tools {
		definition := plainjson.DecodeIgnoringErrors[struct{ OutputSchema json.RawMessage }](st.lists.rawTools[i])
		if t.RawName != tool || definition.OutputSchema == nil {
			continue
		}
		schema, err := outputschema.CompileMCPOutputSchema(definition.OutputSchema)
		if err != nil {
			return nil, &RPCError{Code: connection.CodeInvalidParams, Message: fmt.Sprintf("Tool '%s' has an invalid outputSchema: %v", tool, err)}
		}
		return schema, nil
	}
	return nil, nil
}

// outputSchemaViolation returns, in the words of the real CLI, why the structured content of a successful result does not match
// the output schema of its tool; "" means that it matches.
func (t calledTool) outputSchemaViolation(structured json.RawMessage) string {
	switch {
	case t.outputSchema == nil:
		return ""
	case structured == nil:
		return fmt.Sprintf("Tool %s has an output schema but did not return structured content", t.RawName)
	}
	if err := t.outputSchema.Validate(structured); err != nil {
		return "Structured content does not match the tool's output schema: " + err.Error()
	}
	return ""
}
