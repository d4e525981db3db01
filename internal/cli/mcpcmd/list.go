package mcpcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

// claudelessOnlyFlags returns --json and --protocol, which claude does not have.
func (o *Options) claudelessOnlyFlags(asJSON *bool) []argv.OptionDefinition {
	if !o.Extended {
		return nil
	}
	return []argv.OptionDefinition{
		{Flags: "--json", Help: "Print JSON", Set: func(string) error { *asJSON = true; return nil }},
		{Flags: "--protocol <revision>", Help: "How to negotiate the MCP revision: auto, legacy or 2026-07-28", Choices: negotiationChoices(), Set: func(v string) error { o.Client.Negotiation = mcp.Negotiation(v); return nil }},
	}
}

func negotiationChoices() []string {
	return []string{string(mcp.NegotiateAuto), string(mcp.NegotiateLegacy), string(mcp.NegotiateModern)}
}

type serverState struct {
	Name      string `json:"name"`
	Scope     string `json:"scope"` // local, project, user
	Transport string `json:"transport"`
	Target    string `json:"target"` // command line or URL
	Status    string `json:"status"` // connected, failed, needs-auth, disabled, pending-approval
	Error     string `json:"error,omitempty"`
	Protocol  string `json:"protocolVersion,omitempty"` // MCP revision of the server; empty means not connected

	config mcp.ServerConfig
}

// noApprovedServerError is like noServerError, but lists only approved servers.
func (o *Options) noApprovedServerError(name string, servers []mcp.ServerConfig) error {
	const pending = ".mcp.json servers are awaiting approval — run `claude` in this directory to review them."
	approved := slices.DeleteFunc(slices.Clone(servers), func(s mcp.ServerConfig) bool { return o.isPendingApproval(s) })
	switch len(approved) {
	case len(servers):
		return noServerError(name, servers)
	case 0:
		return process.Verbatimf("No MCP server named %q. %s", name, pending)
	}
	return process.Verbatimf("%v (%s)", noServerError(name, approved), pending)
}

const (
	pendingApprovalStatus = "pending-approval"
	toolsFailedStatus     = "tools-failed" // connected, but the server did not list its tools
)

// runList runs `mcp list`. It connects to all servers, but not to servers of .mcp.json that the user has not approved.
func runList(ctx context.Context, o *Options, words []string) error {
	asJSON := false
	if _, help, err := parseOperands(o, o.claudelessOnlyFlags(&asJSON), words); err != nil || help {
		return err
	}
	config, err := o.configuredServers()
	if err != nil {
		return err
	}
	if o.Extended {
		for _, e := range config.Errors {
			fmt.Fprintf(o.Stderr, "%s: %s\n", e.Name, e.Message)
		}
	} else {
		defer printDiagnostics(o, config.Problems)
	}
	if len(config.Servers) == 0 && !asJSON {
		fmt.Fprintln(o.Stdout, "No MCP servers configured. Use `claude mcp add` to add a server.")
		return nil
	}
	if !asJSON {
		fmt.Fprint(o.Stdout, "Checking MCP server health…\n\n")
	}
	all, err := o.connectAndReadServerStates(ctx, config.Servers)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSONLine(o.Stdout, map[string]any{"servers": all})
	}
	for _, h := range all {
		target := h.targetLabel()
		if len(h.config.Args) == 0 && h.Transport == "stdio" && !o.Extended {
			target += " " // claude prints a space before the arguments even if there are none
		}
		fmt.Fprintf(o.Stdout, "%s: %s - %s", h.Name, target, h.statusLabel())
		if h.Error != "" {
			fmt.Fprintf(o.Stdout, " — %s", oneLine(h.Error))
		}
		if o.Extended && h.Protocol != "" {
			fmt.Fprintf(o.Stdout, " (MCP %s)", h.Protocol)
		}
		fmt.Fprintln(o.Stdout)
	}
	return nil
}

