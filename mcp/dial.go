package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/mcp/oauth"
)

const defaultMaxLineBytes = 16 << 20

type dialResult struct {
	conn  *connection.Conn
	lists serverLists
	err   error
}

// connectOnce makes one attempt to connect. The attempt ends at the connect timeout, or when ctx is cancelled. The connection
// itself lasts until connectionLifetime is cancelled. The first attempt fails at once if the server demanded a login earlier. skipsLogin
// is set if a login has failed for a reason that does not go away.
func (s *server) connectOnce(connectionLifetime, ctx context.Context, isFirstAttempt, skipsLogin bool) dialResult {
	release, err := s.acquireConnectAttemptSlot(ctx, s.cfg.Type)
	if err != nil {
		return dialResult{err: err}
	}
	defer release()
	limit, stop := context.WithTimeout(ctx, s.connectTimeout())
	defer stop()
	cfg, unset := expandConfig(s.cfg, s.configVariables())
	log := s.debug.LogOfServer(cfg.Name, cfg.Env, cfg.Headers)
	for _, name := range unset {
		log.Printf("variable %s is not set", name)
	}
	log.Printf("connecting (%s)", cmp.Or(cfg.Type, typeStdio))
	d := dialer{server: s, cfg: cfg, log: log, skipsLogin: skipsLogin}
	if isFirstAttempt && d.usesOAuth() && cfg.NewOAuthClient(d.options).WasRefused() {
		log.Printf("not tried again, because the server refused a request without a token")
		return dialResult{err: d.loginRequiredError()}
	}
	r := d.dialWithFallbacks(connectionLifetime, limit)
	if r.err != nil {
		log.Printf("failed: %v", r.err)
		return r
	}
	log.Printf("connected, %d tools", len(r.lists.tools))
	for _, w := range r.lists.toolPromptAndResourceWarnings() {
		log.Printf("%s", w)
	}
	return r
}

type dialer struct {
	*server
	cfg ServerConfig // with its variables expanded
	log *debugLog

	skipsLogin bool
}

// dialWithFallbacks connects with the protocol revision and transport that the server supports.
func (d dialer) dialWithFallbacks(lifetime, limit context.Context) dialResult {
	if n := d.negotiationModeOrLegacy(); n != connection.NegotiateLegacy {
		if r := d.dialAndFetchListsOnce(lifetime, limit, n); !errors.Is(r.err, connection.ErrLegacy) {
			return r
		}
	}
	r := d.dialAndFetchListsOnce(lifetime, limit, connection.NegotiateLegacy)
	refused, failed := errors.AsType[*connection.DialError](r.err)
	if failed && !refused.NeedsAuth && refused.Status/100 == 4 && refused.Status != http.StatusTooManyRequests {
		d.log.Printf("the server does not support streamable HTTP; trying SSE")
		d.cfg.Type = typeSSE
		if old := d.dialAndFetchListsOnce(lifetime, limit, connection.NegotiateLegacy); old.err == nil {
			return old
		}
	}
	return r
}

// negotiationModeOrLegacy returns the manager's mode, or NegotiateLegacy if the transport supports no other.
func (d dialer) negotiationModeOrLegacy() connection.NegotiationMode {
	switch {
	case d.cfg.Type == typeSDK, d.cfg.Type == typeSSE:
		return connection.NegotiateLegacy
	case d.options.Negotiation == NegotiateAuto:
		return connection.NegotiateAuto
	case d.options.Negotiation == NegotiateModern:
		return connection.NegotiateModernWithoutFallback
	}
	return connection.NegotiateLegacy
}

// dialAndFetchListsOnce dials, performs the handshake and fetches the lists, without retries.
func (d dialer) dialAndFetchListsOnce(lifetime, limit context.Context, n connection.NegotiationMode) dialResult {
	target, err := d.connectionTarget(limit)
	if err != nil {
		return dialResult{err: err}
	}
	defects := connection.ResultDefects
	if d.options.OptionalSchemas {
		defects = connection.ResultDefectsOptionalSchema
	}
	c, err := connection.DialWithoutHandshake(lifetime, limit, connection.Options{
		Target: target, Defects: defects, Handler: serverRequestHandler{d.managerState, d.cfg.Name}, Tasks: &d.goroutines, Debug: d.log,
		Version: d.options.ClientVersion, Sampling: d.options.Sample != nil,
		Negotiation: n, Timeout: d.connectTimeout(), TimeoutError: d.connectTimeoutError(), Reopen: d.options.Pauses.Reopen,
	})
	if err != nil {
		return dialResult{err: err}
	}
	var got serverLists
	if err = c.OpenWithHandshake(lifetime, limit); err == nil {
		got, err = listFetcher{c, d.cfg, d.options.Pauses.Retry, d.options.Listing}.fetchListsWithRetries(limit, serverLists{}, nil)
		// As in the real CLI 2.1.330, a server stays connected even if its process exits now, or lists no tools in time.
		if errors.Is(err, connection.ErrClosed) && !c.IsRemote() || err != nil && errors.Is(limit.Err(), context.DeadlineExceeded) {
			got.err, err = err, nil
		}
	}
	if err != nil {
		return dialResult{err: c.CloseAfterFailedOpen(lifetime, limit, err)}
	}
	c.WaitUpToOneSecondForGETStream(limit)
	return dialResult{conn: c, lists: got}
}

