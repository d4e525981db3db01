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

// NegotiationMode is the way in which client and server agree on a revision of MCP.
type NegotiationMode int

// The ways to agree on a revision.
const (
	NegotiateLegacy NegotiationMode = iota // uses the handshake of the revisions up to ProtocolVersion
	// NegotiateAuto probes for ModernVersion first. If the server does not support it, the handshake follows. Over
	// HTTP, the handshake needs another connection, so this connection fails with ErrLegacy.
	NegotiateAuto
	NegotiateModernWithoutFallback // probes for ModernVersion and does not fall back
)

// revisionProbeTimeout returns the time limit of a probe: a share of the connect timeout, up to a limit (observed with 2.1.330).
func revisionProbeTimeout(connectTimeout time.Duration, isRemoteServer bool) time.Duration {
	limit, share := 3*time.Second, 0.3
	if isRemoteServer {
		limit, share = 5*time.Second, 1.0/3
	}
	return min(time.Duration(float64(connectTimeout)*share), limit)
}

type negotiationState struct {
	mode             NegotiationMode
	remote           bool
	probeError       error // why the probe failed; nil means not sent or successful
	handshakeStarted bool
}

// probeOrInitialize agrees with the server on a revision and returns its answer.
func (c *Conn) probeOrInitialize(ctx context.Context) (result InitializeResult, err error) {
	n := &c.negotiation
	for attempt := 0; attempt == 0 || attempt == 1 && n.shouldProbeAgainAfterRefusal(err); attempt++ {
		if n.mode != NegotiateLegacy {
			if result, err = c.probeForModernVersion(ctx); err == nil {
				return result, nil
			}
		}
		if err = n.reasonAgainstHandshake(); err == nil {
			n.handshakeStarted = true
			result, err = c.performLegacyHandshake(ctx)
		}
	}
	return result, err
}

// probeForModernVersion asks the server for revision 2026-07-28.
func (c *Conn) probeForModernVersion(ctx context.Context) (discovered InitializeResult, err error) {
	ctx, stop := context.WithTimeout(ctx, revisionProbeTimeout(c.options.Timeout, c.IsRemote()))
	defer stop()
	c.setHTTPVersionHeader(ModernVersion)
	result, err := c.client.sendRequest(ctx, string(wire.MethodServerDiscover), nil)
	var d *wire.DiscoverResult
	if err == nil {
		d, err = parseDiscovery(result)
	}
	c.negotiation.probeError, c.client.wasProbed = err, true
	c.client.isModern.Store(err == nil)
	if err != nil {
		c.setHTTPVersionHeader("")
		return discovered, err
	}
	discovered = plainjson.DecodeIgnoringErrors[InitializeResult](result)
	discovered.ProtocolVersion, discovered.ServerInfo = ModernVersion, ServerInfo{}
	if info := d.GetResultMeta().ServerInfo(); info != nil {
		discovered.ServerInfo = ServerInfo{Name: info.Name, Title: info.Title, Version: info.Version}
	}
	return discovered, nil
}

// performLegacyHandshake agrees on a revision up to ProtocolVersion.
func (c *Conn) performLegacyHandshake(ctx context.Context) (r InitializeResult, err error) {
	method := string(wire.MethodInitialize)
	identity := c.client.requestMetadata
	result, err := c.client.sendRequest(ctx, method, newJSONObject("protocolVersion", ProtocolVersion,
		"capabilities", identity.Get(wire.MetaKeyClientCapabilities), "clientInfo", identity.Get(wire.MetaKeyClientInfo)))
	if err != nil {
		return r, err
	}
	r = plainjson.DecodeIgnoringErrors[InitializeResult](result)
	text := ""
	if defects := c.options.Defects(method, result); defects != "" {
		text = "the server " + NewMalformedResultError(method, defects).Text
	} else if !wire.IsValidProtocolVersion(r.ProtocolVersion) || wire.IsModernProtocol(r.ProtocolVersion) {
		text = "Server's protocol version is not supported: " + r.ProtocolVersion
	}
	if text != "" {
		return r, &DialError{Reason: text, CLIText: text}
	}
	c.setHTTPVersionHeader(r.ProtocolVersion)
	return r, c.client.sendNotification(ctx, string(wire.MethodNotificationInitialized), nil)
}

// setHTTPVersionHeader sets the protocol revision in the headers of HTTP requests; "" means no such header.
func (c *Conn) setHTTPVersionHeader(version string) {
	if c.IsRemote() {
		c.remote.protocolVersion.Store(version)
	}
}

// shouldProbeAgainAfterRefusal reports whether to repeat the probe after the server refused the probe or the handshake.
func (n *negotiationState) shouldProbeAgainAfterRefusal(refusal error) bool {
	if !n.handshakeStarted {
		return n.mode != NegotiateLegacy && slices.Contains(supportedVersions(refusal), ModernVersion)
	}
	return hasRefusalListedModernVersion(refusal) && n.mode == NegotiateAuto && errors.Is(n.probeError, context.DeadlineExceeded)
}

// reasonAgainstHandshake returns the reason why the handshake must not follow the probe; nil means that it may.
func (n *negotiationState) reasonAgainstHandshake() (reasonOrNil error) {
	if f, ok := errors.AsType[*DialError](n.probeError); ok && f.NeedsLogin {
		return f
	}
	switch {
	case n.mode == NegotiateModernWithoutFallback:
		reason := fmt.Sprintf("the server does not speak MCP %s: %v", ModernVersion, rootCauseOfClientError(n.probeError))
		return &DialError{Reason: reason, CLIText: reason}
	case hasRefusalListedModernVersion(n.probeError):
		return n.probeError
	case n.mode == NegotiateAuto && n.remote:
		return ErrLegacy
	case n.mode == NegotiateAuto && n.handshakeStarted:
		return n.probeError
	}
	return nil
}

// hasRefusalListedModernVersion reports whether a server refused a revision and listed one that needs no handshake.
func hasRefusalListedModernVersion(refusal error) bool {
	return slices.ContainsFunc(supportedVersions(refusal), wire.IsModernProtocol)
}

// supportedVersions returns the revisions that a server listed when it refused the revision of a request.
func supportedVersions(err error) []string {
	rpc, ok := errors.AsType[*RPCError](err)
	if !ok || rpc.Code != wire.UNSUPPORTED_PROTOCOL_VERSION {
		return nil
	}
	return plainjson.DecodeIgnoringErrors[struct{ Supported []string }]([]byte(plainjson.MarshalString(rpc.Data))).Supported
}

// parseDiscovery returns the answer to a probe, or an error if it is unusable. Some servers answer every request with
// an empty object. Like the real CLI, parseDiscovery ignores the cache keys.
func parseDiscovery(result json.RawMessage) (*wire.DiscoverResult, error) {
	var d wire.DiscoverResult
	var defect string
	members, _ := plainjson.Parse(result) // empty if result is not an object
	switch err := json.Unmarshal(members.Delete("ttlMs", "cacheScope").Raw(), &d); {
	case err != nil:
		defect = "cannot be read: " + err.Error()
	case !plainjson.IsSet(plainjson.DecodeIgnoringErrors[struct{ Capabilities json.RawMessage }](result).Capabilities):
		defect = "has no capabilities"
	case !slices.Contains(d.SupportedVersions, ModernVersion):
		defect = "does not list " + ModernVersion
	default:
		return &d, nil
	}
	return nil, &RPCError{Code: CodeMethodNotFound, Message: "the answer to server/discover " + defect}
}
