package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fields reads the keys of a request; those of the wrong type count as absent.
func fields[T any](request json.RawMessage) T {
	var in T
	_ = json.Unmarshal(request, &in)
	return in
}

func setPermissionMode(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Mode protocol.PermissionMode `json:"mode"`
	}](request)
	if in.Mode == "manual" {
		in.Mode = protocol.ModeDefault
	}
	before := p.s.Policy.Mode()
	if err := p.s.Policy.SetMode(in.Mode); err != nil {
		return answer{}, err
	}
	a := answer{payload: map[string]any{"mode": in.Mode}}
	if in.Mode != before {
		a.after = []protocol.Event{simulator.ModeStatus(in.Mode)}
	}
	return a, nil
}

func setModel(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Model json.RawMessage `json:"model"`
	}](request)
	var name string
	if in.Model != nil && json.Unmarshal(in.Model, &name) != nil {
		return answer{}, &RefusalError{Code: "invalid_request", Text: "set_model: model must be a string"}
	}
	p.changeModel(name)
	return answer{payload: map[string]any{"model": p.s.Model()}}, nil
}

// changeModel tells about a change inside a conversation; before the first turn
// there is nothing to tell (spec: cli-observed 5).
func (p *Peer) changeModel(name string) {
	before := p.s.Model()
	p.s.SetModel(name)
	now := p.s.Model()
	p.mu.Lock()
	begun := p.turns > 0
	p.mu.Unlock()
	if begun && now != before {
		p.replay(&prompt{message: protocol.UserMessage{
			UUID:    p.o.NewID(),
			Content: protocol.Content{Text: "<local-command-stdout>Set model to `" + now + "`</local-command-stdout>"},
		}})
	}
}

// applySettings takes what of the settings has an effect while a session runs:
// model (null = the default one), output style and effort.
func applySettings(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Settings map[string]json.RawMessage `json:"settings"`
	}](request).Settings
	if in == nil {
		return answer{}, errors.New("apply_flag_settings requires `settings` to be an object, got " + ordered.TypeOf(fields[struct {
			Settings json.RawMessage `json:"settings"`
		}](request).Settings))
	}
	text := func(key string) *string {
		var value *string
		_ = json.Unmarshal(in[key], &value) // else as if it were not there
		return value
	}
	if _, given := in["model"]; given {
		name := ""
		if model := text("model"); model != nil {
			name = *model
		}
		p.changeModel(name)
	}
	if p.s.ApplySettings != nil {
		p.s.ApplySettings(text("outputStyle"), text("effortLevel"))
	}
	return answer{}, nil
}

func setThinking(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Tokens *int `json:"max_thinking_tokens"`
	}](request)
	if p.s.SetThinking != nil {
		p.s.SetThinking(in.Tokens)
	}
	return answer{}, nil
}

func cancelMessage(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		UUID string `json:"message_uuid"`
	}](request)
	p.mu.Lock()
	gone := p.queue.remove(in.UUID)
	p.mu.Unlock()
	a := answer{payload: map[string]any{"cancelled": gone != nil}}
	if gone != nil {
		a.after = lifecycleEvents(gone, "cancelled")
	}
	return a, nil
}

// stopTask answers alike for tasks that there are and that there are not.
func stopTask(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		ID *string `json:"task_id"`
	}](request)
	if in.ID == nil {
		return answer{}, errors.New("stop_task: task_id must be a string")
	}
	if p.s.StopTask != nil {
		p.s.StopTask(*in.ID)
	}
	return answer{payload: struct{}{}}, nil
}

// endSession lets what was sent so far come to its end, as the end of stdin
// does.
func endSession(_ context.Context, p *Peer, _ json.RawMessage) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.stir()
	return answer{}, nil
}

func rename(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Title string `json:"title"`
	}](request)
	switch {
	case p.s.Rename == nil:
		return answer{}, unsupported("rename_session")
	case in.Title == "":
		return answer{}, &HostError{Text: "A session title must not be empty"}
	}
	if err := p.s.Rename(in.Title); err != nil {
		return answer{}, err
	}
	return answer{after: []protocol.Event{&protocol.System{
		Subtype: "session_title_changed", Fields: []protocol.Field{{Key: "title", Value: in.Title}},
	}}}, nil
}

