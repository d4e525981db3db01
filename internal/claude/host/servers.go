package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// serverStatus is one server as mcp_status shows it (spec: cli-contract 4.3).
type serverStatus struct {
	Name       string                `json:"name"`
	Status     string                `json:"status"`
	ServerInfo *mcp.ServerInfo       `json:"serverInfo,omitempty"`
	Error      string                `json:"error,omitempty"`
	ErrorCode  string                `json:"error_code,omitempty"`
	Config     *reportedServerConfig `json:"config,omitempty"` // nil means the server is inside the host
	Transport  string                `json:"transport,omitempty"`
	URLHost    string                `json:"urlHost,omitempty"` // absent for servers in --mcp-config
	Scope      string                `json:"scope"`
	Source     string                `json:"source"`
	Tools      []serverTool          `json:"tools,omitzero"`
}

// reportedServerConfig is the configuration of a server as the host sees it. Like the real CLI, it omits environment variables.
type reportedServerConfig struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitzero"` // nil for a process whose configuration lacks args
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	OAuth   serverOAuth       `json:"oauth,omitzero"`
}

type serverOAuth struct {
	ClientID     string `json:"clientId,omitempty"`
	CallbackPort int    `json:"callbackPort,omitempty"`
}

type serverTool struct {
	Name        string          `json:"name"`
	Annotations toolAnnotations `json:"annotations"`
}

type toolAnnotations struct {
	ReadOnly    bool `json:"readOnly,omitempty"`
	Destructive bool `json:"destructive,omitempty"`
	OpenWorld   bool `json:"openWorld,omitempty"`
}

// statusNeedsAuth is the status of a server to which the user must log in. Such a server has no error text.
const statusNeedsAuth = string(mcp.StateNeedsAuth)

func answerMCPStatus(_ context.Context, r *requestServer, _ controlRequest) (control.ResponseWithEvents, error) {
	servers := r.session.Servers().Servers()
	if r.conn.IsConnectingServers() { // the host's own servers are not listed before they are connected
		servers = slices.DeleteFunc(servers, func(st mcp.ServerStatus) bool { return st.Config.Type == "sdk" && st.Status == "pending" })
	}
	return control.ResponseWithEvents{Payload: answerWithKey{"mcpServers", serverStatusesForHost(servers, r.session.Plan().Profile)}}, nil
}

func serverStatusesForHost(servers []mcp.ServerStatus, profile claudecode.Profile) []serverStatus {
	list := []serverStatus{}
	for _, st := range servers {
		list = append(list, serverStatusForHost(st, profile.Has(claudecode.FeatureMCPStatusReportsTransportsAndErrorCodes)))
	}
	return list
}

// serverStatusForHost describes a server. withTransportAndErrorCode adds the keys of
// [claudecode.FeatureMCPStatusReportsTransportsAndErrorCodes].
func serverStatusForHost(st mcp.ServerStatus, withTransportAndErrorCode bool) serverStatus {
	kind := cmp.Or(st.Config.Type, "stdio")
	out := serverStatus{Name: st.Name, Status: st.Status, Scope: st.Source, Source: st.Source}
	if st.Source == launch.PluginServerSource {
		out.Scope = "dynamic"
	}
	if withTransportAndErrorCode {
		out.Transport = kind
	}
	switch {
	case kind != "sdk":
		out.Config = &reportedServerConfig{
			Type: kind, Command: st.Config.Command, Args: st.Config.Args, URL: st.Config.URL, Headers: st.Config.Headers,
			OAuth: serverOAuth{ClientID: st.Config.OAuth.ClientID, CallbackPort: st.Config.OAuth.CallbackPort},
		}
		if kind == "stdio" && out.Config.Args == nil && !st.Config.LacksArgs {
			out.Config.Args = []string{}
		}
		if u, err := url.Parse(st.Config.URL); err == nil && withTransportAndErrorCode && st.Source != "dynamic" {
			out.URLHost = u.Host
		}
	case st.Status == "failed":
		out.Scope = "user"
	default:
		out.Scope = "dynamic"
	}
	if st.Status != "connected" {
		if kind != "sdk" && st.Status != statusNeedsAuth && st.Status != "disabled" {
			out.Error = st.WireError
			if st.Source != "dynamic" { // the real CLI shows only commands of configuration files
				out.Error = strings.Replace(out.Error, `in $PATH: "stdio"`, fmt.Sprintf("in $PATH: %q", st.Config.Command), 1)
			}
			if withTransportAndErrorCode && hasServerRefusedClientRegistration(st.WireError) {
				out.ErrorCode = "CLIENT_REGISTRATION_UNAVAILABLE"
			}
		}
		return out
	}
	out.ServerInfo, out.Tools = new(st.Info), []serverTool{}
	for _, t := range st.Tools {
		tool := serverTool{Name: t.RawName}
		hints := plainjson.DecodeIgnoringErrors[struct {
			ReadOnly    bool `json:"readOnlyHint"`
			Destructive bool `json:"destructiveHint"`
			OpenWorld   bool `json:"openWorldHint"`
		}](t.Annotations)
		tool.Annotations = toolAnnotations(hints)
		out.Tools = append(out.Tools, tool)
	}
	return out
}

