package session

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// resume goes on with the transcript at path, or with a copy of it.
func (s *Session) resume(path string) error {
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
	if s.opts.Fork {
		if err := s.fresh(); err != nil {
			return err
		}
		s.pending = t.copyAs(s.id)
	} else if !t.ended {
		s.pending = []byte("\n") // a line was cut off: end it
	}
	s.history = t.chain(leaf)
	for _, e := range t.entries {
		if strings.HasPrefix(e.kind, "file-history-") {
			s.files = append(s.files, e.raw)
		}
	}
	s.deferred = t.deferred
	s.rec = recorder{leaf: map[string]string{"": leaf}, tools: t.tools, prompt: t.prompt, resumed: true}
	if t.costs != nil {
		s.totals = *t.costs
		s.costs = make(map[string]protocol.ModelUsage, len(t.costs.ModelUsage))
		for model, c := range t.costs.ModelUsage {
			s.costs[model] = usageOf(c)
		}
	}
	return nil
}

func (s *Session) refuse(err error) error {
	return &RefusedError{SessionID: s.source, Message: err.Error()}
}

type cutError string

func (e cutError) Error() string { return string(e) }

// cut keeps the lines up to the one with uuid at. With drops, the prompt that
// comes next must have that uuid; empty = there must be none. What the session
// cost is kept: it was spent.
func (t *transcript) cut(at string, drops *string) error {
	last := slices.IndexFunc(t.entries, func(e entry) bool { return e.uuid == at && e.message() })
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

// copyAs returns the lines for the transcript of a fork: the same uuids under
// another session id.
func (t *transcript) copyAs(id string) []byte {
	var out bytes.Buffer
	for _, e := range t.entries {
		var keys struct {
			SessionID string `json:"sessionId"`
		}
		var line bytes.Buffer
		if json.Compact(&line, e.raw) != nil {
			continue
		}
		raw := line.Bytes()
		if json.Unmarshal(raw, &keys) == nil && keys.SessionID != "" {
			// Quotes inside JSON strings are escaped, so this finds keys only.
			raw = bytes.ReplaceAll(raw, key("sessionId", keys.SessionID), key("sessionId", id))
		}
		out.Write(append(raw, '\n'))
	}
	return out.Bytes()
}

func key(name, value string) []byte {
	quoted, err := protocol.Marshal(value)
	if err != nil {
		return nil
	}
	return append([]byte(`"`+name+`":`), quoted...)
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
