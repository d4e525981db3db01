package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// streamReader reads the events of `--output-format stream-json`.
type streamReader struct {
	set     *sessionSet
	current string // session of frames without a session id
	pending []*Prompt
	source  string // "stream" or "tape"
}

type streamJSONEvent struct {
	Type, Subtype   string
	SessionID       string `json:"session_id"`
	UUID            string `json:"uuid"`
	RequestID       string `json:"request_id"`
	CWD             string `json:"cwd"`
	Version         string `json:"claude_code_version"`
	PermissionMode  string `json:"permissionMode"`
	Tools           []string
	ParentToolUseID string `json:"parent_tool_use_id"`
	Message         *wireMessage
	IsReplay        bool   `json:"isReplay"`
	IsSynthetic     bool   `json:"isSynthetic"`
	Error           string `json:"error"`
	IsAPIError      bool   `json:"isApiErrorMessage"`
	APIErrorStatus  int    `json:"api_error_status"`
	IsError         bool   `json:"is_error"`
	Timestamp       string
	HookName        string             `json:"hook_name"`
	HookEvent       string             `json:"hook_event"`
	Outcome         string             `json:"outcome"`
	Request         controlRequestBody `json:"request"`
	ToolUseID       string             `json:"tool_use_id"`
	ToolUseResult   toolUseResult      `json:"tool_use_result"`
	Meta            []struct {
		ID               string `json:"id"`
		NonExecutionKind string `json:"non_execution_kind"`
	} `json:"tool_result_meta"`
	Denials []struct {
		ToolUseID string `json:"tool_use_id"`
	} `json:"permission_denials"`
}

type controlRequestBody struct {
	Subtype string `json:"subtype"`
	Input   struct {
		Event string `json:"hook_event_name"`
		Tool  string `json:"tool_name"`
	} `json:"input"`
}

var eventTypesThatIdentifyStreams = [...]string{"control_request", "control_response", "user", "assistant", "system", "result", "stream_event", "keep_alive"}

var ignoredEventTypes = [...]string{
	"stream_event", "control_request", "control_response", "control_cancel_request", "keep_alive", "rate_limit_event", "tool_progress",
	"auth_status", "command_lifecycle", "tool_use_summary", "prompt_suggestion", "update_environment_variables",
}

func (r *streamReader) parseLine(at Place, raw []byte) error {
	var ev streamJSONEvent
	if err := decodeLineLeniently(raw, &ev); err != nil {
		return err
	}
	r.current = cmp.Or(ev.SessionID, r.current)
	if r.current == "" { // the first frames of a host have no session id
		if ev.Type == "user" && ev.Message != nil {
			r.pending = append(r.pending, newPromptFromMessage(at, ev.Message))
		}
		return nil
	}
	b := r.set.getOrAddBuilder(r.current, r.source)
	b.addIDs(r.current, ev.UUID)
	b.addSourceFile(at.File)
	if b.Date == "" && len(ev.Timestamp) >= 10 {
		b.Date = ev.Timestamp[:10]
	}
	for _, p := range r.pending {
		b.addPrompt(p)
	}
	r.pending = nil
	b.addStreamJSONEvent(at, &ev)
	return nil
}

func (b *sessionBuilder) addHookEvent(ev *streamJSONEvent) {
	switch {
	case ev.Type == "control_request" && ev.Request.Subtype == "hook_callback":
		in := ev.Request.Input
		name := in.Event
		if in.Tool != "" {
			name += ":" + in.Tool
		}
		b.addHookRun(HookRun{name, ""})
	case ev.Subtype == "hook_response":
		came := ""
		if ev.Outcome != "success" {
			came = "failed"
		}
		b.addHookRun(HookRun{cmp.Or(ev.HookName, ev.HookEvent), came})
	}
}

func (b *sessionBuilder) addSourceFile(name string) {
	if !slices.Contains(b.Files, name) {
		b.Files = append(b.Files, name)
	}
}

