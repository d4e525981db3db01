package guard

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVendor(t *testing.T) {
	for host, want := range map[string]bool{
		"api.anthropic.com": true, "anthropic.com.": true, "Claude.AI": true, "statsig.anthropic.com": true,
		"bedrock-runtime.us-east-1.amazonaws.com": true, "us-east5-aiplatform.googleapis.com": true, "aiplatform.googleapis.com": true,
		"x.services.ai.azure.com": true,
		"":                        false, "notanthropic.com": false, "anthropic.com.example.org": false, "s3.amazonaws.com": false, "storage.googleapis.com": false,
		"localhost": false,
	} {
		if got := isModelVendorHost(host); got != want {
			t.Errorf("vendor(%q) = %v", host, got)
		}
	}
	for addr, want := range map[string]bool{"160.79.104.10:443": true, "[2607:6bc0::10]:443": true, "[::ffff:160.79.104.10]:443": true, "8.8.8.8:443": false, "": false} {
		if got := isAnthropicAddrPort(addr); got != want {
			t.Errorf("vendorAddr(%q) = %v", addr, got)
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]StrictnessLevel{"": LevelPathAndProxy, "path": LevelPathAndProxy, "off": LevelOff} {
		if got, err := ParseLevel(in); got != want || err != nil {
			t.Errorf("Parse(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := ParseLevel("tight"); err == nil || !strings.Contains(err.Error(), "use off, path or strict") {
		t.Errorf("Parse(tight): %v", err)
	}
	for _, l := range []StrictnessLevel{LevelPathAndProxy, LevelStrict} {
		if s := l.String(); !strings.HasPrefix(s, string(l)+": ") || !strings.HasSuffix(s, "not a sandbox") {
			t.Errorf("%s says %q", string(l), s)
		}
	}
}

// query is a DNS question for the address of a name.
func query(name string, kind byte) []byte {
	q := []byte{0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, 0, kind, 0, 1)
}

func TestResolver(t *testing.T) {
	r := newOfflineNameServer()
	asked := r.answerQuery(query("API.Anthropic.com", 1))
	want := append(query("API.Anthropic.com", 1), 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1)
	want[2], want[3], want[7] = 0x81, 0x80, 1
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if again := r.answerQuery(query("api.anthropic.com", 1)); !cmp.Equal(again[len(again)-4:], asked[len(asked)-4:]) {
		t.Error("the same name has two addresses")
	}
	if other := r.answerQuery(query("example.com", 1)); other[len(other)-1] != 2 {
		t.Errorf("another name has the address %v", other[len(other)-4:])
	}
	extended := query("example.com", 1)
	extended[11] = 1 // one more record than announced
	if got := r.answerQuery(extended); got[11] != 0 {
		t.Errorf("the answer to an extended query announces %d additional records", got[11])
	}
	if six := r.answerQuery(query("example.com", 28)); len(six) != len(query("example.com", 28)) || six[7] != 0 {
		t.Errorf("an address of IPv6: %v", six)
	}
	for range 2 {
		if got := r.nameOf(netip.MustParseAddr("::ffff:198.18.0.1")); got != "api.anthropic.com" {
			t.Errorf("the name of the first address is %q", got)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 11), make([]byte, 12), asked, query("x", 1)[:13], append(query("x", 1)[:12], 200)} {
		if got := r.answerQuery(bad); got != nil {
			t.Errorf("%v is answered with %v", bad, got)
		}
	}
}

func FuzzResolver(f *testing.F) {
	f.Add(query("api.anthropic.com", 1))
	f.Add(query("x", 28))
	f.Fuzz(func(t *testing.T, q []byte) {
		answer := newOfflineNameServer().answerQuery(q)
		if answer != nil && (len(answer) < dnsHeaderBytes || answer[2]&0x80 == 0 || !cmp.Equal(answer[:2], q[:2])) {
			t.Errorf("%x is answered with %x", q, answer)
		}
	})
}

// askProxy asks a proxy for a host and returns the status and the rest of the reply.
func askProxy(t *testing.T, proxy, host string) (status, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(proxy, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\nping\n", host, host)
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		body, _ = r.ReadString('\n')
	}
	return response.Status, body
}

// startEchoServer answers each line with itself until the test ends.
func startEchoServer(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // returns when the listener is closed
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, "echo "+line)
			conn.Close()
		}
	}()
	return ln.Addr().String()
}

