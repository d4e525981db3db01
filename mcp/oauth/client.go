// Package oauth logs in to MCP servers that require OAuth 2.1 and keeps the credentials.
//
// A [Client] belongs to one server. [Client.RefreshAndGetAuthorization] returns the header for a request, after refreshing an
// expired token. [Client.RenewAuthorization] returns another header after a refusal. [Client.BeginLogin] begins a login, which the caller
// completes with the URL to which the user was redirected. mcp-go makes most requests of the login, flow.go the others.
//
// Credentials are in a [Store]. Errors never contain a credential.
package oauth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/mark3labs/mcp-go/client/transport"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Client manages the credentials for one server. Its methods may be called by several goroutines.
type Client struct {
	options Options

	mu                sync.Mutex
	credentialsLoaded bool
	credentials       credentials
	nonces            sync.Map // see dpopProofTransport
}

// NewClient returns a client; it reads nothing yet.
func NewClient(o Options) *Client { return &Client{options: o} }

// expiryMargin is the time before expiry at which a token is renewed (observed with 2.1.330).
const expiryMargin = 5 * time.Minute

// ErrNeedsLogin reports missing credentials, or credentials that the authorization server does not accept.
var ErrNeedsLogin = errors.New("no valid credentials for the server")

// RefreshAndGetAuthorization returns the Authorization header of the next request; empty means that no token is stored. A token that expired
// or expires soon is refreshed first. If refreshing fails, the header has the old token, because the server may still accept it.
func (c *Client) RefreshAndGetAuthorization(ctx context.Context) (header string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.credentialsLoaded {
		if err := c.reloadCredentials(); err != nil {
			return "", err
		}
	}
	used := c.credentials
	if c.canRefreshExpiringToken() {
		if err := c.requestAndStoreNewToken(ctx, challenge{}); err == nil {
			used = c.credentials
		}
	}
	return used.accessTokenHeader(), nil
}

// canRefreshExpiringToken reports whether the access token has expired or expires soon, and a refresh token exists.
func (c *Client) canRefreshExpiringToken() bool {
	return c.credentials.RefreshToken != "" && c.credentials.ExpiresAt > 0 && !c.options.Clock.Now().Add(expiryMargin).Before(time.UnixMilli(c.credentials.ExpiresAt))
}

func (h credentials) accessTokenHeader() string {
	if h.AccessToken == "" {
		return ""
	}
	if h.ProofKey != nil {
		return boundTokenScheme + " " + h.AccessToken
	}
	return "Bearer " + h.AccessToken
}

func (c *Client) reloadCredentials() error {
	c.credentials, c.credentialsLoaded = credentials{}, true
	return c.options.Store.loadEntry(tokensKey, c.options.Server.credentialsEntryKey(), &c.credentials)
}

// AuthRequiredResponse is a response that requires authorization.
type AuthRequiredResponse struct {
	Status     int    // 401 or 403
	Challenge  string // WWW-Authenticate; empty means absent
	UsedHeader string // the Authorization header of the request
}

// ScopeError reports that a request needs scopes that were not granted.
type ScopeError struct{ Server, Scope string }

func (e *ScopeError) Error() string {
	return fmt.Sprintf(`MCP server %q needs additional permissions (scope: %q) — run /mcp to re-authenticate`, e.Server, e.Scope)
}

// RenewAuthorization returns another Authorization header after a request was refused. If another request or process has stored a
// new token in the meantime, Renew uses that token. Otherwise it refreshes the token, or requests one with the client's
// own credentials. If the request needs more scopes, the error is a [*ScopeError], and the next login requests these
// scopes. If a login is necessary, the error is [ErrNeedsLogin]. Renew stores the metadata of the authorization server.
func (c *Client) RenewAuthorization(ctx context.Context, r AuthRequiredResponse) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.credentials.accessTokenHeader() != r.UsedHeader { // another request has already renewed it
		return c.credentials.accessTokenHeader(), nil
	}
	ch := parseChallenge(r.Challenge)
	if r.Status == http.StatusForbidden {
		if ch.code != insufficientScope {
			return "", ErrNeedsLogin
		}
		if err := c.storeNextScopes(ctx, ch); err != nil {
			return "", err
		}
		return "", &ScopeError{c.options.Server.Name, ch.scope}
	}
	if err := c.requestAndStoreNewToken(ctx, ch); err != nil {
		return "", err
	}
	return c.credentials.accessTokenHeader(), nil
}