func (b *sessionBuilder) addStreamJSONEvent(at Place, ev *streamJSONEvent) {
	switch {
	case ev.Type == "system" && ev.Subtype == "init":
		b.CWD, b.Version, b.Tools = ev.CWD, ev.Version, ev.Tools
		b.Mode = cmp.Or(b.Mode, ev.PermissionMode)
	case ev.Type == "system" && ev.Subtype == "compact_boundary":
		b.Compacted = append(b.Compacted, at)
	case ev.Type == "system" && ev.Subtype == "permission_denied":
		b.markDenied(ev.ToolUseID)
	case ev.Type == "assistant" && ev.Message != nil:
		b.addModelMessageOrFailure(at, ev.Message, ev.ParentToolUseID, ev.Error != "" || ev.IsAPIError, ev.APIErrorStatus)
	case ev.Type == "user" && ev.Message != nil:
		b.addUserEvent(at, ev)
	case ev.Type == "result":
		for _, d := range ev.Denials {
			b.markDenied(d.ToolUseID)
		}
		b.setHTTPStatusOfLastFailure(ev.APIErrorStatus)
		b.finished = true
	case ev.Type == "system" || slices.Contains(ignoredEventTypes[:], ev.Type):
		b.addHookEvent(ev)
	default:
		b.UnknownLines[ev.Type]++
	}
}

func (b *sessionBuilder) markDenied(id string) {
	if r := b.results[id]; r != nil {
		r.Denied = true
	}
}

func (b *sessionBuilder) setHTTPStatusOfLastFailure(httpStatus int) {
	if httpStatus == 0 || len(b.Prompts) == 0 {
		return
	}
	p := b.Prompts[len(b.Prompts)-1]
	if n := len(p.Messages); n > 0 && p.Messages[n-1].Failure != nil && p.Messages[n-1].Failure.Status == 0 {
		p.Messages[n-1].Failure.Status = httpStatus
	}
}

func newPromptFromMessage(at Place, m *wireMessage) *Prompt {
	text, other := m.Content.plainText()
	return &Prompt{At: at, Text: text, OtherParts: other, IsNotice: strings.HasPrefix(text, "<task-notification>")}
}

func (b *sessionBuilder) addUserEvent(at Place, ev *streamJSONEvent) {
	if hasToolResult(ev.Message.Content) {
		for _, block := range ev.Message.Content {
			if block.Type == "tool_result" {
				b.addToolResultOfStreamEvent(at, ev, block)
			}
		}
		return
	}
	p := newPromptFromMessage(at, ev.Message)
	if ev.ParentToolUseID != "" {
		b.getOrAddAgent(ev.ParentToolUseID).Prompt = p.Text
		return
	}
	if ev.IsSynthetic || isTextWrittenByCLI(p.Text) {
		return
	}
	if ev.IsReplay { // a replayed message may also occur in the input
		for _, seen := range b.Prompts {
			if seen.Text == p.Text && (len(seen.Messages) == 0 || seen == b.Prompts[len(b.Prompts)-1] && !b.finished) {
				return
			}
		}
		if n := len(b.Prompts); n > 0 && b.Prompts[n-1].TextMissing && len(b.Prompts[n-1].Messages) == 0 {
			b.Prompts[n-1] = p
			return
		}
	}
	b.addPrompt(p)
}

func (b *sessionBuilder) addToolResultOfStreamEvent(at Place, userEvent *streamJSONEvent, resultBlock wireBlock) {
	res := b.setResultOfCall(at, resultBlock)
	for _, m := range userEvent.Meta {
		if m.ID == resultBlock.ToolUseID && m.NonExecutionKind != "" {
			res.Denied = true
		}
	}
	b.addResultDetails(res, resultBlock.ToolUseID, &userEvent.ToolUseResult)
}

// objectWrappedFrameReader reads a recording of the frames that an SDK and claude exchanged, each wrapped in an object.
type objectWrappedFrameReader struct{ *streamReader }

func (r objectWrappedFrameReader) parseLine(at Place, raw []byte) error {
	frame := frameInTapeLine(raw)
	if frame == nil {
		return decodeLineLeniently(raw, &struct{}{}) // a header or a note only has to be valid JSON
	}
	return r.streamReader.parseLine(at, frame)
}

// frameInTapeLine returns the frame in a line of a recording of wrapped frames; nil means none.
func frameInTapeLine(tapeLine []byte) (frameOrNil json.RawMessage) {
	var w struct{ Frame, Message, Data, Payload, Line, JSON, Msg, Raw json.RawMessage }
	_ = json.Unmarshal(tapeLine, &w) // a line that is not an object has no frame
	for _, f := range []json.RawMessage{w.Frame, w.Message, w.Data, w.Payload, w.Line, w.JSON, w.Msg, w.Raw} {
		if len(f) > 0 && f[0] == '"' {
			var text string
			if json.Unmarshal(f, &text) == nil {
				f = json.RawMessage(strings.TrimSpace(text))
			}
		}
		var head struct{ Type string }
		if len(f) > 0 && f[0] == '{' && json.Unmarshal(f, &head) == nil && slices.Contains(eventTypesThatIdentifyStreams[:], head.Type) {
			return f
		}
	}
	return nil
}