func (d dialer) connectTimeoutError() *connection.DialError {
	source := "MCP_TIMEOUT"
	if d.cfg.ConnectTimeout > 0 {
		source = "connectTimeout of its entry"
	}
	text := fmt.Sprintf("connection timed out after %dms", d.connectTimeout().Milliseconds())
	return &connection.DialError{Reason: text + " (" + source + ")", CLIText: fmt.Sprintf("MCP server %q %s", d.cfg.Name, text)}
}

func (d dialer) connectionTarget(ctx context.Context) (connection.DialTarget, error) {
	switch d.cfg.Type {
	case "", typeStdio:
		if d.cfg.LacksArgs {
			const text = "Spread syntax requires ...iterable not be null or undefined"
			return nil, &connection.DialError{Reason: text, CLIText: text}
		}
		return connection.ProcessServer{
			Command: d.cfg.Command, Args: d.cfg.Args, Env: d.serverEnviron(d.cfg), Dir: cmp.Or(d.cfg.CWD, d.options.CWD),
			Grace: d.cfg.ShutdownGrace, MaxLine: positiveOr(d.cfg.MaxLineBytes, defaultMaxLineBytes),
			Stderr: d.log.NewStderrWriter(),
		}, nil
	case typeHTTP, typeSSE:
		if u, err := url.Parse(d.cfg.URL); err != nil || u.Scheme == "" {
			const text = "'url' is not a valid URL. Update the server's config and reconnect."
			return nil, &connection.DialError{Reason: text, CLIText: text, CLICode: "INVALID_CONFIG"}
		}
		return d.remoteServerRunningHeadersHelper(ctx), nil
	case typeSDK:
		return connection.HostedServer{Server: d.cfg.Name, Send: d.options.SDK}, nil
	default:
		return nil, fmt.Errorf("transport %q is not supported: use stdio, http or sse", d.cfg.Type)
	}
}

// remoteServerRunningHeadersHelper returns the target of a server at a URL, with the headers that its headersHelper prints. If the helper
// fails, only the configured headers are used.
func (d dialer) remoteServerRunningHeadersHelper(ctx context.Context) connection.RemoteServer {
	t := connection.RemoteServer{
		Server: d.cfg.Name, URL: d.cfg.URL, SSE: d.cfg.Type == typeSSE, Agent: d.userAgent(), Headers: d.cfg.Headers,
		// Opening the TCP connection may use only a part of the time, so that a second attempt is possible.
		DialTimeout: d.connectTimeout() / 4, MaxMessage: positiveOr(d.cfg.MaxLineBytes, defaultMaxLineBytes),
	}
	switch {
	case d.cfg.HeadersHelper != "":
		if headers, err := (headersHelperRenewer{d}).runHelperAndMergeHeaders(ctx); err != nil {
			d.log.Printf("%v", err)
		} else {
			t.Headers = headers
		}
		t.Renewer = headersHelperRenewer{d}
	case d.usesOAuth():
		t.Renewer = oauthHeadersRenewer{d, d.cfg.NewOAuthClient(d.options)}
	}
	return t
}

type headersHelperRenewer struct{ dialer }

func (headersHelperRenewer) NextRequestHeaders(_ context.Context, lastHeaders map[string]string) map[string]string {
	return lastHeaders
}

func (h headersHelperRenewer) Renew(ctx context.Context, r connection.AuthorizationRefusal) (map[string]string, error) {
	if !r.WasAccepted { // the helper ran for this connection attempt, so its headers are current
		text := fmt.Sprintf("HTTP %d: the server rejected the headers of headersHelper", r.Status)
		return nil, &connection.DialError{Reason: text, CLIText: text}
	}
	return h.runHelperAndMergeHeaders(ctx)
}

func (h headersHelperRenewer) runHelperAndMergeHeaders(ctx context.Context) (map[string]string, error) {
	environ := slices.Concat(h.options.Environ, []string{"CLAUDE_CODE_MCP_SERVER_NAME=" + h.cfg.Name, "CLAUDE_CODE_MCP_SERVER_URL=" + h.cfg.URL})
	headers, err := runHeadersHelper(ctx, proc.Command{Path: proc.Shell, Args: []string{"-c", h.cfg.HeadersHelper}, Dir: h.options.CWD, Env: environ}, headersHelperTimeout)
	if err != nil {
		return nil, err
	}
	h.log.HideValuesOf(headers)
	return mergeHeaders(h.cfg.Headers, headers), nil
}

