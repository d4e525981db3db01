package filecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/claudeless/claudeless/fixtures"
	"github.com/claudeless/claudeless/fixtures/clone"
	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// FixtureCommand serves, checks and writes fixtures: MCP servers in TOML files.
type FixtureCommand struct {
	Serve FixtureServe       `cmd:"" help:"Run a fixture as an MCP server, over stdio or HTTP"`
	Check FixtureCheck       `cmd:"" help:"Report all errors in fixture files"`
	Clone FixtureClone       `cmd:"" help:"Write a fixture that imitates a running MCP server"`
	List  FixtureLibraryList `cmd:"" help:"List the built-in fixtures"`
	Token FixtureToken       `cmd:"" help:"Print an access token for a fixture behind OAuth"`
}

// FixtureServe serves one fixture.
type FixtureServe struct {
	Fixture  string  `arg:"" help:"Fixture file, or the name of a built-in fixture"`
	HTTP     *string `name:"http" placeholder:"ADDR" help:"Serve streamable HTTP on this address instead of stdio (127.0.0.1:0 for a free port)"`
	PortFile string  `placeholder:"FILE" help:"Write the port of --http to FILE"`

	TokenFile string `placeholder:"FILE" help:"Write a new access token to FILE and require it in every HTTP request; required for an address that other machines can reach"`

	Protocol []string `placeholder:"REVISION" help:"Serve only these protocol revisions (2026-07-28, 2025-11-25, …) instead of those of the file"`

	Enable  []string `placeholder:"GLOB" sep:"none" help:"Enable a tool that the file disables (name or alias)"`
	Disable []string `placeholder:"GLOB" sep:"none" help:"Disable a tool (name or alias)"`
	Timeout int      `placeholder:"MS" help:"Timeout in milliseconds for tools that set none"`
	Watch   bool     `help:"Reload the file when it changes"`
	Verbose bool     `help:"Print on stderr which tools are served"`
	Record  string   `placeholder:"FILE" help:"Append every message to FILE, one JSON object per line"`
	Capture string   `placeholder:"FILE" help:"Append the OAuth requests to this journal (default: the one of CLAUDELESS_CAPTURE)"`

	RecordDir string `hidden:"" help:"Also write every message to a new file in this directory"`
}

// Run serves until the end of stdin or a signal.
func (c *FixtureServe) Run(ctx context.Context, s *process.System) error {
	fx, err := fixtures.Open(c.Fixture)
	if err != nil {
		return fmt.Errorf("loading a fixture: %w", err)
	}
	record, err := c.createRecordDirTranscript()
	if err != nil {
		return err
	}
	var trace wire.Tracer
	if record != nil {
		trace = record
	}
	events, done, err := c.openOAuthJournalIfNeeded(s, fx)
	if err != nil {
		return err
	}
	defer done()
	srv, err := fixtures.NewServer(fx, fixtures.ServerOptions{
		OAuth: events, Now: s.Now, NewID: s.NewID, Environ: s.Environ, Stderr: s.Stderr, Trace: trace,
		Timeout: time.Duration(c.Timeout) * time.Millisecond, Enable: c.Enable, Disable: c.Disable, Record: c.Record, Protocol: c.Protocol,
	})
	if err != nil {
		return err
	}
	ctx, stop := s.ContextUntilSignal(ctx)
	defer stop()
	if c.Watch {
		watched := make(chan struct{})
		go func() { defer close(watched); srv.WatchAndReload(ctx, 0, s.Stderr) }() // returns when ctx is cancelled
		defer func() { stop(); <-watched }()
	}
	err = c.serve(ctx, s, srv)
	if crash := new(wire.ScriptedCrashError); errors.As(err, &crash) {
		err = &process.ExitError{Code: crash.Status}
	}
	err = errors.Join(err, srv.Close())
	if record != nil {
		err = errors.Join(err, record.Close())
	}
	return err
}

// createRecordDirTranscript creates a transcript in the directory of --record-dir. Without this flag, the transcript is nil.
func (c *FixtureServe) createRecordDirTranscript() (transcript *wire.Transcript, err error) {
	if c.RecordDir == "" {
		return nil, nil
	}
	file, err := os.CreateTemp(c.RecordDir, "*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("creating a file for the messages of the MCP server: %w", err)
	}
	transcript, err = wire.OpenTranscript(file.Name(), nil)
	return transcript, errors.Join(err, file.Close())
}

