package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ProtocolVersion is the MCP revision that the handshake requests; a server may choose an older one.
const ProtocolVersion = connection.ProtocolVersion

// Negotiation selects how client and server agree on a revision of MCP.
type Negotiation string

// NegotiateLegacy uses the handshake of the revisions up to [ProtocolVersion]. NegotiateAuto tries 2026-07-28 first
// and falls back to the handshake. NegotiateModern fails if the server does not support 2026-07-28.
const (
	NegotiateLegacy Negotiation = "legacy"
	NegotiateAuto   Negotiation = "auto"
	NegotiateModern Negotiation = connection.ModernVersion
)

// Options configure a Manager. The zero value is a manager without servers.
type Options struct {
	Servers         []ServerConfig           // in config order
	ClientVersion   string                   // clientInfo.version
	Environ         []string                 // environment of all stdio servers ("K=V"), in addition to a server's Env and the CLAUDE variables
	CWD             string                   // the working directory of the servers, and the default root
	Roots           []string                 // absolute paths for roots/list; empty means CWD
	ConnectTimeout  time.Duration            // bounds one attempt to connect: spawn, initialize, first lists; 0 means 30 s (MCP_TIMEOUT)
	ToolTimeout     time.Duration            // the default of ServerConfig.Timeout; 0 means 100000000 ms (MCP_TOOL_TIMEOUT)
	Batch           ParallelConnectionLimits // how many servers connect at once
	Pauses          RetryPauses              // pauses between attempts
	SessionID       string                   // CLAUDE_CODE_SESSION_ID in the environment of the servers
	Debug           io.Writer                // receives a line per message or warning, without values of headers and environment variables; nil means off
	Negotiation     Negotiation              // the mode for stdio and HTTP servers (MCP_PROTOCOL_NEGOTIATION); empty means [NegotiateLegacy]
	Listing         ListFetchOptions
	OptionalSchemas bool // accepts tools without an input schema, unlike the real CLI
	// CredentialStorage are the OAuth credentials of remote servers. They are not used for a server whose configuration has a
	// headersHelper or an Authorization header.
	Credentials CredentialStorage
	// ResourceUpdated is called when a subscribed resource changes; nil means that changes are ignored. If a resource
	// changes again before the call, there is still only one call.
	ResourceUpdated func(server, uri string)
	Observer        CallRecorder // receives each finished call and each notification; nil means none
	// Sample answers sampling/createMessage with a result; an error is sent as an error response. nil means that the
	// capability is not declared and requests are refused.
	Sample func(ctx context.Context, server string, params json.RawMessage) (result json.RawMessage, err error)
	Elicit func(ctx context.Context, r ElicitRequest) ElicitAnswer // handles elicitation/create; nil means every request is cancelled
	// Files stores binary content and results that are too long. nil means that nothing is stored; long results then
	// stay unchanged, unless MaxOutputTokens is set.
	Files ResultFileStore
	// MaxOutputTokens is the value of MAX_MCP_OUTPUT_TOKENS. 0 means the default of the real CLI or, if Files is nil,
	// no limit. The number of tokens in a result is estimated from its length.
	MaxOutputTokens int
	// SDK sends one JSON-RPC message to a server of type "sdk" and returns the response (nil for notifications). Nil
	// means that such servers cannot connect.
	SDK func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
}

// ListFetchOptions limits the lists that are fetched from servers. DeclaredOnly leaves out the tools of servers that declare no
// capabilities, as the real CLI does, and ToolsOnly leaves out prompts and resources.
type ListFetchOptions struct{ DeclaredOnly, ToolsOnly bool }

// ParallelConnectionLimits bounds how many servers connect at the same time.
type ParallelConnectionLimits struct {
	Local  int // maximum for local servers; 0 means 3 (MCP_SERVER_CONNECTION_BATCH_SIZE)
	Remote int // maximum for remote servers; 0 means 20 (MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE)
}

// CredentialStorage specify where OAuth credentials are stored.
type CredentialStorage struct {
	Path string // path of the file; empty means that nothing is stored
	// Time is the clock. It decides whether credentials have expired, and how soon a call may try again to connect to a failed
	// server; nil means immediately. Time is required if Path is set.
	Time func() time.Time
}

// Now implements oauth.Clock.
func (c CredentialStorage) Now() time.Time {
	if c.Time == nil {
		return time.Time{}
	}
	return c.Time()
}

// RetryPauses are the pauses between attempts.
type RetryPauses struct {
	// Retry is the pause after the first failure of a list request; it doubles with each of the three retries. 0 means
	// 250 ms. The first connect to a remote server is also retried three times, after 2, 6 and 16 times Retry.
	Retry time.Duration
	// Reconnect is the pause before the second attempt to reconnect, after the first one failed; it doubles up to the fifth
	// attempt. Later attempts are made in the background. 0 means 1 s.
	Reconnect time.Duration
	// Reopen is the pause before a notification stream of revision 2026-07-28 is reopened; it doubles with each of
	// three attempts. 0 means 1 s. If the server itself ended the stream, five times Reopen is added to each pause.
	Reopen time.Duration
}

