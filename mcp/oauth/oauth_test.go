package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"
)

// authServer is an authorization server and its MCP server on one port. It issues numbered tokens and rotates refresh
// tokens.
type authServer struct {
	*httptest.Server
	metadata map[string]any // replaces members; nil removes a member
	resource map[string]any
	prmPath  string // of the protected resource metadata; "none" means no document
	answer   url.Values
	token    http.HandlerFunc // replaces the token endpoint
	mcp      http.HandlerFunc // the MCP server; nil means none
	grant    string           // scope in the answer of the token endpoint

	mu      sync.Mutex
	n       int
	refresh map[string]bool // the valid refresh tokens
	log     []string
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{prmPath: "/.well-known/oauth-protected-resource/mcp", refresh: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *authServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r.Method+" "+r.URL.Path)
	reply := func(status int, body map[string]any, changes map[string]any) {
		maps.Copy(body, changes)
		maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	s.n++
	switch r.URL.Path {
	case s.prmPath:
		reply(200, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}, "scopes_supported": []string{"read", "write"}}, s.resource)
	case "/.well-known/oauth-authorization-server":
		reply(200, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		}, s.metadata)
	case "/register":
		reply(201, map[string]any{"client_id": fmt.Sprintf("client-%d", s.n)}, nil)
	case "/authorize":
		q := r.URL.Query()
		answer := url.Values{"code": {fmt.Sprintf("code-%d", s.n)}, "state": {q.Get("state")}, "iss": {s.URL}}
		maps.Copy(answer, s.answer)
		maps.DeleteFunc(answer, func(_ string, v []string) bool { return v == nil })
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	case "/token":
		_ = r.ParseForm()
		s.log[len(s.log)-1] += " " + r.Form.Get("grant_type")
		old := r.Form.Get("refresh_token")
		switch {
		case s.token != nil:
			w.Header().Set("Content-Type", "application/json")
			s.token(w, r)
			return
		case r.Form.Get("resource") != s.URL+"/mcp":
			reply(400, map[string]any{"error": "invalid_target"}, nil)
			return
		case old != "" && !s.refresh[old]:
			reply(400, map[string]any{"error": "invalid_grant", "error_description": "unknown token " + old}, nil)
			return
		}
		delete(s.refresh, old)
		s.refresh[fmt.Sprintf("refresh-%d", s.n)] = true
		reply(200, map[string]any{
			"access_token": fmt.Sprintf("access-%d", s.n), "refresh_token": fmt.Sprintf("refresh-%d", s.n), "token_type": "Bearer", "expires_in": 3600, "scope": s.grant,
		}, nil)
	default:
		if s.mcp != nil {
			s.mcp(w, r)
			return
		}
		http.NotFound(w, r)
	}
}

