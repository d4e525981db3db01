package mcpcmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

// Options configure the command. Name, Stdin, Stdout and Stderr are required.
type Options struct {
	Name  string // the program's name, for help
	Store Store
	// Extended adds the commands and flags that the real CLI does not have.
	Extended bool
	// Approved reports whether the settings approve a server of .mcp.json; nil means that they approve none.
	Approved func(name string) bool
	// DisabledProject lists servers of .mcp.json that are disabled.
	DisabledProject []string
	// Manager creates a manager; nil means mcp.New.
	Manager        func(mcp.Options) (*mcp.Manager, error)
	Client         mcp.Options   // options of every manager, except Servers
	Terminal       Terminal      // terminal of Stdin; nil means that it is not a terminal
	LoginWait      time.Duration // how long a login waits for the user; 0 means as long as in the real CLI
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Progress       io.Writer // receives the progress line; nil means none

	command command // the command that runs
}

// Terminal is a terminal with a user.
type Terminal interface {
	// ReadSecret reads a line without echo.
	ReadSecret(prompt string) (string, error)
}

func (o *Options) configuredServers() (mcp.Config, error) {
	return o.loadConfig(nil, mcp.ConfigOptions{})
}

// loadConfig reads the configuration; values are additional --mcp-config values.
func (o *Options) loadConfig(values []string, c mcp.ConfigOptions) (mcp.Config, error) {
	scopes, err := o.Store.Scopes()
	if err != nil && !c.ValuesOnly {
		return mcp.Config{}, err
	}
	c.Disabled = o.Store.DisabledServers()
	c.Values, c.CWD, c.Environ, c.Scopes, c.DisabledProject = values, o.Store.CWD, o.Client.Environ, scopes, o.DisabledProject
	return mcp.LoadConfigs(c)
}

func scopeFlag(to *string) argv.Option {
	return argv.Option{Flags: "-s, --scope <scope>", Help: "Scope of the server: local (default for add), user or project", Set: func(v string) error { *to = v; return nil }}
}

func appendTo(to *[]string) func(string) error {
	return func(v string) error { *to = append(*to, v); return nil }
}

func parseOperands(o *Options, options []argv.Option, words []string, names ...string) (found []string, help bool, err error) {
	result, err := argv.Parse(options, words)
	if err != nil {
		return nil, false, err
	}
	if result.Help {
		commandHelp(o, options)
		return nil, true, nil
	}
	if len(result.Operands) < len(names) {
		return nil, false, process.Verbatimf("error: missing required argument '%s'", names[len(result.Operands)])
	}
	return result.Operands, false, nil
}

type commandFunc func(ctx context.Context, o *Options, words []string) error

type command struct {
	name, usage, help string
	run               commandFunc
	isClaudelessOnly  bool
}

func commandHelp(o *Options, options []argv.Option) {
	fmt.Fprintf(o.Stdout, "Usage: %s mcp %s\n\n%s.\n\nOptions:\n", o.Name, o.command.usage, o.command.help)
	for _, option := range options {
		if !option.Hidden {
			fmt.Fprintf(o.Stdout, "  %-27s  %s\n", option.Flags, option.Help)
		}
	}
	fmt.Fprintf(o.Stdout, "  %-27s  %s\n", "-h, --help", "Print this help and exit")
}
