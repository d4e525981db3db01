package oauth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/mark3labs/mcp-go/client/transport"
)

// Login is a login that waits for the user, who opens URL. The authorization server then redirects
// the browser to RedirectURI. Finish receives the query of this redirect; Wait waits for End.
type Login struct {
	URL, RedirectURI string
	State            string // is in the URL and in the query of the redirect

	client       *Client
	discovery    *discovery
	handler      *transport.OAuthHandler
	verifier     string
	scopes       []string
	endOnce      sync.Once
	ended        chan struct{}
	outcomeError error // valid after ended is closed
}

// loginTimeout is how long a login waits for the user (observed with 2.1.330).
const loginTimeout = 5 * time.Minute

// ForgetRefusalAndCheckSupport returns why the user cannot log in to the MCP server; nil means that a login is possible. It discovers the
// authorization server, and forgets an earlier refusal of the MCP server.
func (c *Client) ForgetRefusalAndCheckSupport(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.forgetRefusalAndDiscover(ctx, challenge{})
	return err
}

// forgetRefusalAndDiscover discovers the authorization server, and forgets an earlier refusal of the MCP server.
func (c *Client) forgetRefusalAndDiscover(ctx context.Context, ch challenge) (*discovery, error) {
	if err := errors.Join(c.reloadCredentials(), c.forgetTokenlessRefusal()); err != nil {
		return nil, err
	}
	f, err := c.options.discover(ctx, ch, c.credentials.Discovery)
	return f, c.sanitizeOAuthError(err)
}

// SavedRedirectURI returns the redirect URI that is registered for the stored client; empty means none.
func (c *Client) SavedRedirectURI() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reloadCredentials() != nil {
		return ""
	}
	return c.credentials.RedirectURI
}

// BeginLogin begins a login. It registers a client at the authorization server if none is stored. challengeHeader is the
// WWW-Authenticate header of a refused request; empty means unknown.
func (c *Client) BeginLogin(ctx context.Context, redirectURI, challengeHeader string) (*Login, error) {
	if c.options.Store.Path == "" {
		return nil, errors.New("no directory for the credentials: HOME is not set\nhint: set CLAUDELESS_STATE_DIR")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := parseChallenge(challengeHeader)
	f, err := c.forgetRefusalAndDiscover(ctx, ch)
	if err != nil {
		return nil, err
	}
	var key *jose.JSONWebKey
	if ch.requiresBoundToken {
		if key, err = newProofKey(); err != nil {
			return nil, err
		}
	}
	scopes := c.scopesToRequest(f, ch)
	id, secret, err := c.findOrRegisterClient(ctx, f, redirectURI, scopes)
	if err != nil {
		return nil, c.sanitizeOAuthError(err)
	}
	err = c.updateStoredCredentials(func(h *credentials) {
		if h.Issuer != f.issuer() || key != nil || h.ProofKey != nil { // another authorization server or key needs other tokens
			h.AccessToken, h.RefreshToken, h.ExpiresAt = "", "", 0
		}
		h.Discovery, h.ClientID, h.ClientSecret, h.Issuer, h.RedirectURI, h.ProofKey = f.stored, id, secret, f.issuer(), redirectURI, key
	})
	if err != nil {
		return nil, err
	}
	l := &Login{
		RedirectURI: redirectURI, client: c, discovery: f, scopes: scopes, handler: c.newMCPGoHandler(f, id, secret, redirectURI, scopes), ended: make(chan struct{}),
	}
	if l.State, err = transport.GenerateState(); err != nil {
		return nil, err
	}
	l.State = transport.GenerateCodeChallenge(l.State) // 43 characters, as in the real CLI
	if l.verifier, err = transport.GenerateCodeVerifier(); err != nil {
		return nil, err
	}
	l.URL, err = l.handler.GetAuthorizationURL(ctx, l.State, transport.GenerateCodeChallenge(l.verifier))
	l.URL = orderParametersAsRealCLI(l.URL)
	return l, c.sanitizeOAuthError(err)
}

// orderParametersAsRealCLI orders the parameters of mcp-go's authorization URL as the real CLI
// 2.1.330 does. If the endpoint has a query, the parameters follow it.
func orderParametersAsRealCLI(authorizationURL string) string {
	order := []string{"response_type", "client_id", "code_challenge", "code_challenge_method", "redirect_uri", "state", "scope", "resource"}
	at := strings.LastIndexByte(authorizationURL, '?') // mcp-go escapes this character in its parameters
	if at < 0 {
		return authorizationURL
	}
	parameters := strings.Split(authorizationURL[at+1:], "&")
	slices.SortStableFunc(parameters, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return slices.Index(order, a) - slices.Index(order, b)
	})
	separator := "?"
	if strings.Contains(authorizationURL[:at], separator) {
		separator = "&"
	}
	return authorizationURL[:at] + separator + strings.Join(parameters, "&")
}

