package suite

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/scenarios"
)

type caseRunOfProgram struct {
	*CaseJob
	Lane
	sys       *process.System
	recording parity.Recording
	started   time.Time

	env     []string
	servers []*proc.Process
	api     *modelAPI
	front   *apiTLSReverseProxy // serves the API at its default URL; nil means that the programs use the URL of api
}

func (p *caseRunOfProgram) path(parts ...string) string {
	return filepath.Join(append([]string{p.Dir, "w"}, parts...)...)
}

func (p *caseRunOfProgram) configDir() string { return p.path("home", ".claude") }

func (p *caseRunOfProgram) isProgramRealClaude() bool { return p.Program != "" }

func (p *caseRunOfProgram) addProblem(kind, text string) {
	p.recording.Problems = append(p.recording.Problems, parity.LaneProblem{Kind: kind, Text: text})
}

// recreateDirsAndStartServers removes the environment of the program that ran before and creates that of this program.
func (p *caseRunOfProgram) recreateDirsAndStartServers(ctx context.Context) error {
	if err := os.RemoveAll(p.path()); err != nil {
		return err
	}
	for _, dir := range []string{p.path("cwd"), p.path("bin"), p.path("tmp"), p.path("rec", "mcp"), p.configDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	p.recording.Paths = map[string]string{p.path("cwd"): "<cwd>", p.path("home"): "<home>", p.path("tmp"): "<tmp>", p.path(): "<dir>", strings.NewReplacer("/", "-", ".", "-").Replace(p.path("cwd")): "<project>"}
	if err := errors.Join(p.writeCaseFilesAndClaudeConfig(), p.installPrograms()); err != nil {
		return err
	}
	var err error
	if p.api, err = p.startModelAPI(ctx); err != nil {
		return err
	}
	p.recording.Paths[strings.TrimPrefix(p.api.URL, "http://")] = "<api>"
	if p.DefaultURL {
		backend, err := url.Parse(p.api.URL)
		if err != nil {
			return err
		}
		if p.front, err = startTLSProxyWritingCA(backend, p.path("ca.pem")); err != nil {
			return err
		}
	}
	p.setProgramEnvironment(p.api.URL)
	return p.startFixtures(ctx)
}

func (p *caseRunOfProgram) writeCaseFilesAndClaudeConfig() error {
	all := map[string][]byte{p.path("scenario.toml"): p.Case.Scenario}
	seed, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark", "hasSeenAutoDefaultNotice": true,
		"customApiKeyResponses": map[string]any{"approved": []string{dummyAPIKey}, "rejected": []string{}},
		"projects":              map[string]any{p.path("cwd"): map[string]any{"hasTrustDialogAccepted": true}},
	})
	if err != nil {
		return err
	}
	all[filepath.Join(p.configDir(), ".claude.json")] = seed
	if p.Case.Settings != nil {
		all[filepath.Join(p.configDir(), "settings.json")] = p.Case.Settings
	}
	if p.Case.MCP != nil {
		all[p.path("mcp.json")] = p.Case.MCP
	}
	for name, data := range p.Case.Files {
		all[p.path("cwd", filepath.FromSlash(name))] = data
	}
	for name, data := range p.Case.Home {
		all[p.path("home", filepath.FromSlash(name))] = data
	}
	for name, data := range all {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(data), "#!") {
			mode = 0o755
		}
		// The CLI sorts files by their modification times, so these are the same.
		if err := errors.Join(os.WriteFile(name, data, mode), os.Chtimes(name, p.started, p.started)); err != nil {
			return err
		}
	}
	return nil
}

const dummyAPIKey = "dummy"

