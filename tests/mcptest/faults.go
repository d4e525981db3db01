package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// FaultModeNames returns the names of the ways in which the test server can misbehave.
func FaultModeNames() []string {
	return strings.Fields(`ok lax ignore-unknown exit-unknown crash-at-start hang-init init-error exit-on-init
		bad-version old-version string-id garbage stderr-flood no-newline-flood early-notify bigline exit-mid-call
		partial-line hang-call flood-call ignore-sigterm ignore-eof close-stdout grandchild stop-reading s2c
		unknown-content content-missing content-empty-image bigint dup both rpc-error no-result
		list-changed list-breaks progress pages page-loop page-endless weird-tools schema-bytes tools-null tools-error tools-hang nocaps slow env
		resources bad-error names modern subscribe deaf`)
}

func (s *server) countOptionOrModeDefault(modeDefault int) int {
	if s.Count > 0 {
		return s.Count
	}
	return modeDefault
}

// applyModeBeforeFirstMessage carries out those faults that begin before the client's first message, if s.Mode names one.
func (s *server) applyModeBeforeFirstMessage() {
	switch s.Mode {
	case "crash-at-start":
		fmt.Fprintln(s.Err, "warming up\nfatal: boom")
		s.exit = 3
	case "stderr-flood":
		for range 2048 {
			fmt.Fprintln(s.Err, strings.Repeat("e", 1023))
		}
	case "early-notify":
		s.notify("notifications/tools/list_changed", struct{}{})
		s.send(map[string]any{"jsonrpc": "2.0", "id": "early", "method": "ping"})
	case "ignore-sigterm":
		signal.Ignore(syscall.SIGTERM)
	case "grandchild":
		sleep, err := os.StartProcess("/bin/sleep", []string{"sleep", "301"}, &os.ProcAttr{})
		if err != nil {
			fmt.Fprintln(s.Err, err)
			s.exit = 1
			return
		}
		fmt.Fprintln(s.Err, "grandchild", sleep.Pid)
	case "slow":
		time.Sleep(time.Duration(s.countOptionOrModeDefault(300)) * time.Millisecond)
	}
}

// exitOrHangAtInputEOF performs the action of the mode at EOF.
func (s *server) exitOrHangAtInputEOF() {
	switch s.Mode {
	case "ignore-eof", "ignore-sigterm", "close-stdout":
		blockForever()
	}
	s.exit = 0
}

// blockForever never returns. An empty select would be reported as a deadlock.
func blockForever() {
	for {
		time.Sleep(time.Hour)
	}
}

func (s *server) initialize(m message) {
	version := m.Params.ProtocolVersion
	switch s.Mode {
	case "hang-init":
		return
	case "init-error":
		s.fail(m.ID, -32001, "not today")
		return
	case "exit-on-init":
		fmt.Fprintln(s.Err, "dying of initialize")
		s.exit = 4
		return
	case "bad-version":
		version = "1999-01-01"
	case "old-version":
		version = "2024-11-05"
	}
	s.reply(m.ID, map[string]any{
		"protocolVersion": version,
		"capabilities":    s.capabilityMap(),
		"serverInfo":      map[string]any{"name": "mcptest", "title": "Test server", "version": "1.2.3"},
		"instructions":    "be kind",
	})
}

func (s *server) capabilityMap() map[string]any {
	switch s.Mode {
	case "lax", "nocaps":
		return map[string]any{}
	case "resources":
		return map[string]any{"tools": struct{}{}, "resources": struct{}{}, "prompts": struct{}{}}
	case "subscribe":
		return map[string]any{"tools": struct{}{}, "resources": map[string]any{"subscribe": true}}
	default:
		return map[string]any{"tools": map[string]any{"listChanged": true}}
	}
}

func (s *server) answerUnknownMethod(m message) {
	result, isOffered := resourceModeResultsByMethod[m.Method]
	switch mode := s.Mode; {
	case mode == "ignore-unknown":
	case mode == "exit-unknown":
		s.exit = 6
	case mode == "lax", mode == "subscribe" && strings.HasSuffix(m.Method, "subscribe"):
		s.reply(m.ID, struct{}{})
	case mode == "modern" && m.Method == "server/discover":
		s.reply(m.ID, json.RawMessage(discoverResult))
	case isOffered && (mode == "subscribe" || mode == "resources"):
		s.reply(m.ID, json.RawMessage(result))
	default:
		s.fail(m.ID, -32601, "Method not found")
	}
}

// discoverResult is the answer to server/discover of revision 2026-07-28.
const discoverResult = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"be kind",` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcptest","version":"1.2.3"}}}`

// callAnswers are the answers to tools/call in some modes, without the version and the id.
var callAnswers = map[string]string{
	"unknown-content":     `"result":{"content":[{"type":"hologram","depth":3},{"type":"text","text":"after"}]}`,
	"content-missing":     `"result":{"structuredContent":{"b":1,"a":[2]}}`,
	"content-empty-image": `"result":{"content":[{"type":"image","mimeType":"image/png","data":""}]}`,
	"both":                `"result":{"content":[{"type":"text","text":"fine"}]},"error":{"code":-32000,"message":"not fine"}`,
	"rpc-error":           `"error":{"code":-32050,"message":"quota used up","data":{"left":0}}`,
	"bad-error":           `"error":"just text"`,
	"no-result":           "",
} // constant: only read