// storeNextScopes stores the scopes that the next login requests: the granted scopes, and the scopes that the challenge demands.
func (c *Client) storeNextScopes(ctx context.Context, ch challenge) error {
	f, err := c.options.discover(ctx, ch, c.credentials.Discovery)
	if err != nil {
		return err
	}
	return c.updateStoredCredentials(func(h *credentials) {
		h.Discovery = f.stored
		scopes := strings.Fields(h.Scope)
		for s := range strings.FieldsSeq(ch.scope) {
			if !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		}
		h.StepUpScope = strings.Join(scopes, " ")
	})
}

func (c *Client) updateStoredCredentials(apply func(h *credentials)) error {
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.reloadCredentials(); err != nil {
		return err
	}
	apply(&c.credentials)
	return c.saveCredentialsLocked()
}

// saveCredentialsLocked stores the credentials of the client. The caller must have locked the file.
func (c *Client) saveCredentialsLocked() error {
	c.credentials.ServerName, c.credentials.ServerURL = c.options.Server.Name, c.options.Server.URL
	return c.options.Store.saveEntry(tokensKey, c.options.Server.credentialsEntryKey(), c.credentials)
}

// requestAndStoreNewToken replaces the current token. Other processes that use the same file wait and then use the new
// token, because a refresh token may be valid only once.
func (c *Client) requestAndStoreNewToken(ctx context.Context, ch challenge) error {
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		return err
	}
	defer unlock()
	old := c.credentials.AccessToken
	if err := c.reloadCredentials(); err != nil {
		return err
	}
	if c.credentials.AccessToken != old && c.credentials.AccessToken != "" {
		return nil
	}
	f, err := c.discoverForRefresh(ctx, ch)
	if err != nil {
		if _, known := errors.AsType[cliError](err); known {
			return errors.Join(err, c.options.Store.addTokenlessRefusal(c.options.Server.Name, c.options.Clock.Now()))
		}
		return err
	}
	c.credentials.Discovery = f.stored
	if old == "" && c.credentials.RefreshToken == "" {
		return c.recordRefusalReturnNeedsLogin(ctx, f)
	}
	if f.metadata.hasClientCredentialsGrantOnly() && c.credentials.RefreshToken == "" && c.options.Config.ClientID != "" {
		return c.sanitizeOAuthError(c.loginAsMachineLocked(ctx, f, strings.Fields(c.credentials.Scope)))
	}
	if c.credentials.RefreshToken == "" || c.credentials.Issuer != "" && c.credentials.Issuer != f.issuer() {
		c.credentials.AccessToken, c.credentials.RefreshToken, c.credentials.ExpiresAt = "", "", 0
		return cmp.Or(c.saveCredentialsLocked(), ErrNeedsLogin)
	}
	h := c.newMCPGoHandler(f, c.credentials.ClientID, cmp.Or(c.credentials.ClientSecret, c.StoredClientSecret()), "", nil)
	if _, err = h.RefreshToken(ctx, c.credentials.RefreshToken); err == nil {
		return nil // saveOnlyTokenStore has saved the token
	}
	if refused, ok := errors.AsType[transport.OAuthError](err); ok { // trying again would not help
		c.credentials = credentials{Discovery: f.stored, ClientID: c.credentials.ClientID, ClientSecret: c.credentials.ClientSecret, Issuer: c.credentials.Issuer, RedirectURI: c.credentials.RedirectURI}
		if refused.ErrorCode == "invalid_client" {
			c.credentials.ClientID, c.credentials.ClientSecret, c.credentials.Issuer = "", "", ""
		}
		return cmp.Or(c.saveCredentialsLocked(), ErrNeedsLogin)
	}
	return fmt.Errorf("refreshing the token of MCP server %q: %w", c.options.Server.Name, c.sanitizeOAuthError(err))
}

func (c *Client) discoverForRefresh(ctx context.Context, ch challenge) (*discovery, error) {
	if ch == (challenge{}) && c.credentials.Discovery != nil && c.credentials.Discovery.ResourceURL != "" {
		return c.options.rebuildDiscovery(ctx, c.credentials.Discovery)
	}
	return c.options.discover(ctx, ch, c.credentials.Discovery)
}

