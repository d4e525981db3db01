package mcpcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

type statusCmd struct{ listFlags }

// serverReport is a server as JSON; keys shared with mcp_status have the same meaning.
type serverReport struct {
	Name            string          `json:"name"`
	Status          string          `json:"status"`
	ServerInfo      *mcp.ServerInfo `json:"serverInfo,omitempty"`
	Error           string          `json:"error,omitempty"`
	Transport       string          `json:"transport"`
	Scope           string          `json:"scope"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Tools           int             `json:"tools"`
	Resources       int             `json:"resources"`
	Prompts         int             `json:"prompts"`
	Warnings        []string        `json:"warnings,omitempty"`
}

// Run fails if a server is not connected, or an entry is invalid.
func (c *statusCmd) Run(ctx context.Context, o *Options) error {
	m, stop, err := c.openServers(ctx, o, c.Servers...)
	if err != nil {
		return err
	}
	defer stop()
	reports := []serverReport{}
	failed := len(c.invalid) > 0
	for _, st := range m.Servers() {
		failed = failed || st.Status != "connected"
		reports = append(reports, newServerReport(m, st))
	}
	if c.JSON {
		err = printJSON(o.Stdout, map[string]any{"mcpServers": reports})
	} else {
		for _, r := range reports {
			printReport(o.Stdout, r)
		}
	}
	if err == nil && failed {
		err = &process.ExitError{Code: process.ExitFailed}
	}
	return err
}

func newServerReport(m *mcp.Manager, st mcp.ServerStatus) serverReport {
	r := serverReport{
		Name: st.Name, Status: st.Status, Error: disconnectedReason(st), Transport: serverTransport(st.Config), Scope: st.Source,
		ProtocolVersion: st.ProtocolVersion, Capabilities: st.Capabilities, Instructions: st.Instructions,
		Tools: len(st.Tools), Prompts: len(st.Prompts), Warnings: st.Warnings,
	}
	if st.Info != (mcp.ServerInfo{}) {
		r.ServerInfo = &st.Info
	}
	if resources, err := m.Resources(st.Name); err == nil { // the name is known
		r.Resources = len(resources)
	}
	return r
}

func printReport(w io.Writer, r serverReport) {
	fmt.Fprintf(w, "%s: %s\n  Transport: %s\n  Scope: %s\n", r.Name, r.Status, r.Transport, r.Scope)
	if r.ServerInfo != nil {
		fmt.Fprintf(w, "  Server: %s %s (protocol %s)\n", cmp.Or(r.ServerInfo.Title, r.ServerInfo.Name), r.ServerInfo.Version, r.ProtocolVersion)
		fmt.Fprintf(w, "  Offers: %s, %s, %s\n", countWithNoun(r.Tools, "tool"), countWithNoun(r.Resources, "resource"), countWithNoun(r.Prompts, "prompt"))
	}
	if r.Error != "" {
		fmt.Fprintf(w, "  Error: %s\n", oneLine(r.Error))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "  Warning: %s\n", oneLine(warning))
	}
}

func countWithNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

type toolsCmd struct{ listFlags }

// toolReport is a tool as JSON, with the unchanged definition of its server.
type toolReport struct {
	Name       string          `json:"name"` // canonical name
	Server     string          `json:"server"`
	Definition json.RawMessage `json:"definition"`
}

// Run lists the tools of the connected servers and fails if some are not connected.
func (c *toolsCmd) Run(ctx context.Context, o *Options) error {
	return c.printList(ctx, o, func(m *mcp.Manager, servers []mcp.ServerStatus) (map[string]any, func(), error) {
		tools := []toolReport{}
		for _, st := range servers {
			for i, t := range st.Tools {
				if by, ok := m.Resolve(t.Name); ok == nil && by.Server == t.Server && by.RawName == t.RawName {
					tools = append(tools, toolReport{t.Name, t.Server, st.RawTools[i]})
				}
			}
		}
		revisions := map[string]string{}
		for _, st := range servers {
			revisions[st.Name] = st.ProtocolVersion
		}
		report := map[string]any{"tools": tools, "hidden": append([]mcp.ShadowedTool{}, m.HiddenTools()...), "protocolVersions": revisions}
		return report, func() { printTools(o.Stdout, m); printRevisions(o, servers) }, nil
	})
}

func printTools(w io.Writer, m *mcp.Manager) {
	for _, t := range m.Tools() {
		printDescription(w, t.Name, t.Description)
	}
	for _, h := range m.HiddenTools() {
		fmt.Fprintf(w, "%s  hidden: tool %q of %q; %q has a tool of that name\n", h.Name, h.Tool, h.Server, h.ShadowedBy)
	}
}

func printDescription(w io.Writer, name, description string) {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	if first == "" {
		fmt.Fprintln(w, name)
		return
	}
	fmt.Fprintf(w, "%s  %s\n", name, first)
}