// ResultFileStore stores parts of results in files. If a method returns an error, the result for the model names no file.
type ResultFileStore interface {
	// SaveBlob stores a binary part and returns the path of the file.
	SaveBlob(server, mime string, data []byte) (path string, err error)
	// SaveText stores a result that is too long to be shown and returns the path of the file. name is the name of the
	// file; empty means a name derived from the tool.
	SaveText(tool protocol.Tool, name, text string) (path string, err error)
}

// ElicitRequest is a server's question to the user.
type ElicitRequest struct {
	Server, Message string
	Mode            string          // form, url
	Schema          json.RawMessage // requestedSchema; nil means none
	// URL is a page that the user is asked to open; empty means a form. ID is the server's elicitationId.
	URL, ID string
	Params  json.RawMessage // all parameters as the server sent them
}

// ElicitAnswer is the user's answer. The zero value cancels.
type ElicitAnswer struct {
	Action      string          // accept, decline or cancel
	Content     json.RawMessage // sent with accept
	AddDefaults bool            // missing members of Content are set to the defaults of the requested schema
}

// DefaultConnectTimeout is the limit of one attempt to connect if neither the options nor the entry of the server set one.
const DefaultConnectTimeout = 30 * time.Second

const (
	defaultToolTimeout    = 100_000_000 * time.Millisecond
	defaultRetryPause     = 250 * time.Millisecond
	defaultReconnectPause = time.Second
)

func (o Options) withDefaults() Options {
	o.ConnectTimeout = positiveOr(o.ConnectTimeout, DefaultConnectTimeout)
	o.ToolTimeout = positiveOr(o.ToolTimeout, defaultToolTimeout)
	o.Batch.Local = positiveOr(o.Batch.Local, 3)
	o.Batch.Remote = positiveOr(o.Batch.Remote, 20)
	o.Pauses.Retry = positiveOr(o.Pauses.Retry, defaultRetryPause)
	o.Pauses.Reconnect = positiveOr(o.Pauses.Reconnect, defaultReconnectPause)
	if len(o.Roots) == 0 && o.CWD != "" {
		o.Roots = []string{o.CWD}
	}
	o.Environ = slices.Clone(o.Environ)
	return o
}

func positiveOr[T int | time.Duration](v, fallback T) T { return cmp.Or(max(v, 0), fallback) }

// RecordSource is the Source of every record. It shows readers that an MCP client recorded the call.
const RecordSource = "mcp_client"

// CallRecord describes a finished tool call for a [CallRecorder].
type CallRecord struct {
	Source    string `json:"source"`        // always "mcp_client"
	Server    string `json:"server"`        // name in the configuration
	Tool      string `json:"tool"`          // mcp__server__tool, see CanonicalToolName
	RawTool   string `json:"original_name"` // the tool's name as the server declares it
	ToolUseID string `json:"tool_use_id,omitempty"`
	// Input and Result are the JSON values as sent and received.
	Input     json.RawMessage `json:"input,omitempty"`
	InputCID  string          `json:"input_cid,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	ResultCID string          `json:"result_cid,omitempty"`
	// Error is why the call failed: an error response, timeout, lost connection or cancellation. Empty means success.
	Error      string    `json:"error,omitempty"`
	ErrorCode  int       `json:"error_code,omitempty"` // JSON-RPC error code
	StartedAt  time.Time `json:"started_at,omitzero"`
	DurationMS int64     `json:"duration_ms"`
}

// A CallRecorder receives calls and notifications. Its methods may be called from many goroutines, with no lock held.
type CallRecorder interface {
	Now() time.Time
	RecordCall(c CallRecord)
	// RecordNotification must return quickly, because reading waits for it. The notifications of a call come before its record.
	RecordNotification(n NotificationRecord)
}

// NotificationRecord is a server's progress or log message.
type NotificationRecord struct {
	Source    string `json:"source"` // always "mcp_client"
	Server    string `json:"server"` // name in the configuration
	RawTool   string `json:"original_name,omitempty"`
	ToolUseID string `json:"tool_use_id,omitempty"`
	// Progress and Total are in the unit of the server.
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`
	// Level and Logger belong to log messages; Level is empty for progress.
	Level  string `json:"level,omitempty"`
	Logger string `json:"logger,omitempty"`
	Text   string `json:"text,omitempty"` // the message of the progress, or the data of the log message: JSON unless it is a string
}

// canonicalJSONContentID returns the content id of a JSON value or of other bytes; "" for no bytes.
func canonicalJSONContentID(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	if canonical, err := cas.CanonicalJSON(value); err == nil {
		value = canonical
	}
	return cas.CID(value)
}
