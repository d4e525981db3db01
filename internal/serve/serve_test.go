package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuard(t *testing.T) {
	h := Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
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
		done <- Run(ctx, h, Options{PortFile: file, Listening: func(a net.Addr) { addr = a; close(ready) }})
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
	if _, err := Listen(t.Context(), Options{Addr: "a:b:c"}); err == nil {
		t.Error("bad address accepted")
	}
	_, err := Listen(t.Context(), Options{PortFile: filepath.Join(t.TempDir(), "no", "dir", "port")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("port file in a missing directory: %v", err)
	}
}
