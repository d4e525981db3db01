package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type readInput struct {
	FilePath   string                  `json:"file_path"`
	Offset     *tool.IntFromJSONNumber `json:"offset"`
	Limit      *tool.IntFromJSONNumber `json:"limit"`
	Pages      string                  `json:"pages"`
	AllowLarge bool                    `json:"allow_large"`
}

type readOutput struct {
	Type string `json:"type"` // text, image, notebook or pdf
	File any    `json:"file"`
}

type textFileOutput struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	NumLines   int    `json:"numLines"`
	StartLine  int    `json:"startLine"`
	TotalLines int    `json:"totalLines"`
	Truncated  bool   `json:"truncatedByTokenCap,omitempty"`

	truncationNotice string // for the model
}

// maxReadTokens is the size of the largest text that one call returns, without allow_large.
const maxReadTokens = 25_000

const allowLargeHint = " To read it anyway, up to what still fits in your context, call Read again with allow_large: true — only if you genuinely need " +
	"all of it or the user asked for the whole file."

// textReadResult returns those lines of content that the input selects. Notices show fullPath; the structured output has in.FilePath.
func textReadResult(fullPath, content string, in readInput) protocol.ToolResult {
	lines := strings.Split(strings.ReplaceAll(string([]rune(content)), "\r\n", "\n"), "\n") // invalid bytes become U+FFFD
	start, limit := 1, len(lines)
	if in.Offset != nil && *in.Offset >= 0 {
		start = int(*in.Offset)
	}
	if in.Limit != nil && *in.Limit > 0 {
		limit = int(*in.Limit)
	}
	from := max(0, min(start-1, len(lines)))
	shown := lines[from:min(from+limit, len(lines))]
	file := textFileOutput{FilePath: in.FilePath, Content: strings.Join(shown, "\n"), NumLines: len(shown), StartLine: start, TotalLines: len(lines)}
	if tokens := estimateTokenCount(file.Content); tokens > maxReadTokens && !in.AllowLarge {
		if start > 1 || in.Limit != nil {
			return tool.Fail("File content (%d tokens) exceeds maximum allowed tokens (%d). Use offset and limit parameters to read specific portions "+
				"of the file, or search for specific content instead of reading the whole file.%s", tokens, maxReadTokens, allowLargeHint)
		}
		file.truncate(fullPath, shown, tokens)
		shown = strings.Split(file.Content, "\n")
	}
	out := readOutput{"text", file}
	switch {
	case content == "":
		return tool.TextResult("<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", out)
	case len(shown) == 0:
		return tool.TextResult(fmt.Sprintf("<system-reminder>Warning: the file exists but is shorter than the provided offset (%d). "+
			"The file has %d lines.</system-reminder>", start, len(lines)), out)
	}
	text := numberLines(shown, start)
	switch {
	case strings.ContainsRune(content[:min(len(content), binaryProbeBytes)], 0):
		text += "\n\n[This file " + nulBytesText + editAndWriteRefusedNote
	case !utf8.ValidString(content):
		text += "\n\n[This file " + invalidUTF8Text + " Its undecodable bytes show above as U+FFFD." + editAndWriteRefusedNote
	}
	return tool.TextResult(text, out)
}

// estimateTokenCount estimates the tokens of a text from the size of the API request that would count them.
func estimateTokenCount(text string) int {
	const bytesAroundText, bytesPerToken = 28, 4
	request, _ := protocol.Marshal(text) // a string cannot fail
	return (len(request) + bytesAroundText + bytesPerToken - 1) / bytesPerToken
}

