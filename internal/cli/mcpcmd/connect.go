package mcpcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// startAndAwaitServers starts servers. The caller must call stop to stop them.
func (o *Options) startAndAwaitServers(ctx context.Context, servers []mcp.ServerConfig) (m *mcp.Manager, stop func(), err error) {
	options := o.Client
	options.Servers = servers
	if m, err = o.Manager(options); err != nil {
		return nil, nil, err
	}
	stop = func() { _ = m.Close(context.WithoutCancel(ctx)) } // Close never returns an error
	if err := StartManagerShowingProgress(ctx, m, o.Progress); err != nil {
		stop()
		return nil, nil, err
	}
	return m, stop, nil
}

// progressInterval is the interval between updates of the progress line. No line is shown before the first update.
const progressInterval = 100 * time.Millisecond

// StartManagerShowingProgress starts a manager. In the meantime it shows the servers that it waits for, in one
// line on the terminal w, and finally removes this line. If w is nil, it shows nothing.
func StartManagerShowingProgress(ctx context.Context, m *mcp.Manager, w io.Writer) error {
	if w == nil {
		return m.StartAndWait(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- m.StartAndWait(ctx) }() // returns when all servers have connected or failed, at the latest after their time limit
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	shown := ""
	for {
		select {
		case err := <-done:
			if shown != "" {
				fmt.Fprint(w, "\r\x1b[K")
			}
			return err
		case <-ticker.C:
			if line := connectingServersLine(m.Servers()); line != "" && line != shown {
				fmt.Fprintf(w, "\r%s\x1b[K", line)
				shown = line
			}
		}
	}
}

// connectingServersLine returns the text of the progress line, or "" if no server is still connecting.
func connectingServersLine(all []mcp.ServerStatus) string {
	const shown = 3
	var waiting []string
	for _, st := range all {
		if st.Status == "pending" {
			waiting = append(waiting, st.Name)
		}
	}
	if len(waiting) == 0 {
		return ""
	}
	names := strings.Join(waiting[:min(shown, len(waiting))], ", ")
	if len(waiting) > shown {
		names += ", …"
	}
	return fmt.Sprintf("Connecting to MCP servers: %d of %d, waiting for %s", len(all)-len(waiting), len(all), names)
}

// clientFlags are the flags shared by all commands that connect to a server.
type clientFlags struct {
	MCPConfig []string      `name:"mcp-config" sep:"none" placeholder:"FILE|JSON" help:"Also load servers from this MCP configuration: a file or JSON, as for claude --mcp-config"`
	Strict    bool          `name:"strict-mcp-config" help:"Use only the servers of --mcp-config"`
	Connect   time.Duration `name:"connect-timeout" placeholder:"30s" help:"Timeout for connecting to one server (default: MCP_TIMEOUT)"`
	Protocol  string        `name:"protocol" placeholder:"REVISION" help:"How to negotiate the MCP revision: auto (ask for 2026-07-28, else fall back), legacy (initialize only) or 2026-07-28 (default: as the simulated claude does)"`
	Debug     bool          `name:"mcp-debug" help:"Print the MCP messages on stderr"`
	JSON      bool          `name:"json" help:"Print the result as JSON"`

	invalid []protocol.MCPServerError // entries that connectNamedOrAllServers could not parse
}

// connectNamedOrAllServers connects to the named servers, or to all if none is named.
func (f *clientFlags) connectNamedOrAllServers(ctx context.Context, o *Options, names ...string) (*mcp.Manager, func(), error) {
	if f.Protocol != "" && !slices.Contains(negotiationChoices(), f.Protocol) {
		return nil, nil, process.WithHint(fmt.Sprintf("unknown MCP revision %q in --protocol", f.Protocol), "use "+strings.Join(negotiationChoices(), ", "))
	}
	config, err := o.loadConfig(f.MCPConfig, f.Strict)
	if broken, ok := errors.AsType[*mcp.ConfigFlagError](err); ok {
		return nil, nil, process.Verbatimf("Error: %v", broken)
	}
	if err != nil {
		return nil, nil, err
	}
	f.invalid = config.Errors
	for _, e := range config.Errors {
		fmt.Fprintf(o.Stderr, "%s: %s\n", e.Name, e.Message)
	}
	servers := config.Servers
	if len(names) > 0 {
		servers = nil
		for _, name := range names {
			i := slices.IndexFunc(config.Servers, func(s mcp.ServerConfig) bool { return s.Name == name })
			if i < 0 {
				return nil, nil, noServerError(name, config.Servers)
			}
			servers = append(servers, config.Servers[i])
		}
	}
	with := *o
	with.Client.Negotiation = cmp.Or(mcp.Negotiation(f.Protocol), with.Client.Negotiation)
	with.Client.ConnectTimeout = cmp.Or(f.Connect, with.Client.ConnectTimeout)
	if f.Debug {
		with.Client.Debug = o.Stderr
	}
	return with.startAndAwaitServers(ctx, servers)
}

// connectServerOrFail connects to a single server; failing to connect is an error.
func (f *clientFlags) connectServerOrFail(ctx context.Context, o *Options, name string) (*mcp.Manager, func(), error) {
	m, stop, err := f.connectNamedOrAllServers(ctx, o, name)
	if err != nil {
		return nil, nil, err
	}
	if err := disconnectedError(m.Servers()); err != nil {
		stop()
		return nil, nil, err
	}
	return m, stop, nil
}

// queryServerAndDecodeOrPrint sends a request to one server. It decodes the response or, with --json, prints it unchanged.
func (f *clientFlags) queryServerAndDecodeOrPrint(ctx context.Context, o *Options, serverName string, decodedResponse any, sendRequest func(*mcp.Manager) (json.RawMessage, error)) error {
	m, stop, err := f.connectServerOrFail(ctx, o, serverName)
	if err != nil {
		return err
	}
	defer stop()
	raw, err := sendRequest(m)
	switch {
	case err != nil:
		return describeCallError(err)
	case f.JSON:
		_, err = fmt.Fprintf(o.Stdout, "%s\n", raw)
		return err
	}
	if err := json.Unmarshal(raw, decodedResponse); err != nil {
		return fmt.Errorf("reading the answer of the MCP server: %w", err)
	}
	return nil
}

type listFlags struct {
	clientFlags
	Servers []string `arg:"" optional:"" name:"server" help:"Names of the servers (default: all)"`
}

// connectAndPrintList prints the results of list for the connected servers, and fails if some are not connected.
func (f *listFlags) connectAndPrintList(ctx context.Context, o *Options, list func(*mcp.Manager, []mcp.ServerStatus) (report map[string]any, text func(), err error)) error {
	m, stop, err := f.connectNamedOrAllServers(ctx, o, f.Servers...)
	if err != nil {
		return err
	}
	defer stop()
	servers := m.Servers()
	report, text, err := list(m, servers)
	if err != nil {
		return err
	}
	if !f.JSON {
		text()
	} else if err := printJSONLine(o.Stdout, report); err != nil {
		return err
	}
	return disconnectedError(servers)
}

func printProtocolRevisionsToStderr(o *Options, all []mcp.ServerStatus) {
	for _, st := range all {
		if st.Status == "connected" {
			fmt.Fprintf(o.Stderr, "%s: MCP %s\n", st.Name, st.ProtocolVersion)
		}
	}
}

// disconnectedError returns an error that lists each server that is not connected, with the reason; nil means none.
func disconnectedError(all []mcp.ServerStatus) error {
	var lines []string
	for _, st := range all {
		if st.Status != "connected" {
			lines = append(lines, fmt.Sprintf("MCP server '%s' failed to start: %s", st.Name, disconnectedReason(st)))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return process.Verbatimf("%s", strings.Join(lines, "\n"))
}

// disconnectedReason explains why a server is not connected; empty means it is connected.
func disconnectedReason(st mcp.ServerStatus) string {
	switch {
	case st.Error != "":
		return st.Error
	case st.Status == "disabled":
		return "disabled"
	case st.Status == "connected":
		return ""
	}
	return "no answer in time (set the limit with --connect-timeout or MCP_TIMEOUT)"
}

func printJSONLine(w io.Writer, v any) error {
	_, err := fmt.Fprintln(w, plainjson.MarshalString(v))
	return err
}

func describeCallError(err error) error {
	if rpc, ok := errors.AsType[*mcp.RPCError](err); ok {
		return fmt.Errorf("the MCP server answered with error %d: %s", rpc.Code, rpc.Message)
	}
	return err
}
