package messages

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
)

// request is the body of a request to the Messages API, read as far as it has to
// be: system prompt and tools stay as they came until something asks.
type request struct {
	client

	model     string
	maxTokens int
	hasMax    bool
	stream    bool
	stops     []string
	raw       [][]byte // the messages
	system    json.RawMessage
	tools     *toolset

	toolChoice, thinking, outputConfig, metadata json.RawMessage

	thread  string   // its type; "" = none
	unknown []string // keys
}

// client is what the headers say about who asks.
type client struct {
	namespace, path string
	session, agent  string
	userAgent       string
	betas           []string
	header          http.Header
}

// claudeCode tells whether Claude Code asks.
func (c *client) claudeCode() bool {
	return strings.HasPrefix(c.userAgent, "claude-cli/") || strings.HasPrefix(c.userAgent, "claude-code/")
}

func readClient(r *http.Request, namespace, path string) client {
	c := client{
		namespace: namespace, path: path, header: r.Header, userAgent: r.UserAgent(),
		session: r.Header.Get("X-Claude-Code-Session-Id"), agent: r.Header.Get("X-Claude-Code-Agent-Id"),
	}
	for _, line := range r.Header.Values("Anthropic-Beta") {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" {
				c.betas = append(c.betas, beta)
			}
		}
	}
	return c
}

// headers are those that expressions may see: lower case, without credentials.
func (c *client) headers() map[string]string {
	out := make(map[string]string, len(c.header))
	for name, values := range c.header {
		name = strings.ToLower(name)
		if secretHeader(name) {
			out[name] = "[redacted]"
			continue
		}
		out[name] = strings.Join(values, ", ")
	}
	return out
}

// secretHeader tells whether a header, in lower case, can hold a credential: those
// that are accepted as such, and what looks like one.
func secretHeader(name string) bool {
	switch name {
	case "x-api-key", "authorization", "proxy-authorization", "cookie", "x-claudeless-token":
		return true
	}
	return slices.ContainsFunc([]string{"token", "secret", "credential", "api-key"}, func(part string) bool { return strings.Contains(name, part) })
}

// toolset are the tools that a request offers. Conversations offer the same ones
// again and again, so they are read once.
type toolset struct {
	raw   json.RawMessage
	names []string
	err   error // what is wrong with them
}

// schemas are the input schemas by name.
func (t *toolset) schemas() map[string]json.RawMessage {
	var tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	out := map[string]json.RawMessage{}
	if json.Unmarshal(t.raw, &tools) == nil {
		for _, tool := range tools {
			if tool.Schema != nil {
				out[tool.Name] = tool.Schema
			}
		}
	}
	return out
}

// readRequest reads a body; the error is a [*refusal].
func (s *Server) readRequest(body []byte, c client) (*request, error) {
	r := &request{client: c, tools: &toolset{}}
	err := members(body, func(key string, value []byte) error {
		return s.member(r, key, value)
	})
	if errors.Is(err, errSyntax) {
		no := &refusal{status: 400, message: errSyntax.Error()}
		if json.Valid(body) {
			no.message = "the request body must be a JSON object"
		}
		return r, no
	}
	return r, err
}

// member takes one key of the body.
func (s *Server) member(r *request, key string, value []byte) error {
	switch key {
	case "model":
		return field(key, value, &r.model, "string")
	case "max_tokens":
		r.hasMax = true
		return field(key, value, &r.maxTokens, "integer")
	case "stream":
		return field(key, value, &r.stream, "boolean")
	case "stop_sequences":
		return field(key, value, &r.stops, "list")
	case "messages":
		r.raw = [][]byte{}
		err := elements(value, func(m []byte) error {
			r.raw = append(r.raw, m)
			return nil
		})
		if err != nil {
			return invalid(key, "Input should be a valid list")
		}
		return nil
	case "tools":
		r.tools = s.readTools(value)
		return r.tools.err
	case "system":
		r.system = value
		return s.validOnce(value)
	case "tool_choice":
		r.toolChoice = value
	case "thinking":
		r.thinking = value
	case "output_config", "output_format":
		r.outputConfig = value
	case "metadata":
		r.metadata = value
	case "thread":
		var thread struct {
			Type string `json:"type"`
		}
		if err := field(key, value, &thread, "object"); err != nil {
			return err
		}
		r.thread = thread.Type
	default:
		if !knownKey(key) {
			r.unknown = append(r.unknown, key)
		}
	}
	return s.validOnce(value)
}

