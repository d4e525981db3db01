package connection

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestFilter: some messages pass, others are dropped and counted (M42).
func TestFilter(t *testing.T) {
	for in, want := range map[string]struct {
		out  string
		junk int
	}{
		"hello\n\n{\"a\":1}\n42\n\"s\"\n{broken\n": {`{"a":1}` + "\n", 4},
		`{"a":1}`:                    {`{"a":1}` + "\n", 0}, // no newline at the end
		"[{\"a\": 1},2,{\"b\":2}]\n": {"", 1},
		`{"id":"7","result":{}}`:     {`{"id":7,"result":{}}` + "\n", 0}, // the id of a request is a number
		`{"id":"x7","result":{}}`:    {`{"id":"x7","result":{}}` + "\n", 0},
		"{\"a\":\"" + strings.Repeat("x", 100) + "\"}\n{}\n": {"{}\n", 1},
		"{\"id\":3,\"result\":\"" + strings.Repeat("x", 100) + "\"}\n{}": {
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the message of the server is 120 bytes; the limit is 50 (maxLineBytes in the server's entry)"}}` + "\n{}\n", 0,
		},
		"{\"result\":{\"id\":1,\"x\":\"\\\"" + strings.Repeat("}", 100) + "\"} , \"id\" : \"a\\\"b\" }\n": {
			`{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"the message of the server is 145 bytes; the limit is 50 (maxLineBytes in the server's entry)"}}` + "\n", 0,
		},
		"{\"id\":3,\"method\":\"" + strings.Repeat("x", 100) + "\"}\n{}": {"{}\n", 1},
		"": {"", 0},
	} {
		f := newLineFilter(filterOptions{Source: strings.NewReader(in), Limit: 50, Owner: testBase()})
		out, err := io.ReadAll(f)
		if n, _ := f.Skipped(); err != nil || string(out) != want.out || n != want.junk {
			t.Errorf("%q: got %q, %d dropped, %v", in, out, n, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("{\"a\":1}\nx\n[{},{}]\n{}"))
	f.Add([]byte("[\n]\n\xff{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		owner := testBase()
		all := bufio.NewScanner(newLineFilter(filterOptions{Source: bytes.NewReader(in), Limit: limit, Owner: owner}))
		for all.Scan() {
			if line := all.Bytes(); !json.Valid(line) || line[0] != '{' || len(line) > limit && !bytes.Contains(line, []byte("maxLineBytes")) {
				t.Errorf("%q came through", line)
			}
		}
		if all.Err() != nil || !owner.IsLost() {
			t.Errorf("%v, lost: %v", all.Err(), owner.IsLost())
		}
	})
}

// testBase returns what a transport needs, without a debug log.
func testBase() *transportBase {
	return &transportBase{interceptor: newInterceptor(nil, nil), closeReason: &closeReason{lost: make(chan struct{})}}
}

// The last message of a server that ends without a newline is read before the connection counts as lost.
func TestFilterEndsAfterTheLastMessage(t *testing.T) {
	owner := testBase()
	f := newLineFilter(filterOptions{Source: strings.NewReader(`{"id":1}`), Owner: owner, Limit: 100})
	buf := make([]byte, 100)
	n, err := f.Read(buf)
	if got := string(buf[:n]); got != "{\"id\":1}\n" || err != nil || owner.IsLost() {
		t.Fatalf("read %q, %v; lost: %v", got, err, owner.IsLost())
	}
	for range 2 {
		if n, err := f.Read(buf); n != 0 || !errors.Is(err, io.EOF) || !owner.IsLost() {
			t.Fatalf("at the end: read %d, %v; lost: %v", n, err, owner.IsLost())
		}
	}
}