// callFaults are the other modes whose fault occurs in tools/call.
var callFaults = map[string]func(*server, message){
	"garbage": func(s *server, m message) {
		s.write([]byte("hello\n\n[1,2]\n\"bare\"\n\x1b[31mred\x1b[0m\n\xff\xfe\n{broken\n42\n"))
		s.echo(m)
	},
	"string-id": func(s *server, m message) {
		m.ID = json.RawMessage(strconv.Quote(string(m.ID)))
		s.echo(m)
	},
	"no-newline-flood": func(s *server, m message) {
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range s.countOptionOrModeDefault(200) {
			s.write(chunk)
		}
		s.write([]byte("\n"))
		s.echo(m)
	},
	"bigline": func(s *server, m message) {
		s.reply(m.ID, textResult("%s", strings.Repeat("b", s.countOptionOrModeDefault(5)<<20)))
	},
	"exit-mid-call": func(s *server, _ message) {
		fmt.Fprintln(s.Err, "died in a call")
		s.exit = 5
	},
	"partial-line": func(s *server, m message) {
		b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": textResult("last words")})
		s.write(b)
		s.exit = 0
	},
	"hang-call": func(s *server, m message) {
		if m.Params.Name != "echo" {
			s.respondAfterRequestedSleep(m)
		}
	},
	"flood-call": func(s *server, m message) {
		for i := range s.countOptionOrModeDefault(100_000) {
			s.notify("notifications/message", map[string]any{"level": "info", "data": i})
		}
		s.echo(m)
	},
	"close-stdout": func(s *server, _ message) {
		s.Out.Close()
	},
	"stop-reading": func(*server, message) { blockForever() },
	"s2c":          (*server).sendRequestsOfAllKindsToClient,
	"bigint": func(s *server, m message) {
		s.reply(m.ID, json.RawMessage(`{"content":[],"structuredContent":{"n":9007199254740993,"args":`+string(m.Params.Arguments)+`}}`))
	},
	"dup": func(s *server, m message) {
		s.reply(m.ID, textResult("first"))
		s.reply(m.ID, textResult("second"))
	},
	"list-changed": (*server).addToolAndNotifyListChanged,
	"list-breaks":  (*server).addToolAndNotifyListChanged,
	"progress": func(s *server, m message) {
		total := s.countOptionOrModeDefault(4)
		s.calls.Go(func() {
			for i := range total {
				time.Sleep(60 * time.Millisecond)
				s.notify("notifications/progress", map[string]any{
					"progressToken": m.Params.Meta.Token, "progress": i + 1, "total": total, "message": "step",
				})
			}
			s.echo(m)
		})
	},
	"modern": func(s *server, m message) {
		if m.Params.RequestState == "" {
			s.reply(m.ID, json.RawMessage(`{"resultType":"input_required","requestState":"half way","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string","default":"red"}}}}}}}`))
			return
		}
		s.reply(m.ID, textResult("%s: %s", m.Params.RequestState, m.Params.Responses))
	},
	"subscribe": func(s *server, m message) { // reports a changed resource Count times
		if m.Params.Name == "crash" {
			s.exit = 7
			return
		}
		for range s.countOptionOrModeDefault(1) {
			s.notify("notifications/resources/updated", map[string]any{"uri": "file:///a.txt"})
		}
		s.echo(m)
	},
	"env": func(s *server, m message) {
		s.reply(m.ID, textResult("%s", strings.Join(s.Environ, "\n")))
	},
} // constant: only read

// addToolAndNotifyListChanged adds a tool and announces the change, Count times.
func (s *server) addToolAndNotifyListChanged(toolCall message) {
	s.hasExtraTool = true
	for range s.countOptionOrModeDefault(1) {
		s.notify("notifications/tools/list_changed", struct{}{})
	}
	s.echo(toolCall)
}

// sendRequestsOfAllKindsToClient sends requests of all kinds to the client and returns the responses as the result of the call.
func (s *server) sendRequestsOfAllKindsToClient(toolCall message) {
	methods := []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create", "no/such"}
	s.pending, s.pendingResponses, s.responses = toolCall.ID, len(methods), nil
	for i, method := range methods {
		s.send(map[string]any{"jsonrpc": "2.0", "id": fmt.Sprintf("%d %s", i, method), "method": method, "params": map[string]any{
			"message": "which colour?",
			"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{
				"colour": map[string]any{"type": "string", "default": "red"},
				"size":   map[string]any{"type": "integer", "default": 4},
			}},
		}})
	}
}

// handleResponse records a response to one of the server's own requests.
func (s *server) handleResponse(m message) {
	if s.pendingResponses == 0 {
		return
	}
	outcome := m.Result
	if m.Error != nil {
		outcome = m.Error
	}
	var id string
	_ = json.Unmarshal(m.ID, &id) // ids of this server are strings
	s.responses = append(s.responses, id+" -> "+string(outcome))
	if s.pendingResponses--; s.pendingResponses == 0 {
		s.reply(s.pending, textResult("%s", strings.Join(s.responses, "\n")))
	}
}
