package mcp

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/mcp/record"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ProtocolVersion of MCP is asked for in the handshake; servers may answer with an
// older one.
const ProtocolVersion = connection.ProtocolVersion

// Negotiation is how the revision of MCP is agreed on.
type Negotiation string

// NegotiateLegacy starts with the handshake of the revisions up to
// [ProtocolVersion], NegotiateAuto asks for 2026-07-28 first and falls back to it,
// NegotiateModern fails where 2026-07-28 is not spoken.
const (
	NegotiateLegacy Negotiation = "legacy"
	NegotiateAuto   Negotiation = "auto"
	NegotiateModern Negotiation = connection.ModernVersion
)

// Options configure a Manager. The zero value is a manager without servers.
type Options struct {
	Servers       []ServerConfig // in config order
	ClientVersion string         // clientInfo.version
	// Environ is the environment of stdio servers ("K=V"), before their own
	// Env and the CLAUDE variables are added.
	Environ []string
	CWD     string   // their directory, and the default root
	Roots   []string // absolute paths for roots/list; empty = CWD
	// ConnectTimeout bounds one connect: spawn, initialize, first lists. 0 =
	// 30 s (MCP_TIMEOUT).
	ConnectTimeout time.Duration
	// ToolTimeout bounds one call between two signs of life; 0 = 100000000 ms
	// (MCP_TOOL_TIMEOUT).
	ToolTimeout time.Duration
	Batch       Batch  // how many servers connect at once
	Pauses      Pauses // between attempts
	SessionID   string // CLAUDE_CODE_SESSION_ID of the servers
	// Debug gets one line per message and per warning; nil = off. Values of
	// headers and environment variables are never written.
	Debug io.Writer
	// Negotiation is how the revision of MCP is agreed on with servers over stdio
	// and HTTP (MCP_PROTOCOL_NEGOTIATION); empty = [NegotiateLegacy].
	Negotiation Negotiation
	// Authorize gives headers, say with a token, after a remote server refused
	// a request with 401 or 403; the request is then repeated once. An error,
	// or nil, leaves the server needing authorization. Entries with a
	// headersHelper do not use it.
	Authorize func(ctx context.Context, c Challenge) (headers map[string]string, err error)
	// ResourceUpdated hears of changes to resources subscribed to; changes of
	// one resource that come together are one. nil = nobody does.
	ResourceUpdated func(server, uri string)
	// Records keeps every call; nil = none is kept.
	Records *record.Log
	// Sample answers sampling/createMessage with a result; an error is sent as
	// such. nil = the capability is not declared and requests are refused.
	Sample func(ctx context.Context, server string, params json.RawMessage) (result json.RawMessage, err error)
	// Elicit answers elicitation/create; nil cancels.
	Elicit func(ctx context.Context, r ElicitRequest) ElicitAnswer
	// Files keeps what is not shown; nil = nothing is kept, and long results
	// are shown whole.
	Files Files
	// MaxOutputTokens is MAX_MCP_OUTPUT_TOKENS; 0 = the real CLI's limit, as far
	// as it goes without counting tokens.
	MaxOutputTokens int
	// SDK carries one JSON-RPC message to a server of type "sdk" and returns
	// its answer (nil for notifications); nil = such servers fail.
	SDK func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
}

// Batch is how many servers connect at once.
type Batch struct {
	Local  int // 0 = 3 (MCP_SERVER_CONNECTION_BATCH_SIZE)
	Remote int // 0 = 20 (its remote twin)
}

// Pauses are the times between attempts.
type Pauses struct {
	// Retry comes after the first failure of a first connect to a remote
	// server, or of listing tools; it doubles with each of three retries. 0 =
	// 250 ms.
	Retry time.Duration
	// Reconnect comes before the first attempt to reconnect; it doubles with
	// each of five. 0 = 1 s.
	Reconnect time.Duration
	// Reopen comes before notifications of revision 2026-07-28 that ended are
	// opened again; it doubles with each of three attempts, and is five times
	// longer after the server ended them itself. 0 = 1 s.
	Reopen time.Duration
	// Ping is the time between pings of an idle server, of which three without
	// an answer count as its loss; 0 = 30 s, negative = never. Servers of an SDK
	// host and of protocol version 2026-07-28 are not pinged.
	Ping time.Duration
}

// Files keeps parts of results in files. An error leaves a part out of them.
type Files interface {
	// SaveBlob keeps a binary part and returns the path.
	SaveBlob(server, mime string, data []byte) (path string, err error)
	// SaveText keeps a result too long to show in a file of that name, empty =
	// one made for the tool, and returns the path.
	SaveText(tool protocol.Tool, name, text string) (path string, err error)
}

// Challenge is a server's refusal, for Options.Authorize.
type Challenge struct {
	Server, URL string
	Status      int    // 401 or 403
	Header      string // WWW-Authenticate; empty = none came
}

// ElicitRequest is a server's question to the user.
type ElicitRequest struct {
	Server  string
	Message string
	Schema  json.RawMessage // requestedSchema; nil = none
	// URL is where the user is sent in place of a form; empty = a form.
	URL, ID string
	Params  json.RawMessage // all parameters as they came
}

// ElicitAnswer is the user's answer. The zero value cancels.
type ElicitAnswer struct {
	Action string // accept, decline, cancel; empty = cancel
	// Content goes with accept; what it leaves out is filled in from the
	// defaults of the requested schema.
	Content json.RawMessage
}

const (
	defaultConnectTimeout = 30 * time.Second
	defaultToolTimeout    = 100_000_000 * time.Millisecond
	defaultRetryPause     = 250 * time.Millisecond
	defaultReconnectPause = time.Second
)

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.ConnectTimeout = orDefault(o.ConnectTimeout, defaultConnectTimeout)
	o.ToolTimeout = orDefault(o.ToolTimeout, defaultToolTimeout)
	o.Batch.Local = orDefault(o.Batch.Local, 3)
	o.Batch.Remote = orDefault(o.Batch.Remote, 20)
	o.Pauses.Retry = orDefault(o.Pauses.Retry, defaultRetryPause)
	o.Pauses.Reconnect = orDefault(o.Pauses.Reconnect, defaultReconnectPause)
	if len(o.Roots) == 0 && o.CWD != "" {
		o.Roots = []string{o.CWD}
	}
	o.Environ = slices.Clone(o.Environ)
	return o
}

func orDefault[T int | time.Duration](v, fallback T) T {
	if v <= 0 {
		return fallback
	}
	return v
}
