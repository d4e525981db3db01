package connection

import (
	"bufio"
	"bytes"
	"context"
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
			"3: the message of the server is 120 bytes; the limit is 90 (maxLineBytes in the server's entry)\n" + a + "\n", 0,
		},
		"{\"result\":{\"id\":1,\"x\":\"\\\"" + strings.Repeat("}", 100) + "\"} , \"id\" : \"a\\\"b\" }\n": {
			`a\"b: the message of the server is 145 bytes; the limit is 90 (maxLineBytes in the server's entry)` + "\n", 0,
		},
		"{\"id\":3,\"method\":\"" + strings.Repeat("x", 100) + "\"}\n" + a: {a + "\n", 1},
		"": {"", 0},
	} {
		f := testReader(strings.NewReader(in), 90)
		out, failed, err := readMessages(f)
		if n, _ := f.droppedNonMessageLines(); !errors.Is(err, io.EOF) || failed+out != want.out || n != want.junk {
			t.Errorf("%q: got %q, %q, %d dropped, %v", in, failed, out, n, err)
		}
	}
}

// readMessages reads all messages, each with a newline. failed are the requests that failed, with their errors.
func readMessages(r *messageReader) (messages, failed string, err error) {
	waiting := waitingRequests(r.transport)
	for err == nil {
		var message []byte
		if message, err = r.messageInNextLine(); message != nil {
			messages += string(message) + "\n"
		}
	}
	return messages, failures(waiting), err
}

// waitingRequests adds requests that wait for a response.
func waitingRequests(base *transportBase) map[string]context.Context {
	return map[string]context.Context{"3": waitingRequest(base, "3"), "7": waitingRequest(base, "7"), "x": waitingRequest(base, "x"), `a\"b`: waitingRequest(base, `a\"b`)}
}

func waitingRequest(base *transportBase, id string) context.Context {
	ctx, stop := context.WithCancelCause(context.Background())
	base.client.pendingCancels.Store(id, stop)
	return ctx
}

// failures returns the requests that have failed, with their errors.
func failures(waiting map[string]context.Context) (all string) {
	for id, ctx := range waiting {
		if o, ok := errors.AsType[requestOutcomeError](context.Cause(ctx)); ok {
			all += id + ": " + o.err.Error() + "\n"
		}
	}
	return all
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
		if got := jsonRPCMessageInLine([]byte(line)) != nil; got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("{\"a\":1}\nx\n[{},{}]\n{}"))
	f.Add([]byte("[\n]\n\xff{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		r := testReader(bytes.NewReader(in), limit)
		for {
			message, err := r.messageInNextLine()
			if message != nil && (!json.Valid(message) || message[0] != '{' || len(message) > limit) {
				t.Errorf("%q came through", message)
			}
			if err != nil {
				break
			}
		}
	})
}

// testBase returns the parts that every transport needs, without a debug log.
func testBase() *transportBase {
	l := &client{closeReason: &closeReason{lost: make(chan struct{})}}
	return &transportBase{client: l, closeReason: l.closeReason}
}

func testReader(in io.Reader, limit int) *messageReader {
	return &messageReader{pipe: bufio.NewReader(in), line: boundedLine{limit: limit}, transport: testBase()}
}