// installPrograms writes the programs that are first on PATH. `claude` and `claudeless` there both run p.Executable; `claudeless` also
// makes fixtures record their traffic. record-hook is a hook that records its input and prints its argument.
func (p *caseRunOfProgram) installPrograms() error {
	quoted := "'" + strings.ReplaceAll(p.Executable, "'", `'\''`) + "'"
	protocol := ""
	if p.Protocol != "" {
		protocol = " --protocol '" + p.Protocol + "'"
	}
	fixture := fmt.Sprintf("#!/bin/sh\ncase \"$1 $2\" in 'fixture serve')\n  name='%s'/\"$(basename \"$3\" .toml)\"\n  exec %s \"$@\"%s --record \"$name.jsonl\" --capture \"$name oauth.jsonl\" ;;\nesac\nexec %s \"$@\"\n",
		p.path("rec", "mcp"), quoted, protocol, quoted)
	hook := fmt.Sprintf("#!/bin/sh\nin=$(cat)\nprintf '%%s\\n' \"$in\" >>'%s'\n[ $# -eq 0 ] || printf '%%s' \"$1\"\n", p.path("rec", "hooks.jsonl"))
	if p.Case.InertShell {
		if err := os.WriteFile(p.path("bin", "bash"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.Symlink(p.Executable, p.path("bin", "claude")), os.WriteFile(p.path("bin", "claudeless"), []byte(fixture), 0o755), os.WriteFile(p.path("bin", "record-hook"), []byte(hook), 0o755))
}

func (p *caseRunOfProgram) scenarioFile() string {
	if filepath.Ext(p.Case.File) == ".txtar" {
		return p.path("scenario.toml")
	}
	return filepath.Join(p.Case.Dir, filepath.Base(p.Case.File))
}

func (p *caseRunOfProgram) setProgramEnvironment(apiBaseURL string) {
	p.env = []string{
		"PATH=" + p.path("bin") + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + p.path("home"), "CLAUDE_CONFIG_DIR=" + p.configDir(), "TMPDIR=" + p.path("tmp"),
		"TERM=dumb", "LANG=C.UTF-8", "SHELL=/bin/bash", "USER=somebody", "TZ=UTC", "IS_SANDBOX=1",
		"ANTHROPIC_API_KEY=" + dummyAPIKey, "ANTHROPIC_BASE_URL=" + apiBaseURL,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}
	if p.Case.InertShell { // the real CLI uses SHELL, claudeless the first bash in PATH
		p.env = append(slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, "SHELL=") }), "SHELL="+p.path("bin", "bash"))
	}
	if p.DefaultURL {
		p.env = append(p.env, "ANTHROPIC_BASE_URL=", "NODE_EXTRA_CA_CERTS="+p.path("ca.pem"))
	}
	for _, kv := range slices.Concat(p.env, p.Case.Env) { // an empty value removes a variable
		if name, value, _ := strings.Cut(kv, "="); value == "" {
			p.env = slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		} else if !slices.Contains(p.env, kv) {
			p.env = append(p.env, kv)
		}
	}
	if p.isProgramRealClaude() {
		return
	}
	p.env = append(p.env, "CLAUDELESS_SCENARIO="+p.scenarioFile(), "CLAUDELESS_CAPTURE="+p.path("rec", "journal.jsonl"), "CLAUDELESS_ENVIRONMENT=login")
	if p.Version != "" {
		p.env = append(p.env, "CLAUDELESS_CLAUDE_VERSION="+p.Version)
	}
}

func (p *caseRunOfProgram) startFixtures(ctx context.Context) error {
	for _, s := range p.Case.Servers {
		server, err := proc.Start(ctx, proc.Options{Command: proc.Command{Path: p.path("bin", "claudeless"), Args: []string{"fixture", "serve", s.Fixture, "--http", "127.0.0.1:0"}, Env: p.env, Dir: p.path("cwd")}})
		if err != nil {
			return err
		}
		p.servers = append(p.servers, server)
		line, _ := bufio.NewReader(server.Stdout()).ReadString('\n') // an incomplete line is reported below
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.Host == "" {
			return fmt.Errorf("serving %s: %s", s.Fixture, strings.TrimSpace(server.StderrTail()))
		}
		p.env = append(p.env, s.Name+"_URL=http://"+u.Host)
		p.recording.Paths[u.Host] = "<" + s.Name + ">"
	}
	return nil
}

