package oauth

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// refuse tells the client that the server refused a request without a token.
func (b *testClient) refuse() {
	b.Helper()
	if _, err := b.client().RenewAuthorization(b.Context(), AuthRequiredResponse{Status: http.StatusUnauthorized}); !errors.Is(err, ErrNeedsLogin) {
		b.Fatal(err)
	}
}

func (b *testClient) refusals() string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(b.path), "mcp-needs-auth-cache.json"))
	if err != nil {
		return ""
	}
	return string(data)
}

// TestRefusals_N31: a server that refused a request without a token gets no requests until a login or logout. The
// refusal is stored in the same file as that of the real CLI.
func TestRefusals_N31(t *testing.T) {
	b := newBench(t)
	if b.client().WasRefused() {
		t.Error("refused before it was asked")
	}
	b.refuse()
	if diff := cmp.Diff(`{"s":{"timestamp":1700000000000}}`, b.refusals()); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	b.now = b.now.Add(24 * time.Hour)
	if !b.client().WasRefused() {
		t.Error("the server is asked again, although its authorization server is known")
	}
	b.mustLogin()
	if b.client().WasRefused() || b.refusals() != "" {
		t.Error("still refused after a login", b.refusals())
	}
	if err := b.client().ForgetTokensAndRegistration(); err != nil || b.client().WasRefused() {
		t.Error("refused after a logout", err)
	}
}

// TestRefusalsWithoutMetadata_N31 checks that a refusal is remembered for 15 minutes if the authorization server has no
// metadata. The client is registered immediately, and the login uses it.
func TestRefusalsWithoutMetadata_N31(t *testing.T) {
	b := newBench(t)
	b.server.prmPath = "none"
	b.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-authorization-server" {
			http.NotFound(w, r)
			return
		}
		b.server.ServeHTTP(w, r)
	})
	b.refuse()
	if n := len(slices.DeleteFunc(b.server.requests(), func(s string) bool { return s != "POST /register" })); n != 1 {
		t.Errorf("%d registrations", n)
	}
	if uri := b.client().SavedRedirectURI(); uri != "http://localhost:3118/callback" {
		t.Errorf("redirect URI %q", uri)
	}
	b.now = b.now.Add(15*time.Minute - time.Second)
	if !b.client().WasRefused() {
		t.Error("asked again after less than 15 minutes")
	}
	b.now = b.now.Add(time.Second)
	if b.client().WasRefused() {
		t.Error("refused for longer than 15 minutes")
	}
	b.server.token = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"access_token":"a"}`)) }
	if err := b.login(); err != nil || slices.Contains(b.server.requests(), "POST /register") {
		t.Error("the login registered another client", err)
	}
}

// TestIncompatible_N31 checks that a server with the metadata of another server counts as refused for some time, and
// that the error gives the reason.
func TestIncompatible_N31(t *testing.T) {
	b := newBench(t)
	b.server.resource = map[string]any{"resource": "http://other.test/mcp"}
	_, err := b.client().RenewAuthorization(t.Context(), AuthRequiredResponse{Status: http.StatusUnauthorized})
	if !IsIncompatible(err) || errors.Is(err, ErrNeedsLogin) || !b.client().WasRefused() {
		t.Errorf("%v, refused %t", err, b.client().WasRefused())
	}
}
