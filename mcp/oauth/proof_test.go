package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// onlyForMachines configures the authorization server so that only programs can log in.
func onlyForMachines(b *testClient) {
	b.server.metadata = map[string]any{"grant_types_supported": []string{"client_credentials"}}
	b.config.ClientID = "robot"
}

// TestLoginAsClient_N31 checks that a client logs in with its secret if only programs can log in, and once more after
// its token was refused. The secret is in the header or in the body, as the authorization server requires.
func TestLoginAsClient_N31(t *testing.T) {
	for method, want := range map[string]string{"client_secret_basic": "robot:s%26cret ", "client_secret_post": ": robot s&cret"} {
		b := newBench(t)
		onlyForMachines(b)
		b.server.metadata["token_endpoint_auth_methods_supported"] = []string{method}
		var got []string
		b.server.token = func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			got = append(got, user+":"+password+" "+strings.TrimSpace(r.Form.Get("client_id")+" "+r.Form.Get("client_secret")))
			if r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("resource") != b.server.URL+"/mcp" || r.Form.Get("scope") != "read write" {
				t.Errorf("%s: %v", method, r.Form)
			}
			fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer"}`, len(got))
		}
		c := b.client()
		if done, err := c.LoginAsClient(t.Context(), ""); done || err != nil {
			t.Errorf("%s: without a secret: %v %v", method, done, err)
		}
		if err := c.SaveClientSecret("s&cret"); err != nil {
			t.Fatal(err)
		}
		if done, err := c.LoginAsClient(t.Context(), ""); !done || err != nil {
			t.Fatalf("%s: %v %v", method, done, err)
		}
		c = b.client()
		if h := b.header(c); h != "Bearer token-1" {
			t.Errorf("%s: %q", method, h)
		}
		if h, err := c.RenewAuthorization(t.Context(), AuthRequiredResponse{Status: 401, UsedHeader: "Bearer token-1"}); h != "Bearer token-2" || err != nil {
			t.Errorf("%s: after a refusal %q, %v", method, h, err)
		}
		if got[0] != want || got[1] != want {
			t.Errorf("%s: the client sent %q, want %q", method, got, want)
		}
		b.server.token = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"not s&cret"}`)
		}
		if _, err := c.LoginAsClient(t.Context(), ""); err == nil || strings.Contains(err.Error(), "s&cret") || !strings.Contains(err.Error(), "invalid_client") {
			t.Errorf("%s: refused: %v", method, err)
		}
	}
}

// TestPrivateKey_N31: a client secret that is a private key signs an assertion and is never sent.
func TestPrivateKey_N31(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	b := newBench(t)
	onlyForMachines(b)
	b.server.token = func(w http.ResponseWriter, r *http.Request) {
		claims := verify(t, r.Form.Get("client_assertion"), &key.PublicKey)
		if claims["iss"] != "robot" || claims["sub"] != "robot" || claims["aud"] != b.server.URL || r.Form.Has("client_secret") || r.Header.Get("Authorization") != "" {
			t.Errorf("%v with %v", claims, r.Form)
		}
		fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer"}`)
	}
	c := b.client()
	if err := c.SaveClientSecret(secret); err != nil {
		t.Fatal(err)
	}
	if done, err := c.LoginAsClient(t.Context(), ""); !done || err != nil || b.header(c) != "Bearer token" {
		t.Errorf("%v %v %q", done, err, b.header(c))
	}

	b.server.metadata, b.server.token = nil, nil // a login of a user does not send the key either
	b.server.token = func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "" || r.Form.Has("client_secret") {
			t.Error("the key was sent")
		}
		fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer"}`)
	}
	b.mustLogin()

	broken := b.client()
	onlyForMachines(b)
	if err := broken.SaveClientSecret("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"); err != nil {
		t.Fatal(err)
	}
	if _, err := broken.LoginAsClient(t.Context(), ""); err == nil {
		t.Error("a key that cannot be read signs")
	}
}