func (p *caseRunOfProgram) stopServers(ctx context.Context) error {
	for _, s := range p.servers {
		s.SignalChildOnly(os.Interrupt)
		s.Stop(ctx)
	}
	var err error
	if p.front != nil {
		err = p.front.Close()
	}
	if p.api == nil {
		return err
	}
	return errors.Join(err, p.api.Close())
}

const apiHost = "api.anthropic.com"

// apiTLSReverseProxy serves the default URL by forwarding requests to the backend.
type apiTLSReverseProxy struct {
	server *http.Server
	done   chan error // receives the error of the server
}

// startTLSProxyWritingCA forwards requests from loopback port 443 to backend. It writes the certificate that clients must trust to caFile.
func startTLSProxyWritingCA(backend *url.URL, caFile string) (*apiTLSReverseProxy, error) {
	cert, ca, err := newCertificateAndCA()
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	if err := os.WriteFile(caFile, ca, 0o644); err != nil {
		return nil, err
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, fmt.Errorf("listening at the default URL: %w", err)
	}
	f := &apiTLSReverseProxy{done: make(chan error, 1), server: &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }},
	}}
	go func() { f.done <- f.server.Serve(ln) }() // returns after Close
	return f, nil
}

// Close ends the server and its connections.
func (f *apiTLSReverseProxy) Close() error {
	err := f.server.Close()
	if served := <-f.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// newCertificateAndCA returns a certificate for [apiHost] and, in PEM, the certificate of the authority that signed it.
func newCertificateAndCA() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "claudeless parity"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	rawCA, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: apiHost}, DNSNames: []string{apiHost},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rawCA})
	return tls.Certificate{Certificate: [][]byte{raw, rawCA}, PrivateKey: key}, ca, nil
}

// modelAPI serves a case's scenario as the Messages API on loopback, and records the requests. Close stops the server.
type modelAPI struct {
	URL string // the base URL of the API

	servers []byte // configuration of the scenario's MCP servers, for --mcp-config; nil means none
	journal *os.File
	cancel  context.CancelFunc
	done    chan error
}

// startModelAPI starts the API server for one program. The server runs until Close is called, even if ctx ends earlier.
func (p *caseRunOfProgram) startModelAPI(ctx context.Context) (*modelAPI, error) {
	s, err := scenarios.Load(p.scenarioFile(), scenarios.LoadOptions{})
	if err != nil {
		return nil, err
	}
	a := &modelAPI{done: make(chan error, 1)}
	if a.servers, err = s.MCPConfigJSON("claudeless", ""); err != nil {
		return nil, err
	}
	if a.journal, err = os.Create(p.path("rec", "api.jsonl")); err != nil {
		return nil, fmt.Errorf("recording requests: %w", err)
	}
	handler, err := api.New(api.Options{Scenario: s, Capture: a.journal, CWD: p.path("cwd"), PID: p.sys.PID, Clock: clock.New(clock.Options{Now: p.sys.Now, NewID: p.sys.NewID})})
	if err != nil {
		return nil, errors.Join(err, a.journal.Close())
	}
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ln, err := localhttp.ListenAndWritePortFile(ctx, localhttp.Options{})
	if err != nil {
		a.cancel()
		return nil, errors.Join(err, a.journal.Close())
	}
	a.URL = "http://" + ln.Addr().String()
	go func() { a.done <- localhttp.Serve(ctx, ln, handler, localhttp.Options{Grace: time.Millisecond}) }() // returns after Close
	return a, nil
}

func (a *modelAPI) Close() error {
	a.cancel()
	return errors.Join(<-a.done, a.journal.Close())
}
