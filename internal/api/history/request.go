// Package history parses requests to the Messages API and interprets the conversation in them step by step.
//
// The meaning of a message depends on the message alone, so each one is parsed once and never modified. Requests that
// the real API rejects are also rejected here.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
)

// Request is the parsed body of a request to the Messages API. System prompt and tools are parsed only when they are
// needed. Some fields share memory with the body.
type Request struct {
	Client

	Model         string
	MaxTokens     int
	hasMaxTokens  bool
	Stream        bool
	StopSequences []string
	Messages      []*Message // must not be modified
	System        json.RawMessage
	Tools         *Toolset

	ToolChoice, Thinking, OutputConfig, Metadata json.RawMessage

	cacheControl json.RawMessage // cache_control of the whole request
	threadType   string          // "" means none
	UnknownKeys  []string        // keys that are not part of the known API

	raw [][]byte // the messages as received
}

// Reader parses requests. It caches parsed messages and tools by their bytes, because conversations repeat them. It is
// safe for concurrent use.
type Reader struct {
	seed maphash.Seed

	mu          sync.Mutex
	validBodies BoundedMap[uint64, struct{}]
	tools       BoundedMap[uint64, *Toolset]
	messages    BoundedMap[uint64, *Message]
}

// NewReader returns a reader. memory is the minimum number of messages that the cache of the reader can hold.
func NewReader(memory int) *Reader {
	return &Reader{
		seed: maphash.MakeSeed(), validBodies: NewBoundedMap[uint64, struct{}](256), tools: NewBoundedMap[uint64, *Toolset](64),
		messages: NewBoundedMap[uint64, *Message](memory),
	}
}

// Read parses a body. The error is a [*RefusalError]; the request then contains what was read before the error.
func (rd *Reader) Read(body []byte, c Client) (*Request, error) {
	r := &Request{Client: c, Tools: &Toolset{}}
	err := forEachSpan(body, '{', '}', func(key string, value []byte) error { return rd.readMember(r, key, value) })
	switch {
	case errors.Is(err, errSyntax) && json.Valid(body):
		return r, &RefusalError{Status: http.StatusBadRequest, Message: "the request body must be a JSON object"}
	case errors.Is(err, errSyntax):
		return r, invalidJSON()
	case err != nil:
		return r, err
	case r.threadType == "continue":
		return r, &RefusalError{
			Status: http.StatusNotFound, Message: "this thread is not known: send the whole history", Code: "thread_not_found", NoRetry: true,
		}
	}
	if err = rd.readMessages(r); errors.Is(err, errSyntax) {
		err = invalidJSON()
	}
	return r, err
}

func invalidJSON() *RefusalError {
	return &RefusalError{Status: http.StatusBadRequest, Message: errSyntax.Error()}
}

// Size returns the number of bytes of the system prompt, the tools and the messages.
func (r *Request) Size() int {
	n := len(r.System) + len(r.Tools.Raw)
	for _, m := range r.raw {
		n += len(m)
	}
	return n
}

func (rd *Reader) readMember(r *Request, key string, value []byte) error {
	switch key {
	case "model":
		return decodeField(key, value, &r.Model, "string")
	case "max_tokens":
		r.hasMaxTokens = true
		return decodeField(key, value, &r.MaxTokens, "integer")
	case "stream":
		return decodeField(key, value, &r.Stream, "boolean")
	case "stop_sequences":
		return decodeField(key, value, &r.StopSequences, "list")
	case "messages":
		r.raw = [][]byte{}
		err := forEachElement(value, func(m []byte) error {
			r.raw = append(r.raw, m)
			return nil
		})
		if err != nil {
			return InvalidRequest(key, "Input should be a valid list")
		}
		return nil
	case "tools":
		r.Tools = rd.readTools(value)
		return r.Tools.err
	case "system":
		r.System = value
		return rd.validateOnce(value)
	case "tool_choice":
		r.ToolChoice = value
	case "thinking":
		r.Thinking = value
	case "output_config", "output_format":
		r.OutputConfig = value
	case "metadata":
		r.Metadata = value
	case "cache_control":
		r.cacheControl = value
	case "thread":
		var thread struct {
			Type string `json:"type"`
		}
		if err := decodeField(key, value, &thread, "object"); err != nil {
			return err
		}
		r.threadType = thread.Type
	default:
		if !isIgnoredKey(key) {
			r.UnknownKeys = append(r.UnknownKeys, key)
		}
	}
	return rd.validateOnce(value)
}

// isIgnoredKey reports whether a key is known but has no effect here.
func isIgnoredKey(key string) bool {
	switch key {
	case "temperature", "top_p", "top_k", "container", "context_management", "mcp_servers", "service_tier", "inference_geo", "speed",
		"diagnostics", "fallbacks", "fallback_credit_token", "betas", "anthropic_version", "anthropic_beta", "user_profile_id", "compaction",
		"billing_policy", "user_profile", "output", "safeguards":
		return true
	}
	return false
}

// decodeField decodes the value of one key. A null leaves the field as it is.
func decodeField(key string, value []byte, target any, what string) error {
	if err := json.Unmarshal(value, target); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return errSyntax
		}
		return InvalidRequest(key, "Input should be a valid "+what)
	}
	return nil
}

// validateOnce validates a value that is not decoded. A long value is validated only the first time.
func (rd *Reader) validateOnce(value []byte) error {
	const long = 512
	if len(value) < long {
		if !json.Valid(value) {
			return errSyntax
		}
		return nil
	}
	sum := maphash.Bytes(rd.seed, value)
	rd.mu.Lock()
	_, known := rd.validBodies.Get(sum)
	rd.mu.Unlock()
	if known {
		return nil
	}
	if !json.Valid(value) {
		return errSyntax
	}
	rd.mu.Lock()
	rd.validBodies.Put(sum, struct{}{})
	rd.mu.Unlock()
	return nil
}

// SystemText returns the system prompt as one text.
func (r *Request) SystemText() string {
	var text string
	if json.Unmarshal(r.System, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(r.System, &blocks) != nil {
		return ""
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n")
}

// readMessages parses the messages, or takes them from the cache.
func (rd *Reader) readMessages(r *Request) error {
	out := make([]*Message, len(r.raw))
	sums := make([]uint64, len(r.raw))
	rd.mu.Lock()
	for i, raw := range r.raw {
		sums[i] = maphash.Bytes(rd.seed, raw)
		out[i], _ = rd.messages.Get(sums[i])
	}
	rd.mu.Unlock()
	for i, m := range out {
		if m != nil {
			continue
		}
		m, err := readMessage(bytes.Clone(r.raw[i]), i)
		if err != nil {
			return err
		}
		out[i] = m
		rd.mu.Lock()
		rd.messages.Put(sums[i], m)
		rd.mu.Unlock()
	}
	r.Messages = out
	return nil
}
