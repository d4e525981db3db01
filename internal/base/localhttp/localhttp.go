// Package localhttp runs an HTTP handler on a local address: it listens, announces the port, checks Host and
// Origin, limits slow requests and shuts down gracefully.
//
// The port is announced only after the listener accepts connections, and Run returns only after the listener is closed.
package localhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options configure a server.
type Options struct {
	Addr string // host:port; an empty host is 127.0.0.1, an empty port is 0 (any)
	// PortFile, if set, receives the decimal port and a newline, atomically, once the server listens.
	PortFile string
	Grace    time.Duration // how long Run waits for running requests after cancellation before closing connections; 0 means 500 ms
	Access   Access        // specifies who may send requests
	BodyTime time.Duration // how long the body of a request may take, plus one second for each 64 KiB; 0 means 30 s
	// OnListen, if set, is called with the bound address before the first request is accepted.
	OnListen func(net.Addr)
}

const defaultBodyTimeout = 30 * time.Second

// ListenAndWritePortFile opens the TCP listener of o if o.Access allows the address. It then writes the port to PortFile and calls
// OnListen. The caller owns the listener; Serve closes it.
func ListenAndWritePortFile(ctx context.Context, o Options) (net.Listener, error) {
	addr, err := withDefaultHostAndPort(o.Addr)
	if err != nil {
		return nil, err
	}
	if err := o.Access.CheckOriginsAndTokenForListenAddress(addr); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	if o.PortFile != "" {
		if err := writePort(o.PortFile, ln.Addr()); err != nil {
			return nil, errors.Join(err, ln.Close())
		}
	}
	if o.OnListen != nil {
		o.OnListen(ln.Addr())
	}
	return ln, nil
}

// Serve handles requests on ln with h, as o.Access allows. Cancelling ctx also cancels the contexts of the requests. Serve then waits up to
// o.Grace for running requests and closes the remaining connections. It waits up to o.Grace again for calls of h to return, and returns nil.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, o Options) error {
	if err := o.Access.CheckOriginsAndTokenForListenAddress(ln.Addr().String()); err != nil {
		return errors.Join(err, ln.Close())
	}
	running := &requestCounter{next: h}
	srv := &http.Server{
		Handler:           limitBodyTime(accessGuard{Access: o.Access, next: running, isPublic: !isLoopbackHostPort(ln.Addr().String())}, cmp.Or(o.BodyTime, defaultBodyTimeout)),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	var stopErr error // read only after stopped is closed
	stopped := make(chan struct{})
	served := make(chan struct{})
	go func() { // returns when ctx is cancelled or Serve fails
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-served:
			return
		}
		grace := cmp.Or(o.Grace, 500*time.Millisecond)
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if srv.Shutdown(bound) != nil {
			stopErr = srv.Close()
		}
		more, done := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer done()
		running.waitUntilIdle(more)
	}()
	err := srv.Serve(ln)
	close(served)
	<-stopped
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return stopErr
	}
	return fmt.Errorf("serving HTTP: %w", err)
}

// Run calls Listen and Serve.
func Run(ctx context.Context, h http.Handler, o Options) error {
	ln, err := ListenAndWritePortFile(ctx, o)
	if err != nil {
		return err
	}
	return Serve(ctx, ln, h, o)
}

func withDefaultHostAndPort(addr string) (string, error) {
	addr = cmp.Or(addr, ":0")
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("invalid address %q: %w", addr, err)
	}
	host = cmp.Or(host, "127.0.0.1")
	port = cmp.Or(port, "0")
	return net.JoinHostPort(host, port), nil
}

// writePort writes the file atomically, so that a reader sees the complete number or no file.
func writePort(file string, addr net.Addr) error {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return fmt.Errorf("finding the port of the address %s: %w", addr, err)
	}
	if err := plainjson.ReplaceFile(file, []byte(port+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the port file: %w", err)
	}
	return nil
}

type requestCounter struct {
	next http.Handler

	mu     sync.Mutex
	active int
	idle   chan struct{} // closed when active becomes 0; nil means that no goroutine waits for that
}

func (f *requestCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.active++
	f.mu.Unlock()
	defer f.finishRequest()
	f.next.ServeHTTP(w, r)
}

func (f *requestCounter) finishRequest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active--; f.active == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

func (f *requestCounter) waitUntilIdle(ctx context.Context) {
	f.mu.Lock()
	if f.active == 0 {
		f.mu.Unlock()
		return
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	none := f.idle
	f.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
