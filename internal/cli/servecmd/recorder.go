package servecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// RecordingProxyOptions configure a [RecordingProxy]. All are required.
type RecordingProxyOptions struct {
	Upstream string // base address of the API, without /v1
	Journal  *journal.Journal
	Now      func() time.Time
}

// RecordingProxy forwards requests to a Messages API and records both directions in the journal. Client and API receive each
// other's bytes unchanged; the journal gets the assembled, redacted messages without headers. It is safe for concurrent use.
type RecordingProxy struct {
	options RecordingProxyOptions
	proxy   *httputil.ReverseProxy
}

const maxRequestBytes = 64 << 20

// NewRecordingProxy creates a handler; it starts nothing.
func NewRecordingProxy(o RecordingProxyOptions) (*RecordingProxy, error) {
	upstream, err := url.Parse(o.Upstream)
	if err != nil || upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https" {
		return nil, fmt.Errorf("invalid API address %q: expected http://… or https://…", o.Upstream)
	}
	h := &RecordingProxy{options: o}
	h.proxy = &httputil.ReverseProxy{
		FlushInterval: -1, // forward tokens immediately
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Header.Set("Accept-Encoding", "identity") // compressed responses could not be recorded
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadGateway)
			body, _ := json.Marshal(apiError{Type: "error", Error: errorBody{"api_error", "forwarding: " + err.Error()}}) // two strings cannot fail
			_, _ = w.Write(body)                                                                                          // the client may have disconnected
		},
	}
	return h, nil
}

// Err returns the first error of writing the journal.
func (h *RecordingProxy) Err() error { return h.options.Journal.Err() }

type apiError struct {
	Type  string    `json:"type"`
	Error errorBody `json:"error"`
}

type errorBody struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// ServeHTTP forwards one request and records it after the response.
func (h *RecordingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := h.options.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	seen := &responseRecorder{ResponseWriter: w, status: http.StatusOK}
	h.proxy.ServeHTTP(seen, r)
	ms := float64(h.options.Now().Sub(began).Microseconds()) / 1000
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		h.options.Journal.Write(journal.SideRequest{Session: claudeCodeSessionIDHeader(r), Kind: sideRequestKindFromPath(r.URL.Path), Path: r.URL.Path, Status: seen.status, MS: ms})
		return
	}
	line := journal.Exchange{Session: claudeCodeSessionIDHeader(r), Agent: r.Header.Get("X-Claude-Code-Agent-Id"), Client: r.UserAgent(), Path: r.URL.Path, Status: seen.status, MS: ms, Response: seen.recordedBodyOrAssembledStreamJSON()}
	if json.Valid(body) {
		line.Request = body
	}
	h.options.Journal.Write(line)
}

func claudeCodeSessionIDHeader(r *http.Request) string {
	return r.Header.Get("X-Claude-Code-Session-Id")
}

func sideRequestKindFromPath(path string) (countTokensModelsOrOther string) {
	switch {
	case strings.HasSuffix(path, "/count_tokens"):
		return "count_tokens"
	case strings.Contains(path, "/v1/models"):
		return "models"
	}
	return "other"
}

type responseRecorder struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
}

func (a *responseRecorder) WriteHeader(status int) {
	if status >= http.StatusOK { // 1xx statuses precede the final status
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseRecorder) Write(p []byte) (int, error) {
	a.body.Write(p)
	return a.ResponseWriter.Write(p)
}

// Unwrap returns the underlying writer, so that the proxy can flush it.
func (a *responseRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *responseRecorder) recordedBodyOrAssembledStreamJSON() json.RawMessage {
	if strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream") {
		return assembleMessage(a.body.Bytes())
	}
	if json.Valid(a.body.Bytes()) {
		return a.body.Bytes()
	}
	return nil
}

// assembledMessage is an assembled message of the model; unknown keys of its blocks are kept.
type assembledMessage struct {
	ID           string                   `json:"id"`
	Type         string                   `json:"type"`
	Role         string                   `json:"role"`
	Model        string                   `json:"model"`
	Content      []*assembledContentBlock `json:"content"`
	StopReason   *string                  `json:"stop_reason"`
	StopSequence *string                  `json:"stop_sequence"`
	Usage        json.RawMessage          `json:"usage,omitempty"`
}

type assembledContentBlock struct {
	initialMembers map[string]json.RawMessage
	textOrThinking strings.Builder // content of text and thinking blocks
	toolInputJSON  strings.Builder
}

// MarshalJSON writes the complete block. Signatures are omitted, because they are not useful and may look like secrets.
func (b *assembledContentBlock) MarshalJSON() ([]byte, error) {
	key := "text"
	if _, ok := b.initialMembers["thinking"]; ok {
		key = "thinking"
	}
	if b.textOrThinking.Len() > 0 {
		text, err := json.Marshal(b.textOrThinking.String())
		if err != nil {
			return nil, err
		}
		b.initialMembers[key] = text
	}
	if in := json.RawMessage(b.toolInputJSON.String()); len(in) > 0 && json.Valid(in) {
		b.initialMembers["input"] = in
	}
	delete(b.initialMembers, "signature")
	return json.Marshal(b.initialMembers)
}

type streamEvent struct {
	Type    string                     `json:"type"`
	Index   int                        `json:"index"`
	Message *assembledMessage          `json:"message"`
	Block   map[string]json.RawMessage `json:"content_block"`
	Delta   struct {
		Text         string  `json:"text"`
		Thinking     string  `json:"thinking"`
		PartialJSON  string  `json:"partial_json"`
		StopReason   *string `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// assembleMessage assembles the message of a stream, so that secrets split by the stream are recognised. An interrupted
// stream gives a partial message; a stream that ends in an error gives the error.
func assembleMessage(stream []byte) json.RawMessage {
	var m *assembledMessage
	blocks := map[int]*assembledContentBlock{}
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		var ev streamEvent
		if !ok || json.Unmarshal(data, &ev) != nil {
			continue
		}
		switch {
		case ev.Type == "error":
			return append([]byte(nil), bytes.TrimSpace(data)...)
		case ev.Type == "message_start" && ev.Message != nil:
			m = ev.Message
			m.Content = []*assembledContentBlock{}
		case m == nil:
		case ev.Type == "content_block_start" && ev.Block != nil:
			blocks[ev.Index] = &assembledContentBlock{initialMembers: ev.Block}
			m.Content = append(m.Content, blocks[ev.Index])
		case ev.Type == "content_block_delta" && blocks[ev.Index] != nil:
			b := blocks[ev.Index]
			b.textOrThinking.WriteString(ev.Delta.Text + ev.Delta.Thinking)
			b.toolInputJSON.WriteString(ev.Delta.PartialJSON)
		case ev.Type == "message_delta":
			m.StopReason, m.StopSequence = ev.Delta.StopReason, ev.Delta.StopSequence
			if ev.Usage != nil {
				m.Usage = ev.Usage
			}
		}
	}
	if m == nil {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return raw
}