func (r *requestServer) findServer(name string) (mcp.ServerStatus, error) {
	for _, st := range r.session.Servers().Servers() {
		if st.Name == name {
			return st, nil
		}
	}
	return mcp.ServerStatus{}, &control.ResponseError{Text: "Server not found: " + name}
}

func (r *requestServer) isConnected(name string) bool {
	st, err := r.findServer(name)
	return err == nil && st.Status == "connected"
}

func reconnectMCPServer(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name := stringOrEmpty(in.keys["serverName"])
	st, err := r.findServer(name)
	switch {
	case err != nil:
		return control.ResponseWithEvents{}, err
	case st.Status == "disabled":
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "MCP server " + name + " is disabled — enable it (mcp_toggle) before reconnecting"}
	case st.Config.Type == "sdk":
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "SDK servers should be handled in print.ts"}
	}
	return control.ResponseWithEvents{}, r.reconnect(ctx, name)
}

// reconnect connects a server again. It tries twice if the server requires a login (observed with 2.1.330).
func (r *requestServer) reconnect(ctx context.Context, name string) error {
	for range 2 {
		err := r.session.Servers().Reconnect(ctx, name)
		st, _ := r.findServer(name)
		switch {
		case err == nil || st.WireError == "" && st.Status != statusNeedsAuth:
			return err
		case st.Status != statusNeedsAuth:
			return &control.ResponseError{Text: st.WireError}
		}
	}
	return &control.ResponseError{Text: "Server status: " + statusNeedsAuth}
}

func connectOrDisableMCPServer(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name := stringOrEmpty(in.keys["serverName"])
	enabled, err := in.requiredBoolKey("enabled")
	if err != nil {
		return control.ResponseWithEvents{}, err
	}
	st, err := r.findServer(name)
	switch {
	case err != nil:
		return control.ResponseWithEvents{}, err
	case !enabled:
		return control.ResponseWithEvents{}, r.session.Servers().Disable(ctx, name)
	}
	if err = r.session.Servers().Connect(ctx, name); err != nil && st.Config.Type == "sdk" && ctx.Err() == nil {
		err = &control.ResponseError{Text: "Connection failed"}
	}
	return control.ResponseWithEvents{}, err
}

// replaceMCPServersOfHost replaces the servers the host may change. Servers inside the host get messages only after the answer.
func replaceMCPServersOfHost(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	servers := in.keys["servers"]
	if !plainjson.IsObjectOfObjects(servers) {
		return control.ResponseWithEvents{}, in.typeError("servers", "an object of config objects")
	}
	release := r.conn.HoldMessagesToUnconnectedServers(r.isConnected)
	context.AfterFunc(ctx, release) // if the request gets no response, the servers must not stay blocked
	change, err := r.session.ReplaceHostServers(ctx, servers)
	if err != nil {
		return control.ResponseWithEvents{AfterWrite: release}, err
	}
	out := struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"`
	}{append([]string{}, change.Added...), append([]string{}, change.Removed...), change.Errors}
	if out.Errors == nil {
		out.Errors = map[string]string{}
	}
	return control.ResponseWithEvents{Payload: out, AfterWrite: release}, nil
}

// deliverHostServerMessage delivers an unsolicited message of a server inside the host. The answer is always success.
func deliverHostServerMessage(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	server, _ := plainjson.StringValue(in.keys["server_name"])
	message := in.keys["message"]
	var a control.ResponseWithEvents
	if _, err := r.findServer(server); err == nil {
		a.AfterWrite = func() { // the effects of the message follow the answer
			r.conn.Go(func() { // returns when the message was answered or the session is closed
				_ = r.session.Servers().DeliverSDKServerMessage(ctx, server, message) // the answer has already been sent
			})
		}
	}
	return a, nil
}

