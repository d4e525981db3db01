package mcpcmd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/mcp"
)

// newAuthorization starts a server that requires OAuth, with an authorization server that approves every login.
func newAuthorization(t *testing.T) *httptest.Server {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register"}`, server.URL)
		case "/register":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"client_id":"client1"}`)
		case "/authorize":
			http.Redirect(w, r, r.FormValue("redirect_uri")+"?code=c&state="+r.FormValue("state"), http.StatusFound)
		case "/token":
			fmt.Fprint(w, `{"access_token":"sesame","scope":"read"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// TestLogin_N30: the texts and exit codes of the real CLI 2.1.330, and the flag --auto of claudeless.
func TestLogin_N30(t *testing.T) {
	b := newTestHome(t)
	b.o.Client.Credentials = mcp.CredentialStorage{Path: filepath.Join(b.home, ".credentials.json"), Time: time.Now}
	server := newAuthorization(t)
	modified := "File modified: $HOME/.claude.json [project: $PROJECT]\n"
	added := "Added HTTP MCP server o with URL: " + server.URL + "/mcp to local config\n" + modified
	b.steps([]step{
		{words: []string{"login", "none"}, stderr: "No MCP server named \"none\". Run `claude mcp add` to add one.", fails: true},
		{words: []string{"add", "st", "cat"}, stdout: "Added stdio MCP server st with command: cat  to local config\n" + modified},
		{words: []string{"login", "st"}, stderr: `"st" doesn't support OAuth login — it's only available for HTTP and SSE servers.`, fails: true},
		{words: []string{"logout", "st"}, stderr: `"st" doesn't use OAuth — there are no stored credentials to clear.`, fails: true},
		{words: []string{"add", "o", server.URL + "/mcp", "-t", "http"}, stdout: added},
		{words: []string{"logout", "o"}, stdout: "Signed out of \"o\". Run `claude mcp login o` to authenticate again.\n"},
		{words: []string{"login", "o"}, stdout: "Starting authentication for \"o\"…\n", fails: true, stderr: "Couldn't complete authentication for \"o\": this isn't an interactive terminal. Re-run in one — e.g. `ssh -t` — and paste the redirect URL when prompted.\n" +
			"hint: with --auto, a login to an authorization server on this machine needs no browser"},
		{words: []string{"login", "o", "--auto"}, stdout: "Starting authentication for \"o\"…\nAuthenticated with \"o\". Its tools are now available in Claude Code.\n"},
	})
	if data, err := os.ReadFile(b.o.Client.Credentials.Path); err != nil || !bytes.Contains(data, []byte(`"accessToken":"sesame"`)) {
		t.Errorf("stored %s, %v", data, err)
	}
	b.steps([]step{
		{words: []string{"remove", "o"}, stdout: "Removed MCP server \"o\" from local config\n" + modified},
		{words: []string{"add", "o", server.URL + "/mcp", "-t", "http", "-H", "Authorization: Bearer x"}, stdout: strings.Replace(added, modified, "Headers: {\n  \"Authorization\": \"[REDACTED]\"\n}\n"+modified, 1)},
		{words: []string{"login", "o"}, stderr: "\"o\" authenticates with the `Authorization` header in its configuration, so there's no separate login. Update that header to change its credentials.", fails: true},
	})
	if data, err := os.ReadFile(b.o.Client.Credentials.Path); err != nil || bytes.Contains(data, []byte("sesame")) {
		t.Errorf("after the server was removed: %s, %v", data, err)
	}
	b.o.Extended = false
	if _, stderr, ok := b.run("login", "o", "--auto"); ok || stderr != "error: unknown option '--auto'" {
		t.Errorf("as claude: %q", stderr)
	}
}

// TestClientSecret_N31: a client secret is read from MCP_CLIENT_SECRET or from the terminal, saved with the
// credentials and never shown.
func TestClientSecret_N31(t *testing.T) {
	b := newTestHome(t)
	b.o.Client.Credentials = mcp.CredentialStorage{Path: filepath.Join(b.home, ".credentials.json"), Time: time.Now}
	add := []string{"add", "o", "http://127.0.0.1:1/mcp", "-t", "http", "--client-id", "me", "--client-secret", "--callback-port", "8765"}
	if _, stderr, ok := b.run(add...); ok || stderr != "No TTY available to prompt for client secret. Set MCP_CLIENT_SECRET env var instead." {
		t.Errorf("without a terminal: %q", stderr)
	}
	b.o.Client.Environ = append(b.o.Client.Environ, "MCP_CLIENT_SECRET=s3cret")
	if stdout, stderr, ok := b.run(add...); !ok || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("%q %q", stdout, stderr)
	}
	config, err := os.ReadFile(filepath.Join(b.home, ".claude.json"))
	if err != nil || bytes.Contains(config, []byte("s3cret")) || !bytes.Contains(bytes.Join(bytes.Fields(config), nil), []byte(`"oauth":{"clientId":"me","callbackPort":8765}`)) {
		t.Errorf("configuration %s, %v", config, err)
	}
	if stdout, _, ok := b.run("get", "o"); !ok || !strings.Contains(stdout, "\n  OAuth: client_id configured, client_secret configured, callback_port 8765\n") {
		t.Errorf("get: %q", stdout)
	}
	if _, stderr, ok := b.run("add", "st", "--client-id", "x", "--", "cat"); !ok || stderr != "Warning: --client-id, --client-secret, --callback-port, and --xaa only work with HTTP/SSE servers and are ignored for stdio.\n" {
		t.Errorf("stdio: %q", stderr)
	}
	b.o.Client.Environ, b.o.Terminal = os.Environ(), secretTerminal("typed")
	if _, stderr, ok := b.run("add-json", "p", `{"type":"http","url":"http://127.0.0.1:1/mcp","oauth":{"clientId":"me"}}`, "--client-secret"); !ok {
		t.Errorf("terminal: %q", stderr)
	}
	if data, err := os.ReadFile(b.o.Client.Credentials.Path); err != nil || !bytes.Contains(data, []byte(`"clientSecret":"typed"`)) || !bytes.Contains(data, []byte(`"clientSecret":"s3cret"`)) {
		t.Errorf("stored %s, %v", data, err)
	}
	if _, stderr, ok := b.run("add-json", "q", `{"type":"http","url":"http://h","oauth":{"authServerMetadataUrl":"http://h"}}`); ok || stderr != "Invalid configuration: oauth.authServerMetadataUrl: authServerMetadataUrl must use https://" {
		t.Errorf("http metadata: %q", stderr)
	}
}

