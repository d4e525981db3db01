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
	const a, b = `{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","method":"b"}`
	for in, want := range map[string]struct {
		out  string
		junk int
	}{
		"hello\n\n" + a + "\n42\n\"s\"\n{broken\n": {a + "\n", 4},
		a:                                        {a + "\n", 0}, // no newline at the end
		"[" + a + ",2," + b + "]\n":              {"", 1},
		`{"jsonrpc":"2.0","id":"7","result":{}}`: {`{"id":7,"jsonrpc":"2.0","result":{}}` + "\n", 0}, // the id of a request is a number
		`{"jsonrpc":"2.0","id":"x7","result":{}}`:            {`{"jsonrpc":"2.0","id":"x7","result":{}}` + "\n", 0},
		"{\"a\":\"" + strings.Repeat("x", 100) + "\"}\n" + a: {a + "\n", 1},
		"{\"id\":3,\"result\":\"" + strings.Repeat("x", 100) + "\"}\n" + a: {
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the message of the server is 120 bytes; the limit is 90 (maxLineBytes in the server's entry)"}}` + "\n" + a + "\n", 0,
		},
		"{\"result\":{\"id\":1,\"x\":\"\\\"" + strings.Repeat("}", 100) + "\"} , \"id\" : \"a\\\"b\" }\n": {
			`{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"the message of the server is 145 bytes; the limit is 90 (maxLineBytes in the server's entry)"}}` + "\n", 0,
		},
		"{\"id\":3,\"method\":\"" + strings.Repeat("x", 100) + "\"}\n" + a: {a + "\n", 1},
		"": {"", 0},
	} {
		f := newLineFilter(pipeLines{bufio.NewReader(strings.NewReader(in))}, 90, testBase())
		out, err := io.ReadAll(f)
		if n, _ := f.Skipped(); err != nil || string(out) != want.out || n != want.junk {
			t.Errorf("%q: got %q, %d dropped, %v", in, out, n, err)
		}
	}
}

// TestParseMessage checks which lines 2.1.330 ignores.
func TestParseMessage(t *testing.T) {
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                           true,
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":{}}}`:                 true,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`:     true,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{}}}`: true,
		`{"jsonrpc":"2.0","method":"a"}`:                                 true,
		`{"id":1,"result":{}}`:                                           false,
		`{"jsonrpc":"1.0","id":1,"result":{}}`:                           false,
		`{"jsonrpc":2,"id":1,"result":{}}`:                               false,
		`{"jsonrpc":"2.0","id":1,"result":{},"extra":1}`:                 false,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:                false,
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":"text"}}`:             false,
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":null}}`:               false,
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":[]}}`:                 false,
		"\ufeff" + `{"jsonrpc":"2.0","id":1,"result":{}}`:                false,
		`{"jsonrpc":"2.0","id":1}`:                                       false,
		`{"jsonrpc":"2.0","id":1,"result":null}`:                         false,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`:         false,
		`{broken`: false,
	} {
		if got := parseMessage([]byte(line)) != nil; got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("{\"a\":1}\nx\n[{},{}]\n{}"))
	f.Add([]byte("[\n]\n\xff{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		owner := testBase()
		all := bufio.NewScanner(newLineFilter(pipeLines{bufio.NewReader(bytes.NewReader(in))}, limit, owner))
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

// testBase returns the parts that every transport needs, without a debug log.
func testBase() *transportBase {
	l := newInterceptor(nil, nil)
	return &transportBase{interceptor: l, closeReason: l.closeReason}
}

// The last message of a server that ends without a newline is read before the connection counts as lost.
func TestFilterEndsAfterTheLastMessage(t *testing.T) {
	owner := testBase()
	f := newLineFilter(pipeLines{bufio.NewReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{}}`))}, 100, owner)
	buf := make([]byte, 100)
	n, err := f.Read(buf)
	if got := string(buf[:n]); got != "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n" || err != nil || owner.IsLost() {
		t.Fatalf("read %q, %v; lost: %v", got, err, owner.IsLost())
	}
	for range 2 {
		if n, err := f.Read(buf); n != 0 || !errors.Is(err, io.EOF) || !owner.IsLost() {
			t.Fatalf("at the end: read %d, %v; lost: %v", n, err, owner.IsLost())
		}
	}
}
