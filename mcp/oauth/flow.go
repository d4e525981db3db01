package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

const (
	maxResponseBytes                 = 1 << 20
	maxRedirects                     = 5
	requestTimeout                   = 30 * time.Second
	browserResultPageDeliveryTimeout = time.Second // how long the last page of a login may take to reach the browser
)

// metadataProtocolVersion is the revision of MCP that requests for metadata send (observed with 2.1.330).
const metadataProtocolVersion = "2025-11-25"

// clientMetadataURL is the client id of the real CLI at authorization servers that read client metadata documents.
const clientMetadataURL = "https://claude.ai/oauth/claude-code-client-metadata"

// Config is the member oauth of the entry of a server.
type Config struct {
	ClientID              string // id of a client that was registered by hand, or the URL of a client metadata document
	CallbackPort          int    // 0 means any
	AuthServerMetadataURL string // where the authorization server's metadata is; empty means discovery
	Scopes                string // separated by spaces; empty means the scopes that the server requests
}

// Clock returns the time that decides whether credentials have expired.
type Clock interface{ Now() time.Time }

// Options configure a Client. Server, Clock and Store are required.
type Options struct {
	Server    Server
	Config    Config
	Store     Store
	Clock     Clock
	Transport http.RoundTripper // nil means http.DefaultTransport
}

// challenge is the content of the header WWW-Authenticate in the response that refuses a request.
type challenge struct {
	code, scope, resourceURL string
	requiresBoundToken       bool // only tokens that are bound to a key are accepted
}

const insufficientScope = "insufficient_scope"

var challengeParameterPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(error|scope|resource_metadata)\s*=\s*(?:"([^"]*)"|([^\s,"]+))`)
})

// parseChallenge reads the parameters of a header. The first of repeated parameters counts.
func parseChallenge(header string) (c challenge) {
	for _, m := range challengeParameterPattern().FindAllStringSubmatch(header, -1) {
		to := map[string]*string{"error": &c.code, "scope": &c.scope, "resource_metadata": &c.resourceURL}[strings.ToLower(m[1])]
		*to = cmp.Or(*to, m[2]+m[3])
	}
	scheme, _, _ := strings.Cut(header, " ")
	c.requiresBoundToken = strings.EqualFold(scheme, boundTokenScheme)
	return c
}

// resourceMetadata is the metadata of a protected resource (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// authServerMetadata is the part of an authorization server's metadata (RFC 8414) that mcp-go does not read.
type authServerMetadata struct {
	Issuer         string   `json:"issuer"`
	Authorization  string   `json:"authorization_endpoint"`
	Token          string   `json:"token_endpoint"`
	Registration   string   `json:"registration_endpoint"`
	Challenges     []string `json:"code_challenge_methods_supported"`
	AuthMethods    []string `json:"token_endpoint_auth_methods_supported"`
	Grants         []string `json:"grant_types_supported"`
	ClientDocument bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer    bool     `json:"authorization_response_iss_parameter_supported"`
}

// The ways in which a client sends its secret.
const (
	secretInHeader = "client_secret_basic"
	secretInBody   = "client_secret_post"
)

func (m authServerMetadata) secretTransmissionMethod() string {
	if len(m.AuthMethods) == 0 || slices.Contains(m.AuthMethods, secretInHeader) {
		return secretInHeader
	}
	return secretInBody
}

// hasClientCredentialsGrantOnly reports whether users cannot log in: the server accepts only clients that log in as themselves.
func (m authServerMetadata) hasClientCredentialsGrantOnly() bool {
	return slices.Contains(m.Grants, "client_credentials") && !slices.Contains(m.Grants, "authorization_code")
}

// cliError is an error with the text of the real CLI.
type cliError string

func (e cliError) Error() string { return string(e) }

// IsIncompatible reports whether err means that the metadata of a server or its authorization server prevents a login.
func IsIncompatible(loginError error) (isLoginPreventedByMetadata bool) {
	_, is := errors.AsType[cliError](loginError)
	return is
}

// discovery contains the metadata of an MCP server and of its authorization server.
type discovery struct {
	stored   *storedDiscovery
	resource resourceMetadata
	metadata authServerMetadata
	cache    metadataCacheTransport
}

func (f *discovery) issuer() string { return cmp.Or(f.metadata.Issuer, f.stored.Server) }

// discover reads the metadata of the MCP server and of its authorization server. If the authorization server is already
// known and the challenge names a metadata URL, the metadata of the authorization server is read first.
func (o Options) discover(ctx context.Context, ch challenge, known *storedDiscovery) (*discovery, error) {
	f := &discovery{stored: &storedDiscovery{}, cache: metadataCacheTransport{base: o.baseTransport(), documents: map[string][]byte{}}}
	if known != nil && ch.resourceURL != "" {
		f.stored.Server = known.Server
		if err := f.fetchAuthServerMetadata(ctx); err != nil {
			return nil, err
		}
	}
	server, err := url.Parse(o.Server.URL)
	if err != nil || server.Host == "" {
		return nil, errors.New("invalid URL of the MCP server: expected http://HOST/… or https://HOST/…")
	}
	candidates := []string{wellKnownURL(server, "oauth-protected-resource", true), wellKnownURL(server, "oauth-protected-resource", false)}
	if advertised, err := url.Parse(ch.resourceURL); err == nil && ch.resourceURL != "" && urlOrigin(advertised) == urlOrigin(server) {
		candidates = []string{ch.resourceURL}
	}
	for _, at := range slices.Compact(candidates) {
		found, err := f.cache.fetchDocument(ctx, at, "*/*", &f.resource)
		if err != nil {
			return nil, err
		}
		if found {
			f.stored.ResourceURL = at
			break
		}
	}
	if f.stored.ResourceURL != "" && !resourceCoversServer(f.resource.Resource, o.Server.URL) {
		return nil, cliError(fmt.Sprintf("Protected resource %s does not match expected %s (or origin)", hideURLPath(f.resource.Resource), urlOrigin(server)))
	}
	f.stored.Server = urlOrigin(server)
	if len(f.resource.Servers) > 0 {
		f.stored.Server = f.resource.Servers[0]
	}
	if f.resource.Resource != o.Server.URL {
		f.stored.Resource = f.resource.Resource
	}
	if at := o.Config.AuthServerMetadataURL; at != "" {
		found, err := f.cache.fetchDocument(ctx, at, "application/json", &f.metadata)
		if err == nil && !found {
			err = fmt.Errorf("no metadata at %s: check authServerMetadataUrl", at)
		}
		f.stored.MetadataFound = found
		return f, cmp.Or(err, f.metadata.checkEndpointURLsAndS256())
	}
	return f, f.fetchAuthServerMetadata(ctx)
}

// rebuildDiscovery rebuilds an earlier discovery. It reads only the authorization server's metadata again.
func (o Options) rebuildDiscovery(ctx context.Context, known *storedDiscovery) (*discovery, error) {
	state := *known
	f := &discovery{stored: &state, cache: metadataCacheTransport{base: o.baseTransport(), documents: map[string][]byte{}}}
	f.resource = resourceMetadata{Resource: cmp.Or(known.Resource, o.Server.URL), Servers: []string{known.Server}}
	document, err := plainjson.Marshal(f.resource)
	if err != nil {
		return nil, err
	}
	f.cache.documents[state.ResourceURL] = document
	return f, f.fetchAuthServerMetadata(ctx)
}

// fetchAuthServerMetadata reads the metadata of authorization server f.state.Server from the URLs of RFC 8414 and OpenID Connect.
func (f *discovery) fetchAuthServerMetadata(ctx context.Context) error {
	server, err := url.Parse(f.stored.Server)
	if err != nil || server.Host == "" {
		return fmt.Errorf("the authorization server %q is not a URL", f.stored.Server)
	}
	candidates := []string{wellKnownURL(server, "oauth-authorization-server", true), wellKnownURL(server, "openid-configuration", true)}
	if path := strings.Trim(server.Path, "/"); path != "" {
		candidates = append(candidates, urlOrigin(server)+"/"+path+"/.well-known/openid-configuration")
	}
	f.stored.MetadataFound = false
	for _, at := range candidates {
		f.metadata = authServerMetadata{}
		found, err := f.cache.fetchDocument(ctx, at, "application/json", &f.metadata)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if issuer := f.metadata.Issuer; strings.TrimSuffix(issuer, "/") != strings.TrimSuffix(f.stored.Server, "/") {
			return fmt.Errorf("the metadata at %s names the authorization server %q, expected %q", at, issuer, f.stored.Server)
		}
		f.stored.MetadataFound = true
		return f.metadata.checkEndpointURLsAndS256()
	}
	return nil
}

func (m authServerMetadata) checkEndpointURLsAndS256() error {
	for _, endpoint := range []string{m.Authorization, m.Token, m.Registration} {
		if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("the authorization server names the endpoint %q, which is not an http or https URL", excerptOfResponse([]byte(endpoint)))
		}
	}
	if len(m.Challenges) > 0 && !slices.Contains(m.Challenges, "S256") {
		return cliError("Incompatible auth server: does not support code challenge method S256")
	}
	return nil
}

// registerClient registers a client at the authorization server (RFC 7591). It does not let mcp-go do this, because the
// request of mcp-go lacks application_type, which revision 2026-07-28 requires.
func (o Options) registerClient(ctx context.Context, f *discovery, redirect string, scopes []string) (id, secret string, err error) {
	endpoint := f.metadata.Registration
	if endpoint == "" && !f.stored.MetadataFound {
		endpoint = strings.TrimSuffix(f.stored.Server, "/") + "/register"
	}
	if endpoint == "" {
		return "", "", cliError("Incompatible auth server: does not support dynamic client registration")
	}
	body, err := plainjson.Marshal(struct {
		Name        string   `json:"client_name"`
		Redirects   []string `json:"redirect_uris"`
		Grants      []string `json:"grant_types"`
		Responses   []string `json:"response_types"`
		Method      string   `json:"token_endpoint_auth_method"`
		Application string   `json:"application_type"`
		Scope       string   `json:"scope,omitempty"`
	}{
		"Claude Code (" + o.Server.Name + ")",
		[]string{redirect},
		[]string{"authorization_code", "refresh_token"},
		[]string{"code"},
		"none", "native", strings.Join(scopes, " "),
	})
	if err != nil {
		return "", "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return "", "", fmt.Errorf("the registration endpoint %q is not a URL", endpoint)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream") // like all POST requests of the real CLI
	resp, err := f.cache.sameOriginClient().Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", "", err
	}
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return "", "", cliError(fmt.Sprintf("Dynamic Client Registration rejected (HTTP %d): %s", resp.StatusCode, strings.ToValidUTF8(string(answer), "�")))
	}
	if json.Unmarshal(answer, &client) != nil || client.ID == "" {
		return "", "", errors.New("the response to the registration has no client_id")
	}
	return client.ID, client.Secret, nil
}

// metadataCacheTransport is a RoundTripper that keeps metadata, so that mcp-go does not request it again.
type metadataCacheTransport struct {
	base      http.RoundTripper
	documents map[string][]byte // by URL; nil means that the URL has no document
}

func (o Options) baseTransport() http.RoundTripper { return cmp.Or(o.Transport, http.DefaultTransport) }

// RoundTrip returns known documents from memory, and limits the size of other responses.
func (d metadataCacheTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if body, ok := d.documents[req.URL.String()]; ok && req.Method == http.MethodGet {
		resp := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
		if body == nil {
			resp.StatusCode = http.StatusNotFound
		}
		return resp, nil
	}
	resp, err := d.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(data) > maxResponseBytes {
		return nil, fmt.Errorf("the response to an OAuth request has more than %d bytes", maxResponseBytes)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// sameOriginClient returns an [http.Client] that does not follow redirects to other origins, because requests contain secrets.
func (d metadataCacheTransport) sameOriginClient() *http.Client {
	return &http.Client{Transport: d, Timeout: requestTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case urlOrigin(req.URL) != urlOrigin(via[0].URL):
			return fmt.Errorf("refused to follow a redirect to another origin, %s", urlOrigin(req.URL))
		case len(via) > maxRedirects:
			return fmt.Errorf("the server sent too many redirects: stopped after %d redirects", maxRedirects)
		}
		return nil
	}}
}

func (d metadataCacheTransport) fetchDocument(ctx context.Context, address, acceptHeader string, target any) (wasStatus200 bool, err error) {
	body, ok := d.documents[address]
	if !ok {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return false, fmt.Errorf("%q is not a URL", address)
		}
		req.Header.Set("Accept", acceptHeader)
		req.Header.Set("Mcp-Protocol-Version", metadataProtocolVersion)
		resp, err := d.sameOriginClient().Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if body, err = io.ReadAll(resp.Body); err != nil {
				return false, err
			}
		}
		d.documents[address] = body
	}
	if body == nil {
		return false, nil
	}
	if err := json.Unmarshal(body, target); err != nil {
		return false, fmt.Errorf("the metadata at %s is not a JSON object of OAuth metadata", address)
	}
	return true, nil
}

func excerptOfResponse(text []byte) string {
	const longest = 300
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "�")), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// wellKnownURL returns ORIGIN/.well-known/NAME with the origin of u, followed by the path of u if withPath is true.
func wellKnownURL(u *url.URL, name string, withPath bool) string {
	at := urlOrigin(u) + "/.well-known/" + name
	if path := strings.TrimSuffix(u.EscapedPath(), "/"); withPath {
		at += path
	}
	return at
}

// hideURLPath hides the path of a URL as the real CLI does in its errors.
func hideURLPath(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return "[redacted]"
	}
	if u.Path == "" || u.Path == "/" {
		return urlOrigin(u)
	}
	return urlOrigin(u) + "[redacted]"
}

func urlOrigin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// resourceCoversServer reports whether a resource has the origin of a server, and the path of the server or a prefix of it.
func resourceCoversServer(resource, serverURL string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(serverURL)
	if err != nil || err2 != nil || urlOrigin(r) != urlOrigin(a) {
		return false
	}
	return strings.HasPrefix(strings.TrimSuffix(a.EscapedPath(), "/")+"/", strings.TrimSuffix(r.EscapedPath(), "/")+"/")
}
