package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tell answers a request that only wants to know something.
func tell(_ context.Context, p *Peer, in request) (answer, error) {
	reply, ok := p.s.Tell(in.subtype)
	if !ok {
		return answer{}, unsupported(in.subtype)
	}
	return answer{payload: reply}, nil
}

// checked puts a check of the request's keys before a handler.
func checked(check func(request) error, run serveFunc) serveFunc {
	return func(ctx context.Context, p *Peer, in request) (answer, error) {
		if err := check(in); err != nil {
			return answer{}, err
		}
		return run(ctx, p, in)
	}
}

func knownDetail(in request) error {
	switch string(in.keys["detail"]) {
	case "", `"summary"`, `"full"`:
		return nil
	}
	return in.wrong("detail", "'summary' or 'full'")
}

func skipBehaviors(in request) error {
	if !in.has("skip_behaviors") {
		return nil
	}
	_, err := in.flag("skip_behaviors")
	return err
}

func binaryVersion(_ context.Context, p *Peer, _ request) (answer, error) {
	version, built := p.s.Build()
	return answer{payload: struct {
		Version          string `json:"version"`
		BuildTime        string `json:"buildTime"`
		OldestDesktopSDK string `json:"oldestDesktopSdk"`
	}{version, built, "0.3.280"}}, nil
}

// tail is how much of a task's output is sent: its end.
const tail = 8 << 10

func taskOutput(_ context.Context, p *Peer, in request) (answer, error) {
	id, err := in.text("task_id")
	if err != nil {
		return answer{}, err
	}
	output, known := p.s.TaskOutput(id)
	switch {
	case known:
	case shellTask(id):
		output = nil
	default:
		return answer{}, &HostError{Text: "get_task_output: no shell or Monitor task with that task_id in this session"}
	}
	cut := max(0, len(output)-tail)
	return answer{payload: struct {
		Output    string `json:"output"`
		Total     int    `json:"total_bytes"`
		Truncated bool   `json:"truncated"`
	}{string(output[cut:]), len(output), cut > 0}}, nil
}

// shellTask tells whether an id could be that of a shell task, one of an earlier
// process for instance.
func shellTask(id string) bool {
	rest, ok := strings.CutPrefix(id, "b")
	return ok && len(rest) == 8 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// readLimit is how much of a file is sent when the host sets no limit.
const readLimit = 1 << 20

// readFile sends the contents of a file. Whatever keeps it from being read is
// told alike.
func readFile(_ context.Context, p *Peer, in request) (answer, error) {
	path, _ := textIn(in.keys["path"])
	abs, data, err := p.s.ReadFile(path)
	if err != nil {
		return answer{}, errors.New("read denied: " + path)
	}
	out := struct {
		Contents  string `json:"contents"`
		AbsPath   string `json:"absPath"`
		Truncated bool   `json:"truncated,omitempty"`
		Encoding  string `json:"encoding,omitempty"`
		Lossy     *bool  `json:"lossy,omitempty"` // nil = the contents are exact
		Path      string `json:"requested_path"`
	}{AbsPath: abs, Path: path}
	limit := wanted(in.keys["max_bytes"])
	if out.Truncated = len(data) > limit; out.Truncated {
		data = data[:limit]
	}
	if encoding, _ := textIn(in.keys["encoding"]); encoding == "base64" {
		out.Contents, out.Encoding = base64.StdEncoding.EncodeToString(data), encoding
	} else {
		lossy := !utf8.Valid(data)
		out.Contents, out.Lossy = string(data), &lossy
	}
	return answer{payload: out}, nil
}

// wanted is the number of bytes that a host asks for.
func wanted(raw json.RawMessage) int {
	if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n >= 1 && n <= readLimit {
		return int(n)
	}
	return readLimit
}
