package session

import (
	"errors"
	"strings"
	"testing"
)

// fuzz reads any text as one kind of file: the reader may refuse it with a position, but never panics.
func fuzz(f *testing.F, head string, seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		r := newSessionRecordingReader(Options{})
		err := r.read("in", strings.NewReader(head+"\n"+rest))
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		sessions, err := r.resolveSessions()
		if err != nil {
			return
		}
		for _, one := range sessions {
			for _, p := range one.Prompts {
				if len(p.Messages) == 0 {
					t.Errorf("prompt without an answer: %+v", p)
				}
			}
			one.Calls()
		}
	})
}

func FuzzTranscript(f *testing.F) {
	fuzz(f, `{"type":"user","parentUuid":null,"uuid":"a","sessionId":"s","message":{"role":"user","content":"hi"}}`,
		`{"type":"assistant","parentUuid":"a","uuid":"b","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"X","input":{}}]}}`,
		`{"type":"user","parentUuid":"b","uuid":"a","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":7}]}}`,
		"{\"type\":\"assistant\",\"isSidechain\":true,\"agentId\":\"x\",\"sessionId\":\"s\",\"message\":{\"id\":\"m\",\"content\":\"\u2028\"}}\n{")
}

func FuzzStream(f *testing.F) {
	fuzz(f, `{"type":"system","subtype":"init","session_id":"s","cwd":"/"}`,
		`{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"x"}]},"parent_tool_use_id":null}`+"\n"+`{"type":"result","session_id":"s"}`,
		`{"type":"user","isReplay":true,"session_id":"s","message":{"content":"x"}}`)
}

func FuzzJournal(f *testing.F) {
	fuzz(f, `{"time":"2026-01-01T00:00:00Z","pid":1,"session_id":"s","type":"prompt","prompt":"hi"}`,
		`{"time":"2026-01-01T00:00:00Z","pid":1,"session_id":"s","type":"model","message_id":"m","blocks":[{"type":"text","text":"x"}]}`)
}

func FuzzTape(f *testing.F) {
	fuzz(f, `{"dir":"in","frame":{"type":"user","message":{"role":"user","content":"hi"}}}`,
		`{"dir":"out","frame":{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"x"}]}}}`,
		`{"dir":"out","line":"{\"type\":\"result\",\"session_id\":\"s\"}"}`)
}
