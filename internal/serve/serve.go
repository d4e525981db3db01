// Package serve runs an HTTP handler on a local address: it listens, announces
// the port, refuses foreign Host and Origin headers and stops gracefully.
//
// Its one invariant: nothing is announced before the port accepts connections,
// and Run returns only after the listener is closed. It knows nothing of what
// is served.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options says where to listen and how to tell others.
type Options struct {
	// Addr is host:port; an empty host is 127.0.0.1, an empty port is 0 (any).
	Addr string
	// PortFile, unless empty, receives the decimal port and a newline in one
	// step once the port is listened to.
	PortFile string
	// Grace bounds how long Run waits for running requests after its context
	// ended; 0 means 500 ms. Connections still open then are cut.
	Grace time.Duration
	// Listening, unless nil, is called with the bound address before the first
	// request is accepted.
	Listening func(net.Addr)
}

// Listen opens the TCP listener of o and announces it. The caller owns the
// listener; Serve closes it.
func Listen(ctx context.Context, o Options) (net.Listener, error) {
	addr, err := localAddr(o.Addr)
	if err != nil {
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
	if o.Listening != nil {
		o.Listening(ln.Addr())
	}
	return ln, nil
}

// Serve answers requests on ln with h, behind Guard, until ctx ends. It then
// gives running requests the grace period, cuts the rest and returns nil.
// Contexts of requests end as soon as ctx does.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, o Options) error {
	srv := &http.Server{
		Handler:           Guard(h),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	var stopErr error // read after stopped
	stopped := make(chan struct{})
	served := make(chan struct{})
	go func() { // ends when ctx does or when Serve fails
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-served:
			return
		}
		grace := o.Grace
		if grace == 0 {
			grace = 500 * time.Millisecond
		}
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if srv.Shutdown(bound) != nil {
			stopErr = srv.Close()
		}
	}()
	err := srv.Serve(ln)
	close(served)
	<-stopped
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return stopErr
	}
	return fmt.Errorf("serving: %w", err)
}

// Run is Listen followed by Serve.
func Run(ctx context.Context, h http.Handler, o Options) error {
	ln, err := Listen(ctx, o)
	if err != nil {
		return err
	}
	return Serve(ctx, ln, h, o)
}

// Guard refuses with 403, on every path, a request whose Host or Origin is not
// this machine: a page in a browser must not reach the server by DNS
// rebinding. A request without Origin is fine.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localHost(r.Host) {
			http.Error(w, "forbidden: host is not local", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !localOrigin(origin) {
			http.Error(w, "forbidden: origin is not local", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func localOrigin(origin string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		if host, ok := strings.CutPrefix(origin, scheme); ok {
			return localHost(host)
		}
	}
	return false
}

// localHost reports whether host, with or without a port, names this machine.
func localHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = h
		if strings.HasPrefix(host, "[") {
			name = "[" + h + "]"
		}
	}
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	return false
}

func localAddr(addr string) (string, error) {
	if addr == "" {
		addr = ":0"
	}
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "0"
	}
	return net.JoinHostPort(host, port), nil
}

// writePort writes through a temporary file so that a reader sees the whole
// number or no file.
func writePort(file string, addr net.Addr) error {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return fmt.Errorf("port of %s: %w", addr, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".port-*")
	if err != nil {
		return fmt.Errorf("writing the port file: %w", err)
	}
	_, err = tmp.WriteString(port + "\n")
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("writing the port file: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
