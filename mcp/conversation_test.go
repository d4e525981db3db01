package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// serveScript serves the script of the file in MCPTEST_SCRIPT.
func serveScript() int {
	text, err := os.ReadFile(os.Getenv("MCPTEST_SCRIPT"))
	if err != nil {
		panic(err)
	}
	log, err := os.OpenFile(os.Getenv("MCPTEST_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	script := parseScript(string(text))
	script.Log = log
	return script.Serve(os.Stdin, os.Stdout)
}

// TestConversations plays the scripted servers of testdata: the messages that they receive over stdio and HTTP, and the
// results of the calls.
//
// A file has the sections options (lines of KEY VALUE), server (a scriptServer), and wire-TRANSPORT for each transport
// in its options, with the messages in order. The section result contains the state of the server, the agreed revision,
// and the result of each call.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]string{}
		for _, f := range archive.Files {
			sections[f.Name] = string(f.Data)
		}
		for _, transport := range []string{"stdio", "http"} {
			if want, ok := sections["wire-"+transport]; ok {
				t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar")+"/"+transport, func(t *testing.T) {
					t.Parallel()
					c := &conversation{sections: sections, transport: transport}
					result := c.play(t)
					eventually(t, 5*time.Second, func() bool { return strings.Count(c.wire(), "\n") >= strings.Count(want, "\n") }, "fewer messages")
					if diff := cmp.Diff(want, c.wire()); diff != "" {
						t.Errorf("messages (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(sections["result"], result); diff != "" {
						t.Errorf("result (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// conversation is one file of testdata over one transport.
type conversation struct {
	sections  map[string]string
	transport string
	wire      func() string // the messages that the server received
}

// play connects, makes the calls of the options and returns the results.
func (c *conversation) play(t *testing.T) string {
	t.Helper()
	o := Options{Servers: []ServerConfig{c.server(t)}, Negotiation: NegotiateAuto, ClientVersion: "2.1.330", Roots: []string{"/project"}}
	o.Pauses.Reopen = 80 * time.Millisecond // longer than reading a list takes on a busy machine
	var calls []string
	for line := range strings.Lines(c.sections["options"]) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "negotiation":
			o.Negotiation = Negotiation(value)
		case "timeout", "call-timeout":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			if key == "timeout" {
				o.ConnectTimeout = d
			} else {
				o.ToolTimeout = d
			}
		case "sample":
			o.Sample = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(value), nil
			}
		case "call":
			calls = append(calls, value)
		default:
			t.Fatalf("unknown option %q", key)
		}
	}
	m := start(t, o)
	var out bytes.Buffer
	st := m.Servers()[0]
	fmt.Fprintf(&out, "%s %s", st.State, st.ProtocolVersion)
	if st.Error != "" {
		fmt.Fprintf(&out, ": %s", st.Error)
	}
	fmt.Fprintln(&out)
	for _, line := range calls {
		tool, input, _ := strings.Cut(line, " ")
		fmt.Fprintln(&out, call(t, m, tool, input))
	}
	return out.String()
}

// server starts the script over the transport, or returns the command that starts it.
func (c *conversation) server(t *testing.T) ServerConfig {
	t.Helper()
	if c.transport == "http" {
		script, log := parseScript(c.sections["server"]), &logBuffer{}
		script.Log, c.wire = log, log.String
		listener := httptest.NewServer(script)
		t.Cleanup(func() { listener.CloseClientConnections(); listener.Close() })
		return ServerConfig{Name: "s", Type: "http", URL: listener.URL + "/mcp"}
	}
	dir := t.TempDir()
	file, log := filepath.Join(dir, "script"), filepath.Join(dir, "log")
	if err := os.WriteFile(file, []byte(c.sections["server"]), 0o600); err != nil {
		t.Fatal(err)
	}
	c.wire = func() string { return readFileText(log) }
	return testConfig(t, "s", "script", "MCPTEST_SCRIPT="+file, "MCPTEST_LOG="+log)
}
