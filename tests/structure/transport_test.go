package structure

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// maxTransportLines limits the lines of claudeless's own MCP transports. Counted in the same way,
// they had 3,632 lines before revision 2026-07-28 was supported. Today they also include the
// negotiation and the subscriptions of this revision, and the replacement of mcp-go's client.
const maxTransportLines = 3_631

// transportPackages are the packages that carry messages of MCP. A transport carries messages, like client/transport
// and the server transports in mcp-go. Code that uses the messages is not part of it.
var transportPackages = []string{"fixtures/wire", "mcp/internal/connection"} // constant: only read

// transportFiles are the files of claudeless's own transports, with the reasons why mcp-go 1.2.1 cannot replace them.
var transportFiles = map[string]string{ // constant: only read
	"fixtures/wire/http.go":       "faults need raw answers; mcp-go's server encodes results of its own types and handles initialize itself",
	"fixtures/wire/message.go":    "ids and results keep their bytes, for example large integers",
	"fixtures/wire/session.go":    "notifications of a call come before its answer; over stdio, mcp-go writes them after it",
	"fixtures/wire/sessions.go":   "ended sessions say why, and ids are those of a seed",
	"fixtures/wire/stateless.go":  "modern, legacy or both: mcp-go answers initialize in every case",
	"fixtures/wire/stdio.go":      "faults of pipes; mcp-go's stdio server has no revisions to choose",
	"fixtures/wire/stream.go":     "invalid events and connections that break are faults; a bound on kept messages over all sessions, mcp-go's has one per stream",
	"fixtures/wire/transcript.go": "messages are recorded as they were sent, invalid ones too",

	"mcp/internal/connection/client.go":         "results and errors as they were sent, the ids and the cancellations of the real CLI, responses on any stream; mcp-go's client parses results to its own types",
	"mcp/internal/connection/events.go":         "mcp-go accepts events of other names, invalid ones and those of other requests, and reads bodies of any size; it hides why a stream broke",
	"mcp/internal/connection/filter.go":         "mcp-go reads lines of any size, and drops what is no message without a trace; a response over the limit fails its own request only",
	"mcp/internal/connection/host.go":           "servers inside an SDK host: messages travel in control requests",
	"mcp/internal/connection/http.go":           "mcp-go ignores responses on the GET stream, opens it again every second, hides why a stream broke, ends on 202, and limits the answer to a question to 30 s",
	"mcp/internal/connection/negotiation.go":    "the probe of the real CLI: how long it takes, when it is repeated, what falls back to the handshake",
	"mcp/internal/connection/process.go":        "processes are started and stopped by internal/base/proc only",
	"mcp/internal/connection/roundtrip.go":      "headers that are renewed once after a refusal, and that never reach another origin",
	"mcp/internal/connection/sse.go":            "mcp-go's SSE transport does not answer requests of the server and hangs when the stream ends",
	"mcp/internal/connection/subscription.go":   "a stream of notifications that ends is opened again, with the pauses of the real CLI",
	"mcp/internal/connection/transport_base.go": "why a connection ended, for waiting callers",
}

// notTransport are the other files of these packages: calls, requests, lists and results, as in mcp-go's package client;
// and the names of faults.
var notTransport = strings.Fields(`fault call connection failure initialize_result lists notifications request result_shape rounds shape`) // constant: only read

func TestTransportLines(t *testing.T) {
	t.Parallel()
	total, found := 0, map[string]bool{}
	for _, s := range tree.Sources(t) {
		if s.IsTest() || !slices.Contains(transportPackages, path.Dir(s.Path)) {
			continue
		}
		_, isTransport := transportFiles[s.Path]
		if isOther := slices.Contains(notTransport, strings.TrimSuffix(path.Base(s.Path), ".go")); isTransport == isOther {
			t.Errorf("%s: name it in transportFiles, with the reason why mcp-go does not do it, or in notTransport", s.Path)
		}
		if isTransport {
			total += strings.Count(tree.ReadFile(t, s.Path), "\n")
			found[s.Path] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(transportFiles)) {
		if !found[name] {
			t.Errorf("%s does not exist", name)
		}
	}
	checkTotal(t, "lines of our own transports", total, maxTransportLines)
}
