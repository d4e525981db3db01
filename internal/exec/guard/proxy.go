package guard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// VendorBlockingProxy is the HTTPS_PROXY of a run. It forwards connections, but blocks and records those to vendors of models.
type VendorBlockingProxy struct {
	Log *BreachCollector // records connections to a vendor; required
	// Upstream is the caller's own proxy; nil means none. See [ParseUpstreamProxy].
	Upstream   *url.URL
	RefusesAll bool            // refuses every connection
	OwnFiles   ClaudelessFiles // do not count as a real claude when a blocked connection is recorded
}

// ParseUpstreamProxy parses the value of HTTPS_PROXY; ok is false if [VendorBlockingProxy] cannot use that proxy.
func ParseUpstreamProxy(value string) (u *url.URL, isNoneOrHTTP bool) {
	if value == "" {
		return nil, true
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, false
	}
	if u.Port() == "" {
		u.Host += ":80"
	}
	return u, true
}

// ServeHTTP implements only the CONNECT method.
func (p *VendorBlockingProxy) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodConnect {
		http.Error(w, "claudeless: this proxy is for https only", http.StatusMethodNotAllowed)
		return
	}
	host, _ := cutAtLast(q.Host, ":")
	if bare := strings.Trim(host, "[]"); p.RefusesAll || isModelVendorHost(bare) || isAnthropicAddrPort(q.Host) {
		switch who := p.Log.findPeer(q.RemoteAddr); {
		case who != 0:
			p.Log.recordExternalConnectionAsBreach(who, bare, q.Host, p.OwnFiles)
		case isModelVendorHost(bare) || isAnthropicAddrPort(q.Host):
			p.Log.addBreach(Breach{Kind: BreachVendorAccess, Text: "a program tried to reach a model vendor's address " + q.Host})
		default: // the kernel may omit a line if the table changes meanwhile
			p.Log.addBreach(Breach{Kind: BreachExternalNonVendorAddress, Text: q.Host + " was blocked"})
		}
		http.Error(w, "claudeless: "+q.Host+" is blocked during this run", http.StatusForbidden)
		return
	}
	to, err := p.dialDirectlyOrThroughUpstream(q.Context(), q.Host)
	if err != nil {
		http.Error(w, "claudeless: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer closeIgnoringError(to)
	from, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n") // an error ends the copying too
	buffered := io.LimitReader(rest, int64(rest.Reader.Buffered()))            // only what is buffered, because the end of rest cancels the context
	copyBothWaysAndClose(q.Context(), bufferedConn{from, io.MultiReader(buffered, from)}, to)
}

// copyBothWaysAndClose copies in both directions until one end closes or ctx ends.
func copyBothWaysAndClose(ctx context.Context, a, b net.Conn) {
	context.AfterFunc(ctx, func() { closeIgnoringError(a); closeIgnoringError(b) })
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(b, a) // an error ends the copy
		if t, ok := b.(*net.TCPConn); ok {
			_ = t.CloseWrite() // the connection may already be closed
		}
	})
	_, _ = io.Copy(a, b)
	closeIgnoringError(a)
	wg.Wait()
}

// bufferedConn is a connection of which some input was already read.
type bufferedConn struct {
	net.Conn
	buffered io.Reader // the input that was already read, then the connection
}

func (b bufferedConn) Read(p []byte) (int, error) { return b.buffered.Read(p) }

func closeIgnoringError(conn net.Conn) { _ = conn.Close() }

const proxyDialTimeout = 30 * time.Second

func (p *VendorBlockingProxy) dialDirectlyOrThroughUpstream(ctx context.Context, hostPort string) (net.Conn, error) {
	d := net.Dialer{Timeout: proxyDialTimeout}
	if p.Upstream == nil {
		return d.DialContext(ctx, "tcp", hostPort)
	}
	conn, err := d.DialContext(ctx, "tcp", p.Upstream.Host)
	if err != nil {
		return nil, err
	}
	if err := p.requestUpstreamTunnel(conn, hostPort); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (p *VendorBlockingProxy) requestUpstreamTunnel(upstreamConn net.Conn, hostPort string) error {
	head := "CONNECT " + hostPort + " HTTP/1.1\r\nHost: " + hostPort + "\r\n"
	if u := p.Upstream.User; u != nil {
		password, _ := u.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	}
	_, _ = io.WriteString(upstreamConn, head+"\r\n") // after an error, there is no response either
	status, err := readResponseHead(upstreamConn)
	if err != nil {
		return err
	}
	if _, code, _ := strings.Cut(status, " "); !strings.HasPrefix(code, "200") {
		return fmt.Errorf("the HTTP proxy answered CONNECT with %s", status)
	}
	return nil
}

// readResponseHead reads the head of a response byte by byte, because the rest belongs to the client.
func readResponseHead(r io.Reader) (status string, err error) {
	const most = 16 << 10
	var head []byte
	for b := make([]byte, 1); len(head) < most; {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if head = append(head, b[0]); strings.HasSuffix(string(head), "\r\n\r\n") {
			line, _, _ := strings.Cut(string(head), "\r\n")
			return line, nil
		}
	}
	return "", errors.New("the response of the HTTP proxy to CONNECT is too long")
}