// oauthHeadersRenewer adds the stored access token of a server to requests, and renews it after a refusal.
type oauthHeadersRenewer struct {
	dialer
	client *oauth.Client
}

// ProofTransport adds proofs of possession to requests if their token requires them.
func (a oauthHeadersRenewer) ProofTransport(base http.RoundTripper) http.RoundTripper {
	return a.client.ProofTransport(base)
}

func (a oauthHeadersRenewer) NextRequestHeaders(ctx context.Context, _ map[string]string) map[string]string {
	value, err := a.client.RefreshAndGetAuthorization(ctx)
	if err != nil {
		a.log.Printf("%v", err)
	}
	return a.headersWithAuthorization(value)
}

func (a oauthHeadersRenewer) Renew(ctx context.Context, r connection.AuthorizationRefusal) (map[string]string, error) {
	value, err := a.client.RenewAuthorization(ctx, oauth.AuthRequiredResponse{Status: r.Status, Challenge: r.Challenge, UsedHeader: r.UsedHeaders["Authorization"]})
	if _, ok := errors.AsType[*oauth.ScopeError](err); ok {
		return nil, &connection.DialError{Reason: err.Error(), CLIText: err.Error(), NeedsAuth: !r.WasAccepted}
	}
	if err != nil && r.Status == http.StatusUnauthorized {
		if errors.Is(err, oauth.ErrNeedsLogin) {
			return nil, a.loginRequiredError()
		}
		if oauth.IsIncompatible(err) {
			text := err.Error()
			isRegistrationRejected := strings.HasPrefix(text, "Dynamic Client Registration")
			if r.WasAccepted && !isRegistrationRejected { // a refused call, for which a login cannot help
				text = mcpSessionExpiredText(a.cfg.Name)
			}
			return nil, &connection.DialError{Reason: text, CLIText: text, CannotLogIn: isRegistrationRejected, IsFinal: !isRegistrationRejected}
		}
		text := fmt.Sprintf("HTTP %d: authorization required, and %v", r.Status, err)
		return nil, &connection.DialError{Reason: text, CLIText: text, NeedsAuth: true, NeedsLogin: true}
	}
	return a.headersWithAuthorization(value), err
}

func (d dialer) usesOAuth() bool {
	_, isConfigured := mergeHeaders(d.cfg.Headers, nil)["Authorization"]
	return (d.cfg.Type == typeHTTP || d.cfg.Type == typeSSE) && d.cfg.HeadersHelper == "" && !isConfigured && !d.skipsLogin
}

func (d dialer) loginRequiredError() error {
	text := fmt.Sprintf("HTTP %d: authorization required (run: claude mcp login %s)", http.StatusUnauthorized, d.cfg.Name)
	return &connection.DialError{Reason: text, CLIText: text, NeedsAuth: true, NeedsLogin: true}
}

func (a oauthHeadersRenewer) headersWithAuthorization(authorization string) map[string]string {
	if authorization == "" {
		return a.cfg.Headers
	}
	token := map[string]string{"Authorization": authorization}
	a.log.HideValuesOf(token)
	return mergeHeaders(a.cfg.Headers, token)
}

func mergeHeaders(base, overrides map[string]string) map[string]string {
	all := map[string]string{}
	for _, table := range []map[string]string{base, overrides} {
		for k, v := range table {
			all[http.CanonicalHeaderKey(k)] = v
		}
	}
	return all
}

// headersHelperTimeout is how long a headersHelper may run, as in the real CLI.
const headersHelperTimeout = 10 * time.Second

// runHeadersHelper runs a helper once and returns the headers that it prints. Errors never contain its output.
func runHeadersHelper(ctx context.Context, helper proc.Command, limit time.Duration) (map[string]string, error) {
	res, err := proc.Run(ctx, proc.RunOptions{Command: helper, Limit: 64 << 10, Timeout: limit})
	switch {
	case err != nil:
		return nil, fmt.Errorf("running headersHelper: %w", err)
	case res.TimedOut:
		return nil, fmt.Errorf("headersHelper did not finish within %v", limit)
	case res.Exit.Code != 0 || res.Exit.Signal != "":
		return nil, fmt.Errorf("headersHelper failed with %s", res.Exit)
	}
	return parseHelperHeaders(res.Stdout)
}

var errInvalidHeaders = errors.New("headersHelper did not print a JSON object of strings")

func parseHelperHeaders(out []byte) (map[string]string, error) {
	var headers map[string]string
	if err := json.Unmarshal(out, &headers); err != nil || headers == nil {
		return nil, errInvalidHeaders
	}
	return headers, nil
}
