package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// scriptServer is a server that answers each request with the next line for its method in a text: METHOD ITEM ; ITEM ….
// The last line of a method repeats, and a method without a line is not found. An item is one of
//
//	{"result":…}  {"error":…}  the answer
//	{"method":…}               a notification
//	ack                        the acknowledgement of a subscription
//	silence                    nothing, and the stream stays open
//	drop                       the end of the stream (HTTP)
//	exit                       the end of the process (stdio)
//	status N                   that status and no body (HTTP)
//	body N TEXT                that status and a body of type application/json, in which $ID is the id (HTTP)
//	get MESSAGE                that message on the stream of GET, and status 202 (HTTP)
//	await                      a pause until the client has answered a request (HTTP)
//	id TEXT, retry N           a field of the next event (HTTP)
//
// A line for GET describes the stream of a GET request. Requests after the handshake then wait for
// the first GET. "garbage" is an answer that is not HTTP. The server is served over stdio or HTTP,
// and logs what it receives.
type scriptServer struct {
	Log io.Writer // receives a line for each message; may be nil

	mu       sync.Mutex
	lines    map[string][]string
	hasGET   bool          // the script describes the stream of GET
	opened   chan struct{} // closed when the first GET after a handshake arrives
	pushed   chan string   // messages for the stream of GET
	answered chan struct{} // receives a token for each answer of the client
}

// parseScript parses a script; empty lines are ignored.
func parseScript(text string) *scriptServer {
	s := &scriptServer{lines: map[string][]string{}, opened: make(chan struct{}), pushed: make(chan string), answered: make(chan struct{}, 10)}
	for line := range strings.Lines(text) {
		method, items, _ := strings.Cut(strings.TrimSpace(line), " ")
		if method != "" {
			s.lines[method] = append(s.lines[method], items)
		}
	}
	s.hasGET = s.lines["GET"] != nil
	return s
}

// next returns the items for the next request of a method.
func (s *scriptServer) next(method string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines[method]
	if len(lines) == 0 {
		return []string{`{"error":{"code":-32601,"message":"Method not found"}}`}
	}
	if len(lines) > 1 {
		s.lines[method] = lines[1:]
	}
	return strings.Split(lines[0], " ; ")
}

// scriptRequest is a message that a script receives.
type scriptRequest struct {
	ID     json.RawMessage            `json:"id"`
	Method string                     `json:"method"`
	Params map[string]json.RawMessage `json:"params"`
	Result json.RawMessage            `json:"result"` // of an answer of the client
}

// logRequest logs a message: its id, its method, "modern" if it contains the metadata that revision 2026-07-28
// requires, its other parameters, and some headers.
func (s *scriptServer) logRequest(m scriptRequest, header http.Header) {
	if s.Log == nil {
		return
	}
	words := []string{strings.Trim(string(m.ID), `"`), m.Method}
	if m.ID == nil {
		words[0] = "-"
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(m.Params["_meta"], &meta) // invalid _meta has no keys
	const prefix = "io.modelcontextprotocol/"
	if meta[prefix+"protocolVersion"] != nil && meta[prefix+"clientInfo"] != nil && meta[prefix+"clientCapabilities"] != nil {
		words = append(words, "modern")
	}
	delete(m.Params, "_meta")
	if len(m.Params) > 0 && m.Method != "initialize" {
		if params, err := plainjson.Marshal(m.Params); err == nil {
			words = append(words, string(params))
		}
	}
	if m.Method == "" {
		words[1] = string(m.Result)
	}
	var names []string
	for name := range header {
		if strings.HasPrefix(name, "Mcp-") || name == "Last-Event-Id" {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		words = append(words, name+"="+header.Get(name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.Log, strings.Join(words, " "))
}

// renderItem returns the message of an item with the id of the request filled in.
func renderItem(item string, request scriptRequest) []byte {
	if item == "ack" {
		item = `{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(request.ID) + `}}}`
	}
	if strings.HasPrefix(item, `{"method"`) {
		return []byte(`{"jsonrpc":"2.0",` + item[1:])
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(request.ID) + "," + item[1:])
}

// Serve answers lines until the input ends and returns the exit status of the process.
func (s *scriptServer) Serve(in io.Reader, out io.Writer) int {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m scriptRequest
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.logRequest(m, nil)
		if m.ID == nil || m.Method == "" {
			continue
		}
		for _, item := range s.next(m.Method) {
			switch item {
			case "exit":
				return 3
			case "silence":
			default:
				fmt.Fprintf(out, "%s\n", renderItem(item, m))
			}
		}
	}
}

// ServeHTTP implements http.Handler. It answers with plain JSON, or with an event stream if there is more than one
// message.
func (s *scriptServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m scriptRequest
	if r.Method == http.MethodGet && s.hasGET {
		s.serveGET(w, r)
		return
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	if m.Method == "initialize" {
		s.opened = make(chan struct{})
	}
	opened := s.opened
	s.mu.Unlock()
	if s.hasGET && m.ID != nil && !slices.Contains([]string{"initialize", "server/discover"}, m.Method) {
		<-opened
	}
	s.logRequest(m, r.Header)
	if m.Method == "" {
		s.answered <- struct{}{}
	}
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	items := s.next(m.Method)
	for len(items) > 0 && (items[0] == "await" || strings.HasPrefix(items[0], "get ")) {
		if text, ok := strings.CutPrefix(items[0], "get "); ok {
			s.pushed <- string(renderItem(text, m))
		} else {
			<-s.answered
		}
		items = items[1:]
	}
	if len(items) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if code, ok := strings.CutPrefix(items[0], "status "); ok {
		w.WriteHeader(parseStatus(code))
		return
	}
	if raw, ok := strings.CutPrefix(items[0], "body "); ok {
		code, text, _ := strings.Cut(raw, " ")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(parseStatus(code))
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "$ID", string(m.ID))) // a client that is gone needs no answer
		return
	}
	if len(items) == 1 && strings.HasPrefix(items[0], "{") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(renderItem(items[0], m)) // a client that has disconnected needs no answer
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, item := range append(items, "silence") {
		switch item {
		case "drop":
			return
		case "silence":
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", renderItem(item, m))
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
	}
}

// parseStatus returns the status code in a script; a code that is not a number is 500.
func parseStatus(code string) int {
	if status, err := strconv.Atoi(code); err == nil {
		return status
	}
	return http.StatusInternalServerError
}

// serveGET serves the stream of a GET request.
func (s *scriptServer) serveGET(w http.ResponseWriter, r *http.Request) {
	s.logRequest(scriptRequest{Method: "GET"}, r.Header)
	s.mu.Lock()
	select {
	case <-s.opened:
	default:
		close(s.opened)
	}
	s.mu.Unlock()
	items := s.next("GET")
	if items[0] == "garbage" {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			fmt.Fprint(conn, "garbage\r\n\r\n")
			conn.Close()
		}
		return
	}
	if code, ok := strings.CutPrefix(items[0], "status "); ok {
		w.WriteHeader(parseStatus(code))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for _, item := range items {
		field, value, _ := strings.Cut(item, " ")
		switch field {
		case "drop":
			return
		case "id", "retry":
			fmt.Fprintf(w, "%s: %s\n", field, value)
		case "silence":
		default:
			fmt.Fprintf(w, "data: %s\n\n", renderItem(item, scriptRequest{}))
		}
	}
	for flush.Flush() == nil {
		select {
		case message := <-s.pushed:
			fmt.Fprintf(w, "data: %s\n\n", message)
		case <-r.Context().Done():
			return
		}
	}
}
