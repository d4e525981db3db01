package files

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
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// MaxWholeFileBytes is the size of the largest file that is read without offset and limit.
const MaxWholeFileBytes = 256 << 10

// Read returns the tool that reads a file.
func Read(f *SeenFileTracker) tool.Tool {
	return tool.Tool{
		Name:  "Read",
		Check: typedCheckForCaller(f, refuseUnreadableInput),
		Run: func(ctx context.Context, call protocol.ToolUse) tool.Result {
			r := typedRunForCaller(f, runRead)(ctx, call)
			out, _ := r.Output.(readOutput)
			if file, _ := out.File.(textFileOutput); file.truncationNotice != "" {
				r.EventsAfter = append(r.EventsAfter, &protocol.AttachmentAdded{Role: "system", Rendered: []string{file.truncationNotice}, AgentID: call.CallerAgentID(), Attachment: map[string]any{
					"type": "read_truncation_notice", "toolUseID": call.ID, "banner": file.truncationNotice,
				}})
			}
			return r
		},
	}
}

func refuseUnreadableInput(_ context.Context, f *SeenFileTracker, in readInput) *protocol.ToolResult {
	if text := pagesProblem(in.Pages); text != "" {
		return new(tool.Refuse("%s", text))
	}
	path := f.options.Paths.Path(in.FilePath)
	if ext := strings.ToLower(filepath.Ext(path)); ext != "" && strings.Contains(binaryExtensions, " "+ext[1:]+" ") {
		return new(tool.Refuse("This tool cannot read binary files. The file appears to be a binary %s file. "+
			"Use a skill for this file type if one is available, or a shell command or script that can read the format.", ext))
	}
	if specialFilePathPattern().MatchString(path) {
		return new(tool.Refuse("Cannot read '%s': this path names a device or process file that this tool does not read.", path))
	}
	return nil
}

// pagesProblem returns what is wrong with the parameter pages, which applies to PDF files; empty means nothing.
func pagesProblem(pages string) string {
	const most = 20
	first, last, isRange := strings.Cut(pages, "-")
	from, err := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	to := from
	if last = strings.TrimSpace(last); isRange && last == "" {
		to = math.MaxUint64
	} else if isRange && err == nil {
		to, err = strconv.ParseUint(last, 10, 32)
	}
	switch {
	case pages == "":
		return ""
	case err != nil || from == 0 || to < from:
		return `Invalid pages parameter: "` + pages + `". Give one page ("3") or one range ("1-5"), not a list. To read several pages or ranges, read each one separately. Pages are 1-indexed.`
	case to-from >= most:
		return `Page range "` + pages + `" exceeds maximum of ` + strconv.Itoa(most) + " pages per request. Please use a smaller range."
	}
	return ""
}

// specialFilePathPattern matches paths of files that never end, wait for input, or contain secrets.
var specialFilePathPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/dev/(zero|u?random|full|stdin|stdout|stderr|tty|console|fd/\d+)$|^/proc/[^/]+/(fd/\d+|environ|mem|kmem|status|cmdline|maps)$`)
})

// binaryExtensions lists the extensions that Read refuses. PDF files, images and notebooks are handled separately.
const binaryExtensions = " 3ds 7z a aac ai aiff apk app avi avif bin blend bmp bz2 class dat data db deb dll dmg doc docx dylib " +
	"ear eot eps exe fig flac flv gz heic heif ico idx iso jar lib lz4 m4a m4v max mdb mkv mov mp3 mp4 mpeg mpg msi node " +
	"npy npz numbers o obj odp ods odt ogg opus otf parquet pickle ppt pptx psd pyc pyo rar rlib rpm sketch so sqlite " +
	"sqlite3 swf tar tgz tif tiff ttf war wasm wav webm whl wma wmv woff woff2 xls xlsx xz z zip zst "

func runRead(_ context.Context, f *SeenFileTracker, in readInput) protocol.ToolResult {
	path := f.options.Paths.Path(in.FilePath)
	data, err := readRegularFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tool.Fail("%s", missingFileText(f.options.Paths.Dir(), path))
	case errors.Is(err, errNotRegularFile) && path == os.DevNull:
		data = nil
	case errors.Is(err, errNotRegularFile):
		return tool.Fail("Cannot read '%s': this device file would block or produce infinite output.", path)
	case err != nil:
		return tool.Fail("%s", fileErrorTextLikeNodeJS(err, "open", path))
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return imageReadResult(path, data)
	case ".ipynb":
		r, ok := notebookReadResult(in.FilePath, data)
		if ok {
			f.seenByModel.recordShown(path, string(data))
		}
		return r
	case ".pdf":
		if len(data) == 0 {
			return tool.Fail("PDF file is empty: %s", path)
		} else if in.Pages != "" { // like the real CLI without this program
			return tool.Fail("pdftoppm is not installed. Install poppler-utils (e.g. `brew install poppler` or `apt-get install poppler-utils`) to enable PDF page rendering.")
		}
		if !bytes.HasPrefix(data, []byte("%PDF-")) {
			return tool.Fail("File is not a valid PDF (missing %%PDF- header): %s", path)
		}
		return pdfReadResult(path, data)
	}
	if in.Limit == nil && !in.AllowLarge && len(data) > MaxWholeFileBytes {
		return tool.Fail("File content (%s) exceeds maximum allowed size (%s). Use offset and limit parameters to read specific portions "+
			"of the file, or search for specific content instead of reading the whole file.%s", tool.FormatSize(len(data)), tool.FormatSize(MaxWholeFileBytes), allowLargeHint)
	}
	r := textReadResult(path, decodeUTF8OrUTF16(data), in)
	if out, is := r.Output.(readOutput); is {
		file := out.File.(textFileOutput)
		f.seenByModel.recordSeenContent(path, string(data), file.NumLines == file.TotalLines)
		f.seenByModel.setReadTruncated(path, file.Truncated)
	}
	return r
}

// ReadLines reads a file that a prompt mentions as the Read tool does, even if the session does not have that tool. first is the first line,
// from 1, and lines the number of lines; 0 for both means the whole file. The file counts as read, so it may be edited.
// wasSeen means that the model had already seen the whole file, which has not changed since; the result is then the whole file.
func (f *SeenFileTracker) ReadLines(ctx context.Context, path string, firstLine, lineCount int) (result protocol.ToolResult, wasSeen bool) {
	in := readInput{FilePath: path}
	if refusal := refuseUnreadableInput(ctx, f, in); refusal != nil {
		return *refusal, false
	}
	if data, err := readRegularFile(path); err == nil {
		_, _, wasSeen = f.seenByModel.compareWithSeenContent(path, string(data))
	}
	if firstLine > 0 && !wasSeen {
		offset, limit := tool.IntFromJSONNumber(firstLine), tool.IntFromJSONNumber(lineCount)
		in.Offset, in.Limit = &offset, &limit
	}
	result = runRead(ctx, f, in)
	if out, _ := result.Output.(readOutput); out.Type == "pdf" { // the conversation contains only the size of a mentioned PDF
		file := out.File.(pdfFile)
		file.Base64 = ""
		result.Output = readOutput{"pdf", file}
	}
	return result, wasSeen
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

func imageReadResult(path string, data []byte) protocol.ToolResult {
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

func pdfReadResult(path string, data []byte) protocol.ToolResult {
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