// requests returns the requests since the last call.
func (s *authServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

// testClient is a client with a clock.
type testClient struct {
	*testing.T
	server *authServer
	now    time.Time
	path   string
	config Config
}

func newBench(t *testing.T) *testClient {
	t.Helper()
	return &testClient{T: t, server: newAuthServer(t), now: time.Unix(1_700_000_000, 0), path: filepath.Join(t.TempDir(), "state", ".credentials.json")}
}

func (b *testClient) client() *Client {
	return NewClient(Options{
		Server: Server{Name: "s", Type: "http", URL: b.server.URL + "/mcp"}, Config: b.config, Store: Store{Path: b.path}, Clock: b,
	})
}

// Now implements Clock.
func (b *testClient) Now() time.Time { return b.now }

// login logs in without a browser.
func (b *testClient) login() error {
	b.Helper()
	l, err := b.client().BeginLogin(b.Context(), "http://localhost:3118/callback", "")
	if err != nil {
		return err
	}
	answer, err := l.ApproveWithoutUser(b.Context())
	if err != nil {
		return err
	}
	return l.ExchangeCodeAndStoreTokens(b.Context(), answer)
}

func (b *testClient) mustLogin() {
	b.Helper()
	if err := b.login(); err != nil {
		b.Fatal(err)
	}
	b.server.requests()
}

func (b *testClient) header(c *Client) string {
	b.Helper()
	value, err := c.RefreshAndGetAuthorization(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return value
}

func (b *testClient) storedCredentials() map[string]json.RawMessage {
	b.Helper()
	data, err := os.ReadFile(b.path)
	if err != nil {
		b.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		b.Fatal(err)
	}
	return all
}

// TestLogin_N30N32N35 checks that a login sends its requests in the order of the real CLI and stores the credentials in
// the format of the real CLI, readable only by the owner. Other entries are kept, a second login uses the same client,
// and logging out removes the entry.
func TestLogin_N30N32N35(t *testing.T) {
	b := newBench(t)
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.path, []byte(`{"claudeAiOauth":{"accessToken":"not ours"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := b.client()
	if got := b.header(c); got != "" {
		t.Errorf("before the login: %q", got)
	}
	if err := c.ForgetRefusalAndCheckSupport(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.login(); err != nil {
		t.Fatal(err)
	}
	discovery := []string{"GET /.well-known/oauth-protected-resource/mcp", "GET /.well-known/oauth-authorization-server"}
	want := slices.Concat(discovery, discovery, []string{"POST /register", "GET /authorize", "POST /token authorization_code"})
	if diff := cmp.Diff(want, b.server.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	key := Server{Name: "s", Type: "http", URL: b.server.URL + "/mcp"}.credentialsEntryKey()
	wantEntry := fmt.Sprintf(`{"%s":{"serverName":"s","serverUrl":"URL/mcp","accessToken":"access-7","discoveryState":{"authorizationServerUrl":"URL",`+
		`"oauthMetadataFound":true,"resourceMetadataUrl":"URL/.well-known/oauth-protected-resource/mcp"},"clientId":"client-5","issuer":"URL",`+
		`"redirectUri":"http://localhost:3118/callback","refreshToken":"refresh-7","expiresAt":1700003600000,"scope":"read write"}}`, key)
	got := b.storedCredentials()
	if diff := cmp.Diff(wantEntry, strings.ReplaceAll(string(got["mcpOAuth"]), b.server.URL, "URL")); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if string(got["claudeAiOauth"]) != `{"accessToken":"not ours"}` {
		t.Errorf("others: %s", got["claudeAiOauth"])
	}
	if info, err := os.Stat(b.path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := b.header(b.client()); got != "Bearer access-7" {
		t.Errorf("header %q", got)
	}
	b.mustLogin()
	if slices.Contains(b.server.requests(), "POST /register") {
		t.Error("registered twice")
	}
	if err := b.client().ForgetTokensAndRegistration(); err != nil || string(b.storedCredentials()["mcpOAuth"]) != "{}" {
		t.Errorf("after the logout: %s, %v", b.storedCredentials()["mcpOAuth"], err)
	}
	if files, _ := os.ReadDir(filepath.Dir(b.path)); len(files) != 2 { // the file and its lock
		t.Errorf("left behind: %v", files)
	}
}

// TestWait_N30 checks that the browser gets its page although the login ends when the redirect has
// been answered, and that the port is then closed.
func TestWait_N30(t *testing.T) {
	c := NewClient(Options{})
	at, redirect, err := c.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	login, outcome := &Login{State: "s", client: c, discovery: &discovery{stored: &storedDiscovery{}}, ended: make(chan struct{})}, make(chan error, 1)
	go func() { outcome <- login.ServeRedirectAndWait(t.Context(), at, 0) }()
	for _, visit := range [][2]string{{"error=denied&state=other", "This page belongs to a different login"}, {"error=denied&state=s", "Authentication failed"}} {
		resp, err := http.Get(redirect + "?" + visit[0])
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(page), visit[1]) {
			t.Errorf("%s: page %q, %v", visit[0], page, err)
		}
	}
	if err := <-outcome; err == nil || err.Error() != "OAuth error: denied" {
		t.Errorf("outcome %v", err)
	}
	if conn, err := net.Dial("tcp", at.Addr().String()); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
}

func TestServerKey_N32(t *testing.T) {
	got := Server{Name: "o", Type: "http", URL: "http://127.0.0.1:9071/mcp"}.credentialsEntryKey()
	if got != "o|466fc169a3cec119" { // the key of the real CLI 2.1.330
		t.Errorf("got %s", got)
	}
}

// TestRefresh_N31: an expired token is refreshed before use, with a request only to the authorization server. A token
// that the server refuses is refreshed once. A refused refresh ends the login.
func TestRefresh_N31(t *testing.T) {
	b := newBench(t)
	b.mustLogin()
	c := b.client()
	first := b.header(c)
	b.now = b.now.Add(54 * time.Minute)
	if got := b.header(c); got != first || len(b.server.requests()) > 0 {
		t.Errorf("refreshed early: %q", got)
	}
	b.now = b.now.Add(time.Minute)
	second := b.header(c)
	want := []string{"GET /.well-known/oauth-authorization-server", "POST /token refresh_token"}
	if diff := cmp.Diff(want, b.server.requests()); diff != "" || second == first {
		t.Errorf("%q, requests (-want +got):\n%s", second, diff)
	}
	challenge := `Bearer error="invalid_token", resource_metadata="` + b.server.URL + `/.well-known/oauth-protected-resource/mcp"`
	third, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, Challenge: challenge, UsedHeader: second})
	want = []string{"GET /.well-known/oauth-authorization-server", "GET /.well-known/oauth-protected-resource/mcp", "POST /token refresh_token"}
	if diff := cmp.Diff(want, b.server.requests()); diff != "" || err != nil || third == second {
		t.Errorf("%q, %v, requests (-want +got):\n%s", third, err, diff)
	}
	if again, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, UsedHeader: second}); again != third || err != nil || len(b.server.requests()) > 0 {
		t.Errorf("a late refusal: %q, %v", again, err)
	}
	b.server.refresh = map[string]bool{}
	if got, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, UsedHeader: third}); !errors.Is(err, ErrNeedsLogin) || got != "" {
		t.Errorf("after a revocation: %q, %v", got, err)
	}
	if got := b.header(b.client()); got != "" {
		t.Errorf("stored: %q", got)
	}
}

// TestProcesses_N32: of 40 processes that find the token expired at the same time, one refreshes it and the others
// use the new token.
func TestProcesses_N32(t *testing.T) {
	b := newBench(t)
	b.mustLogin()
	for range 20 {
		b.now = b.now.Add(time.Hour)
		var all sync.WaitGroup
		headers := make([]string, 40)
		for i := range headers {
			c := b.client()
			all.Go(func() { headers[i], _ = c.RefreshAndGetAuthorization(t.Context()) })
		}
		all.Wait()
		if len(slices.Compact(slices.Sorted(slices.Values(headers)))) != 1 || headers[0] == "" {
			t.Fatalf("headers %q", headers)
		}
		refreshes := slices.DeleteFunc(b.server.requests(), func(r string) bool { return r != "POST /token refresh_token" })
		if len(refreshes) != 1 {
			t.Fatalf("%d refreshes", len(refreshes))
		}
	}
}

// TestStepUp_N33: a request that needs another scope is an error with scope and server, and the next login requests
// both. A 403 without a scope only requires a login.
func TestStepUp_N33(t *testing.T) {
	b := newBench(t)
	b.server.grant = "read"
	b.mustLogin()
	c := b.client()
	_, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 403, Challenge: `Bearer error="insufficient_scope", scope="admin read"`, UsedHeader: b.header(c)})
	if err == nil || err.Error() != `MCP server "s" needs additional permissions (scope: "admin read") — run /mcp to re-authenticate` {
		t.Errorf("got %v", err)
	}
	l, err := b.client().BeginLogin(t.Context(), "http://localhost:3118/callback", "")
	if err != nil || !strings.Contains(l.URL, "scope=read+admin&") {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err = c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 403, UsedHeader: b.header(c)}); !errors.Is(err, ErrNeedsLogin) {
		t.Errorf("got %v", err)
	}
}

// TestScopes: a login requests the scopes of the challenge, or else those of the configuration, or
// else those of the server.
func TestScopes(t *testing.T) {
	for _, tt := range []struct{ challenge, config, want string }{
		{"", "", "read+write"}, {"", "a b", "a+b"}, {`Bearer scope="c"`, "", "c"},
	} {
		b := newBench(t)
		b.config.Scopes = tt.config
		l, err := b.client().BeginLogin(t.Context(), "http://localhost:3118/callback", tt.challenge)
		if err != nil || !strings.Contains(l.URL, "scope="+tt.want+"&") {
			t.Errorf("%+v: %+v, %v", tt, l, err)
		}
	}
}

// TestClients_N31: a configured client is used with its stored secret. An authorization server that reads client
// metadata documents gets the real CLI's URL. A different authorization server gets a new client.
func TestClients_N31(t *testing.T) {
	b := newBench(t)
	b.config.ClientID = "mine"
	if err := b.client().SaveClientSecret("s3cret"); err != nil {
		t.Fatal(err)
	}
	var user, password string
	b.server.token = func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		_, _ = w.Write([]byte(`{"access_token":"a"}`))
	}
	if err := b.login(); err != nil || user != "mine" || password != "s3cret" {
		t.Errorf("%q %q, %v", user, password, err)
	}
	if b.client().ForgetAllCredentials() != nil || b.client().StoredClientSecret() != "" {
		t.Error("the secret is still there")
	}

	b = newBench(t)
	b.server.metadata = map[string]any{"client_id_metadata_document_supported": true}
	l, err := b.client().BeginLogin(t.Context(), "http://localhost:3118/callback", "")
	if err != nil || !strings.Contains(l.URL, "client_id=https%3A%2F%2Fclaude.ai%2Foauth%2Fclaude-code-client-metadata&") {
		t.Errorf("%+v, %v", l, err)
	}

	b = newBench(t)
	b.mustLogin()
	other := newAuthServer(t)
	b.server.resource = map[string]any{"authorization_servers": []string{other.URL}}
	if _, err := b.client().BeginLogin(t.Context(), "http://localhost:3118/callback", ""); err != nil || !slices.Contains(other.requests(), "POST /register") {
		t.Errorf("the client of one authorization server was used at another: %v", err)
	}
	c := b.client()
	if _, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, UsedHeader: b.header(c)}); !errors.Is(err, ErrNeedsLogin) || slices.Contains(other.requests(), "POST /token refresh_token") {
		t.Errorf("a refresh token went to another authorization server: %v", err)
	}
}

// TestRefused: errors of an authorization server end a login with an error that names them and shows no secret; no
// code or token is sent elsewhere (N34).
func TestRefused_N34(t *testing.T) {
	stranger := newAuthServer(t)
	for _, tt := range []struct {
		name   string
		change func(s *authServer)
		want   string
	}{
		{"foreign issuer", func(s *authServer) { s.metadata = map[string]any{"issuer": "https://evil.example"} }, `names the authorization server "https://evil.example"`},
		{"script", func(s *authServer) { s.metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"} }, `the endpoint "javascript:alert(1)", which is not an http or https URL`},
		{"no PKCE", func(s *authServer) {
			s.metadata = map[string]any{"code_challenge_methods_supported": []string{"plain"}}
		}, "does not support code challenge method S256"},
		{"foreign resource", func(s *authServer) { s.resource = map[string]any{"resource": "https://victim.example/mcp"} }, "Protected resource https://victim.example[redacted] does not match"},
		{"no registration", func(s *authServer) { s.metadata = map[string]any{"registration_endpoint": nil} }, "Incompatible auth server: does not support dynamic client registration"},
		{"wrong issuer in the answer", func(s *authServer) { s.answer = url.Values{"iss": {s.URL + "/"}} }, "Issuer mismatch in authorization response (RFC 9207): expected"},
		{"no issuer in the answer", func(s *authServer) { s.answer = url.Values{"iss": nil} }, ", received undefined"},
		{"wrong state", func(s *authServer) { s.answer = url.Values{"state": {"other"}} }, "OAuth state mismatch"},
		{"denied", func(s *authServer) {
			s.answer = url.Values{"code": nil, "error": {"access_denied"}, "error_description": {"no"}}
		}, "OAuth error: access_denied - no"},
		{"metadata too long", func(s *authServer) { s.resource = map[string]any{"x": strings.Repeat("x", maxResponseBytes)} }, "more than 1048576 bytes"},
		{"token endpoint is a page", func(s *authServer) {
			s.token = func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "<html>"+r.Form.Get("code"), http.StatusBadGateway)
			}
		}, "token request failed with status 502"},
		{"token endpoint redirects", func(s *authServer) {
			s.token = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, stranger.URL+"/token", http.StatusTemporaryRedirect)
			}
		}, "refused to follow a redirect to another origin"},
		{"page", func(s *authServer) { s.metadata = map[string]any{"authorization_endpoint": s.URL + "/page"} }, "answered with a page (HTTP 404)"},
		{"not on this machine", func(s *authServer) {
			s.metadata = map[string]any{"authorization_endpoint": "https://login.example/authorize"}
		}, "--auto only works with authorization servers on this machine; this login goes to https://login.example"},
		{"endless redirects", func(s *authServer) {
			s.answer = nil
			s.metadata = map[string]any{"authorization_endpoint": s.URL + "/loop"}
			s.Config.Handler = loop{s}
		}, "more than 5 redirects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			tt.change(b.server)
			err := b.login()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "code-") {
				t.Errorf("a code is shown: %v", err)
			}
			if got := b.header(b.client()); got != "" {
				t.Errorf("logged in: %q", got)
			}
		})
	}
	if got := stranger.requests(); len(got) > 0 {
		t.Errorf("the stranger was asked %q", got)
	}
}

// loop redirects /loop to itself.
type loop struct{ next http.Handler }

func (l loop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/loop" {
		http.Redirect(w, r, "/loop?"+r.URL.RawQuery, http.StatusFound)
		return
	}
	l.next.ServeHTTP(w, r)
}

// TestErrorsHideTokens: the error of a failed refresh never contains a token.
func TestErrorsHideTokens(t *testing.T) {
	b := newBench(t)
	b.mustLogin()
	b.server.token = func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "you sent "+r.Form.Get("refresh_token"), http.StatusInternalServerError)
	}
	c := b.client()
	_, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, UsedHeader: b.header(c)})
	if err == nil || strings.Contains(err.Error(), "refresh-") || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("got %v", err)
	}
	if b.header(b.client()) == "" {
		t.Error("a failure of the server ended the login")
	}
}

// TestWithoutPlace checks that without a state directory a login is impossible, and requests are sent without
// credentials.
func TestWithoutPlace(t *testing.T) {
	b := newBench(t)
	b.path = ""
	if _, err := b.client().BeginLogin(t.Context(), "http://localhost:1/callback", ""); err == nil || !strings.Contains(err.Error(), "no directory for the credentials") {
		t.Errorf("got %v", err)
	}
	if got := b.header(b.client()); got != "" {
		t.Errorf("got %q", got)
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer error="insufficient_scope", scope="a b", resource_metadata="http://h/x"`)
	f.Add(`Basic realm="x", Bearer scope=a`)
	f.Fuzz(func(t *testing.T, header string) {
		if c := parseChallenge(header); strings.ContainsRune(c.scope+c.code+c.resourceURL, '"') {
			t.Errorf("%q: %+v", header, c)
		}
	})
}

// TestTokenStore_N35: mcp-go's handler refreshes a token and stores it through its token store interface. It reads no
// token from the store, because each request is made with a known token.
func TestTokenStore_N35(t *testing.T) {
	b := newBench(t)
	b.mustLogin()
	c := b.client()
	before := b.header(c)
	f, err := c.options.discover(t.Context(), challenge{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		t.Fatal(err)
	}
	h := c.newMCPGoHandler(f, c.credentials.ClientID, c.credentials.ClientSecret, "", nil)
	token, err := h.RefreshToken(t.Context(), c.credentials.RefreshToken)
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	if got := b.header(b.client()); got != "Bearer "+token.AccessToken || got == before {
		t.Errorf("stored %q, got %q, before it was %q", got, token.AccessToken, before)
	}
	if _, err := (saveOnlyTokenStore{c}).GetToken(t.Context()); !errors.Is(err, transport.ErrNoToken) {
		t.Errorf("got %v", err)
	}
}

// FuzzToken: after any answer of a token endpoint, no error of a refresh contains the refresh token, and a remaining
// login has an access token.
func FuzzToken(f *testing.F) {
	f.Add(200, "application/json", `{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"b"}`)
	f.Add(400, "application/json", `{"error":"invalid_grant","error_description":"refresh-1"}`)
	f.Add(200, "text/html", "<html>")
	f.Fuzz(func(t *testing.T, status int, media, body string) {
		if status < 200 || status > 599 {
			return
		}
		b := newBench(t)
		b.mustLogin()
		b.server.token = func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = []string{"text/plain"}
			if !strings.ContainsAny(media, "\r\n") {
				w.Header()["Content-Type"] = []string{media}
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body+r.Form.Get("refresh_token"))
		}
		c := b.client()
		secret := c.credentials.RefreshToken
		used := b.header(c)
		_, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, UsedHeader: used})
		if secret != "" && err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the token is shown: %v", err)
		}
		if c.credentials.RefreshToken != "" && c.credentials.AccessToken == "" {
			t.Errorf("a login without a token: %+v", c.credentials)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"issuer":"http://h","authorization_endpoint":"http://h/a"}`), "http://h/mcp")
	f.Fuzz(func(t *testing.T, document []byte, at string) {
		var m authServerMetadata
		if json.Unmarshal(document, &m) == nil && m.checkEndpointURLsAndS256() == nil && strings.HasPrefix(m.Authorization, "javascript:") {
			t.Errorf("%q is taken", document)
		}
		if u, err := url.Parse(at); err == nil {
			_ = wellKnownURL(u, "x", true)
		}
		resourceCoversServer(at, string(document))
	})
}

// TestOrderParameters checks the order of the parameters (observed with 2.1.330), also after a query of the endpoint.
func TestOrderParameters(t *testing.T) {
	const sorted = "client_id=c&code_challenge=x&code_challenge_method=S256&redirect_uri=r%3F&resource=u&response_type=code&scope=a+b&state=s"
	const want = "response_type=code&client_id=c&code_challenge=x&code_challenge_method=S256&redirect_uri=r%3F&state=s&scope=a+b&resource=u"
	for endpoint, separator := range map[string]string{"http://127.0.0.1/authorize": "?", "http://127.0.0.1/authorize?tenant=1": "&"} {
		if diff := cmp.Diff(endpoint+separator+want, orderParametersAsRealCLI(endpoint+"?"+sorted)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