func callMCPTool(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	tool := stringOrEmpty(in.keys["tool"])
	server, _, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	if !ok || !strings.HasPrefix(tool, "mcp__") {
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "Not a fully-qualified MCP tool name: " + tool}
	}
	st, found := r.findServerByCanonicalName(server)
	switch {
	case found && st.Config.Type == "sdk":
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "mcp_call does not support SDK MCP servers. SDK servers are caller-provided — invoke " + st.Name + " directly."}
	case !found || st.Status != "connected":
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "MCP server not connected: " + server}
	}
	result, err := r.session.Servers().CallRaw(ctx, mcp.CallRequest{Tool: tool, Input: in.keys["arguments"]})
	return control.ResponseWithEvents{Payload: result}, err
}

func (r *requestServer) findServerByCanonicalName(name string) (mcp.ServerStatus, bool) {
	for _, st := range r.session.Servers().Servers() {
		if mcp.CanonicalToolName(st.Name, "") == mcp.CanonicalToolName(name, "") {
			return st, true
		}
	}
	return mcp.ServerStatus{}, false
}

func readMCPUIResource(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name, uri := stringOrEmpty(in.keys["serverName"]), stringOrEmpty(in.keys["uri"])
	if !strings.HasPrefix(uri, "ui://") {
		return control.ResponseWithEvents{}, errors.New("mcp_read_resource: uri must use the ui:// scheme")
	}
	st, err := r.findServer(name)
	switch {
	case err != nil:
		return control.ResponseWithEvents{}, err
	case st.Config.Type == "sdk":
		return control.ResponseWithEvents{}, errors.New("mcp_read_resource does not support SDK MCP servers: the caller hosts them and can read them directly")
	case st.Status == "disabled":
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "MCP server " + name + " is disabled — enable it (mcp_toggle) before reading"}
	}
	result, err := r.session.Servers().ReadResource(ctx, name, uri)
	return control.ResponseWithEvents{Payload: result}, err
}

// hasServerRefusedClientRegistration reports whether a login failed because the server does not register clients.
func hasServerRefusedClientRegistration(loginError string) bool {
	return strings.HasPrefix(loginError, "Dynamic Client Registration rejected (HTTP 400)") || loginError == "Incompatible auth server: does not support dynamic client registration"
}

// answerWithKey is an answer with one key.
type answerWithKey protocol.Field

func (a answerWithKey) MarshalJSON() ([]byte, error) {
	return protocol.MarshalFields([]answerWithKey{a})
}

// mcpAuthenticateAnswer is the answer to mcp_authenticate.
type mcpAuthenticateAnswer struct {
	URL              string `json:"authUrl"`
	NeedsUser        bool   `json:"requiresUserAction"`
	CallbackExpected bool   `json:"callbackExpected"`
	Scheme           string `json:"redirectScheme"` // "localhost", or "custom" if the redirect URI of the request is used
	State            string `json:"state"`
	Port             int    `json:"callbackPort,omitempty"`
}

// handleMCPAuthenticate begins a server login. If the authorization server refuses the redirect URI, a local port is used.
func handleMCPAuthenticate(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	st, err := r.findRemoteMCPServer(in, "Server type %q does not support OAuth authentication", "stdio")
	if err != nil {
		return control.ResponseWithEvents{}, err
	}
	if st.Status == "disabled" {
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "MCP server " + st.Name + " is disabled — enable it (mcp_toggle) before authenticating"}
	}
	if u, err := url.Parse(st.Config.URL); err != nil || u.Scheme == "" || u.Host == "" {
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "This server's URL is missing or not a valid URL, so sign-in can't start. " +
			"Fix the URL in its MCP config (or set the environment variable it uses) and try again."}
	}
	redirect, _ := plainjson.StringValue(in.keys["redirectUri"])
	refusal := &control.CodedResponseError{}
	if string(in.keys["redirectUriOnly"]) == "true" {
		refusal.Code = "mcp_redirect_uri_unusable"
		if refusal.Text = "redirectUriOnly is set and the request names no redirectUri."; redirect == "" {
			return control.ResponseWithEvents{}, refusal
		}
	}
	l, err := r.session.Servers().BeginLogin(ctx, st.Name, redirect)
	if err != nil && redirect != "" && refusal.Code == "" {
		redirect = ""
		l, err = r.session.Servers().BeginLogin(ctx, st.Name, redirect)
	}
	if err != nil {
		if refusal.Text = oneLineUpTo200Characters("SDK auth failed: " + err.Error()); refusal.Code == "" && hasServerRefusedClientRegistration(err.Error()) && r.session.Plan().Profile.Has(claudecode.FeatureMCPStatusReportsTransportsAndErrorCodes) {
			refusal.Code = "mcp_client_registration_unavailable"
		}
		return control.ResponseWithEvents{}, refusal
	}
	out := mcpAuthenticateAnswer{URL: l.URL, NeedsUser: true, CallbackExpected: true, Scheme: "custom", State: l.State}
	u, err := url.Parse(l.RedirectURI)
	if err == nil && redirect == "" {
		out.Scheme = u.Hostname()
		out.Port, err = strconv.Atoi(u.Port())
	}
	return control.ResponseWithEvents{Payload: out}, err
}