// The proxy forwards requests for hosts that are not a vendor's, through the caller's own proxy if there is one, and
// records the others.
func TestProxy(t *testing.T) {
	host := startEchoServer(t)
	var asked []string
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked = append(asked, q.Header.Get("Proxy-Authorization"))
		(&VendorBlockingProxy{Log: &BreachCollector{}}).ServeHTTP(w, q)
	}))
	defer second.Close()
	upstream, ok := ParseUpstreamProxy(strings.Replace(second.URL, "http://", "http://me:secret@", 1))
	if !ok {
		t.Fatal("the caller's proxy is refused")
	}
	refusal := httptest.NewServer(http.NotFoundHandler())
	defer refusal.Close()
	refusing, _ := ParseUpstreamProxy(refusal.URL)
	gone, _ := ParseUpstreamProxy("127.0.0.1:1")
	for _, tt := range []struct {
		name, host   string
		upstream     *url.URL
		closed       bool
		status, rest string
		kinds        []BreachKind
	}{
		{name: "another host", host: host, status: "200", rest: "echo ping\n"},
		{name: "by way of the caller's own", host: host, upstream: upstream, status: "200", rest: "echo ping\n"},
		{name: "the caller's own refuses", host: "api.anthropic.com.example:443", upstream: refusing, status: "502"},
		{name: "the caller's own is gone", host: host, upstream: gone, status: "502"},
		{name: "a vendor", host: "api.anthropic.com:443", status: "403", kinds: []BreachKind{BreachVendorAccess}},
		{name: "nobody there", host: "127.0.0.1:1", status: "502"},
		{name: "strict", host: host, closed: true, status: "403", kinds: []BreachKind{BreachExternalNonVendorAddress}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l BreachCollector
			server := httptest.NewServer(&VendorBlockingProxy{Log: &l, Upstream: tt.upstream, RefusesAll: tt.closed})
			defer server.Close()
			status, rest := askProxy(t, server.URL, tt.host)
			if !strings.HasPrefix(status, tt.status) || rest != tt.rest {
				t.Errorf("%s, then %q", status, rest)
			}
			var kinds []BreachKind
			for _, b := range l.Breaches() {
				kinds = append(kinds, b.Kind)
			}
			if diff := cmp.Diff(tt.kinds, kinds); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
	if want := []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret"))}; !cmp.Equal(asked, want) {
		t.Errorf("the caller's proxy was told %q", asked)
	}
	plain := httptest.NewRecorder()
	(&VendorBlockingProxy{Log: &BreachCollector{}}).ServeHTTP(plain, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if plain.Code != http.StatusMethodNotAllowed {
		t.Errorf("a request other than CONNECT: status %d", plain.Code)
	}
}

func TestParseUpstream(t *testing.T) {
	for value, want := range map[string]string{
		"": "<nil> true", "proxy:3128": "http://proxy:3128 true", "http://me@proxy:3128": "http://me@proxy:3128 true", "proxy": "http://proxy:80 true",
		"http://[::1]": "http://[::1]:80 true", "https://proxy": "<nil> false", "socks5://proxy": "<nil> false", "http://": "<nil> false", "http://%": "<nil> false",
	} {
		u, ok := ParseUpstreamProxy(value)
		got := fmt.Sprint("<nil> ", ok)
		if u != nil {
			got = fmt.Sprint(u, " ", ok)
		}
		if got != want {
			t.Errorf("ParseUpstream(%q): %q", value, got)
		}
	}
}

// A process that is not found is not described, but its connection is reported.
func TestProxyWithoutPeer(t *testing.T) {
	for _, tt := range []struct {
		host    string
		refuses bool
		want    []Breach
	}{
		{"api.anthropic.com:443", true, []Breach{{Kind: BreachVendorAccess, Text: "a program tried to reach a model vendor's address api.anthropic.com:443"}}},
		{"160.79.104.10:443", false, []Breach{{Kind: BreachVendorAccess, Text: "a program tried to reach a model vendor's address 160.79.104.10:443"}}},
		{"example.org:443", true, []Breach{{Kind: BreachExternalNonVendorAddress, Text: "example.org:443 was blocked"}}},
		{startEchoServer(t), false, nil}, // a connection that is no longer there
	} {
		var l BreachCollector
		q := httptest.NewRequest(http.MethodConnect, "/", http.NoBody)
		q.Host, q.RemoteAddr = tt.host, "192.0.2.1:x"
		w := httptest.NewRecorder()
		(&VendorBlockingProxy{Log: &l, RefusesAll: tt.refuses}).ServeHTTP(w, q)
		if diff := cmp.Diff(tt.want, l.Breaches()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.host, diff)
		}
	}
}