// TestMachineLogin_N31: --auto logs in as the configured client if only programs can log in.
func TestMachineLogin_N31(t *testing.T) {
	b := newTestHome(t)
	b.o.Client.Credentials = mcp.CredentialStorage{Path: filepath.Join(b.home, ".credentials.json"), Time: time.Now}
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"%[1]s/token","grant_types_supported":["client_credentials"]}`, server.URL)
		case "/token":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"sesame","token_type":"Bearer"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	b.o.Client.Environ = append(b.o.Client.Environ, "MCP_CLIENT_SECRET=s3cret")
	if _, stderr, ok := b.run("add", "o", server.URL+"/mcp", "-t", "http", "--client-id", "robot", "--client-secret"); !ok {
		t.Fatal(stderr)
	}
	if stdout, stderr, ok := b.run("login", "o", "--auto"); !ok || !strings.HasSuffix(stdout, "Authenticated with \"o\". Its tools are now available in Claude Code.\n") {
		t.Errorf("%q %q", stdout, stderr)
	}
	if data, err := os.ReadFile(b.o.Client.Credentials.Path); err != nil || !bytes.Contains(data, []byte(`"accessToken":"sesame"`)) {
		t.Errorf("stored %s, %v", data, err)
	}
}

// secretTerminal is a terminal at which this text is typed.
type secretTerminal string

func (s secretTerminal) ReadSecret(string) (string, error) { return string(s), nil }

// sharedOutput collects the output of several goroutines and reports the URL of a login.
type sharedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	url  chan string
}

func (s *sharedOutput) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := bufio.NewScanner(bytes.NewReader(p))
	for lines.Scan() {
		if at := strings.TrimSpace(lines.Text()); strings.HasPrefix(at, "http://") {
			s.url <- at
		}
	}
	return s.text.Write(p)
}

// TestBrowserLogin_N30: on a terminal a login ends with the browser's answer or with a pasted redirect URL. A login
// that is never finished fails after the timeout. After that, the port is closed.
func TestBrowserLogin_N30(t *testing.T) {
	server := newAuthorization(t)
	for _, how := range []string{"browser", "paste", "nobody"} {
		t.Run(how, func(t *testing.T) {
			b := newTestHome(t)
			b.o.Client.Credentials = mcp.CredentialStorage{Path: filepath.Join(b.home, ".credentials.json"), Time: time.Now}
			if _, stderr, ok := b.run("add", "o", server.URL+"/mcp", "-t", "http"); !ok {
				t.Fatal(stderr)
			}
			stdin, keyboard := io.Pipe()
			defer keyboard.Close()
			shown := &sharedOutput{url: make(chan string, 1)}
			b.o.Terminal, b.o.Stdin, b.o.Stdout = secretTerminal(""), stdin, shown
			if how == "nobody" {
				b.o.LoginWait = time.Millisecond
			}
			done := make(chan error, 1)
			go func() { done <- Run(t.Context(), b.o, []string{"login", "o", "--no-browser"}) }()
			at, err := url.Parse(<-shown.url)
			if err != nil {
				t.Fatal(err)
			}
			redirect := at.Query().Get("redirect_uri")
			answer := redirect + "?code=c&state=" + at.Query().Get("state")
			want := `Authenticated with "o". Its tools are now available in Claude Code.`
			switch how {
			case "browser":
				for _, visit := range []struct{ at, want string }{{redirect + "?code=c&state=other", "This page belongs to a different login"}, {answer, "Authentication successful"}} {
					resp, err := http.Get(visit.at)
					if err != nil {
						t.Fatal(err)
					}
					page, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					if !bytes.Contains(page, []byte(visit.want)) {
						t.Errorf("%s: %s", visit.at, page)
					}
				}
			case "paste":
				fmt.Fprintf(keyboard, "http://localhost/callback?x=1\n%s\n", answer)
				want = "That doesn't look like a redirect URL for this sign-in"
			case "nobody":
				want = "Visit this URL to authorize:"
			}
			err = <-done
			if how == "nobody" {
				if err == nil || err.Error() != `Couldn't complete authentication for "o": Authentication timeout` {
					t.Errorf("got %v", err)
				}
			} else if err != nil {
				t.Error(err)
			}
			shown.mu.Lock()
			if !strings.Contains(shown.text.String(), want) {
				t.Errorf("shown %q", shown.text.String())
			}
			shown.mu.Unlock()
			u, _ := url.Parse(redirect)
			if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", u.Port())); err == nil {
				c.Close()
				t.Error("the port is still open")
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}