// truncate shortens the text to about 85 % of [maxReadTokens]. It keeps the first lines or, if these are too long, the first
// characters. It sets the notice for the model (observed with 2.1.330).
func (t *textFileOutput) truncate(fullPath string, lines []string, tokens int) {
	const share, smaller, maxTries = 0.85, 0.7, 6
	units := utf16.Encode([]rune(t.Content))
	unitsPerToken := max(0.5, float64(len(units))/float64(tokens))
	fits := func(text string) bool { return float64(len(utf16.Encode([]rune(text))))/unitsPerToken <= maxReadTokens }
	count := max(1, int(float64(len(lines)*maxReadTokens)/float64(tokens)*share))
	page := strings.Join(lines[:count], "\n")
	for try := 0; try < maxTries && count > 1 && !fits(page); try++ {
		count = max(1, int(float64(count)*smaller))
		page = strings.Join(lines[:count], "\n")
	}
	t.Content, t.NumLines, t.Truncated = page, count, true
	t.truncationNotice = fmt.Sprintf("[Truncated: PARTIAL view — %s: showing lines 1-%d of %d total (%d tokens, cap %d). Call Read with offset=%d limit=%d for the next page, "+
		"or Grep to find a specific section.%s Do NOT answer from this page alone if the answer may be further in the file.]",
		fullPath, count, t.TotalLines, tokens, maxReadTokens, count+1, count, allowLargeHint)
	if fits(page) && strings.TrimSpace(page) != "" {
		return
	}
	cut := units[:int(maxReadTokens*unitsPerToken*share)]
	if last := len(cut) - 1; utf16.IsSurrogate(rune(cut[last])) && cut[last] < 0xDC00 {
		cut = cut[:last]
	}
	t.Content = string(utf16.Decode(cut))
	t.NumLines = strings.Count(t.Content, "\n") + 1
	t.truncationNotice = fmt.Sprintf("[Truncated: PARTIAL view — %s: showing the first %d of %d characters (%d tokens, cap %d); this file has very long lines and cannot be "+
		"paginated by line. Use Grep to find a specific section, or Read with offset/limit to page through it.%s Do NOT answer from this excerpt alone if "+
		"the answer may be elsewhere in the file.]", fullPath, len(cut), len(units), tokens, maxReadTokens, allowLargeHint)
}

func numberLines(lines []string, first int) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(first + i))
		b.WriteByte('\t')
		b.WriteString(line)
	}
	return b.String()
}

const (
	binaryProbeBytes = 8 << 10 // number of bytes that are searched for NUL

	nulBytesText            = "has NUL bytes in its first 8 KB: binary data, UTF-16/UTF-32 without a byte-order mark, or text with embedded NULs."
	invalidUTF8Text         = "is not valid UTF-8: it uses a legacy encoding such as Windows-1252, Shift-JIS or GBK, or it is binary."
	editAndWriteRefusedNote = " Edit and Write will refuse it: change it with a shell command that keeps its encoding, or ask the user whether to convert it to UTF-8.]"
	encodingNotWrittenText  = "These tools write UTF-8 (or UTF-16LE behind its byte-order mark) and never convert a file's encoding on their own, so nothing " +
		"was written. If the file is text, make the change with a shell command that reads and writes it in its own encoding (iconv, or PowerShell " +
		"Get-Content/Set-Content -Encoding), or ask the user whether to convert it to UTF-8 first. To replace the whole file with new UTF-8 text " +
		"anyway, delete it first, then Write it."
)

// encodingProblem returns why Edit and Write refuse a file with this content; empty means that they accept it.
func encodingProblem(data []byte) string {
	content := decodeUTF8OrUTF16(data)
	switch {
	case strings.ContainsRune(content[:min(len(content), binaryProbeBytes)], 0):
		return nulBytesText
	case !utf8.ValidString(content):
		return invalidUTF8Text
	}
	return ""
}

// decodeUTF8OrUTF16 decodes UTF-8 or UTF-16. If the data begins with a byte-order mark, the mark selects
// the encoding and is removed; otherwise the data is UTF-8.
func decodeUTF8OrUTF16(data []byte) string {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return string(data[3:])
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return string(data)
	}
	units := make([]uint16, 0, len(data)/2)
	for rest := data[2:]; len(rest) > 1; rest = rest[2:] {
		units = append(units, order.Uint16(rest))
	}
	return string(utf16.Decode(units))
}
