package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

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

// supportsOnlyNewerVersions reports whether a server refused a revision and listed one without handshake (2026-07-28 or
// later).
func supportsOnlyNewerVersions(err error) bool {
	return slices.ContainsFunc(supportedVersions(err), wire.IsModernProtocol)
}

// supportedVersions returns the revisions that a server listed when it refused the revision of a request.
func supportedVersions(err error) []string {
	rpc, ok := errors.AsType[*Error](err)
	if !ok || rpc.Code != wire.UNSUPPORTED_PROTOCOL_VERSION {
		return nil
	}
	return plainjson.DecodeOrZero[struct{ Supported []string }]([]byte(plainjson.MarshalString(rpc.Data))).Supported
}

// dropCacheKeys removes the cache keys from a probe's response: the real CLI ignores them; mcp-go cannot parse some.
func dropCacheKeys(result json.RawMessage) json.RawMessage {
	members, err := plainjson.Parse(result)
	if err != nil { // refused later
		return result
	}
	return members.Without("ttlMs", "cacheScope").Raw()
}

// checkDiscovery returns why a probe's response is unusable, or nil. Some servers answer anything with an empty object.
func checkDiscovery(result json.RawMessage) error {
	var d wire.DiscoverResult
	var defect string
	switch err := json.Unmarshal(dropCacheKeys(result), &d); {
	case err != nil:
		defect = "cannot be read: " + err.Error()
	case !plainjson.IsSet(plainjson.DecodeOrZero[struct{ Capabilities json.RawMessage }](result).Capabilities):
		defect = "has no capabilities"
	case !slices.Contains(d.SupportedVersions, ModernVersion):
		defect = "does not list " + ModernVersion
	default:
		return nil
	}
	return &Error{Code: CodeMethodNotFound, Message: "the answer to server/discover " + defect}
}
