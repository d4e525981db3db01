package transcript

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// resume goes on with the transcript at path, or with a copy of it.
func (s *Transcript) resume(path string) error {
	t, err := readTranscript(path)
	if err != nil {
		return err
	}
	s.source = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	if !isID(s.source) && t.sessionID != "" {
		s.source = t.sessionID
	}
	leaf := t.leaf
	if s.opts.ResumeAt != "" {
		if err := t.cut(s.opts.ResumeAt, s.opts.DropsTurn); err != nil {
			return s.refuse(err)
		}
		leaf = s.opts.ResumeAt
	}
	s.resumed, s.id, s.path, s.title = true, s.source, path, t.title
	if s.opts.Fork && s.opts.ID != s.source {
		if err := s.fresh(); err != nil {
			return err
		}
		s.forked, s.pending = true, func(promptID string) []byte { return t.copyAs(s.id, leaf, promptID) }
	}
	s.cutOff = !s.forked && !t.ended
	s.history = t.chain(leaf)
	for _, e := range t.entries {
		if strings.HasPrefix(e.kind, "file-history-") {
			s.files = append(s.files, e.raw)
		}
	}
	s.deferred = t.deferred
	if s.deferred == "" {
		s.lost = unanswered(s.history)
	}
	s.mute = t.endsMute(leaf)
	s.rec = recorder{leaf: map[string]string{"": leaf}, tools: t.tools, prompt: t.prompt, turns: t.turns, listed: t.listed}
	if s.forked {
		s.rec.prompt = t.firstPrompt(leaf)
	}
	if t.costs != nil {
		s.totals = *t.costs
		s.costs = make(map[string]protocol.ModelUsage, len(t.costs.ModelUsage))
		for model, c := range t.costs.ModelUsage {
			s.costs[model] = usageOf(c)
		}
	}
	return nil
}

// lostCall is a call whose result an earlier process did not come to keep.
type lostCall struct{ id, message string }

// unanswered finds the calls without a result.
func unanswered(history []Message) (calls []lostCall) {
	for _, m := range history {
		for _, b := range m.Content.Blocks {
			switch b := b.(type) {
			case protocol.ToolUse:
				calls = append(calls, lostCall{b.ID, m.UUID})
			case protocol.ToolResultBlock:
				calls = slices.DeleteFunc(calls, func(c lostCall) bool { return c.id == b.ToolUseID })
			}
		}
	}
	return calls
}

const lostText = "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. " +
	"Check whether it took effect before relying on it or running it again.]"

// mended are the lines that complete the conversation of an earlier process
// before the next prompt: results of lost calls, and an answer that is none
// where it ends with something the model was still to answer.
func (s *Transcript) mended(promptID string) []any {
	var lines []any
	for _, c := range s.lost {
		e := s.envelope("", "", "")
		e.PromptID, e.ParentUUID = promptID, &c.message
		result := protocol.ToolResultBlock{Type: "tool_result", ToolUseID: c.id, Content: protocol.Content{Text: lostText}, IsError: new(true)}
		lines = append(lines, protocol.UserLine{
			Head: e.Head, Type: "user", Stamp: e.Stamp, ToolUseResult: lostText, ToolDenialKind: "interrupted", SourceToolAssistantUUID: c.message,
			Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{result}}}, Foot: e.Foot,
		})
	}
	if len(lines) > 0 || s.mute {
		e, sequence := s.envelope("", "", ""), ""
		message := protocol.Synthetic(s.opts.NewID(), "No response requested.", "stop_sequence")
		message.StopSequence = &sequence
		lines = append(lines, protocol.SyntheticLine{Head: e.Head, Type: "assistant", Stamp: e.Stamp, Message: message, MadeBy: "other", Foot: e.Foot})
	}
	s.lost, s.mute = nil, false
	return lines
}

func (s *Transcript) refuse(err error) error {
	return &RefusedError{SessionID: s.source, Message: err.Error()}
}

type cutError string

func (e cutError) Error() string { return string(e) }

// cut keeps the lines up to the one with uuid at. With drops, the prompt that
// comes next must have that uuid; empty = there must be none. What the session
// cost is kept: it was spent.
func (t *parsed) cut(at string, drops *string) error {
	last := slices.IndexFunc(t.entries, func(e entry) bool { return e.uuid == at && e.said() })
	if last < 0 {
		return cutError("No message found with message.uuid of: " + at)
	}
	if drops != nil {
		next := ""
		if i := slices.IndexFunc(t.entries[last+1:], func(e entry) bool { return e.prompt }); i >= 0 {
			next = t.entries[last+1+i].uuid
		}
		if next != *drops {
			return cutError("Resume rejected by --resume-drops-turn: the prompt after " + at + " is " + orNone(next) + ", not " + orNone(*drops) + ".")
		}
	}
	t.entries = t.entries[:last+1]
	return nil
}

func orNone(uuid string) string {
	if uuid == "" {
		return "none"
	}
	return uuid
}

// copyAs returns the lines of the conversation up to leaf for the transcript of
// a fork: the same uuids under another session id, all of one prompt id.
func (t *parsed) copyAs(id, leaf, promptID string) []byte {
	var out bytes.Buffer
	for _, e := range t.branch(leaf) {
		line, err := ordered.Parse(e.raw)
		if err != nil {
			continue
		}
		source := line.Get("sessionId")
		if source != nil {
			line = line.With("sessionId", quoted(id))
		}
		if line.Get("promptId") != nil {
			line = line.With("promptId", quoted(promptID))
		}
		if e.kind == "assistant" && source != nil && line.Get("requestId") != nil {
			line = line.With("requestSessionId", source)
		}
		if raw, err := protocol.Marshal(line); err == nil {
			out.Write(append(raw, '\n'))
		}
	}
	return out.Bytes()
}

func quoted(s string) json.RawMessage {
	raw, err := protocol.Marshal(s)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

func usageOf(c protocol.LineCost) protocol.ModelUsage {
	return protocol.ModelUsage{
		InputTokens: c.InputTokens, OutputTokens: c.OutputTokens,
		CacheReadInputTokens: c.CacheReadInputTokens, CacheCreationInputTokens: c.CacheCreationInputTokens,
		WebSearchRequests: c.WebSearchRequests, CostUSD: c.CostUSD, ThinkingTokens: c.ThinkingTokens,
		CacheCreation5m: c.CacheCreation5m, CacheCreation1h: c.CacheCreation1h,
	}
}

func costOf(u protocol.ModelUsage) protocol.LineCost {
	return protocol.LineCost{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadInputTokens: u.CacheReadInputTokens, CacheCreationInputTokens: u.CacheCreationInputTokens,
		WebSearchRequests: u.WebSearchRequests, CostUSD: u.CostUSD, ThinkingTokens: u.ThinkingTokens,
		CacheCreation5m: u.CacheCreation5m, CacheCreation1h: u.CacheCreation1h,
	}
}
