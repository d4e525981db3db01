package guard

import (
	"bufio"
	"encoding/base64"
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
		if got := isVendor(host); got != want {
			t.Errorf("vendor(%q) = %v", host, got)
		}
	}
	for addr, want := range map[string]bool{"160.79.104.10:443": true, "[2607:6bc0::10]:443": true, "[::ffff:160.79.104.10]:443": true, "8.8.8.8:443": false, "": false} {
		if got := isVendorAddr(addr); got != want {
			t.Errorf("vendorAddr(%q) = %v", addr, got)
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Level{"": Path, "path": Path, "off": Off} {
		if got, err := Parse(in); got != want || err != nil {
			t.Errorf("Parse(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := Parse("tight"); err == nil || !strings.Contains(err.Error(), "use off, path or strict") {
		t.Errorf("Parse(tight): %v", err)
	}
	for _, l := range []Level{Path, Strict} {
		if s := l.String(); !strings.HasPrefix(s, string(l)+": ") || !strings.HasSuffix(s, "not a sandbox") {
			t.Errorf("%s says %q", string(l), s)
		}
	}
}

// query is a question for the address of a name.
func query(name string, kind byte) []byte {
	q := []byte{0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return append(q, 0, 0, kind, 0, 1)
}

func TestResolver(t *testing.T) {
	r := newResolver()
	asked := r.answer(query("API.Anthropic.com", 1))
	want := append(query("API.Anthropic.com", 1), 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1)
	want[2], want[3], want[7] = 0x81, 0x80, 1
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if again := r.answer(query("api.anthropic.com", 1)); !cmp.Equal(again[len(again)-4:], asked[len(asked)-4:]) {
		t.Error("the same name has two addresses")
	}
	if other := r.answer(query("example.com", 1)); other[len(other)-1] != 2 {
		t.Errorf("another name has the address %v", other[len(other)-4:])
	}
	if six := r.answer(query("example.com", 28)); len(six) != len(query("example.com", 28)) || six[7] != 0 {
		t.Errorf("an address of IPv6: %v", six)
	}
	if got := r.nameOf(netip.MustParseAddr("198.18.0.1")); got != "api.anthropic.com" {
		t.Errorf("the name of the first address is %q", got)
	}
	for _, bad := range [][]byte{nil, make([]byte, 11), make([]byte, 12), asked, query("x", 1)[:13], append(query("x", 1)[:12], 200)} {
		if got := r.answer(bad); got != nil {
			t.Errorf("%v is answered with %v", bad, got)
		}
	}
}

func FuzzResolver(f *testing.F) {
	f.Add(query("api.anthropic.com", 1))
	f.Add(query("x", 28))
	f.Fuzz(func(t *testing.T, q []byte) {
		answer := newResolver().answer(q)
		if answer != nil && (len(answer) < dnsHead || answer[2]&0x80 == 0 || !cmp.Equal(answer[:2], q[:2])) {
			t.Errorf("%x is answered with %x", q, answer)
		}
	})
}

// connectThrough asks a proxy for a host, and returns the status and what comes then.
func through(t *testing.T, proxy, host string) (status, rest string) {
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
		rest, _ = r.ReadString('\n')
	}
	return response.Status, rest
}

// echo answers a line with itself, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with the listener
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

// The proxy lets through whoever asks for no vendor, by way of the caller's own
// proxy where there is one, and notes the others.
func TestProxy(t *testing.T) {
	host := echo(t)
	var asked []string
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked = append(asked, q.Header.Get("Proxy-Authorization"))
		(&Proxy{Log: &Log{}}).ServeHTTP(w, q)
	}))
	defer second.Close()
	upstream, ok := Upstream(strings.Replace(second.URL, "http://", "http://me:secret@", 1))
	if !ok {
		t.Fatal("the caller's proxy is refused")
	}
	for _, tt := range []struct {
		name, host   string
		upstream     *url.URL
		closed       bool
		status, rest string
		kinds        []Kind
	}{
		{name: "another host", host: host, status: "200", rest: "echo ping\n"},
		{name: "by way of the caller's own", host: host, upstream: upstream, status: "200", rest: "echo ping\n"},
		{name: "a vendor", host: "api.anthropic.com:443", status: "403", kinds: []Kind{Vendor}},
		{name: "nobody there", host: "127.0.0.1:1", status: "502"},
		{name: "strict", host: host, closed: true, status: "403", kinds: []Kind{Unreachable}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Log
			server := httptest.NewServer(&Proxy{Log: &l, Upstream: tt.upstream, Closed: tt.closed})
			defer server.Close()
			status, rest := through(t, server.URL, tt.host)
			if !strings.HasPrefix(status, tt.status) || rest != tt.rest {
				t.Errorf("%s, then %q", status, rest)
			}
			var kinds []Kind
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
	for value, want := range map[string]bool{"": true, "proxy:3128": true, "http://proxy:3128": true, "https://proxy": false, "socks5://proxy": false} {
		if _, ok := Upstream(value); ok != want {
			t.Errorf("Upstream(%q): %v", value, ok)
		}
	}
}

// Files of a run are its binary, what is in its directory of shims, and shims of other runs by their text.
func TestOwn(t *testing.T) {
	dir := t.TempDir()
	shim, other := filepath.Join(dir, "shim"), filepath.Join(dir, "other")
	for name, text := range map[string]string{shim: "#!/bin/sh\n# Made by claudeless\n", other: "#!/bin/sh\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	own := Own{Self: "/bin/claudeless", Dir: "/run/shims"}
	for _, tt := range []struct {
		own  Own
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
		{own, "shim", false}, // which file that is depends on who asks
		{own, "", false},
		{Own{}, "", false}, // an unknown path is not the binary that is not set
		{Own{}, "/claude", false},
		{Own{}, shim, true},
	} {
		if got := tt.own.has(tt.path); got != tt.want {
			t.Errorf("%+v has %q: %t, want %t", tt.own, tt.path, got, tt.want)
		}
	}
}
