package mcp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestOAuth_N31N33 checks that a server without credentials is needs-auth, and that the error says how to log in.
// Stored credentials are used. A token that the server refuses during a session is refreshed once. A call that needs
// another scope is an error, but the connection stays open. The log contains no token.
func TestOAuth_N31N33(t *testing.T) {
	t.Parallel()
	var current, status atomic.Value
	current.Store("Bearer access1")
	status.Store(0)
	f := newFakeHTTP(t, func(_ int, r *http.Request) int {
		if r.Header.Get("Authorization") != current.Load() {
			return http.StatusUnauthorized
		}
		return 0
	})
	stepUp := false
	var front *httptest.Server
	inner := f.Config.Handler
	front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[2]s/authorize","token_endpoint":"%[2]s/token","registration_endpoint":"%[2]s/register"}`, front.URL, front.URL)
		case r.URL.Path == "/token":
			if r.FormValue("refresh_token") != "refresh1" {
				http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
				return
			}
			current.Store("Bearer access2")
			fmt.Fprint(w, `{"access_token":"access2","refresh_token":"refresh2","scope":"read"}`)
		case r.URL.Path != "/mcp":
			http.NotFound(w, r)
		default:
			body, _ := io.ReadAll(r.Body)
			if stepUp && strings.Contains(string(body), "tools/call") {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
				w.WriteHeader(http.StatusForbidden)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	var debug logBuffer
	cfg := ServerConfig{Name: "s", Type: "http", URL: front.URL + "/mcp"}
	o := Options{Servers: []ServerConfig{cfg}, Debug: &debug, Credentials: CredentialStorage{Path: filepath.Join(t.TempDir(), ".credentials.json"), Time: func() time.Time { return time.Unix(0, 0) }}}

	m := start(t, o)
	if st := m.Servers()[0]; st.State != StateNeedsAuth || st.Error != "HTTP 401: authorization required (run: claude mcp login s)" {
		t.Errorf("without credentials: %s, %s", st.State, st.Error)
	}
	m.Close(t.Context())

	data, err := os.ReadFile(o.Credentials.Path) // the discovered metadata of the authorization server is stored
	if err != nil {
		t.Fatal(err)
	}
	entry := strings.Replace(string(data), `"accessToken":""`, fmt.Sprintf(`"accessToken":"access1","refreshToken":"refresh1","clientId":"c","issuer":%q`, front.URL), 1)
	if err := os.WriteFile(o.Credentials.Path, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	m = start(t, o)
	const ok = `[{"type":"text","text":"ok"}]`
	if got := call(t, m, "echo", `{}`); got != ok {
		t.Errorf("with credentials: %s; %+v", got, m.Servers()[0])
	}
	current.Store("Bearer none")
	if got := call(t, m, "echo", `{}`); got != ok {
		t.Errorf("after the token was revoked: %s", got)
	}
	stepUp = true
	if got := call(t, m, "echo", `{}`); got != `isError: "MCP server \"s\" needs additional permissions (scope: \"write\") — run /mcp to re-authenticate"` {
		t.Errorf("without the scope: %s", got)
	}
	stepUp = false
	if got := call(t, m, "echo", `{}`); got != ok {
		t.Errorf("after the refusal: %s", got)
	}
	current.Store("Bearer none")
	if got := call(t, m, "echo", `{}`); got != `isError: "MCP server \"s\" needs you to sign in again (run /mcp to re-authenticate)"` {
		t.Errorf("after the login ended: %s", got)
	}
	if text := debug.String(); strings.Contains(text, "access1") || strings.Contains(text, "access2") || strings.Contains(text, "refresh") {
		t.Errorf("a token is in the log:\n%s", text)
	}
}

// TestBoundToken_N31: requests with a token that is bound to a key prove the key.
func TestBoundToken_N31(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, func(_ int, r *http.Request) int {
		if r.Header.Get("Authorization") != "DPoP bound" || r.Header.Get("DPoP") == "" {
			return http.StatusUnauthorized
		}
		return 0
	})
	inner := f.Config.Handler
	var front *httptest.Server
	front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register"}`, front.URL)
		case "/register":
			fmt.Fprint(w, `{"client_id":"c"}`)
		case "/authorize":
			http.Redirect(w, r, r.FormValue("redirect_uri")+"?code=c&state="+r.FormValue("state"), http.StatusFound)
		case "/token":
			fmt.Fprint(w, `{"access_token":"bound","token_type":"DPoP"}`)
		case "/mcp":
			inner.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	cfg := ServerConfig{Name: "s", Type: "http", URL: front.URL + "/mcp"}
	o := Options{Servers: []ServerConfig{cfg}, Credentials: CredentialStorage{Path: filepath.Join(t.TempDir(), ".credentials.json"), Time: time.Now}}
	login, err := cfg.NewOAuthClient(o).BeginLogin(t.Context(), "http://localhost:3118/callback", `DPoP algs="ES256"`)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := login.ApproveWithoutUser(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := login.ExchangeCodeAndStoreTokens(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	if got := call(t, start(t, o), "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
		t.Error(got)
	}
}