// LoginAsClient logs in as the configured client itself, without a user. It does nothing, and done is false, if the
// client has no secret or if the authorization server has a login for users. challengeHeader is the WWW-Authenticate
// header of a refused request; empty means unknown.
func (c *Client) LoginAsClient(ctx context.Context, challengeHeader string) (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.Config.ClientID == "" || c.StoredClientSecret() == "" {
		return false, nil
	}
	ch := parseChallenge(challengeHeader)
	f, err := c.forgetRefusalAndDiscover(ctx, ch)
	if err != nil || !f.metadata.hasClientCredentialsGrantOnly() {
		return false, err
	}
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		return false, err
	}
	defer unlock()
	c.credentials = credentials{Discovery: f.stored, ClientID: c.options.Config.ClientID, Issuer: f.issuer()}
	return true, c.sanitizeOAuthError(c.loginAsMachineLocked(ctx, f, c.scopesToRequest(f, ch)))
}

func (c *Client) scopesToRequest(f *discovery, ch challenge) []string {
	scopes := f.resource.Scopes
	for _, wanted := range []string{ch.scope, c.options.Config.Scopes, c.credentials.StepUpScope} {
		if wanted != "" {
			scopes = strings.Fields(wanted)
		}
	}
	return scopes
}

// findOrRegisterClient returns the OAuth client for a login. This is the configured client, the stored client, or the client of
// the real CLI's client metadata document. If none can be used, it registers a new client.
func (c *Client) findOrRegisterClient(ctx context.Context, f *discovery, redirectURI string, scopes []string) (id, secret string, err error) {
	switch {
	case c.options.Config.ClientID != "":
		return c.options.Config.ClientID, c.StoredClientSecret(), nil
	case c.credentials.ClientID != "" && c.credentials.Issuer == f.issuer() && c.credentials.RedirectURI == redirectURI:
		return c.credentials.ClientID, c.credentials.ClientSecret, nil
	case f.metadata.ClientDocument && isInRealCLIClientMetadata(redirectURI):
		return clientMetadataURL, "", nil
	}
	return c.options.registerClient(ctx, f, redirectURI, scopes)
}

// isInRealCLIClientMetadata reports whether the real CLI's client metadata document contains a redirect URI. It ignores ports.
func isInRealCLIClientMetadata(redirectURI string) bool {
	u, err := url.Parse(redirectURI)
	return err == nil && u.Scheme == "http" && isLoopback(u.Hostname()) && u.Path == "/callback"
}

// IsAnswer reports whether a redirect with this query answers this login: it has a code or an error, and the login's state.
func (l *Login) IsAnswer(redirectQuery url.Values) (belongsToLogin bool) {
	return (redirectQuery.Has("code") || redirectQuery.Has("error")) && subtle.ConstantTimeCompare([]byte(redirectQuery.Get("state")), []byte(l.State)) == 1
}

// ExchangeCodeAndStoreTokens completes the login with the query that came to the redirect URI, and stores the credentials.
func (l *Login) ExchangeCodeAndStoreTokens(ctx context.Context, redirectQuery url.Values) error {
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	switch issuer := l.discovery.issuer(); {
	case !l.IsAnswer(redirectQuery):
		return cliError("OAuth state mismatch - possible CSRF attack")
	case redirectQuery.Has("error"):
		return errors.New(excerptOfResponse([]byte(transport.OAuthError{ErrorCode: redirectQuery.Get("error"), ErrorDescription: redirectQuery.Get("error_description")}.Error())))
	case redirectQuery.Has("iss") && redirectQuery.Get("iss") != issuer:
		return cliError(fmt.Sprintf("Issuer mismatch in authorization response (RFC 9207): expected %q, received %q", issuer, excerptOfResponse([]byte(redirectQuery.Get("iss")))))
	case !redirectQuery.Has("iss") && l.discovery.metadata.SendsIssuer:
		return cliError(fmt.Sprintf("Issuer mismatch in authorization response (RFC 9207): expected %q, received undefined", issuer))
	}
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		return err
	}
	c.credentials.Scope = strings.Join(l.scopes, " ") // the requested scopes, unless the response contains others
	err = l.handler.ProcessAuthorizationResponse(ctx, redirectQuery.Get("code"), redirectQuery.Get("state"), l.verifier)
	unlock()
	if err != nil {
		return c.sanitizeOAuthError(err)
	}
	if c.canRefreshExpiringToken() { // refreshed at once, as observed with 2.1.330
		return c.sanitizeOAuthError(c.requestAndStoreNewToken(ctx, challenge{}))
	}
	return nil
}