// printDiagnostics prints what is wrong with the configuration files, as the real CLI does below the list of servers.
func printDiagnostics(o *Options, problems []mcp.ConfigProblem) {
	if len(problems) == 0 {
		return
	}
	isError := func(p mcp.ConfigProblem) bool { return p.Server == "" }
	sign := "⚠"
	if slices.ContainsFunc(problems, isError) {
		sign = "✘"
	}
	fmt.Fprintf(o.Stdout, "\nMCP config diagnostics %s\n\nFor help configuring MCP servers, see: https://code.claude.com/docs/en/mcp\n", sign)
	for i, p := range problems {
		level, place := "Warning", fmt.Sprintf("[%s] mcpServers.%s: ", p.Server, p.Server)
		if isError(p) {
			level, place = "Error", ""
		}
		if i == 0 || problems[i-1].Source != p.Source {
			fmt.Fprintf(o.Stdout, "\n[Has %ss] %s\nLocation: %s\n", strings.ToLower(level), scopeLabel(p.Source), scopeFileLabel(o, p.Source))
		}
		branch := "├"
		if i == len(problems)-1 || problems[i+1].Source != p.Source {
			branch = "└"
		}
		fmt.Fprintf(o.Stdout, " %s [%s] %s%s\n", branch, level, place, p.Message)
	}
	fmt.Fprintln(o.Stdout)
}

func (o *Options) connectAndReadServerStates(ctx context.Context, servers []mcp.ServerConfig) ([]serverState, error) {
	all := make([]serverState, len(servers))
	var asked []mcp.ServerConfig
	for i, s := range servers {
		all[i] = serverState{Name: s.Name, Scope: s.Source, Transport: serverTransport(s), Target: withoutDefaultsOfVariables(serverTarget(s)), config: s}
		if o.isPendingApproval(s) {
			all[i].Status = pendingApprovalStatus
			continue
		}
		asked = append(asked, s)
	}
	m, stop, err := o.startAndAwaitServers(ctx, asked)
	if err != nil {
		return nil, err
	}
	defer stop()
	for _, st := range m.Servers() {
		i := slices.IndexFunc(all, func(h serverState) bool { return h.Name == st.Name })
		all[i].Status, all[i].Protocol = st.Status, st.ProtocolVersion
		if st.Status != "disabled" && (o.Extended || st.Status != "needs-auth") { // claude shows no details
			all[i].Error = o.issueOf(st)
		}
		switch {
		case st.Status == "pending": // not connected before the timeout
			all[i].Status = "failed"
		case st.Status == "connected" && st.ToolsError != "" && !o.Extended:
			all[i].Status = toolsFailedStatus
		}
	}
	return all, nil
}

// issueOf explains why a server is not connected or, in `claude mcp`, why it did not list its tools; empty means that nothing is
// wrong. `claude mcp` uses the words of the real CLI, and `claudeless mcp` our own.
func (o *Options) issueOf(st mcp.ServerStatus) string {
	command := o.commandWithUnsetVariablesRedacted(st.Config)
	text := strings.ReplaceAll(strings.Replace(st.WireError, `"stdio"`, strconv.Quote(command), 1), "'stdio'", "'"+command+"'")
	switch {
	case o.Extended:
		return disconnectedReason(st)
	case st.Status == "connected":
		return st.ToolsError
	case strings.HasPrefix(st.Error, text+" Error detail: "):
		return st.Error
	case text == "":
		limit := cmp.Or(st.Config.ConnectTimeout, o.Client.ConnectTimeout, mcp.DefaultConnectTimeout)
		return fmt.Sprintf("MCP server %q connection timed out after %dms", st.Name, limit.Milliseconds())
	case st.WireErrorCode == "" || st.WireErrorCode == "INVALID_CONFIG" || strings.HasPrefix(text, st.WireErrorCode+": "):
		return text
	}
	return st.WireErrorCode + ": " + text
}

var variableWithDefaultPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_]\w*)(:-[^}]*)?\}`) })

// withoutDefaultsOfVariables removes the defaults of variables, which the real CLI does not print.
func withoutDefaultsOfVariables(text string) string {
	return variableWithDefaultPattern().ReplaceAllString(text, "$${$1}")
}

// commandWithUnsetVariablesRedacted returns the command of a server as it appears in errors: variables that have neither a value
// nor a default are replaced.
func (o *Options) commandWithUnsetVariablesRedacted(s mcp.ServerConfig) string {
	unset := variableWithDefaultPattern().FindAllString(s.ExpandVariables(o.Client).Command, -1)
	return variableWithDefaultPattern().ReplaceAllStringFunc(withoutDefaultsOfVariables(s.Command), func(variable string) string {
		if slices.Contains(unset, variable) {
			return "[redacted]"
		}
		return variable
	})
}

func (h serverState) targetLabel() string {
	if h.Transport == "stdio" {
		return h.Target
	}
	return h.Target + " (" + strings.ToUpper(h.Transport) + ")"
}

func (h serverState) statusLabel() string {
	labels := map[string]string{
		"connected": "✔ Connected", toolsFailedStatus: "! Connected · tools fetch failed", "needs-auth": "! Needs authentication", "disabled": "⏸ Disabled",
		pendingApprovalStatus: "⏸ Pending approval (run `claude` to approve)",
	}
	return cmp.Or(labels[h.Status], "✘ Failed to connect")
}

func serverTransport(s mcp.ServerConfig) string { return cmp.Or(s.Type, "stdio") }

func serverTarget(s mcp.ServerConfig) string {
	if serverTransport(s) == "stdio" {
		return strings.Join(append([]string{s.Command}, s.Args...), " ")
	}
	return s.URL
}

func runGet(ctx context.Context, o *Options, words []string) error {
	asJSON := false
	found, help, err := parseOperands(o, o.claudelessOnlyFlags(&asJSON), words, "name")
	if err != nil || help {
		return err
	}
	config, err := o.configuredServers()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(config.Servers, func(s mcp.ServerConfig) bool { return s.Name == found[0] })
	if i < 0 {
		return o.noApprovedServerError(found[0], config.Servers)
	}
	all, err := o.connectAndReadServerStates(ctx, config.Servers[i:i+1])
	if err != nil {
		return err
	}
	if asJSON {
		return printJSONLine(o.Stdout, all[0])
	}
	o.printServer(all[0])
	return nil
}

func (o *Options) describeOAuthSettings(s mcp.ServerConfig) string {
	var parts []string
	if s.OAuth.ClientID != "" {
		parts = append(parts, "client_id configured")
		if s.ExpandVariables(o.Client).NewOAuthClient(o.Client).StoredClientSecret() != "" {
			parts = append(parts, "client_secret configured")
		}
	}
	if s.OAuth.CallbackPort > 0 {
		parts = append(parts, fmt.Sprintf("callback_port %d", s.OAuth.CallbackPort))
	}
	return strings.Join(parts, ", ")
}

func (o *Options) printServer(h serverState) {
	entry, _ := plainjson.Parse(o.Store.nearestEntryOrNil(h.Scope, h.Name)) // was read before
	s, w := h.config, o.Stdout
	fmt.Fprintf(w, "%s:\n  Scope: %s\n  Status: %s\n", h.Name, scopeLabel(h.Scope), h.statusLabel())
	if h.Error != "" {
		fmt.Fprintf(w, "  Issue: %s\n", oneLine(h.Error))
	}
	if h.Protocol != "" && o.Extended { // claude does not print it
		fmt.Fprintf(w, "  Protocol: MCP %s\n", h.Protocol)
	}
	fmt.Fprintf(w, "  Type: %s\n", h.Transport)
	if h.Transport == "stdio" {
		fmt.Fprintf(w, "  Command: %s\n", withoutDefaultsOfVariables(s.Command))
		fmt.Fprintln(w, strings.TrimSuffix("  Args: "+withoutDefaultsOfVariables(strings.Join(s.Args, " ")), " "))
		o.printEnvironmentOrHeaders("Environment", "=", entry.Get("env"))
	} else {
		fmt.Fprintf(w, "  URL: %s\n", withoutDefaultsOfVariables(s.URL))
		o.printEnvironmentOrHeaders("Headers", ": ", entry.Get("headers"))
		if login := o.describeOAuthSettings(s); login != "" {
			fmt.Fprintf(w, "  OAuth: %s\n", login)
		}
	}
	remove := "run: claude mcp remove " + h.Name + " -s " + h.Scope
	if !nameForCommandPattern().MatchString(h.Name) {
		remove = "edit " + scopeFileLabel(o, h.Scope)
	}
	fmt.Fprintf(w, "\nTo remove this server, %s\n", remove)
}

// nameForCommandPattern matches the names that the real CLI prints in a command line.
var nameForCommandPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\w[\w.@-]*$`) })

