// Package history parses requests to the Messages API and interprets the conversation in them step by step.
//
// The meaning of a message depends on the message alone, so each one is parsed once and never modified. Requests that
// the real API rejects are also rejected here.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is the parsed body of a request to the Messages API. System prompt and tools are parsed only when they are
// needed. Some fields share memory with the body.
type Request struct {
	RequestSender

	Model                string
	MaxTokens            int
	hasMaxTokens, Stream bool
	StopSequences        []string
	Messages             []*Message // must not be modified
	System               json.RawMessage
	Tools                *Toolset

	ToolChoice, Thinking, OutputConfig, Metadata json.RawMessage

	cacheControl json.RawMessage // cache_control of the whole request
	threadType   string          // "" means none
	UnknownKeys  []string        // keys that are not part of the known API

	raw [][]byte // the messages as received
}

// RequestReader parses requests. It caches the parsed form of messages and tools. It is safe for concurrent use.
type RequestReader struct {
	seed maphash.Seed

	mu          sync.Mutex
	validBodies LRUCache[uint64, struct{}]
	tools       LRUCache[uint64, *Toolset]
	messages    LRUCache[uint64, *Message]
}

// NewRequestReader returns a reader whose cache can hold at least minCachedMessages parsed messages.
func NewRequestReader(minCachedMessages int) *RequestReader {
	return &RequestReader{seed: maphash.MakeSeed(), validBodies: NewLRUCache[uint64, struct{}](256), tools: NewLRUCache[uint64, *Toolset](64), messages: NewLRUCache[uint64, *Message](minCachedMessages)}
}

// Read parses a body. The error is a [*RejectedRequestError]; the request then contains what was read before the error.
func (rd *RequestReader) Read(body []byte, c RequestSender) (*Request, error) {
	r := &Request{RequestSender: c, Tools: &Toolset{}}
	err := forEachJSONMemberOrElement(body, '{', '}', func(key string, value []byte) error { return rd.parseRequestMember(r, key, value) })
	switch {
	case errors.Is(err, errSyntax) && json.Valid(body):
		return r, &RejectedRequestError{Status: http.StatusBadRequest, Message: "the request body must be a JSON object"}
	case errors.Is(err, errSyntax):
		return r, invalidJSON()
	case err != nil:
		return r, err
	case r.threadType == "continue":
		return r, &RejectedRequestError{Status: http.StatusNotFound, Message: "this thread is not known: send the whole history", Code: "thread_not_found", NoRetry: true}
	}
	if err = rd.parseMessages(r); errors.Is(err, errSyntax) {
		err = invalidJSON()
	}
	return r, err
}

func invalidJSON() *RejectedRequestError {
	return &RejectedRequestError{Status: http.StatusBadRequest, Message: errSyntax.Error()}
}

// InputSizeInBytes returns the number of bytes of the system prompt, the tools and the messages.
func (r *Request) InputSizeInBytes() int {
	n := len(r.System) + len(r.Tools.Raw)
	for _, m := range r.raw {
		n += len(m)
	}
	return n
}

func (rd *RequestReader) parseRequestMember(r *Request, key string, value []byte) error {
	switch key {
	case "model":
		return decodeRequestField(key, value, &r.Model, "string")
	case "max_tokens":
		r.hasMaxTokens = true
		return decodeRequestField(key, value, &r.MaxTokens, "integer")
	case "stream":
		return decodeRequestField(key, value, &r.Stream, "boolean")
	case "stop_sequences":
		return decodeRequestField(key, value, &r.StopSequences, "list")
	case "messages":
		r.raw = [][]byte{}
		err := forEachJSONElement(value, func(m []byte) error {
			r.raw = append(r.raw, m)
			return nil
		})
		if err != nil {
			return InvalidRequest(key, "Input should be a valid list")
		}
		return nil
	case "tools":
		r.Tools, _ = parseUnlessCached(rd, &rd.tools, value, func() (*Toolset, error) { return parseRequestTools(bytes.Clone(value)), nil })
		return r.Tools.err
	case "system":
		r.System = value
		return rd.validateJSONUnlessCached(value)
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
		if err := decodeRequestField(key, value, &thread, "object"); err != nil {
			return err
		}
		r.threadType = thread.Type
	default:
		if !isKnownRequestKeyWithoutEffect(key) {
			r.UnknownKeys = append(r.UnknownKeys, key)
		}
	}
	return rd.validateJSONUnlessCached(value)
}

func isKnownRequestKeyWithoutEffect(key string) bool {
	return slices.Contains([]string{
		"temperature", "top_p", "top_k", "container", "context_management", "mcp_servers", "service_tier", "inference_geo", "speed",
		"diagnostics", "fallbacks", "fallback_credit_token", "betas", "anthropic_version", "anthropic_beta", "user_profile_id", "compaction",
		"billing_policy", "user_profile", "output", "safeguards",
	}, key)
}

