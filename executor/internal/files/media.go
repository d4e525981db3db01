package files

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"net/http"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

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

func readImage(path string, data []byte) protocol.ToolResult {
	if len(data) == 0 {
		return tool.Fail("Image file is empty: %s", path)
	}
	// The media type is detected from the content.
	f := imageFile{Type: http.DetectContentType(data), Base64: base64.StdEncoding.EncodeToString(data), OriginalSize: len(data)}
	if f.Type != "image/png" && f.Type != "image/jpeg" && f.Type != "image/gif" && f.Type != "image/webp" {
		return tool.Fail("File has an image extension but its content is not a valid PNG/JPEG/GIF/WebP. Detected: unrecognized bytes (hex: % x). "+
			"This usually means a download saved an error/login page instead of the image. Use `file %q` to confirm, or read it as text "+
			"with Bash (e.g. `head -c 500`).", data[:min(len(data), 8)], path)
	}
	f.Dimensions = imageDimensions(data)
	return protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Image(f.Type, f.Base64)}}, Output: readOutput{"image", f}}
}

// imageDimensions returns the size of an image; nil means unknown.
func imageDimensions(data []byte) *dimensions {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	return &dimensions{config.Width, config.Height, config.Width, config.Height}
}

func readPDF(path string, data []byte) protocol.ToolResult {
	encoded := base64.StdEncoding.EncodeToString(data)
	raw, _ := protocol.Marshal(struct { // encoding strings cannot fail
		Type   string            `json:"type"`
		Source map[string]string `json:"source"`
	}{"document", map[string]string{"type": "base64", "media_type": "application/pdf", "data": encoded}})
	return protocol.ToolResult{
		Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(fmt.Sprintf("PDF file read: %s (%s)", path, tool.FormatSize(len(data)))), protocol.RawBlock{JSON: raw}}},
		Output:  readOutput{"pdf", pdfFile{path, encoded, len(data)}},
	}
}
