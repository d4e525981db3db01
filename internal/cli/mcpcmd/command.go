package mcpcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

// Options configure the command. Name, Stdin, Stdout and Stderr are required.
type Options struct {
	Name            string // the program's name, for help
	Store           Store
	Extended        bool                                    // adds the commands and flags that the real CLI does not have
	Approved        func(name string) bool                  // reports whether the settings approve a server of .mcp.json; nil means that they approve none
	DisabledProject []string                                // servers of .mcp.json that are disabled
	Manager         func(mcp.Options) (*mcp.Manager, error) // creates a manager; nil means mcp.New
	Client          mcp.Options                             // options of every [mcp.Manager], except Servers
	Terminal        Terminal                                // terminal of Stdin; nil means that it is not a terminal
	LoginWait       time.Duration                           // how long a login waits for the user; 0 means as long as in the real CLI
	Stdin           io.Reader
	Stdout, Stderr  io.Writer
	Progress        io.Writer // receives the progress line; nil means none

	command command // the command that runs
}

// Terminal is the terminal at which a user answers questions.
type Terminal interface {
	// ReadSecret reads a line without echo.
	ReadSecret(prompt string) (string, error)
}

func (o *Options) configuredServers() (mcp.Config, error) { return o.loadConfig(nil, false) }

// loadConfig reads the configuration; values are additional --mcp-config values. If strict is true, only these are used.
func (o *Options) loadConfig(values []string, strict bool) (mcp.Config, error) {
	c := mcp.ConfigOptions{Values: values, CWD: o.Store.CWD, Environ: o.Client.Environ, Disabled: o.Store.DisabledServers(), DisabledProject: o.DisabledProject}
	if !strict {
		var err error
		if c.Scopes, err = o.Store.Scopes(); err != nil {
			return mcp.Config{}, err
		}
	}
	return mcp.LoadConfigs(c)
}

func scopeFlag(to *string) argv.OptionDefinition {
	return argv.OptionDefinition{Flags: "-s, --scope <scope>", Help: "Scope of the server: local (default for add), user or project", Set: func(v string) error { *to = v; return nil }}
}

func appendTo(to *[]string) func(string) error {
	return func(v string) error { *to = append(*to, v); return nil }
}

func parseOperands(o *Options, options []argv.OptionDefinition, words []string, requiredNames ...string) (operands []string, helpPrinted bool, err error) {
	result, err := argv.Parse(options, words)
	if err != nil {
		return nil, false, err
	}
	if result.Help {
		printCommandHelp(o, options)
		return nil, true, nil
	}
	if len(result.Operands) < len(requiredNames) {
		return nil, false, process.Verbatimf("error: missing required argument '%s'", requiredNames[len(result.Operands)])
	}
	return result.Operands, false, nil
}

type commandFunc func(ctx context.Context, o *Options, words []string) error

type command struct {
	name, usage, help string
	run               commandFunc
	isClaudelessOnly  bool
}

func printCommandHelp(o *Options, options []argv.OptionDefinition) {
	fmt.Fprintf(o.Stdout, "Usage: %s mcp %s\n\n%s.\n\nOptions:\n", o.Name, o.command.usage, o.command.help)
	for _, option := range options {
		if !option.Hidden {
			fmt.Fprintf(o.Stdout, "  %-27s  %s\n", option.Flags, option.Help)
		}
	}
	fmt.Fprintf(o.Stdout, "  %-27s  %s\n", "-h, --help", "Print this help and exit")
}

// The scopes, lowest precedence first.
const (
	scopeUser    = "user"
	scopeProject = "project"
	scopeLocal   = "local"
)

const (
	serversKey  = "mcpServers"
	projectsKey = "projects"
)

// Store locates the configuration of servers (spec: cli-observed 6). User scope is mcpServers of File, local scope is
// projects[…].mcpServers of File, project scope is mcpServers of .mcp.json in CWD.
type Store struct {
	File    string // .claude.json; empty means none
	CWD     string // absolute
	Project string // the top of the git repository; empty means CWD
}

func (s Store) project() string { return cmp.Or(s.Project, s.CWD) }

// Scopes returns the scopes for mcp.LoadConfigs, which reads the entries of project scope itself. A missing file has no
// entries. If the file cannot be read, Scopes returns an error and the project scope.
func (s Store) Scopes() ([]mcp.ScopeServers, error) {
	doc, err := plainjson.ReadFileOrEmpty(s.File)
	if err != nil {
		return []mcp.ScopeServers{{Source: scopeProject}}, err
	}
	return []mcp.ScopeServers{
		{Source: scopeUser, Servers: doc.At(s.scopeServersKeyPath(scopeUser)...)},
		{Source: scopeProject},
		{Source: scopeLocal, Servers: doc.At(s.scopeServersKeyPath(scopeLocal)...)},
	}, nil
}

// Approves reports whether the user has approved a server of .mcp.json.
func (s Store) Approves(name string) bool {
	return slices.Contains(s.serverNamesInProjectList("enabledMcpjsonServers"), name)
}

// DisabledServers returns the servers that the user has disabled in this project.
func (s Store) DisabledServers() []string { return s.serverNamesInProjectList("disabledMcpServers") }

// serverNamesInProjectList returns the names that File lists for the project under a key. It returns nil if File has no such list.
func (s Store) serverNamesInProjectList(key string) (names []string) {
	doc, err := plainjson.ReadFileOrEmpty(s.File)
	if err != nil {
		return nil
	}
	_ = json.Unmarshal(doc.At(projectsKey, s.project(), key), &names)
	return names
}

func (s Store) scopePath(scope string) string {
	if scope == scopeProject {
		return filepath.Join(s.CWD, ".mcp.json")
	}
	return s.File
}

func (s Store) scopeServersKeyPath(scope string) []string {
	if scope == scopeLocal {
		return []string{projectsKey, s.project(), serversKey}
	}
	return []string{serversKey}
}

func (s Store) entryOrNil(scope, name string) (json.RawMessage, error) {
	doc, err := plainjson.ReadFileOrEmpty(s.scopePath(scope))
	return doc.At(append(s.scopeServersKeyPath(scope), name)...), err
}

// nearestEntryOrNil is like entryOrNil, but for the project scope it also reads .mcp.json in the parents of CWD.
func (s Store) nearestEntryOrNil(scope, name string) json.RawMessage {
	entry, _ := s.entryOrNil(scope, name)
	if parent := filepath.Dir(s.CWD); entry == nil && scope == scopeProject && parent != s.CWD {
		s.CWD = parent
		return s.nearestEntryOrNil(scope, name)
	}
	return entry
}

// writeOrRemoveServer writes an entry; nil removes it.
func (s Store) writeOrRemoveServer(scope, name string, entry json.RawMessage) error {
	path := s.scopePath(scope)
	if path == "" {
		return errors.New("cannot save the configuration of MCP servers: HOME is not set (set HOME or CLAUDELESS_CONFIG_DIR)")
	}
	doc, err := plainjson.ReadFileOrEmpty(path)
	if err != nil {
		return err
	}
	if doc, err = doc.SetAt(append(s.scopeServersKeyPath(scope), name), entry); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if scope == scopeProject {
		return doc.WriteFileAtomically(path, "", 0o644) // the real CLI writes the file without a final newline
	}
	return doc.WriteFileAtomically(path, "\n", 0o600)
}

func (o *Options) isPendingApproval(s mcp.ServerConfig) bool {
	return s.Source == scopeProject && !o.Approved(s.Name) && !o.Store.Approves(s.Name)
}
