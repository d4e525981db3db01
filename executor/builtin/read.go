package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // dimensions of images
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	maxLines     = 2000      // shown without a limit
	maxLine      = 2000      // characters shown of a line
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
			opt("offset", num("First line to show, from 1")),
			opt("limit", num("Number of lines to show")),
			opt("pages", str("Pages of a PDF file, such as 1-5")),
			opt("allow_large", boolean("Read the file although it is large")),
		),
		run: typed(read),
	}
}

func read(_ context.Context, t *Tools, in readInput) protocol.ToolResult {
	path := t.path(in.FilePath)
	data, err := readRegular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("File does not exist. Note: your current working directory is %s.", t.Dir())
	case errors.Is(err, errDevice):
		return fail("Cannot read '%s': this device file would block or produce infinite output.", path)
	case err != nil:
		return fail("%s", describe(err, "open", path))
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return readImage(path, ext, data)
	case ".ipynb":
		if r, ok := readNotebook(path, data); ok {
			t.know(path)
			return r
		}
	case ".pdf":
		return text(fmt.Sprintf("PDF file read: %s (%s)", path, size(len(data))),
			readOutput{"pdf", pdfFile{path, base64.StdEncoding.EncodeToString(data), len(data)}})
	case ".exe", ".dll", ".so", ".dylib", ".zip", ".gz", ".tar", ".7z", ".bin", ".o", ".a", ".class", ".jar", ".wasm", ".pyc":
		return refuse("This tool cannot read binary files. The file appears to be a binary %s file. "+
			"Please use appropriate tools for binary file analysis.", ext)
	}
	if in.Offset == nil && in.Limit == nil && !in.AllowLarge && len(data) > maxWholeFile {
		return fail("File content (%s) exceeds maximum allowed size (%s). Use offset and limit parameters to read specific portions "+
			"of the file, or search for specific content instead of reading the whole file.", size(len(data)), size(maxWholeFile))
	}
	t.know(path)
	return readText(path, string(data), in)
}

func readText(path, content string, in readInput) protocol.ToolResult {
	lines := strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	start, limit := 1, maxLines
	if in.Offset != nil {
		start = max(1, int(*in.Offset))
	}
	if in.Limit != nil {
		limit = max(0, int(*in.Limit))
	}
	from := min(start-1, len(lines))
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
		b.WriteString(shorten(l, maxLine))
	}
	return text(b.String(), out)
}

// shorten cuts a line after n characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "... [truncated]"
		}
		n--
	}
	return s
}

func readImage(path, ext string, data []byte) protocol.ToolResult {
	if len(data) == 0 {
		return fail("Image file is empty: %s", path)
	}
	media := "image/" + strings.TrimPrefix(ext, ".")
	if ext == ".jpg" {
		media = "image/jpeg"
	}
	// The content decides where it says what it is.
	f := imageFile{Type: media, Base64: base64.StdEncoding.EncodeToString(data), OriginalSize: len(data)}
	if config, format, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		f.Type = "image/" + format
		f.Dimensions = &dimensions{config.Width, config.Height, config.Width, config.Height}
	}
	return protocol.ToolResult{
		Content: protocol.Content{Blocks: []protocol.Block{protocol.Image(f.Type, f.Base64)}},
		Output:  readOutput{"image", f},
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