// saveOnlyTokenStore implements transport.TokenStore. The credentials file must be locked.
type saveOnlyTokenStore struct{ *Client }

// GetToken returns no token, because mcp-go is only used to get new tokens.
func (s saveOnlyTokenStore) GetToken(ctx context.Context) (*transport.Token, error) {
	return nil, cmp.Or(ctx.Err(), transport.ErrNoToken)
}

// SaveToken stores a token that the authorization server has issued.
func (s saveOnlyTokenStore) SaveToken(ctx context.Context, t *transport.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.AccessToken == "" {
		return errors.New("the authorization server sent no access token")
	}
	s.credentials.AccessToken, s.credentials.RefreshToken = t.AccessToken, t.RefreshToken
	if !strings.EqualFold(t.TokenType, boundTokenScheme) {
		s.credentials.ProofKey = nil
	}
	s.credentials.Scope = cmp.Or(t.Scope, s.credentials.Scope)
	s.credentials.ExpiresAt = 0
	if t.ExpiresIn > 0 {
		s.credentials.ExpiresAt = s.options.Clock.Now().Add(time.Duration(t.ExpiresIn) * time.Second).UnixMilli()
	}
	return s.saveCredentialsLocked()
}

func (c *Client) newMCPGoHandler(f *discovery, id, secret, redirect string, scopes []string) *transport.OAuthHandler {
	method := f.metadata.secretTransmissionMethod()
	if isPrivateKey(secret) || len(f.metadata.AuthMethods) > 0 && !slices.Contains(f.metadata.AuthMethods, method) {
		secret = ""
	}
	cache := f.cache
	cache.base = dpopProofTransport{cache.base, func() *jose.JSONWebKey { return c.credentials.ProofKey }, &c.nonces, c.options.Clock}
	h := transport.NewOAuthHandler(transport.OAuthConfig{
		ClientID: id, ClientSecret: secret, TokenEndpointAuthMethod: method, RedirectURI: redirect, Scopes: scopes,
		PKCEEnabled: true, TokenStore: saveOnlyTokenStore{c}, HTTPClient: cache.sameOriginClient(),
		ProtectedResourceMetadataURL: f.stored.ResourceURL, AuthServerMetadataURL: c.options.Config.AuthServerMetadataURL,
	})
	h.SetBaseURL(cmp.Or(f.resource.Resource, f.stored.Server))
	return h
}

// loginAsMachineLocked gets and stores a token with configured client credentials, without a user. The file must be locked.
func (c *Client) loginAsMachineLocked(ctx context.Context, f *discovery, scopes []string) error {
	o := &clientcredentials.Config{
		ClientID: c.options.Config.ClientID, ClientSecret: c.StoredClientSecret(), TokenURL: f.metadata.Token, Scopes: scopes, AuthStyle: oauth2.AuthStyleInHeader,
		EndpointParams: url.Values{"resource": {cmp.Or(f.resource.Resource, c.options.Server.URL)}},
	}
	if f.metadata.secretTransmissionMethod() == secretInBody {
		o.AuthStyle = oauth2.AuthStyleInParams
	}
	token, err := requestMachineToken(context.WithValue(ctx, oauth2.HTTPClient, f.cache.sameOriginClient()), o, f.issuer(), c.options.Clock.Now())
	if err != nil {
		return err
	}
	c.credentials.Scope = strings.Join(scopes, " ") // these scopes apply unless the response contains others
	return saveOnlyTokenStore{c}.SaveToken(ctx, token)
}

// ProofTransport returns a transport over base that adds proofs of possession for tokens that are bound to a key.
func (c *Client) ProofTransport(base http.RoundTripper) http.RoundTripper {
	return dpopProofTransport{base, func() *jose.JSONWebKey {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.credentials.ProofKey
	}, &c.nonces, c.options.Clock}
}