// decodeRequestField decodes the value of one key. A null leaves the field as it is.
func decodeRequestField(key string, value []byte, target any, expectedTypeName string) error {
	if err := json.Unmarshal(value, target); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return errSyntax
		}
		return InvalidRequest(key, "Input should be a valid "+expectedTypeName)
	}
	return nil
}

// validateJSONUnlessCached validates a value that is not decoded. A long value is validated only the first time.
func (rd *RequestReader) validateJSONUnlessCached(value []byte) error {
	validate := func() (valid struct{}, err error) {
		if !json.Valid(value) {
			err = errSyntax
		}
		return valid, err
	}
	const long = 512
	if len(value) < long {
		_, err := validate()
		return err
	}
	_, err := parseUnlessCached(rd, &rd.validBodies, value, validate)
	return err
}

// parseUnlessCached returns the cached result for raw or, if there is none, the result of parse. It does not cache errors.
func parseUnlessCached[V any](rd *RequestReader, cache *LRUCache[uint64, V], raw []byte, parse func() (V, error)) (V, error) {
	sum := maphash.Bytes(rd.seed, raw)
	rd.mu.Lock()
	v, ok := cache.Get(sum)
	rd.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := parse()
	if err == nil {
		rd.mu.Lock()
		defer rd.mu.Unlock()
		cache.Put(sum, v)
	}
	return v, err
}

// SystemText returns the system prompt as one text.
func (r *Request) SystemText() string {
	var text string
	if json.Unmarshal(r.System, &text) == nil {
		return text
	}
	var blocks []struct{ Text string }
	if json.Unmarshal(r.System, &blocks) != nil {
		return ""
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n")
}

func (rd *RequestReader) parseMessages(r *Request) error {
	out := make([]*Message, len(r.raw))
	for i, raw := range r.raw {
		var err error
		if out[i], err = parseUnlessCached(rd, &rd.messages, raw, func() (*Message, error) { return parseMessage(bytes.Clone(raw), i) }); err != nil {
			return err
		}
	}
	r.Messages = out
	return nil
}

// RequestSender describes the sender of a request, as far as the headers of the request identify it.
type RequestSender struct {
	Namespace, Path string
	Session, Agent  string // sent by Claude Code; "" means unknown
	UserAgent       string
	Betas           []string
	Retries         int         // how often an SDK has repeated the request
	Header          http.Header // headers of the request
}

const maxRetryCountFromRequestHeader = 1000

// SenderFromRequestHeaders reads the headers of a request to a path of a namespace.
func SenderFromRequestHeaders(r *http.Request, namespace, path string) RequestSender {
	c := RequestSender{Namespace: namespace, Path: path, Header: r.Header, UserAgent: r.UserAgent(), Session: r.Header.Get("X-Claude-Code-Session-Id"), Agent: r.Header.Get("X-Claude-Code-Agent-Id")}
	c.Retries, _ = strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")) // anything else is not a retry
	c.Retries = min(max(c.Retries, 0), maxRetryCountFromRequestHeader)
	for _, line := range r.Header.Values("Anthropic-Beta") {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" {
				c.Betas = append(c.Betas, beta)
			}
		}
	}
	return c
}

// IsClaudeCode reports whether the request comes from Claude Code.
func (c *RequestSender) IsClaudeCode() bool {
	return strings.HasPrefix(c.UserAgent, "claude-cli/") || strings.HasPrefix(c.UserAgent, "claude-code/")
}

// RedactedHeaders returns the headers for expressions, with names in lower case and credentials as "[redacted]".
func (c *RequestSender) RedactedHeaders() map[string]string {
	out := make(map[string]string, len(c.Header))
	for name, values := range c.Header {
		name = strings.ToLower(name)
		out[name] = strings.Join(values, ", ")
		if slices.ContainsFunc([]string{"token", "secret", "credential", "api-key", "authorization", "cookie"}, func(part string) bool { return strings.Contains(name, part) }) {
			out[name] = "[redacted]"
		}
	}
	return out
}

// LRUCache keeps at least the n most recently used entries and at most 2n entries, where n is the argument of
// [NewLRUCache]. It is not safe for concurrent use; the zero value stores nothing.
type LRUCache[K comparable, V any] struct {
	capacity     int
	newer, older map[K]V
}

// NewLRUCache creates a map that keeps at least the n most recently used entries; with n <= 0 it stores nothing.
func NewLRUCache[K comparable, V any](minEntries int) LRUCache[K, V] {
	return LRUCache[K, V]{capacity: max(0, minEntries), newer: map[K]V{}}
}

// Get returns the entry of a key, which counts as a use.
func (m *LRUCache[K, V]) Get(k K) (V, bool) {
	v, ok := m.newer[k]
	if ok {
		return v, true
	}
	if v, ok = m.older[k]; ok {
		m.Put(k, v)
	}
	return v, ok
}

