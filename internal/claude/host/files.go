package host

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func (h *hostedSession) rewindFiles(uuid string, dryRun bool) (checkpoint.RewindEffect, error) {
	history := h.session.Checkpoints()
	switch {
	case history == nil:
		return checkpoint.RewindEffect{}, errRewindDisabled
	case dryRun:
		return history.PreviewRewind(uuid)
	default:
		return history.Rewind(uuid)
	}
}

// ReadFileIfPermitted reads a file if the Read tool may read it without asking.
func (h *hostedSession) ReadFileIfPermitted(path string) (absPath string, contents []byte, _ error) {
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(h.session.Plan().CWD, abs)
	}
	input, err := protocol.Marshal(struct {
		Path string `json:"file_path"`
	}{abs})
	if err != nil {
		return "", nil, err
	}
	if h.session.Policy().Decide(protocol.ToolUse{Type: "tool_use", Name: "Read", Input: input}).Behavior != permission.Allow {
		return "", nil, fs.ErrPermission
	}
	// Pipes and devices are not opened, because reading them may block this request and all later ones.
	if info, err := os.Stat(abs); err != nil || !info.Mode().IsRegular() {
		return "", nil, cmp.Or(err, fs.ErrInvalid)
	}
	data, err := os.ReadFile(abs)
	return abs, data, err
}

func rewindOrPreviewFiles(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	id, _ := plainjson.StringValue(in.keys["user_message_id"])
	dryRun := !plainjson.IsFalsy(in.keys["dry_run"])
	done, err := r.files.rewindFiles(id, dryRun)
	switch {
	case err != nil && dryRun:
		return control.ResponseWithEvents{Payload: struct {
			CanRewind bool   `json:"canRewind"`
			Error     string `json:"error"`
		}{false, err.Error()}}, nil
	case err != nil:
		return control.ResponseWithEvents{}, err
	case dryRun:
		return control.ResponseWithEvents{Payload: struct {
			CanRewind    bool     `json:"canRewind"`
			FilesChanged []string `json:"filesChanged"`
			Insertions   int      `json:"insertions"`
			Deletions    int      `json:"deletions"`
		}{true, append([]string{}, done.Files...), done.Insertions, done.Deletions}}, nil
	default:
		return control.ResponseWithEvents{Payload: struct {
			CanRewind    bool `json:"canRewind"`
			SkippedLinks int  `json:"skippedLinks"`
		}{true, done.Skipped}}, nil
	}
}

// maxFileBytesSentToHost is the maximum number of bytes of a file that are sent, even if the host requests more or no limit.
const maxFileBytesSentToHost = 1 << 20

// answerFileContents sends the contents of a file. Every failure gets the same error text.
func answerFileContents(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	path, _ := plainjson.StringValue(in.keys["path"])
	abs, data, err := r.files.ReadFileIfPermitted(path)
	if err != nil {
		return control.ResponseWithEvents{}, errors.New("read denied: " + path)
	}
	out := struct {
		Contents  string `json:"contents"`
		AbsPath   string `json:"absPath"`
		Truncated bool   `json:"truncated,omitempty"`
		Encoding  string `json:"encoding,omitempty"`
		Lossy     *bool  `json:"lossy,omitempty"` // nil means the contents are exact
		Path      string `json:"requested_path"`
	}{AbsPath: abs, Path: path}
	limit := maxFileBytesSentToHost
	if n, err := strconv.ParseFloat(string(in.keys["max_bytes"]), 64); err == nil && n >= 1 && n <= maxFileBytesSentToHost {
		limit = int(n)
	}
	if out.Truncated = len(data) > limit; out.Truncated {
		data = data[:limit]
	}
	if encoding, _ := plainjson.StringValue(in.keys["encoding"]); encoding == "base64" {
		out.Contents, out.Encoding = base64.StdEncoding.EncodeToString(data), encoding
	} else {
		out.Contents, out.Lossy = string(data), new(!utf8.Valid(data))
	}
	return control.ResponseWithEvents{Payload: out}, nil
}