// A connection through the proxy ends as it would without it: each side can stop sending first, and none is left open.
func TestProxyEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy := httptest.NewUnstartedServer(&VendorBlockingProxy{Log: &BreachCollector{}})
	proxy.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	proxy.Start()
	defer proxy.Close()
	connect := func() (client, server *net.TCPConn) {
		conn, err := net.Dial("tcp", proxy.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", ln.Addr())
		other, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readResponseHead(conn); err != nil {
			t.Fatal(err)
		}
		return conn.(*net.TCPConn), other.(*net.TCPConn)
	}
	client, server := connect()
	fmt.Fprint(client, "question")
	client.CloseWrite()
	if got, err := io.ReadAll(server); string(got) != "question" || err != nil {
		t.Errorf("the server received %q, %v", got, err)
	}
	fmt.Fprint(server, "answer")
	server.CloseWrite()
	if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
		t.Errorf("the client received %q, %v", got, err)
	}
	client.Close()
	server.Close()

	client, server = connect()
	server.Close()
	if _, err := io.ReadAll(client); err != nil {
		t.Errorf("the server has closed: %v", err)
	}
	client.Close()

	client, server = connect()
	cancel()
	for name, conn := range map[string]*net.TCPConn{"client": client, "server": server} {
		if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
	}
}

// The files of a run are its binary, the files of its shim directory, and shims of other runs, recognised by their
// text.
func TestOwnFiles(t *testing.T) {
	dir := t.TempDir()
	shim, other := filepath.Join(dir, "shim"), filepath.Join(dir, "other")
	for name, text := range map[string]string{shim: "#!/bin/sh\n# Made by claudeless\n", other: "#!/bin/sh\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	own := ClaudelessFiles{Executable: "/bin/claudeless", ShimDir: "/run/shims"}
	for _, tt := range []struct {
		own  ClaudelessFiles
		path string
		want bool
	}{
		{own, "/bin/claudeless", true},
		{own, "/run/shims/claude", true},
		{own, "/run/shims", false},
		{own, "/run/shims-of-another/claude", false},
		{own, "/usr/bin/claude", false},
		{own, shim, true},
		{own, other, false},
		{own, "shim", false}, // a relative path is a different file in each working directory
		{own, "", false},
		{ClaudelessFiles{}, "", false}, // an unset binary does not match an unknown path
		{ClaudelessFiles{}, "/claude", false},
		{ClaudelessFiles{}, shim, true},
	} {
		if got := tt.own.isSimulatorOrShim(tt.path); got != tt.want {
			t.Errorf("%+v has %q: %t, want %t", tt.own, tt.path, got, tt.want)
		}
	}
}

// Connections are found by their local port; incomplete lines are ignored.
func TestInodeOf(t *testing.T) {
	const table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0\n" +
		"   1: 0100007F:1F90 0100007F:1F92 06 00000000:00000000 03:00000FA0 00000000     0        0 0 3 0000000000000000\n" + // TIME_WAIT
		"   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711\n" +
		"   2: 0100007F:0050 0100007F:1F91 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 2\n"
	for port, want := range map[int]string{8080: "4711", 80: "4712", 8081: "", 0: ""} {
		if got := socketInode(table, port); got != want {
			t.Errorf("port %d: %q, want %q", port, got, want)
		}
	}
	if got := socketHolder(""); got != 0 {
		t.Errorf("a socket that is not known is held by %d", got)
	}
}

func TestCutAtLast(t *testing.T) {
	for in, want := range map[string][2]string{"a::b::c": {"a::b", "c"}, "::c": {"", "c"}, "a": {"a", ""}, "": {"", ""}} {
		if before, after := cutAtLast(in, "::"); before != want[0] || after != want[1] {
			t.Errorf("%q: %q, %q", in, before, after)
		}
	}
}

// A command line in a report is one line without secrets and at most 200 characters.
func TestPrintableArgv(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{nil, ""},
		{[]string{"a", "b\n c"}, "a b c"},
		{[]string{"a", "--token", "abcd1234"}, "a --token [redacted]"},
		{[]string{long}, long},
		{[]string{long + "x"}, long + "…"},
	} {
		if got := redactedCommandLine(tt.argv); got != tt.want {
			t.Errorf("%q: %q", tt.argv, got)
		}
	}
}

