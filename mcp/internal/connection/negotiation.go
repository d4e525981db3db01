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

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// ModernVersion is the revision of MCP without a handshake: clients probe for it with server/discover.
const ModernVersion = wire.ProtocolVersion20260728

// Negotiation is the way in which client and server agree on a revision of MCP.
type Negotiation int

const (
	// NegotiateLegacy uses the handshake of the revisions up to ProtocolVersion.
	NegotiateLegacy Negotiation = iota
	// NegotiateAuto probes for ModernVersion first. If the server does not support it, the handshake follows. Over
	// HTTP, the handshake needs another connection, so this connection fails with ErrLegacy.
	NegotiateAuto
	// NegotiateModern probes for ModernVersion and does not fall back.
	NegotiateModern
)

// The time limit of a probe is a share of the connect timeout, but at most a fixed limit (observed with 2.1.330).
const (
	processProbeLimit, processProbeTimeShare = 3 * time.Second, 0.3
	remoteProbeLimit, remoteProbeTimeShare   = 5 * time.Second, 1.0 / 3
)

func probeTimeout(connect time.Duration, remote bool) time.Duration {
	if remote {
		return min(time.Duration(float64(connect)*remoteProbeTimeShare), remoteProbeLimit)
	}
	return min(time.Duration(float64(connect)*processProbeTimeShare), processProbeLimit)
}

type negotiationState struct {
	mode                        Negotiation
	remote                      bool
	probeError                  error // why the probe failed; nil means not sent or successful
	probeDone, handshakeStarted bool
}

// canProbeAgain reports whether to repeat the probe after the server refused it or the handshake.
func (n *negotiationState) canProbeAgain(refusal error) bool {
	if !n.handshakeStarted {
		return n.mode != NegotiateLegacy && slices.Contains(supportedVersions(refusal), ModernVersion)
	}
	return supportsOnlyNewerVersions(refusal) && n.mode == NegotiateAuto && errors.Is(n.probeError, context.DeadlineExceeded)
}

// handshakeError returns the reason why the handshake must not follow the probe; nil means that it may.
func (n *negotiationState) handshakeError() error {
	if f, ok := errors.AsType[*DialError](n.probeError); ok && f.NeedsLogin {
		return f
	}
	switch {
	case n.mode == NegotiateModern:
		reason := fmt.Sprintf("the server does not speak MCP %s: %v", ModernVersion, unwrapClientError(n.probeError))
		return &DialError{Reason: reason, Wire: reason}
	case supportsOnlyNewerVersions(n.probeError):
		return n.probeError
	case n.mode == NegotiateAuto && n.remote:
		return ErrLegacy
	case n.mode == NegotiateAuto && n.handshakeStarted:
		return n.probeError
	}
	return nil
}

func (n *negotiationState) diedDuringProbe() bool {
	return errors.Is(n.probeError, transport.ErrTransportClosed)
}

// supportsOnlyNewerVersions reports whether a server refused a revision and listed one without handshake (2026-07-28 or
// later).
func supportsOnlyNewerVersions(err error) bool {
	return slices.ContainsFunc(supportedVersions(err), wire.IsModernProtocol)
}

// supportedVersions returns the revisions that a server listed when it refused the revision of a request.
func supportedVersions(err error) []string {
	var rpc *Error
	if !errors.As(err, &rpc) || rpc.Code != wire.UNSUPPORTED_PROTOCOL_VERSION {
		return nil
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	raw, err := json.Marshal(rpc.Data)
	if err != nil || json.Unmarshal(raw, &data) != nil {
		return nil
	}
	return data.Supported
}

// dropCacheKeys removes the cache keys from a probe's response: the real CLI ignores them; mcp-go cannot parse some.
func dropCacheKeys(result json.RawMessage) json.RawMessage {
	members, _ := plainjson.Parse(result) // anything but an object is refused later
	kept := slices.DeleteFunc(members, func(m plainjson.Member) bool { return m.Key == "ttlMs" || m.Key == "cacheScope" })
	if out, err := json.Marshal(kept); err == nil && len(members) > 0 {
		return out
	}
	return result
}

// checkDiscovery returns why a probe's response is unusable, or nil. Some servers answer anything with an empty object.
func checkDiscovery(result json.RawMessage) error {
	var d wire.DiscoverResult
	if err := json.Unmarshal(dropCacheKeys(result), &d); err != nil {
		return &Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("the answer to server/discover cannot be read: %v", err)}
	}
	var members struct{ Capabilities json.RawMessage }
	if json.Unmarshal(result, &members) != nil || !plainjson.IsSet(members.Capabilities) {
		return &Error{Code: CodeMethodNotFound, Message: "the answer to server/discover has no capabilities"}
	}
	if !slices.Contains(d.SupportedVersions, ModernVersion) {
		return &Error{Code: CodeMethodNotFound, Message: "the answer to server/discover does not list " + ModernVersion}
	}
	return nil
}