func rewind(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		ID     string `json:"user_message_id"`
		DryRun bool   `json:"dry_run"`
	}](request)
	if p.s.Rewind == nil {
		return answer{}, &HostError{Text: "File rewinding is not enabled."}
	}
	done, err := p.s.Rewind(in.ID, in.DryRun)
	switch {
	case err != nil:
		return answer{}, err
	case in.DryRun:
		return answer{payload: struct {
			CanRewind    bool     `json:"canRewind"`
			FilesChanged []string `json:"filesChanged"`
			Insertions   int      `json:"insertions"`
			Deletions    int      `json:"deletions"`
		}{true, append([]string{}, done.FilesChanged...), done.Insertions, done.Deletions}}, nil
	default:
		return answer{payload: struct {
			CanRewind    bool `json:"canRewind"`
			SkippedLinks int  `json:"skippedLinks"`
		}{true, done.SkippedLinks}}, nil
	}
}

// readLimit is how much of a file is sent when the host sets no limit.
const readLimit = 1 << 20

func readFile(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		Path     string `json:"path"`
		MaxBytes int    `json:"max_bytes"`
		Encoding string `json:"encoding"`
	}](request)
	if p.s.ReadFile == nil {
		return answer{}, unsupported("read_file")
	}
	abs, data, err := p.s.ReadFile(in.Path)
	if err != nil {
		return answer{}, err
	}
	out := struct {
		Contents  string `json:"contents"`
		AbsPath   string `json:"absPath"`
		Truncated bool   `json:"truncated,omitempty"`
		Encoding  string `json:"encoding,omitempty"`
		Lossy     bool   `json:"lossy"`
		Path      string `json:"requested_path"`
	}{AbsPath: abs, Path: in.Path}
	limit := in.MaxBytes
	if limit <= 0 {
		limit = readLimit
	}
	if out.Truncated = len(data) > limit; out.Truncated {
		data = data[:limit]
	}
	if in.Encoding == "base64" {
		out.Contents, out.Encoding = base64.StdEncoding.EncodeToString(data), "base64"
	} else {
		out.Contents, out.Lossy = string(data), !utf8.Valid(data)
	}
	return answer{payload: out}, nil
}

// describe makes the handler of a request that only wants to know something.
func describe(of func(Session) func() any) func(context.Context, *Peer, json.RawMessage) (answer, error) {
	return func(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
		tell := of(p.s)
		if tell == nil {
			return answer{}, unsupported(fields[subtype](request).Subtype)
		}
		return answer{payload: tell()}, nil
	}
}

func binaryVersion(_ context.Context, p *Peer, _ json.RawMessage) (answer, error) {
	return answer{payload: map[string]any{"version": p.s.Version, "buildTime": ""}}, nil
}

func cost(_ context.Context, p *Peer, _ json.RawMessage) (answer, error) {
	if p.s.Cost == nil {
		return answer{}, unsupported("get_session_cost")
	}
	return answer{payload: map[string]any{"text": p.s.Cost()}}, nil
}

// nothing answers requests that have nothing to act on: no work of a turn is
// ever in the foreground so long that it could be moved to the background.
func nothing(context.Context, *Peer, json.RawMessage) (answer, error) {
	return answer{payload: struct{}{}}, nil
}

// noTitle is the answer of a model that has no title to propose.
func noTitle(context.Context, *Peer, json.RawMessage) (answer, error) {
	return answer{payload: map[string]any{"title": nil}}, nil
}

func taskOutput(_ context.Context, p *Peer, request json.RawMessage) (answer, error) {
	in := fields[struct {
		ID string `json:"task_id"`
	}](request)
	if p.s.TaskOutput != nil {
		if output, ok := p.s.TaskOutput(in.ID); ok {
			cut := max(0, len(output)-readLimit)
			return answer{payload: struct {
				Output    string `json:"output"`
				Total     int    `json:"total_bytes"`
				Truncated bool   `json:"truncated"`
			}{string(output[cut:]), len(output), cut > 0}}, nil
		}
	}
	return answer{}, &HostError{Text: "get_task_output: no shell or Monitor task with that task_id in this session"}
}

func unsupported(subtype string) error {
	if subtype == "" {
		subtype = "undefined"
	}
	return &RefusalError{Code: "unsupported_request", Text: fmt.Sprintf("Unsupported control request subtype: %s", subtype)}
}