// ApproveWithoutUser acts as the user and the browser: it opens the login's URL and follows the redirects to the redirect URI,
// whose query it returns. It is for authorization servers on loopback that do not ask the user.
func (l *Login) ApproveWithoutUser(ctx context.Context) (redirectQuery url.Values, approvalError error) {
	at, err := url.Parse(l.URL)
	if err != nil {
		return nil, errors.New("the authorization endpoint is not a URL")
	}
	client := l.discovery.cache.sameOriginClient()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range maxRedirects + 1 {
		if !isLoopback(at.Hostname()) {
			return nil, fmt.Errorf("--auto only works with authorization servers on this machine; this login goes to %s\nhint: log in without --auto", urlOrigin(at))
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, l.client.sanitizeOAuthError(err)
		}
		resp.Body.Close()
		next, err := resp.Location()
		if err != nil {
			return nil, fmt.Errorf("the authorization server answered with a page (HTTP %d) instead of a redirect\nhint: log in without --auto", resp.StatusCode)
		}
		if strings.HasPrefix(next.String(), l.RedirectURI+"?") {
			return next.Query(), nil
		}
		at = next
	}
	return nil, fmt.Errorf("the authorization server sent more than %d redirects", maxRedirects)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Listen opens the port for the redirect of a login: the configured port, the port of an earlier login, or any port.
func (c *Client) Listen(ctx context.Context) (listener net.Listener, redirectURI string, err error) {
	var config net.ListenConfig
	listen := func(port string) bool {
		listener, err = config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		return err == nil
	}
	if port := c.options.Config.CallbackPort; port > 0 {
		if !listen(strconv.Itoa(port)) {
			return nil, "", fmt.Errorf("cannot listen on the callback port %d: %w", port, err)
		}
	} else if u, invalid := url.Parse(c.SavedRedirectURI()); invalid != nil || !isInRealCLIClientMetadata(c.SavedRedirectURI()) || !listen(u.Port()) {
		if !listen("0") {
			return nil, "", err
		}
	}
	return listener, fmt.Sprintf("http://localhost:%d/callback", listener.Addr().(*net.TCPAddr).Port), nil
}

// End ends the login and makes Wait return errorForWait; only the first call counts.
func (l *Login) End(errorForWait error) {
	l.endOnce.Do(func() {
		l.outcomeError = errorForWait
		close(l.ended)
	})
}

// Ended is closed when the login has ended.
func (l *Login) Ended() <-chan struct{} { return l.ended }

// ServeRedirectAndWait waits until the login has ended and returns its outcome. If at is not nil, Wait also serves the redirect URI on
// this listener: it completes the login, and shows the outcome in the browser. Before it returns, it closes the
// listener. limit is how long Wait waits for the user; 0 means as long as the real CLI does.
func (l *Login) ServeRedirectAndWait(ctx context.Context, redirectListener net.Listener, limit time.Duration) error {
	ctx, stop := context.WithTimeoutCause(ctx, cmp.Or(limit, loginTimeout), cliError("Authentication timeout"))
	defer stop()
	if redirectListener != nil {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) { l.completeLoginAndShowPage(ctx, w, r.URL.Query()) })
		server := &http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout}
		go func() { l.End(server.Serve(redirectListener)) }() // returns after Shutdown
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), browserResultPageDeliveryTimeout) // delivers the page even if ctx is cancelled
			defer cancel()
			if server.Shutdown(ctx) != nil {
				_ = server.Close()
			}
		}()
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.End(context.Cause(ctx))
	}
	return l.outcomeError
}

// completeLoginAndShowPage completes the login with the query of the redirect and shows a page.
func (l *Login) completeLoginAndShowPage(ctx context.Context, w http.ResponseWriter, q url.Values) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	if !l.IsAnswer(q) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintln(w, "<!DOCTYPE html><title>claudeless</title><p>This page belongs to a different login.</p>")
		return
	}
	err := l.ExchangeCodeAndStoreTokens(ctx, q)
	if err != nil {
		fmt.Fprintln(w, "<!DOCTYPE html><title>claudeless</title><h1>Authentication failed</h1><p>Close this tab and log in again.</p>")
	} else {
		fmt.Fprintln(w, "<!DOCTYPE html><title>claudeless</title><h1>Authentication successful</h1><p>You can close this tab.</p>")
	}
	l.End(err)
}

// ProbeWithoutCredentials sends the server a request without credentials and returns the WWW-Authenticate header of its refusal;
// it is empty if the server did not refuse, or sent no WWW-Authenticate header.
func (c *Client) ProbeWithoutCredentials(ctx context.Context) (wwwAuthenticateHeader string, requestError error) {
	const message = `{"jsonrpc":"2.0","id":"login","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"claudeless","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.Server.URL, strings.NewReader(message))
	if err != nil {
		return "", errors.New("invalid URL of the MCP server: expected http://HOST/… or https://HOST/…")
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover",
	} {
		req.Header.Set(name, value)
	}
	ctx, stop := context.WithTimeout(ctx, requestTimeout)
	defer stop()
	resp, err := c.options.baseTransport().RoundTrip(req.WithContext(ctx))
	if err != nil {
		return "", c.sanitizeOAuthError(err)
	}
	resp.Body.Close()
	if !slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, resp.StatusCode) {
		return "", nil
	}
	return resp.Header.Get("WWW-Authenticate"), nil
}
