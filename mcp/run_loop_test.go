package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sdkHost is an SDK host whose servers answer all requests, unless it is down.
func sdkHost(down *atomic.Bool, handshakes *atomic.Int64) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(_ context.Context, _ string, message json.RawMessage) (json.RawMessage, error) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return nil, err
		}
		if m.Method == "initialize" {
			handshakes.Add(1)
		}
		if down.Load() {
			return nil, errors.New("host is down")
		}
		results := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"foo","inputSchema":{"type":"object"}}]}`,
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, results[m.Method]), nil
	}
}

// TestBackoff: a lost server is tried again at once and after 1, 2, 4 and 8 seconds (C59, C60;
// measured with 2.1.330). Then it counts as failed (C61). A manual connect starts the sequence
// again, also while it is running (C64, U177). After a disconnect, nothing is tried (M38).
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		var handshakes atomic.Int64
		on := true
		m, err := New(Options{
			SDK:     sdkHost(&down, &handshakes),
			Servers: []ServerConfig{{Name: "s", Type: "sdk", AutoReconnect: &on}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.StartAndWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		lose := func() {
			s, err := m.findServer("s")
			if err != nil {
				t.Fatal(err)
			}
			st, _ := s.statusAndChangeSignal()
			down.Store(true)
			handshakes.Store(0)
			st.conn.MarkConnectionLost()
		}
		attempts := func(pauses ...time.Duration) {
			lose()
			synctest.Wait()
			for i, pause := range pauses {
				time.Sleep(pause*time.Second - time.Millisecond)
				synctest.Wait()
				if n, st := handshakes.Load(), m.Servers()[0]; n != int64(i+1) || st.State != StateReconnecting || st.Status != "pending" || st.Attempt != i+2 {
					t.Errorf("before attempt %d: %d handshakes, %s, attempt %d", i+2, n, st.State, st.Attempt)
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
		}
		byHand := func() {
			down.Store(false)
			if err := m.Connect(t.Context(), "s"); err != nil {
				t.Error(err)
			}
			if st := m.Servers()[0]; st.State != StateConnected || st.Attempt != 0 {
				t.Errorf("by hand: %s, attempt %d", st.State, st.Attempt)
			}
		}
		attempts(1, 2, 4)
		byHand()
		attempts(1, 2, 4, 8) // all five attempts again
		time.Sleep(time.Hour)
		if st := m.Servers()[0]; st.State != StateLost || st.Status != "failed" || handshakes.Load() != 5 {
			t.Errorf("at the end: %s, %d handshakes", st.State, handshakes.Load())
		}
		if _, err := m.Call(t.Context(), CallRequest{Tool: "mcp__s__foo"}); err == nil || err.Error() != `MCP server "s" is not connected` || handshakes.Load() == 5 {
			t.Errorf("a call: %v, %d handshakes", err, handshakes.Load())
		}
		byHand()
		attempts(1)
		byHand()
		lose()
		synctest.Wait()
		if err := m.Disconnect(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if st := m.Servers()[0]; st.State != StateDisconnected || handshakes.Load() != 1 {
			t.Errorf("after disconnect: %s, %d handshakes", st.State, handshakes.Load())
		}
		m.Close(t.Context())
	})
}

// TestReconnectPause compares the pauses with the means for 24 servers that were lost for 25
// minutes under 2.1.330. In the background, the pauses of these servers were random, between 15 s
// and a limit of 30, 60, 120, 240 and 300 s.
func TestReconnectPause(t *testing.T) {
	var got []time.Duration
	for n := range 11 {
		got = append(got, reconnectPause(n, time.Millisecond)*2)
	}
	want := []time.Duration{0, 2, 4, 8, 16, 45, 75, 135, 255, 315, 315}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestConnectTimeout: without configuration, a server that does not answer the handshake has failed after 30 seconds
// (C169).
func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		m, err := New(Options{SDK: silent, Servers: []ServerConfig{{Name: "s", Type: "sdk"}}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := m.StartAndWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, took := m.Servers()[0], time.Since(began); st.State != StateFailed || st.Error != "connection timed out after 30000ms (MCP_TIMEOUT)" || took != 30*time.Second {
			t.Errorf("%s after %s: %s", st.State, took, st.Error)
		}
		m.Close(t.Context())
	})
}

// TestClosed: after Close, every method that needs a server returns the same error (C140), and closing again is allowed
// (C5).
func TestClosed(t *testing.T) {
	m := start(t, Options{SDK: sdkHost(new(atomic.Bool), new(atomic.Int64)), Servers: []ServerConfig{{Name: "s", Type: "sdk"}}})
	for range 2 {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, act := range map[string]func() error{
		"Start":        func() error { return m.StartAndWait(t.Context()) },
		"Call":         func() error { _, err := m.Call(t.Context(), CallRequest{Tool: "foo"}); return err },
		"CallRaw":      func() error { _, err := m.CallRaw(t.Context(), CallRequest{Tool: "s/foo"}); return err },
		"Connect":      func() error { return m.Connect(t.Context(), "s") },
		"Disconnect":   func() error { return m.Disconnect(t.Context(), "s") },
		"ReadResource": func() error { _, err := m.ReadResource(t.Context(), "s", "x://y"); return err },
		"SetServers":   func() error { _, err := m.ReplaceServersOfSource(t.Context(), "", nil); return err },
	} {
		if err := act(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimits: a silent call ends after the idle limit; a call that reports progress forever ends after maxTotal
// (M22), on a fake clock.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *Manager
		host := sdkHost(new(atomic.Bool), new(atomic.Int64))
		hang := func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
			var call struct {
				Method string
				Params struct {
					Arguments struct{ Chatty bool }
					Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
				}
			}
			_ = json.Unmarshal(message, &call)
			if call.Method != "tools/call" {
				return host(ctx, server, message)
			}
			for {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(9 * time.Second):
				}
				if call.Params.Arguments.Chatty {
					n := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, call.Params.Meta.ProgressToken)
					if err := m.DeliverSDKServerMessage(ctx, server, n); err != nil {
						return nil, err
					}
				}
			}
		}
		var err error
		m, err = New(Options{SDK: hang, Servers: []ServerConfig{{Name: "s", Type: "sdk", Timeout: 10 * time.Second, MaxTotal: time.Minute}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.StartAndWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for input, want := range map[string]time.Duration{`{}`: 10 * time.Second, `{"chatty":true}`: time.Minute} {
			before := time.Now()
			_, err := m.CallRaw(t.Context(), CallRequest{Tool: "foo", Input: json.RawMessage(input)})
			var timeout *CallTimeoutError
			if !errors.As(err, &timeout) || time.Since(before) != want {
				t.Errorf("%s: %v after %v", input, err, time.Since(before))
			}
		}
		m.Close(t.Context())
	})
}

// TestRequestLimit: a request other than a call waits for a silent server for at most a minute, or for the call
// timeout if that is shorter.
func TestRequestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := sdkHost(new(atomic.Bool), new(atomic.Int64))
		hang := func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
			if !strings.Contains(string(message), "resources/read") && !strings.Contains(string(message), "prompts/get") {
				return host(ctx, server, message)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		m, err := New(Options{SDK: hang, Servers: []ServerConfig{{Name: "s", Type: "sdk"}, {Name: "t", Type: "sdk", Timeout: 5 * time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.StartAndWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			server string
			want   time.Duration
		}{{"s", time.Minute}, {"t", 5 * time.Second}} {
			for name, ask := range map[string]func() error{
				"read":   func() error { _, err := m.ReadResource(t.Context(), test.server, "a:b"); return err },
				"prompt": func() error { _, err := m.GetPrompt(t.Context(), test.server, "p", []byte("{}")); return err },
			} {
				before := time.Now()
				err := ask()
				if want := fmt.Sprintf("MCP server %q did not answer within %s", test.server, test.want); err == nil || err.Error() != want || time.Since(before) != test.want {
					t.Errorf("%s %s: %v after %v", test.server, name, err, time.Since(before))
				}
			}
		}
		m.Close(t.Context())
	})
}

// TestConcurrentOrders: concurrent operations never hang, and the last one decides the state (M18).
func TestConcurrentOrders(t *testing.T) {
	servers := []ServerConfig{{Name: "s", Type: "sdk"}, {Name: "t", Type: "sdk"}}
	m := start(t, Options{SDK: sdkHost(new(atomic.Bool), new(atomic.Int64)), Servers: servers})
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var all sync.WaitGroup
	for _, act := range []func(){
		func() { _ = m.Connect(ctx, "s") }, func() { _ = m.Disconnect(ctx, "s") },
		func() { _ = m.Disable(ctx, "s") }, func() { _ = m.Reconnect(ctx, "s") },
		func() { _, _ = m.ReplaceServersOfSource(ctx, "", servers) }, func() { _, _ = m.ReplaceServersOfSource(ctx, "", servers[:1]) },
		func() { m.Tools(); m.Servers() }, func() { _, _ = m.Call(ctx, CallRequest{Tool: "foo"}) },
	} {
		all.Go(func() {
			for range 50 {
				act()
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Fatal("something hung")
	}
	if err := m.Disable(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if st := m.Servers()[0]; st.State != StateDisabled {
		t.Errorf("got %s", st.State)
	}
	if err := m.Connect(ctx, "s"); err != nil {
		t.Error(err)
	}
}
