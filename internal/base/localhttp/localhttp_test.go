package localhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuard(t *testing.T) {
	h := Guard(Access{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:80", "", 204},
		{"127.0.0.1", "", 204},
		{"localhost:9", "", 204},
		{"LOCALHOST", "", 204},
		{"[::1]:77", "", 204},
		{"[::1]", "", 204},
		{"localhost:1", "http://localhost:3000", 204},
		{"localhost:1", "https://127.0.0.1", 204},
		{"evil.example", "", 403},
		{"localhost.evil.example:80", "", 403},
		{"127.0.0.1.evil.example", "", 403},
		{"", "", 403},
		{"localhost:1x", "", 403},
		{"localhost:1", "http://evil.example", 403},
		{"localhost:1", "null", 403},
		{"localhost:1", "http://localhost.evil.example", 403},
		{"localhost:1", "http://localhost@evil.example", 403},
		{"localhost:1", "file://localhost", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/any/path", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("Host %q Origin %q: %d, want %d", tt.host, tt.origin, w.Code, tt.want)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("Host %q Origin %q: sets Access-Control-Allow-Origin", tt.host, tt.origin)
		}
	}
}

// TestAccess checks what web pages, programs and other machines may request.
func TestAccess(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	const own, other = "http://localhost:9", "http://localhost:3000"
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	mine := Access{OwnOriginOnly: true}
	listed := Access{OwnOriginOnly: true, Origins: []string{other, "https://127.0.0.1:*"}}
	secret := Access{OwnOriginOnly: true, Token: "secret", CookieName: "c"}
	for name, c := range map[string]struct {
		access Access
		method string
		path   string
		header http.Header
		want   int
	}{
		"program":                      {mine, "POST", "/", nil, 204},
		"own page":                     {mine, "POST", "/", header("Origin", own), 204},
		"own page over TLS":            {mine, "POST", "/", header("Origin", "https://LOCALHOST:9"), 204},
		"page of another server":       {mine, "POST", "/", header("Origin", other), 403},
		"which reads":                  {mine, "GET", "/", header("Origin", other), 403},
		"which asks first":             {mine, "OPTIONS", "/", header("Origin", other), 403},
		"which shows a picture":        {mine, "GET", "/", header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"), 403},
		"which links here":             {mine, "GET", "/", header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"), 204},
		"own page reads":               {mine, "GET", "/", header("Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"), 204},
		"page without an origin":       {mine, "POST", "/", header("Origin", "null"), 403},
		"same host, another port":      {mine, "POST", "/", header("Origin", "http://localhost:90"), 403},
		"listed page":                  {listed, "POST", "/", header("Origin", other), 204},
		"listed with any port":         {listed, "POST", "/", header("Origin", "https://127.0.0.1:77"), 204},
		"listed without a port":        {listed, "POST", "/", header("Origin", "https://127.0.0.1"), 204},
		"port that is none":            {listed, "POST", "/", header("Origin", "https://127.0.0.1:x@evil"), 403},
		"page that is not listed":      {listed, "POST", "/", header("Origin", "http://localhost:3001"), 403},
		"no token":                     {secret, "GET", "/", nil, 401},
		"wrong token":                  {secret, "GET", "/", header("Authorization", "Bearer wrong"), 401},
		"token":                        {secret, "GET", "/", header("Authorization", "Bearer secret"), 204},
		"token without its word":       {secret, "GET", "/", header("Authorization", "secret"), 401},
		"token in the address":         {secret, "GET", "/?token=secret", nil, 204},
		"wrong token in the address":   {secret, "GET", "/?token=x", nil, 401},
		"cookie":                       {secret, "GET", "/", header("Cookie", "c=secret"), 204},
		"wrong cookie":                 {secret, "GET", "/", header("Cookie", "c=x"), 401},
		"cookie sent by another page":  {secret, "POST", "/", header("Cookie", "c=secret", "Origin", other), 403},
		"no cookie for programs":       {Access{Token: "secret"}, "GET", "/?token=secret", header("Cookie", "=secret"), 401},
		"a browser asks before it has": {secret, "OPTIONS", "/", header("Origin", own), 204},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = "localhost:9"
		if c.header != nil {
			r.Header = c.header
		}
		w := httptest.NewRecorder()
		Guard(c.access, ok).ServeHTTP(w, r)
		if w.Code != c.want || w.Code >= 400 && !strings.HasPrefix(w.Body.String(), `{"error":"`) {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
}

// TestBeyond checks that the server listens only on this machine without a token, and accepts any host name with one.
func TestBeyond(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		if _, err := ListenAndWritePortFile(t.Context(), Options{Addr: addr}); !errors.Is(err, ErrNoToken) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"", "127.0.0.1:0", "localhost:0", "127.9.9.9:0"} {
		ln, err := ListenAndWritePortFile(t.Context(), Options{Addr: addr})
		if err != nil {
			t.Errorf("%q: %v", addr, err)
			continue
		}
		ln.Close()
	}
	for _, origin := range []string{"localhost:3000", "http://", "http://a/b", "ftp://a"} {
		if _, err := ListenAndWritePortFile(t.Context(), Options{Access: Access{Origins: []string{origin}}}); err == nil || !strings.Contains(err.Error(), "http://localhost:3000") {
			t.Errorf("%q: %v", origin, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	addr, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- Run(ctx, http.NotFoundHandler(), Options{Addr: "0.0.0.0:0", Access: Access{Token: "secret"}, OnListen: func(a net.Addr) { addr <- a }})
	}()
	_, port, _ := net.SplitHostPort((<-addr).String())
	for token, want := range map[string]int{"secret": 404, "": 401} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port, http.NoBody)
		r.Host = "box.example:" + port
		r.Header.Set("Authorization", "Bearer "+token)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("token %q: %d, want %d", token, res.StatusCode, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSlowBody: a body that does not arrive in time is cut, whether or not its handler reads it. A complete body has
// no time limit.
func TestSlowBody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr, done := make(chan net.Addr, 1), make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ignores" {
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		if _, slow := errors.AsType[*SlowBodyError](err); slow {
			Refuse(w, http.StatusRequestTimeout, "request_timeout", err.Error())
			return
		}
		io.WriteString(w, strconv.FormatInt(n, 10))
	})
	go func() {
		done <- Run(ctx, h, Options{BodyTime: 200 * time.Millisecond, OnListen: func(a net.Addr) { addr <- a }})
	}()
	at := (<-addr).String()
	for path, want := range map[string]string{"/reads": "HTTP/1.1 408", "/ignores": "HTTP/1.1 200", "/whole": "HTTP/1.1 200"} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		body := "x"
		if path == "/whole" {
			body = strings.Repeat("x", 1_000_000)
		}
		io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n"+body)
		answer, err := io.ReadAll(c) // until the server has closed it
		if err != nil || !strings.HasPrefix(string(answer), want) || path == "/whole" && !strings.HasSuffix(string(answer), "1000000") {
			t.Errorf("%s: %q, %v", path, answer, err)
		}
		c.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRunAnnouncesAndStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "port")
	var addr net.Addr
	ready := make(chan struct{})
	done := make(chan error, 1)
	release := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			close(release)
			<-r.Context().Done()
			return
		}
		io.WriteString(w, "hello")
	})
	go func() {
		done <- Run(ctx, h, Options{PortFile: file, OnListen: func(a net.Addr) { addr = a; close(ready) }})
	}()
	<-ready
	port, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := "127.0.0.1:"+strings.TrimSuffix(string(port), "\n"), addr.String(); got != want || !strings.HasSuffix(string(port), "\n") {
		t.Errorf("port file %q, listening on %s", port, want)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + addr.String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "hello" {
		t.Errorf("body %q", body)
	}
	hung := make(chan struct{})
	go func() {
		defer close(hung)
		if resp, err := client.Get("http://" + addr.String() + "/hang"); err == nil {
			resp.Body.Close()
		}
	}()
	<-release
	start := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	<-hung
	if d := time.Since(start); d > time.Second {
		t.Errorf("stopping took %v", d)
	}
}

func TestListenErrors(t *testing.T) {
	if _, err := ListenAndWritePortFile(t.Context(), Options{Addr: "a:b:c"}); err == nil {
		t.Error("bad address accepted")
	}
	_, err := ListenAndWritePortFile(t.Context(), Options{PortFile: filepath.Join(t.TempDir(), "no", "dir", "port")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("port file in a missing directory: %v", err)
	}
}
