package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // dimensions of images
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	maxWholeFile = 256 << 10 // bytes read without offset and limit
)

type readInput struct {
	FilePath   string  `json:"file_path"`
	Offset     *number `json:"offset"`
	Limit      *number `json:"limit"`
	Pages      string  `json:"pages"`
	AllowLarge bool    `json:"allow_large"`
}

type readOutput struct {
	Type string `json:"type"` // text, image, notebook, pdf
	File any    `json:"file"`
}

type textFile struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	NumLines   int    `json:"numLines"`
	StartLine  int    `json:"startLine"`
	TotalLines int    `json:"totalLines"`
}

type imageFile struct {
	Base64       string      `json:"base64"`
	Type         string      `json:"type"`
	OriginalSize int         `json:"originalSize"`
	Dimensions   *dimensions `json:"dimensions,omitempty"`
}

type dimensions struct {
	OriginalWidth  int `json:"originalWidth"`
	OriginalHeight int `json:"originalHeight"`
	DisplayWidth   int `json:"displayWidth"`
	DisplayHeight  int `json:"displayHeight"`
}

type pdfFile struct {
	FilePath     string `json:"filePath"`
	Base64       string `json:"base64"`
	OriginalSize int    `json:"originalSize"`
}

func readTool() tool {
	return tool{
		name: "Read", readOnly: true,
		description: "Reads a file: text with line numbers, images, notebooks and PDF files.",
		input: object(
			req("file_path", str("Path of the file")),
			opt("offset", integer("First line to show, from 1")),
			opt("limit", integer("Number of lines to show")),
			opt("pages", str("Pages of a PDF file, such as 1-5")),
			opt("allow_large", boolean("Read the file although it is large")),
		),
		check: typedCheck(unreadable),
		run:   typed(read),
	}
}

// unreadable refuses what Read never opens.
func unreadable(t *Tools, in readInput) *protocol.ToolResult {
	path := t.path(in.FilePath)
	if ext := strings.ToLower(filepath.Ext(path)); ext != "" && strings.Contains(binaryFormats, " "+ext[1:]+" ") {
		r := refuse("This tool cannot read binary files. The file appears to be a binary %s file. "+
			"Use a skill for this file type if one is available, or a shell command or script that can read the format.", ext)
		return &r
	}
	if deviceFile().MatchString(path) {
		r := refuse("Cannot read '%s': this path names a device or process file that this tool does not read.", path)
		return &r
	}
	return nil
}