// knownKey tells whether a key is one that clients were seen to send and that
// changes nothing here.
func knownKey(key string) bool {
	switch key {
	case "temperature", "top_p", "top_k", "container", "context_management", "mcp_servers", "service_tier", "inference_geo", "speed", "cache_control",
		"diagnostics", "fallbacks", "fallback_credit_token", "betas", "anthropic_version", "anthropic_beta", "user_profile_id", "compaction",
		"billing_policy", "user_profile", "output":
		return true
	}
	return false
}

// field decodes one key.
func field(key string, value []byte, into any, what string) error {
	if bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(value, into); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return errSyntax
		}
		return invalid(key, "Input should be a valid "+what)
	}
	return nil
}

// validOnce checks a value that is not decoded; a long one that was seen before
// is known to be good.
func (s *Server) validOnce(value []byte) error {
	const long = 512
	if len(value) < long {
		if !json.Valid(value) {
			return errSyntax
		}
		return nil
	}
	sum := maphash.Bytes(s.hashSeed, value)
	s.mu.Lock()
	_, known := s.known.valid.get(sum)
	s.mu.Unlock()
	if known {
		return nil
	}
	if !json.Valid(value) {
		return errSyntax
	}
	s.mu.Lock()
	s.known.valid.put(sum, struct{}{})
	s.mu.Unlock()
	return nil
}

// readTools reads the tools that a request offers.
func (s *Server) readTools(raw []byte) *toolset {
	sum := maphash.Bytes(s.hashSeed, raw)
	s.mu.Lock()
	t, known := s.known.tools.get(sum)
	s.mu.Unlock()
	if known {
		return t
	}
	t = parseTools(bytes.Clone(raw))
	s.mu.Lock()
	s.known.tools.put(sum, t)
	s.mu.Unlock()
	return t
}

func parseTools(raw []byte) *toolset {
	t := &toolset{raw: raw}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return t
	}
	var tools []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &tools); err != nil {
		if t.err = invalid("tools", "Input should be a valid list"); !json.Valid(raw) {
			t.err = errSyntax
		}
		return t
	}
	for i, tool := range tools {
		switch {
		case tool.Name == "" && (tool.Type == "" || tool.Type == "custom"):
			t.err = invalid(fmt.Sprintf("tools.%d.name", i), "Field required")
			return t
		case tool.Name == "": // a set of tools
		case slices.Contains(t.names, tool.Name):
			t.err = invalid("tools", "Tool names must be unique.")
			return t
		default:
			t.names = append(t.names, tool.Name)
		}
	}
	return t
}

// systemText is the system prompt as one text.
func (r *request) systemText() string {
	var text string
	if json.Unmarshal(r.system, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(r.system, &blocks) != nil {
		return ""
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n")
}

// contents reads the messages; those whose bytes were seen before are known.
func (s *Server) contents(r *request) ([]*content, error) {
	out := make([]*content, len(r.raw))
	sums := make([]uint64, len(r.raw))
	s.mu.Lock()
	for i, raw := range r.raw {
		sums[i] = maphash.Bytes(s.hashSeed, raw)
		out[i], _ = s.known.read.get(sums[i])
	}
	s.mu.Unlock()
	for i, c := range out {
		if c != nil {
			continue
		}
		c, err := readContent(bytes.Clone(r.raw[i]), i)
		if err != nil {
			return nil, err
		}
		out[i] = c
		s.mu.Lock()
		s.known.read.put(sums[i], c)
		s.mu.Unlock()
	}
	return out, nil
}

// refusal is an answer that the API gives to a request which it does not take.
type refusal struct {
	status  int
	message string
	code    string // details.error_code; "" = no details
	final   bool   // x-should-retry: false
}

func (e *refusal) Error() string { return strconv.Itoa(e.status) + " " + e.message }

// invalid refuses a request because of the value at a place.
func invalid(at, what string) *refusal { return &refusal{status: 400, message: at + ": " + what} }

// shapeError is what is wrong with a value that could not be decoded.
func shapeError(at string, raw []byte, err error) error {
	if !json.Valid(raw) {
		return errSyntax
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return invalid(at+"."+e.Field, "Input should be a valid "+jsonKind(e.Type.Kind().String()))
	}
	return invalid(at, "Input should be a valid dictionary")
}

func jsonKind(kind string) string {
	switch kind {
	case "bool":
		return "boolean"
	case "slice":
		return "list"
	case "ptr":
		return "string"
	}
	return kind
}