// printEnvironmentOrHeaders prints the environment variables or the headers of a server in the order of its entry.
func (o *Options) printEnvironmentOrHeaders(title, separator string, members json.RawMessage) {
	if members == nil {
		return
	}
	fmt.Fprintf(o.Stdout, "  %s:\n", title)
	list, _ := plainjson.Parse(members) // was read before
	for _, m := range list {
		fmt.Fprintln(o.Stdout, strings.TrimSuffix("    "+m.Key+separator+withoutDefaultsOfVariables(plainjson.DecodeIgnoringErrors[string](m.Value)), " "))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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
	m, stop, err := c.connectNamedOrAllServers(ctx, o, c.Servers...)
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
		err = printJSONLine(o.Stdout, map[string]any{"mcpServers": reports})
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
	resources, _ := m.Resources(st.Name) // fails only for an unknown name
	r := serverReport{
		Name: st.Name, Status: st.Status, Error: disconnectedReason(st), Transport: serverTransport(st.Config), Scope: st.Source,
		ProtocolVersion: st.ProtocolVersion, Capabilities: st.Capabilities, Instructions: st.Instructions,
		Tools: len(st.Tools), Resources: len(resources), Prompts: len(st.Prompts), Warnings: st.Warnings,
	}
	if st.Info != (mcp.ServerInfo{}) {
		r.ServerInfo = &st.Info
	}
	return r
}

func printReport(w io.Writer, r serverReport) {
	fmt.Fprintf(w, "%s: %s\n  Transport: %s\n  Scope: %s\n", r.Name, r.Status, r.Transport, r.Scope)
	if r.ServerInfo != nil {
		fmt.Fprintf(w, "  Server: %s %s (protocol %s)\n", cmp.Or(r.ServerInfo.Title, r.ServerInfo.Name), r.ServerInfo.Version, r.ProtocolVersion)
		fmt.Fprintf(w, "  Offers: %s, %s, %s\n", diag.FormatCount(r.Tools, "tool"), diag.FormatCount(r.Resources, "resource"), diag.FormatCount(r.Prompts, "prompt"))
	}
	if r.Error != "" {
		fmt.Fprintf(w, "  Error: %s\n", oneLine(r.Error))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "  Warning: %s\n", oneLine(warning))
	}
}

type toolsCmd struct{ listFlags }

// toolReport is a tool as JSON, with the definition exactly as its server sent it.
type toolReport struct {
	Name       string          `json:"name"` // canonical name
	Server     string          `json:"server"`
	Definition json.RawMessage `json:"definition"`
}

// Run lists the tools of the connected servers and fails if some are not connected.
func (c *toolsCmd) Run(ctx context.Context, o *Options) error {
	return c.connectAndPrintList(ctx, o, func(m *mcp.Manager, servers []mcp.ServerStatus) (map[string]any, func(), error) {
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
		report := map[string]any{"tools": tools, "hidden": append([]mcp.ShadowedTool{}, m.ShadowedTools()...), "protocolVersions": revisions}
		return report, func() { printTools(o.Stdout, m); printProtocolRevisionsToStderr(o, servers) }, nil
	})
}

func printTools(w io.Writer, m *mcp.Manager) {
	for _, t := range m.Tools() {
		printNameAndDescription(w, t.Name, t.Description)
	}
	for _, h := range m.ShadowedTools() {
		fmt.Fprintf(w, "%s  hidden: tool %q of %q; %q has a tool of that name\n", h.Name, h.Tool, h.Server, h.ShadowedBy)
	}
}

func printNameAndDescription(w io.Writer, name, description string) {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	if first == "" {
		fmt.Fprintln(w, name)
		return
	}
	fmt.Fprintf(w, "%s  %s\n", name, first)
}