// verify returns the claims of a token that key has signed; nil means that the key is in the header of the token.
func verify(t *testing.T, token string, key any) (claims map[string]any) {
	t.Helper()
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Errorf("%q: %v", token, err)
		return nil
	}
	header := signed.Signatures[0].Header
	if key == nil {
		key = header.JSONWebKey
		if header.ExtraHeaders["typ"] != "dpop+jwt" || !header.JSONWebKey.IsPublic() {
			t.Errorf("header of the proof: %+v", header)
		}
	}
	payload, err := signed.Verify(key)
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		t.Errorf("%q: %v", token, err)
	}
	return claims
}

// TestProof_N31: if the server accepts only bound tokens, each request proves the key, with the nonces of both servers.
func TestProof_N31(t *testing.T) {
	b := newBench(t)
	proofs := map[any]bool{}
	check := func(r *http.Request, nonce, token string) (ok bool) {
		claims := verify(t, r.Header.Get("DPoP"), nil)
		if claims["htm"] != r.Method || claims["htu"] != b.server.URL+r.URL.Path || proofs[claims["jti"]] || claims["iat"] != float64(b.now.Unix()) {
			t.Errorf("proof for %s %s: %v", r.Method, r.URL, claims)
		}
		proofs[claims["jti"]] = true
		sum := sha256.Sum256([]byte(token))
		if ath := base64.RawURLEncoding.EncodeToString(sum[:]); token != "" && claims["ath"] != ath {
			t.Errorf("ath %v, want %s", claims["ath"], ath)
		}
		return claims["nonce"] == nonce
	}
	kind := "DPoP"
	b.server.token = func(w http.ResponseWriter, r *http.Request) {
		if !check(r, "first", "") {
			w.Header().Set("DPoP-Nonce", "first")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"use_dpop_nonce"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"bound","token_type":%q,"refresh_token":"r","expires_in":3600}`, kind)
	}
	login := func() {
		t.Helper()
		l, err := b.client().BeginLogin(t.Context(), "http://localhost:3118/callback", `DPoP algs="ES256"`)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := l.ApproveWithoutUser(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.ExchangeCodeAndStoreTokens(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
	}
	login()
	c := b.client()
	if h := b.header(c); h != "DPoP bound" {
		t.Fatalf("%q", h)
	}
	nonces := []string{"second", "second", "third"} // of the MCP server; the third request gets another one
	var seen int
	b.server.mcp = func(w http.ResponseWriter, r *http.Request) {
		want := nonces[min(seen/2, 2)]
		seen++
		if !check(r, want, "bound") {
			w.Header().Set("DPoP-Nonce", want)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	client := &http.Client{Transport: c.ProofTransport(http.DefaultTransport)}
	send := func(authorization string) (status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL+"/mcp?q=1", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", authorization)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for range 3 {
		if status := send("DPoP bound"); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	b.server.mcp = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(len(r.Header["Dpop"]) + 200) }
	if status := send("Bearer other"); status != http.StatusOK {
		t.Errorf("a request with another token has a proof: %d", status)
	}

	seen = 0
	b.server.mcp = func(w http.ResponseWriter, _ *http.Request) {
		seen++
		w.Header().Set("DPoP-Nonce", fmt.Sprint(seen))
		if seen < 5 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	if status := send("DPoP bound"); status != http.StatusUnauthorized || seen != 2 {
		t.Errorf("a server that is never content: status %d after %d requests, want 2", status, seen)
	}
	b.now = b.now.Add(2 * time.Hour)
	if h := b.header(b.client()); h != "DPoP bound" { // after a refresh with a proof
		t.Errorf("%q", h)
	}
	kind = "Bearer"
	login() // the authorization server does not bind the token
	if h := b.header(b.client()); h != "Bearer bound" {
		t.Errorf("%q", h)
	}
}