// Put sets an entry.
func (m *LRUCache[K, V]) Put(k K, v V) {
	if m.capacity == 0 {
		return
	}
	if _, known := m.newer[k]; !known && len(m.newer) >= m.capacity {
		m.older, m.newer = m.newer, make(map[K]V, m.capacity)
	}
	m.newer[k] = v
}

// PromptCachePrefix is the beginning of a request up to one of its blocks. As in prompt caches, the tools come first, then the
// system prompt, then the messages.
type PromptCachePrefix struct {
	Key      Digest        // digest of the content, which does not depend on cache marks
	Size     int           // number of bytes of the content
	CacheTTL time.Duration // lifetime that the cache mark at the end of the prefix requests; 0 means no mark
}

type requestPrefixBuilder struct {
	prefixes      []PromptCachePrefix
	contentDigest Digest
	contentBytes  int
}

// PrefixesEndingAtEachBlock returns the prefixes of the request that end with a block, shortest first.
func (r *Request) PrefixesEndingAtEachBlock() []PromptCachePrefix {
	p := &requestPrefixBuilder{}
	p.addPrefixForEachBlock("tools", r.Tools.Raw)
	p.addPrefixForEachBlock("system", r.System)
	for _, raw := range r.raw {
		var m wireMessage
		if json.Unmarshal(raw, &m) == nil {
			p.addPrefixForEachBlock(m.Role, m.Content)
		}
	}
	if n := len(p.prefixes); n > 0 && r.cacheControl != nil { // a mark of the request applies to its last block
		p.prefixes[n-1].CacheTTL = max(p.prefixes[n-1].CacheTTL, cacheLifetime(r.cacheControl))
	}
	return p.prefixes
}

func (p *requestPrefixBuilder) addPrefixForEachBlock(roleOrSection string, blocksJSON json.RawMessage) {
	if len(blocksJSON) == 0 {
		return
	}
	if blocksJSON[0] == '"' { // a string is equivalent to one text block
		blocksJSON = append(append([]byte(`[{"type":"text","text":`), blocksJSON...), "}]"...)
	}
	_ = forEachJSONElement(blocksJSON, func(block []byte) error { // raw was validated before
		var keys map[string]json.RawMessage
		if json.Unmarshal(block, &keys) != nil {
			return errSyntax
		}
		mark := cacheLifetime(keys["cache_control"])
		delete(keys, "cache_control")
		plain, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		p.contentDigest, p.contentBytes = p.contentDigest.Chain(roleOrSection, string(plain)), p.contentBytes+len(plain)
		p.prefixes = append(p.prefixes, PromptCachePrefix{Key: p.contentDigest, Size: p.contentBytes, CacheTTL: mark})
		return nil
	})
}

// cacheLifetime returns the lifetime in a cache_control; 0 means no cache_control.
func cacheLifetime(raw json.RawMessage) time.Duration {
	var control struct{ Type, TTL string }
	switch {
	case raw == nil || json.Unmarshal(raw, &control) != nil || control.Type != "ephemeral":
		return 0
	case control.TTL == "1h":
		return time.Hour
	}
	return 5 * time.Minute
}

// Toolset is the list of tools that a request offers. It is parsed only once for all requests with the same list.
type Toolset struct {
	Raw   json.RawMessage // the list as received; nil means none
	Names []string
	err   error // set if the list is invalid
}

// Schemas returns the input schemas by tool name.
func (t *Toolset) Schemas() map[string]json.RawMessage {
	var tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	out := map[string]json.RawMessage{}
	if json.Unmarshal(t.Raw, &tools) == nil {
		for _, tool := range tools {
			if tool.Schema != nil {
				out[tool.Name] = tool.Schema
			}
		}
	}
	return out
}

func parseRequestTools(toolsJSON []byte) *Toolset {
	t := &Toolset{Raw: toolsJSON}
	if bytes.Equal(bytes.TrimSpace(toolsJSON), []byte("null")) {
		return t
	}
	var tools []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(toolsJSON, &tools); err != nil {
		if t.err = InvalidRequest("tools", "Input should be a valid list"); !json.Valid(toolsJSON) {
			t.err = errSyntax
		}
		return t
	}
	for i, tool := range tools {
		switch {
		case tool.Name == "" && (tool.Type == "" || tool.Type == "custom"):
			t.err = InvalidRequest(fmt.Sprintf("tools.%d.name", i), "Field required")
			return t
		case tool.Name == "": // a set of tools that run on the server
		case slices.Contains(t.Names, tool.Name):
			t.err = InvalidRequest("tools", "Tool names must be unique.")
			return t
		default:
			t.Names = append(t.Names, tool.Name)
		}
	}
	return t
}
