package mcpcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/mcp/oauth"
)

// autoLoginRedirectURL is the redirect URI of a login without a browser. No server listens at this address.
const autoLoginRedirectURL = "http://localhost:3118/callback"

func runLogin(ctx context.Context, o *Options, words []string) error {
	noBrowser, auto := false, false
	options := []argv.OptionDefinition{{Flags: "--no-browser", Help: "Print the address to open instead of starting a browser", Set: func(string) error { noBrowser = true; return nil }}}
	if o.Extended {
		options = append(options, argv.OptionDefinition{Flags: "--auto", Help: "Log in without a browser, to an authorization server on this machine", Set: func(string) error { auto = true; return nil }})
	}
	found, help, err := parseOperands(o, options, words, "name")
	if err != nil || help {
		return err
	}
	name := found[0]
	server, err := o.expandedServer(name)
	switch {
	case err != nil:
		return err
	case !isRemote(server):
		return process.Verbatimf("%q doesn't support OAuth login — it's only available for HTTP and SSE servers.", name)
	case hasAuthorizationHeader(server):
		return process.Verbatimf("%q authenticates with the `Authorization` header in its configuration, so there's no separate login. Update that header to change its credentials.", name)
	}
	fmt.Fprintf(o.Stdout, "Starting authentication for %q…\n", name)
	client := server.NewOAuthClient(o.Client)
	if auto {
		err = loginByFollowingRedirects(ctx, client, server)
	} else {
		err = o.browserLogin(ctx, client, noBrowser)
	}
	if err != nil {
		return process.Verbatimf("Couldn't complete authentication for %q: %v", name, err)
	}
	fmt.Fprintf(o.Stdout, "Authenticated with %q. Its tools are now available in Claude Code.\n", name)
	return nil
}

// loginByFollowingRedirects logs in without a user by following redirects. Unlike the real CLI, it first asks for the required scopes.
func loginByFollowingRedirects(ctx context.Context, client *oauth.Client, server mcp.ServerConfig) error {
	challenge, err := client.ProbeWithoutCredentials(ctx)
	if err != nil {
		return err
	}
	redirect := autoLoginRedirectURL
	if port := server.OAuth.CallbackPort; port > 0 {
		redirect = fmt.Sprintf("http://localhost:%d/callback", port)
	} else if strings.HasPrefix(client.SavedRedirectURI(), "http://localhost:") {
		redirect = client.SavedRedirectURI()
	}
	done, err := client.LoginAsClient(ctx, challenge)
	if done || err != nil {
		return err
	}
	l, err := client.BeginLogin(ctx, redirect, challenge)
	if err != nil {
		return withSDKAuthFailedPrefix(err)
	}
	answer, err := l.ApproveWithoutUser(ctx)
	if err != nil {
		return err
	}
	return l.ExchangeCodeAndStoreTokens(ctx, answer)
}

// withSDKAuthFailedPrefix adds the prefix of the real CLI to the error of a login that could not begin.
func withSDKAuthFailedPrefix(err error) error { return fmt.Errorf("SDK auth failed: %w", err) }

// browserLogin logs in with the browser of the user, who may also paste the redirect URL.
func (o *Options) browserLogin(ctx context.Context, client *oauth.Client, noBrowser bool) error {
	if err := client.ForgetRefusalAndCheckSupport(ctx); err != nil {
		return withSDKAuthFailedPrefix(err)
	}
	if o.Terminal == nil {
		hint := ""
		if o.Extended {
			hint = "\nhint: with --auto, a login to an authorization server on this machine needs no browser"
		}
		return errors.New("this isn't an interactive terminal. Re-run in one — e.g. `ssh -t` — and paste the redirect URL when prompted." + hint)
	}
	listener, redirect, err := client.Listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // if the login cannot begin
	l, err := client.BeginLogin(ctx, redirect, "")
	if err != nil {
		return withSDKAuthFailedPrefix(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	intro := "Visit this URL to authorize:"
	if !noBrowser {
		intro = "If the browser didn't open, visit:"
		o.openBrowserFromEnv(ctx, l.URL)
	}
	fmt.Fprintf(o.Stdout, "%s\n  %s\n\nWaiting for authorization… (^C to cancel)\n", intro, l.URL)
	go o.completeLoginFromInput(ctx, l) // completeLoginFromInput returns after its current read, or when the process exits
	err = l.ServeRedirectAndWait(ctx, listener, o.LoginWait)
	fmt.Fprintln(o.Stdout)
	return err
}

// completeLoginFromInput reads redirect URLs that the user pastes into the terminal, until one of them completes the login.
func (o *Options) completeLoginFromInput(ctx context.Context, l *oauth.Login) {
	lines := bufio.NewScanner(o.Stdin)
	fmt.Fprint(o.Stdout, "Or paste the redirect URL here: ")
	for lines.Scan() {
		if at, err := url.Parse(strings.TrimSpace(lines.Text())); err == nil && l.IsAnswer(at.Query()) {
			l.End(l.ExchangeCodeAndStoreTokens(ctx, at.Query()))
			return
		}
		fmt.Fprint(o.Stdout, "That doesn't look like a redirect URL for this sign-in — paste the full address from the browser page this sign-in opened.\nOr paste the redirect URL here: ")
	}
}

// openBrowserFromEnv opens a URL in the background with the program in BROWSER. If the variable is empty, it does nothing.
func (o *Options) openBrowserFromEnv(ctx context.Context, at string) {
	browser := proc.Getenv(o.Client.Environ, "BROWSER")
	if browser == "" {
		return
	}
	go func() { // returns when ctx is cancelled
		_, _ = proc.Run(ctx, proc.RunOptions{Command: proc.Command{Path: browser, Args: []string{at}, Env: o.Client.Environ}})
	}()
}

func runLogout(_ context.Context, o *Options, words []string) error {
	found, help, err := parseOperands(o, nil, words, "name")
	if err != nil || help {
		return err
	}
	name := found[0]
	server, err := o.expandedServer(name)
	if err != nil {
		return err
	}
	if !isRemote(server) {
		return process.Verbatimf("%q doesn't use OAuth — there are no stored credentials to clear.", name)
	}
	if err := server.NewOAuthClient(o.Client).ForgetTokensAndRegistration(); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "Signed out of %q. Run `claude mcp login %s` to authenticate again.\n", name, name)
	return nil
}

func (o *Options) expandedServer(name string) (mcp.ServerConfig, error) {
	config, err := o.configuredServers()
	if err != nil {
		return mcp.ServerConfig{}, err
	}
	i := slices.IndexFunc(config.Servers, func(s mcp.ServerConfig) bool { return s.Name == name })
	if i < 0 {
		return mcp.ServerConfig{}, noServerError(name, config.Servers)
	}
	return config.Servers[i].ExpandVariables(o.Client), nil
}

func isRemote(s mcp.ServerConfig) bool {
	return slices.Contains([]string{"http", "sse"}, serverTransport(s))
}

func hasAuthorizationHeader(s mcp.ServerConfig) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

func (o *Options) readClientSecret() (string, error) {
	if secret := proc.Getenv(o.Client.Environ, "MCP_CLIENT_SECRET"); secret != "" {
		return secret, nil
	}
	if o.Terminal == nil {
		return "", process.Verbatimf("No TTY available to prompt for client secret. Set MCP_CLIENT_SECRET env var instead.")
	}
	return o.Terminal.ReadSecret("Enter OAuth client secret: ")
}