// handleMCPCallbackURL completes the latest login to a server with the user's redirect URL. The host then reconnects the server.
func handleMCPCallbackURL(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name, _ := plainjson.StringValue(in.keys["serverName"])
	if _, err := r.findServer(name); err != nil || r.session.Servers().PendingLogin(name) == nil {
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "No active OAuth flow for server: " + name}
	}
	l := r.session.Servers().PendingLogin(name)
	var query url.Values
	answer, _ := plainjson.StringValue(in.keys["callbackUrl"])
	if at, err := url.Parse(answer); err == nil {
		query = at.Query()
	}
	switch {
	case !query.Has("code") && !query.Has("error"):
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "Invalid callback URL: missing authorization code. Please paste the full redirect URL including the code parameter."}
	case !l.IsAnswer(query):
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "Callback URL not accepted: it belongs to a different sign-in attempt (OAuth state mismatch) or carries no authorization code. " +
			"The sign-in in progress is still waiting; submit the redirect URL from its own browser page."}
	}
	if err := l.ExchangeCodeAndStoreTokens(ctx, query); err != nil {
		l.End(err)
		return control.ResponseWithEvents{}, &control.ResponseError{Text: oneLineUpTo200Characters(err.Error())}
	}
	l.End(errLoginAnswerSubmittedByHost)
	return control.ResponseWithEvents{}, nil
}

// errLoginAnswerSubmittedByHost ends the wait for a login, because the host has submitted its answer.
var errLoginAnswerSubmittedByHost = errors.New("the host has submitted the answer")

// handleMCPClearAuthAndReconnect forgets the login to a server and connects to the server without it.
func handleMCPClearAuthAndReconnect(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	st, err := r.findRemoteMCPServer(in, "Cannot clear auth for server type %q", "undefined")
	if err == nil {
		err = r.session.Servers().RemoveCredentials(st.Name)
	}
	if err != nil {
		return control.ResponseWithEvents{}, err
	}
	if st.Status != "disabled" {
		_ = r.reconnect(ctx, st.Name) // the status contains the error
	}
	return control.ResponseWithEvents{Payload: struct{}{}}, nil
}

// findRemoteMCPServer returns the server that a request names. If the server has no URL, it also returns an error. The text of
// the error is notRemoteErrorFormat with the type of the server, or with typeShownForStdio if the type is stdio or missing.
func (r *requestServer) findRemoteMCPServer(in controlRequest, notRemoteErrorFormat, typeShownForStdio string) (server mcp.ServerStatus, _ error) {
	name, _ := plainjson.StringValue(in.keys["serverName"])
	st, err := r.findServer(name)
	if err == nil && st.Config.URL == "" {
		if st.Config.Type != "stdio" {
			typeShownForStdio = cmp.Or(st.Config.Type, typeShownForStdio)
		}
		err = &control.ResponseError{Text: fmt.Sprintf(notRemoteErrorFormat, typeShownForStdio)}
	}
	return st, err
}

// oneLineUpTo200Characters returns a text as one line without quotes, cut as in the real CLI.
func oneLineUpTo200Characters(text string) string {
	const longest = 200
	runes := []rune(strings.Join(strings.Fields(strings.ReplaceAll(text, `"`, " ")), " "))
	if len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return string(runes)
}
