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

type readOutput struct {
	Type string `json:"type"` // text, image, notebook or pdf
	File any    `json:"file"`
}

type textFile struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	NumLines   int    `json:"numLines"`
	StartLine  int    `json:"startLine"`
	TotalLines int    `json:"totalLines"`
}

func readText(path, content string, offset, lineLimit *tool.IntFromJSONNumber) protocol.ToolResult {
	lines := strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	start, limit := 1, len(lines)
	if offset != nil && *offset >= 0 {
		start = int(*offset)
	}
	if lineLimit != nil && *lineLimit > 0 {
		limit = int(*lineLimit)
	}
	from := max(0, min(start-1, len(lines)))
	shown := lines[from:min(from+limit, len(lines))]
	out := readOutput{"text", textFile{FilePath: path, Content: strings.Join(shown, "\n"), NumLines: len(shown), StartLine: start, TotalLines: len(lines)}}
	switch {
	case content == "":
		return tool.Text("<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", out)
	case len(shown) == 0:
		return tool.Text(fmt.Sprintf("<system-reminder>Warning: the file exists but is shorter than the provided offset (%d). "+
			"The file has %d lines.</system-reminder>", start, len(lines)), out)
	}
	text := numberLines(shown, start)
	switch {
	case strings.ContainsRune(content[:min(len(content), binaryProbeBytes)], 0):
		text += "\n\n[This file " + nulBytesText + unsupportedEncodingNote
	case !utf8.ValidString(content):
		text += "\n\n[This file " + invalidUTF8Text + " Its undecodable bytes show above as U+FFFD." + unsupportedEncodingNote
	}
	return tool.Text(text, out)
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
	unsupportedEncodingNote = " Edit and Write will refuse it: change it with a shell command that keeps its encoding, or ask the user whether to convert it to UTF-8.]"
	encodingNotWrittenText  = "These tools write UTF-8 (or UTF-16LE behind its byte-order mark) and never convert a file's encoding on their own, so nothing " +
		"was written. If the file is text, make the change with a shell command that reads and writes it in its own encoding (iconv, or PowerShell " +
		"Get-Content/Set-Content -Encoding), or ask the user whether to convert it to UTF-8 first. To replace the whole file with new UTF-8 text " +
		"anyway, delete it first, then Write it."
)

// encodingProblem returns why Edit and Write refuse a file with this content; empty means that they accept it.
func encodingProblem(data []byte) string {
	content := decodeText(data)
	switch {
	case strings.ContainsRune(content[:min(len(content), binaryProbeBytes)], 0):
		return nulBytesText
	case !utf8.ValidString(content):
		return invalidUTF8Text
	}
	return ""
}

// decodeText decodes UTF-8 or UTF-16. If the data begins with a byte-order mark, the mark selects
// the encoding and is removed; otherwise the data is UTF-8.
func decodeText(data []byte) string {
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