// The log keeps the first hundred distinct breaches.
func TestLogIsBounded(t *testing.T) {
	var l BreachCollector
	for i := range 150 {
		l.addBreach(Breach{PID: i})
		l.addBreach(Breach{PID: i})
	}
	if got := l.Breaches(); len(got) != 100 || got[99].PID != 99 {
		t.Errorf("%d breaches", len(got))
	}
}

// Each name gets its own address from the network for tests; truncated questions get none.
func TestResolverBounds(t *testing.T) {
	r := newOfflineNameServer()
	for i := range 1 << 16 {
		r.getOrAssignAddr(fmt.Sprint(i))
	}
	if got := r.getOrAssignAddr("65535"); got != netip.MustParseAddr("198.19.0.0") {
		t.Errorf("the last of 65536 names has the address %s", got)
	}
	longest := query(strings.Repeat("a", 63)+".b", dnsTypeA)
	if r.answerQuery(longest) == nil {
		t.Error("a label of 63 letters is not answered")
	}
	head := query("x", dnsTypeA)[:dnsHeaderBytes:dnsHeaderBytes]
	for name, bad := range map[string][]byte{
		"a label of 64 letters": query(strings.Repeat("a", 64)+".b", dnsTypeA), "a label that is cut off": append(head, 50, 'a'), "a name that is cut off": append(head, 1, 'a'),
		"a class that is cut off": longest[:len(longest)-1], "no kind": longest[:len(longest)-4], "no labels": append(head, 0, 0, 1, 0, 1), "a head alone": head,
	} {
		if got := r.answerQuery(bad); got != nil {
			t.Errorf("%s is answered with %v", name, got)
		}
	}
}

// A shim of any length is recognised by the marker in its first 256 bytes.
func TestIsShim(t *testing.T) {
	const marker = "Made by claudeless"
	for text, want := range map[string]bool{
		marker: true, marker + strings.Repeat("x", 1000): true, strings.Repeat("x", 256-len(marker)) + marker + "x": true,
		strings.Repeat("x", 257-len(marker)) + marker: false, "": false,
	} {
		name := filepath.Join(t.TempDir(), "claude")
		writeFile(t, name, text)
		if got := IsShim(name); got != want {
			t.Errorf("%d bytes: %v", len(text), got)
		}
	}
	if IsShim(t.TempDir()) || IsShim("/no/such/file") {
		t.Error("what is no file is a shim")
	}
}

// The head of a response is read to its empty line, up to 16 KiB.
func TestReadHead(t *testing.T) {
	const most = 16 << 10
	head := func(n int) string {
		return "HTTP/1.1 200 OK\r\n" + strings.Repeat("x", n-len("HTTP/1.1 200 OK\r\n")-4) + "\r\n\r\n"
	}
	for _, tt := range []struct {
		text, want string
	}{
		{head(100) + "rest", "HTTP/1.1 200 OK <nil>"},
		{head(most), "HTTP/1.1 200 OK <nil>"},
		{head(most + 1), " the response of the HTTP proxy to CONNECT is too long"},
		{"HTTP/1.1 200", " EOF"},
	} {
		r := strings.NewReader(tt.text)
		status, err := readResponseHead(r)
		if got := fmt.Sprint(status, " ", err); got != tt.want {
			t.Errorf("%d bytes: %q", len(tt.text), got)
		}
		if strings.HasSuffix(tt.text, "rest") && r.Len() != len("rest") {
			t.Errorf("%d bytes are left", r.Len())
		}
	}
}

// Only copies of this program are recognised as such.
func TestIsCopyOfSelf(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	const most = 200 << 20
	long, tooLong := filepath.Join(t.TempDir(), "long"), filepath.Join(t.TempDir(), "too long")
	for path, size := range map[string]int64{long: most, tooLong: most + 1} {
		writeFile(t, path, string(program))
		if err := os.Truncate(path, size); err != nil { // without using space
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{self: true, long: true, tooLong: false, t.TempDir(): false, "/no/such/file": false} {
		if got := isClaudelessBinary(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	var p *RealClaudePoller
	p.ScanOnceMoreAndStop() // of a guard that polls nothing
}
