package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// transcriptWriter appends lines until the first failure, because a gap in a transcript is worse than a missing end.
type transcriptWriter struct {
	isDisabled         bool
	directory          string // directory known to exist
	lineObserver       func(path string, line []byte)
	valuesSinceRequest []any                     // written values that modelRequestLog has not read yet
	filter             *claudecode.JSONKeyFilter // keys that the simulated version does not write
	open               openTranscriptFile        // the file that was written to last
}

type openTranscriptFile struct {
	path     string
	file     *os.File
	fileInfo os.FileInfo // used to detect that another file has replaced this one
}

func (w *transcriptWriter) writeLines(path string, values ...any) error {
	if w.isDisabled || len(values) == 0 {
		return nil
	}
	var all []byte
	var ends []int
	for _, value := range values {
		w.valuesSinceRequest = append(w.valuesSinceRequest, value)
		data, err := protocol.Marshal(value)
		if err != nil {
			return w.disableAfterWriteFailure(err)
		}
		if data = w.filter.Apply(data); data == nil {
			continue
		}
		all = append(append(all, data...), '\n')
		ends = append(ends, len(all))
	}
	if err := w.writeBytes(path, all); err != nil || w.lineObserver == nil {
		return err
	}
	start := 0
	for _, end := range ends {
		w.lineObserver(path, all[start:end-1])
		start = end
	}
	return nil
}

func (w *transcriptWriter) writeCopiedLines(path string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := w.writeBytes(path, data); err != nil || w.lineObserver == nil || w.isDisabled {
		return err
	}
	for line := range bytes.Lines(data) {
		w.lineObserver(path, bytes.TrimSuffix(line, []byte("\n")))
	}
	return nil
}

// writeBytes appends data in a single write, so that lines of several processes do not mix.
func (w *transcriptWriter) writeBytes(path string, data []byte) error {
	if w.isDisabled {
		return nil
	}
	if err := w.openFile(path); err != nil {
		return w.disableAfterWriteFailure(err)
	}
	if _, err := w.open.file.Write(data); err != nil {
		return w.disableAfterWriteFailure(err)
	}
	return nil
}

// openFile opens the file at path unless it is open already. If the file was removed or replaced, it opens the path
// again, as the real CLI does for each line.
func (w *transcriptWriter) openFile(path string) error {
	if w.open.file != nil && w.open.path == path {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, w.open.fileInfo) {
			return nil
		}
		w.directory = ""
	}
	if err := w.close(); err != nil {
		return err
	}
	if dir := filepath.Dir(path); dir != w.directory {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		w.directory = dir
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	w.open = openTranscriptFile{path: path, file: file, fileInfo: info}
	return nil
}

func (w *transcriptWriter) close() error {
	file := w.open.file
	w.open = openTranscriptFile{}
	if file == nil {
		return nil
	}
	return file.Close()
}

func (w *transcriptWriter) replaceFile(path string, data []byte, mode os.FileMode) error {
	if w.isDisabled {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return w.disableAfterWriteFailure(err)
	}
	if err := plainjson.ReplaceFile(path, data, mode); err != nil {
		return w.disableAfterWriteFailure(err)
	}
	return nil
}

func (w *transcriptWriter) disableAfterWriteFailure(writeErr error) error {
	w.isDisabled = true
	_ = w.close() // the write failure is already reported
	return fmt.Errorf("saving the session: %w", writeErr)
}

func rawContentBlocks(c protocol.Content) []json.RawMessage {
	if c.Blocks == nil {
		return []json.RawMessage{rawTextBlock(c.Text)}
	}
	var blocks []json.RawMessage
	for _, b := range c.Blocks {
		if raw, err := protocol.Marshal(b); err == nil {
			blocks = append(blocks, raw)
		}
	}
	return blocks
}

func rawTextBlock(text string) json.RawMessage {
	return json.RawMessage(`{"type":"text","text":` + plainjson.MarshalString(text) + `}`)
}

func contentBlocksFromJSON(content json.RawMessage) []json.RawMessage {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) == nil {
		return blocks
	}
	return []json.RawMessage{json.RawMessage(`{"type":"text","text":` + string(content) + `}`)}
}

func isBlockOfType(block json.RawMessage, kind string) bool {
	var b struct{ Type string }
	return json.Unmarshal(block, &b) == nil && b.Type == kind
}

func imageNumbersAfter(c protocol.Content, last int) (ids []int) {
	for _, b := range c.Blocks {
		if _, is := b.(protocol.ImageBlock); is {
			ids = append(ids, last+len(ids)+1)
		}
	}
	return ids
}

// storePromptImages stores the images of a prompt in files, and returns the texts that name the files to the model. It ignores
// files that cannot be written.
func storePromptImages(dir string, promptContent protocol.Content, imageNumbers []int) protocol.UserContent {
	_ = os.MkdirAll(dir, 0o700)
	names := protocol.UserContent{Role: "user"}
	for _, b := range promptContent.Blocks {
		if image, is := b.(protocol.ImageBlock); is {
			file := filepath.Join(dir, strconv.Itoa(imageNumbers[len(names.Content.Blocks)])+"."+filepath.Base(image.Source.MediaType))
			if data, err := base64.StdEncoding.DecodeString(image.Source.Data); err == nil {
				_ = os.WriteFile(file, data, 0o600)
			}
			names.Content.Blocks = append(names.Content.Blocks, protocol.Text("[Image: source: "+file+"]"))
		}
	}
	return names
}

func hexSHA256OfKindAndText(kind, text string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(kind+"\n"+text)))
}

// connectionErrorCode returns the name of the system error in a message, such as ECONNREFUSED in "(ECONNREFUSED)".
func connectionErrorCode(message string) string {
	for word := range strings.FieldsFuncSeq(message, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		if len(word) > 3 && strings.HasPrefix(word, "E") {
			return word
		}
	}
	return "UNKNOWN"
}

// unixMilli converts a timestamp to Unix time in milliseconds. It returns 0 for an invalid timestamp.
func unixMilli(timestamp string) int64 {
	at, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}