// openOAuthJournalIfNeeded opens the journal for a fixture that requires OAuth; nil means no OAuth, or no journal.
func (c *FixtureServe) openOAuthJournalIfNeeded(s *process.System, fx *fixtures.Fixture) (record fixtures.OAuthRecorder, done func(), err error) {
	name := cmp.Or(c.Capture, s.Getenv("CLAUDELESS_CAPTURE"))
	if name == "" || !fx.HasOAuth() {
		return nil, func() {}, nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := oauthRequestJournal{journal.New(journal.Options{W: file, Now: s.Now, PID: s.PID, Environ: s.Environ})}
	return j, func() {
		if err := errors.Join(j.Err(), file.Close()); err != nil {
			fmt.Fprintf(s.Stderr, "warning: the journal %s is not complete: %v\n", name, err)
		}
	}, nil
}

// oauthRequestJournal records in the journal the requests that an authorization server receives.
type oauthRequestJournal struct{ *journal.Journal }

func (j oauthRequestJournal) RecordOAuth(e fixtures.OAuthEvent) {
	j.Write(journal.OAuth{Request: e.Request, Grant: e.Grant, Client: e.Client, Requested: e.Requested, Granted: e.Granted, Result: e.Result, AccessDigest: e.Access, RefreshDigest: e.Refresh})
}

func (c *FixtureServe) serve(ctx context.Context, s *process.System, srv *fixtures.Server) error {
	enabled, all := srv.ToolCounts()
	say := func(where string) {
		if c.Verbose {
			fmt.Fprintf(s.Stderr, "serving %d of %d tools on %s\n", enabled, all, where)
		}
	}
	if c.HTTP == nil {
		say("stdio")
		return srv.ServeStdio(ctx, s.Stdin, s.Stdout)
	}
	token, err := localhttp.WriteNewTokenFile(s.NewID, c.TokenFile)
	if err != nil {
		return err
	}
	err = srv.ServeHTTP(ctx, localhttp.Options{
		Addr: *c.HTTP, PortFile: c.PortFile, Access: localhttp.Access{Token: token},
		OnListen: func(a net.Addr) {
			fmt.Fprintf(s.Stdout, "http://%s/mcp\n", a)
			say("http://" + a.String() + "/mcp")
		},
	})
	if errors.Is(err, localhttp.ErrNoToken) {
		err = fmt.Errorf("%w; use --token-file FILE to create one", err)
	}
	return err
}

// FixtureCheck reports the problems of fixtures.
type FixtureCheck struct {
	Files []string `arg:"" name:"file" help:"Fixture files to check"`
}

// Run checks all files; any error makes it fail.
func (c *FixtureCheck) Run(s *process.System) error {
	var all diag.List
	for _, name := range c.Files {
		all = append(all, fixtures.Check(name)...)
	}
	if all.Err() != nil {
		return all
	}
	diag.Render(s.Stderr, all) // warnings
	return nil
}

// FixtureLibraryList lists the library fixtures.
type FixtureLibraryList struct{}

// Run prints one line for each fixture of the library.
func (c *FixtureLibraryList) Run(s *process.System) error {
	entries, err := fixtures.Library()
	if err != nil {
		return err
	}
	for _, e := range entries {
		fmt.Fprintf(s.Stdout, "%-12s %2d tools  %s\n", e.Name, e.Tools, e.Description)
	}
	return nil
}

// FixtureToken prints a token for programs that send it in a header instead of logging in.
type FixtureToken struct {
	Fixture   string   `arg:"" help:"Fixture file, or the name of a built-in fixture"`
	Scope     []string `placeholder:"SCOPE" help:"Scopes of the token (default: all scopes of the fixture)"`
	TokenFile string   `placeholder:"FILE" help:"Token file of the server, if it was started with one"`
}

// Run prints the token. The server accepts it until a request to its control route revokes it.
func (c *FixtureToken) Run(s *process.System) error {
	fx, err := fixtures.Open(c.Fixture)
	if err != nil {
		return fmt.Errorf("loading a fixture: %w", err)
	}
	control := []byte(nil)
	if c.TokenFile != "" {
		if control, err = os.ReadFile(c.TokenFile); err != nil {
			return err
		}
	}
	token, err := fx.Token(c.Scope, strings.TrimSpace(string(control)))
	if err != nil {
		return err
	}
	fmt.Fprintln(s.Stdout, token)
	return nil
}

// FixtureClone writes a fixture that describes an existing server.
type FixtureClone struct {
	Out     string            `arg:"" help:"File to write"`
	Command []string          `arg:"" optional:"" passthrough:"" help:"Command that starts the server, after --"`
	URL     string            `name:"url" placeholder:"URL" help:"Streamable HTTP endpoint of the server, instead of a command"`
	Header  map[string]string `help:"Header to send with every request to --url"`
	Call    []string          `placeholder:"NAME=JSON" sep:"none" help:"Also call this tool and record its result"`
	Force   bool              `help:"Overwrite an existing file"`
}

// Run queries the server, writes the file and prints a summary.
func (c *FixtureClone) Run(ctx context.Context, s *process.System) error {
	if _, err := os.Stat(c.Out); err == nil && c.Out != "-" && !c.Force {
		return process.WithHint(c.Out+" already exists", "use --force to overwrite it")
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	made, err := clone.Clone(ctx, clone.Options{Command: command, URL: c.URL, Headers: c.Header, Calls: c.Call, Environ: s.Environ, Stderr: s.Stderr})
	if err != nil {
		return err
	}
	if c.Out == "-" {
		_, err := s.Stdout.Write(made.Source)
		return err
	}
	if err := os.WriteFile(c.Out, made.Source, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(s.Stderr, "%s: tools %d, resources %d, prompts %d, recorded calls %d\n", c.Out, made.Tools, made.Resources, made.Prompts, made.Calls)
	return nil
}
