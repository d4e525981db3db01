package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// ModernVersion is the revision of MCP that has no handshake: servers are probed
// for it with server/discover.
const ModernVersion = wire.ProtocolVersion20260728

// Negotiation says how the revision of MCP is agreed on.
type Negotiation int

const (
	// Legacy is the handshake of the revisions up to ProtocolVersion.
	Legacy Negotiation = iota
	// Auto probes for ModernVersion and falls back to the handshake. Over HTTP
	// the handshake needs another connection, and this one fails with ErrLegacy.
	Auto
	// Modern probes for ModernVersion and does not fall back.
	Modern
)

// The longest wait for an answer to the probe, and the share of the time to
// connect that it may take (observed with 2.1.330).
const (
	processProbe, processShare = 3 * time.Second, 0.3
	remoteProbe, remoteShare   = 5 * time.Second, 1.0 / 3
)

// probeTimeout is how long a server may take to answer the probe.
func probeTimeout(connect time.Duration, remote bool) time.Duration {
	if remote {
		return min(time.Duration(float64(connect)*remoteShare), remoteProbe)
	}
	return min(time.Duration(float64(connect)*processShare), processProbe)
}

// negotiation decides whether a server that was probed gets the handshake.
type negotiation struct {
	mode   Negotiation
	remote bool
	probe  error // why the probe failed; nil = it was not sent or it succeeded
	// probed says that the probe is over, greeted that the handshake was begun.
	probed, greeted bool
}

// missed reports whether a server that did not answer the probe in time refused
// the handshake, since it speaks newer revisions: it was only slow to start.
func (n *negotiation) missed(refusal error) bool {
	return n.mode == Auto && n.greeted && errors.Is(n.probe, context.DeadlineExceeded) && knowsNewerOnly(refusal)
}

// handshake returns why the handshake must not follow; nil = it may.
func (n *negotiation) handshake() error {
	switch {
	case n.mode == Modern:
		reason := fmt.Sprintf("the server does not speak MCP %s: %v", ModernVersion, plain(n.probe))
		return &DialError{Reason: reason, Wire: reason}
	case knowsNewerOnly(n.probe):
		return n.probe
	case n.mode == Auto && n.remote:
		return ErrLegacy
	case n.mode == Auto && n.greeted:
		return n.probe
	}
	return nil
}

// died reports whether the server went away before it answered the probe.
func (n *negotiation) died() bool { return errors.Is(n.probe, transport.ErrTransportClosed) }

// knowsNewerOnly reports whether a server refused the probe's revision and
// named newer ones of which we speak none.
func knowsNewerOnly(err error) bool {
	var rpc *Error
	if !errors.As(err, &rpc) || rpc.Code != wire.UNSUPPORTED_PROTOCOL_VERSION {
		return false
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	raw, err := json.Marshal(rpc.Data)
	return err == nil && json.Unmarshal(raw, &data) == nil && slices.ContainsFunc(data.Supported, wire.IsModernProtocol)
}

// discovered checks the answer to the probe: some servers answer everything
// with an empty object.
func discovered(result json.RawMessage) error {
	var d wire.DiscoverResult
	if err := json.Unmarshal(result, &d); err != nil {
		return &Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("the answer to server/discover cannot be read: %v", err)}
	}
	if !slices.Contains(d.SupportedVersions, ModernVersion) {
		return &Error{Code: CodeMethodNotFound, Message: "the answer to server/discover does not list " + ModernVersion}
	}
	return nil
}
