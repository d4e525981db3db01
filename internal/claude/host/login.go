package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
)

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
func handleMCPAuthenticate(ctx context.Context, r *requestServer, in controlRequest) (control.Answer, error) {
	st, err := r.findRemoteMCPServer(in, "Server type %q does not support OAuth authentication", "stdio")
	if err != nil {
		return control.Answer{}, err
	}
	if st.Status == "disabled" {
		return control.Answer{}, &control.ResponseError{Text: "MCP server " + st.Name + " is disabled — enable it (mcp_toggle) before authenticating"}
	}
	if u, err := url.Parse(st.Config.URL); err != nil || u.Scheme == "" || u.Host == "" {
		return control.Answer{}, &control.ResponseError{Text: "This server's URL is missing or not a valid URL, so sign-in can't start. " +
			"Fix the URL in its MCP config (or set the environment variable it uses) and try again."}
	}
	redirect, _ := plainjson.StringValue(in.keys["redirectUri"])
	refusal := &control.CodedResponseError{}
	if string(in.keys["redirectUriOnly"]) == "true" {
		refusal.Code = "mcp_redirect_uri_unusable"
		if refusal.Text = "redirectUriOnly is set and the request names no redirectUri."; redirect == "" {
			return control.Answer{}, refusal
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
		return control.Answer{}, refusal
	}
	out := mcpAuthenticateAnswer{URL: l.URL, NeedsUser: true, CallbackExpected: true, Scheme: "custom", State: l.State}
	u, err := url.Parse(l.RedirectURI)
	if err == nil && redirect == "" {
		out.Scheme = u.Hostname()
		out.Port, err = strconv.Atoi(u.Port())
	}
	return control.Answer{Payload: out}, err
}

// handleMCPCallbackURL completes the latest login to a server with the user's redirect URL. The host then reconnects the server.
func handleMCPCallbackURL(ctx context.Context, r *requestServer, in controlRequest) (control.Answer, error) {
	name, _ := plainjson.StringValue(in.keys["serverName"])
	if _, err := r.findServer(name); err != nil || r.session.Servers().PendingLogin(name) == nil {
		return control.Answer{}, &control.ResponseError{Text: "No active OAuth flow for server: " + name}
	}
	l := r.session.Servers().PendingLogin(name)
	var query url.Values
	answer, _ := plainjson.StringValue(in.keys["callbackUrl"])
	if at, err := url.Parse(answer); err == nil {
		query = at.Query()
	}
	switch {
	case !query.Has("code") && !query.Has("error"):
		return control.Answer{}, &control.ResponseError{Text: "Invalid callback URL: missing authorization code. Please paste the full redirect URL including the code parameter."}
	case !l.IsAnswer(query):
		return control.Answer{}, &control.ResponseError{Text: "Callback URL not accepted: it belongs to a different sign-in attempt (OAuth state mismatch) or carries no authorization code. " +
			"The sign-in in progress is still waiting; submit the redirect URL from its own browser page."}
	}
	if err := l.Finish(ctx, query); err != nil {
		l.End(err)
		return control.Answer{}, &control.ResponseError{Text: oneLineUpTo200Characters(err.Error())}
	}
	l.End(errLoginAnswerSubmittedByHost)
	return control.Answer{}, nil
}

// errLoginAnswerSubmittedByHost ends the wait for a login, because the host has submitted its answer.
var errLoginAnswerSubmittedByHost = errors.New("the host has submitted the answer")

// handleMCPClearAuthAndReconnect forgets the login to a server and connects to the server without it.
func handleMCPClearAuthAndReconnect(ctx context.Context, r *requestServer, in controlRequest) (control.Answer, error) {
	st, err := r.findRemoteMCPServer(in, "Cannot clear auth for server type %q", "undefined")
	if err == nil {
		err = r.session.Servers().RemoveCredentials(st.Name)
	}
	if err != nil {
		return control.Answer{}, err
	}
	if st.Status != "disabled" {
		_ = r.reconnect(ctx, st.Name) // the status contains the error
	}
	return control.Answer{Payload: struct{}{}}, nil
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