// deviceFile matches paths that never end, wait for somebody, or tell secrets.
var deviceFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/dev/(zero|u?random|full|stdin|stdout|stderr|tty|console|fd/\d+)$|^/proc/[^/]+/(fd/\d+|environ|mem|kmem|status|cmdline|maps)$`)
})

// binaryFormats are the extensions of formats that Read leaves alone. PDF
// files, images and notebooks are read in their own way.
const binaryFormats = " 3ds 7z a aac ai aiff apk app avi avif bin blend bmp bz2 class dat data db deb dll dmg doc docx dylib " +
	"ear eot eps exe fig flac flv gz heic heif ico idx iso jar lib lz4 m4a m4v max mdb mkv mov mp3 mp4 mpeg mpg msi node " +
	"npy npz numbers o obj odp ods odt ogg opus otf parquet pickle ppt pptx psd pyc pyo rar rlib rpm sketch so sqlite " +
	"sqlite3 swf tar tgz tif tiff ttf war wasm wav webm whl wma wmv woff woff2 xls xlsx xz z zip zst "

// similar finds a file that differs in the extension only.
func similar(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path)) // no directory, no suggestion
	stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	for _, e := range entries {
		if name := e.Name(); name != filepath.Base(path) && strings.TrimSuffix(name, filepath.Ext(name)) == stem {
			return " Did you mean " + name + "?"
		}
	}
	return ""
}

func read(_ context.Context, t *Tools, in readInput) protocol.ToolResult {
	path := t.path(in.FilePath)
	data, err := readRegular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("File does not exist. Note: your current working directory is %s.%s", t.Dir(), similar(path))
	case errors.Is(err, errDevice):
		return fail("Cannot read '%s': this device file would block or produce infinite output.", path)
	case err != nil:
		return fail("%s", describe(err, "open", path))
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return readImage(path, data)
	case ".ipynb":
		if r, ok := readNotebook(named(in.FilePath), data); ok {
			t.know(path, string(data))
			return r
		}
	case ".pdf":
		return readPDF(path, named(in.FilePath), data)
	}
	if in.Limit == nil && !in.AllowLarge && len(data) > maxWholeFile {
		return fail("File content (%s) exceeds maximum allowed size (%s). Use offset and limit parameters to read specific portions "+
			"of the file, or search for specific content instead of reading the whole file. To read it anyway, up to what still fits "+
			"in your context, call Read again with allow_large: true — only if you genuinely need all of it or the user asked for "+
			"the whole file.", size(len(data)), size(maxWholeFile))
	}
	r := readText(named(in.FilePath), decodeText(data), in)
	file := r.Output.(readOutput).File.(textFile)
	t.saw(path, string(data), file.NumLines == file.TotalLines)
	return r
}

// Open reads a file as the Read tool does, whether or not the session has that
// tool; first and lines of 0 are all of it. Edits may follow as after a Read.
func (t *Tools) Open(ctx context.Context, path string, first, lines int) protocol.ToolResult {
	in := readInput{FilePath: path}
	if first > 0 {
		offset, limit := number(first), number(lines)
		in.Offset, in.Limit = &offset, &limit
	}
	return read(ctx, t, in)
}

func readText(path, content string, in readInput) protocol.ToolResult {
	lines := strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	start, limit := 1, len(lines)
	if in.Offset != nil && *in.Offset >= 0 {
		start = int(*in.Offset)
	}
	if in.Limit != nil && *in.Limit > 0 {
		limit = int(*in.Limit)
	}
	from := max(0, min(start-1, len(lines)))
	shown := lines[from:min(from+limit, len(lines))]
	out := readOutput{"text", textFile{
		FilePath: path, Content: strings.Join(shown, "\n"), NumLines: len(shown), StartLine: start, TotalLines: len(lines),
	}}
	switch {
	case content == "":
		return text("<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", out)
	case len(shown) == 0:
		return text(fmt.Sprintf("<system-reminder>Warning: the file exists but is shorter than the provided offset (%d). "+
			"The file has %d lines.</system-reminder>", start, len(lines)), out)
	}
	var b strings.Builder
	for i, l := range shown {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(start + i))
		b.WriteByte('\t')
		b.WriteString(l)
	}
	switch {
	case strings.ContainsRune(content[:min(len(content), binaryProbe)], 0):
		b.WriteString("\n\n[This file " + nulBytes + refusedLater)
	case !utf8.ValidString(content):
		b.WriteString("\n\n[This file " + legacyBytes + " Its undecodable bytes show above as U+FFFD." + refusedLater)
	}
	return text(b.String(), out)
}

const (
	binaryProbe = 8 << 10 // bytes of a file that are searched for NUL

	nulBytes     = "has NUL bytes in its first 8 KB: binary data, UTF-16/UTF-32 without a byte-order mark, or text with embedded NULs."
	legacyBytes  = "is not valid UTF-8: it uses a legacy encoding such as Windows-1252, Shift-JIS or GBK, or it is binary."
	refusedLater = " Edit and Write will refuse it: change it with a shell command that keeps its encoding, or ask the user whether to convert it to UTF-8.]"
	notWritten   = "These tools write UTF-8 (or UTF-16LE behind its byte-order mark) and never convert a file's encoding on their own, so nothing " +
		"was written. If the file is text, make the change with a shell command that reads and writes it in its own encoding (iconv, or PowerShell " +
		"Get-Content/Set-Content -Encoding), or ask the user whether to convert it to UTF-8 first. To replace the whole file with new UTF-8 text " +
		"anyway, delete it first, then Write it."
)

// foreign says why a file's content is none that Edit and Write may replace;
// empty = they may.
func foreign(data []byte) string {
	content := decodeText(data)
	switch {
	case strings.ContainsRune(content[:min(len(content), binaryProbe)], 0):
		return nulBytes
	case !utf8.ValidString(content):
		return legacyBytes
	}
	return ""
}

// decodeText reads a text with a byte-order mark, which is dropped.
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

func readImage(path string, data []byte) protocol.ToolResult {
	if len(data) == 0 {
		return fail("Image file is empty: %s", path)
	}
	// The content decides where it says what it is.
	f := imageFile{Type: http.DetectContentType(data), Base64: base64.StdEncoding.EncodeToString(data), OriginalSize: len(data)}
	if f.Type != "image/png" && f.Type != "image/jpeg" && f.Type != "image/gif" && f.Type != "image/webp" {
		return fail("File has an image extension but its content is not a valid PNG/JPEG/GIF/WebP. Detected: unrecognized bytes (hex: % x). "+
			"This usually means a download saved an error/login page instead of the image. Use `file %q` to confirm, or read it as text "+
			"with Bash (e.g. `head -c 500`).", data[:min(len(data), 8)], path)
	}
	f.Dimensions = sizeOf(data)
	return protocol.ToolResult{
		Content: protocol.Content{Blocks: []protocol.Block{protocol.Image(f.Type, f.Base64)}},
		Output:  readOutput{"image", f},
	}
}

// sizeOf is the size of a picture; nil = it cannot be told.
func sizeOf(data []byte) *dimensions {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	return &dimensions{config.Width, config.Height, config.Width, config.Height}
}

func readPDF(path, name string, data []byte) protocol.ToolResult {
	encoded := base64.StdEncoding.EncodeToString(data)
	raw, _ := protocol.Marshal(struct { // strings cannot fail
		Type   string            `json:"type"`
		Source map[string]string `json:"source"`
	}{"document", map[string]string{"type": "base64", "media_type": "application/pdf", "data": encoded}})
	return protocol.ToolResult{
		Content: protocol.Content{Blocks: []protocol.Block{
			protocol.Text(fmt.Sprintf("PDF file read: %s (%s)", path, size(len(data)))), protocol.RawBlock{JSON: raw},
		}},
		Output: readOutput{"pdf", pdfFile{name, encoded, len(data)}},
	}
}

// size words a number of bytes: 12KB, 1.5MB.
func size(n int) string {
	f := float64(n) / 1024
	if f < 1 {
		return fmt.Sprintf("%d bytes", n)
	}
	units := []string{"KB", "MB", "GB"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + units[i]
}