// sanitizeOAuthError returns an error of mcp-go without the response of the authorization server, which may contain secrets.
func (c *Client) sanitizeOAuthError(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[transport.OAuthError](err); ok {
		text := refused.Error()
		for _, secret := range []string{c.credentials.AccessToken, c.credentials.RefreshToken, c.credentials.ClientSecret, c.StoredClientSecret()} {
			if len(secret) > 3 {
				text = strings.ReplaceAll(text, secret, "[hidden]")
			}
		}
		return errors.New(excerptOfResponse([]byte(text)))
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errors.New("ECONNREFUSED: Unable to connect. Is the computer able to access the url?")
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	if page, ok := errors.AsType[*json.SyntaxError](err); ok && strings.Contains(page.Error(), "'<'") {
		return cliError("JSON Parse error: Unrecognized token '<'")
	}
	if text := err.Error(); strings.Contains(text, " with status ") {
		status, _, _ := strings.Cut(text, ": ")
		return errors.New(status)
	}
	return err
}

// lockAndReplaceEntry locks the credentials file and replaces the entry of this server in a top-level member; nil removes it.
func (c *Client) lockAndReplaceEntry(member string, entry any) error {
	if _, err := os.Stat(c.options.Store.Path); err != nil && entry == nil {
		return nil
	}
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		return fmt.Errorf("locking %s: %w", c.options.Store.Path, err)
	}
	defer unlock()
	return c.options.Store.saveEntry(member, c.options.Server.credentialsEntryKey(), entry)
}

// ForgetTokensAndRegistration removes the tokens of the server and the client that was registered for it.
func (c *Client) ForgetTokensAndRegistration() error {
	return errors.Join(c.lockAndReplaceEntry(tokensKey, nil), c.forgetTokenlessRefusal())
}

// ForgetAllCredentials removes all stored data about the server.
func (c *Client) ForgetAllCredentials() error {
	return errors.Join(c.ForgetTokensAndRegistration(), c.lockAndReplaceEntry(secretsKey, nil))
}

// SaveClientSecret stores the secret of a client that was registered by hand.
func (c *Client) SaveClientSecret(secret string) error {
	return c.lockAndReplaceEntry(secretsKey, clientSecret{secret})
}

// StoredClientSecret returns the stored secret of a client that was registered by hand; empty means none.
func (c *Client) StoredClientSecret() string {
	var s clientSecret
	if c.options.Store.loadEntry(secretsKey, c.options.Server.credentialsEntryKey(), &s) != nil {
		return ""
	}
	return s.Value
}

// requestMachineToken gets a token for a client that logs in as itself (client_credentials), which mcp-go does not do.
// A secret that is a private key signs an assertion (private_key_jwt, RFC 7523) and is not sent.
func requestMachineToken(ctx context.Context, o *clientcredentials.Config, issuer string, now time.Time) (*transport.Token, error) {
	if isPrivateKey(o.ClientSecret) {
		assertion, err := signAssertion(o, issuer, now)
		if err != nil {
			return nil, err
		}
		o.ClientSecret, o.AuthStyle = "", oauth2.AuthStyleInParams
		o.EndpointParams.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		o.EndpointParams.Set("client_assertion", assertion)
	}
	token, err := o.Token(ctx)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		return nil, transport.OAuthError{ErrorCode: refused.ErrorCode, ErrorDescription: refused.ErrorDescription}
	} else if ok {
		return nil, fmt.Errorf("token request failed with status %d", refused.Response.StatusCode)
	}
	if err != nil {
		return nil, err
	}
	seconds, _ := token.Extra("expires_in").(float64)
	scope, _ := token.Extra("scope").(string)
	return &transport.Token{AccessToken: token.AccessToken, TokenType: token.TokenType, ExpiresIn: int64(seconds), Scope: scope}, nil
}

// signAssertion returns a token that proves a client's identity to an authorization server and expires after a minute.
func signAssertion(o *clientcredentials.Config, issuer string, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(o.ClientSecret))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", errors.New("the client secret is a private key, but not in PKCS #8 form")
	}
	algorithm := jose.EdDSA
	switch k := key.(type) {
	case *rsa.PrivateKey:
		algorithm = jose.RS256
	case *ecdsa.PrivateKey:
		algorithm = map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[k.Params().BitSize]
	}
	return signClaims(jose.SigningKey{Algorithm: algorithm, Key: key}, new(jose.SignerOptions).WithType("JWT"), map[string]any{
		"iss": o.ClientID, "sub": o.ClientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	})
}

func isPrivateKey(secret string) bool {
	block, _ := pem.Decode([]byte(secret))
	return block != nil
}
