package mcpcmd

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/mcp"
)

// Options configure the command. Name, Stdin, Stdout and Stderr are required.
type Options struct {
	Name  string // the program's name, for help
	Store Store
	// Extended adds the commands and flags that the real CLI does not have.
	Extended bool
	// Approved reports whether the settings approve a server of .mcp.json; nil means none.
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
}

// Terminal is a terminal with a user.
type Terminal interface {
	// ReadSecret reads a line without echo.
	ReadSecret(prompt string) (string, error)
}

// Error ends the command with exit code 1. Text is printed verbatim; empty means the error was already printed.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// UsageError is an invalid command line of a claudeless command.
type UsageError struct{ Text, Hint string }

func (e *UsageError) Error() string { return e.Text }

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

const resetChoicesCommand = "reset-project-choices"

func parseOperands(o *Options, command string, options []argv.Option, words []string, names ...string) (found []string, help bool, err error) {
	result, err := argv.Parse(options, words)
	if err != nil {
		return nil, false, err
	}
	if result.Help {
		commandHelp(o, command, options)
		return nil, true, nil
	}
	if len(result.Operands) < len(names) {
		return nil, false, errorf("error: missing required argument '%s'", names[len(result.Operands)])
	}
	return result.Operands, false, nil
}

type command struct {
	name, usage, help string
	isClaudelessOnly  bool
}

func commands() []command {
	return []command{
		{name: "add", usage: "add [options] <name> <commandOrUrl> [args...]", help: "Add a server"},
		{name: "add-json", usage: "add-json [options] <name> <json>", help: "Add a server from a JSON string"},
		{name: "get", usage: "get <name>", help: "Show the configuration of a server"},
		{name: "list", usage: "list", help: "List the configured servers and whether they connect"},
		{name: "login", usage: "login [options] <name>", help: "Log in to a server behind OAuth"},
		{name: "logout", usage: "logout <name>", help: "Delete the stored credentials of a server"},
		{name: "remove", usage: "remove [options] <name>", help: "Remove a server"},
		{name: resetChoicesCommand, usage: resetChoicesCommand, help: "Forget which servers of .mcp.json were approved and refused"},
		{name: "serve", usage: "serve [options]", help: "Serve the built-in tools of claude as an MCP server"},
		{name: "status", usage: "status [server...]", help: "Connect to servers, and show their status and how many tools, prompts and resources they offer", isClaudelessOnly: true},
		{name: "tools", usage: "tools [server...]", help: "List the tools of servers", isClaudelessOnly: true},
		{name: "call", usage: "call <server> <tool> [json]", help: "Call a tool and print its result", isClaudelessOnly: true},
		{name: "resources", usage: "resources [server...]", help: "List the resources and resource templates of servers", isClaudelessOnly: true},
		{name: "read", usage: "read <server> <uri>", help: "Print the content of a resource", isClaudelessOnly: true},
		{name: "prompts", usage: "prompts [server...]", help: "List the prompts of servers", isClaudelessOnly: true},
		{name: "get-prompt", usage: "get-prompt <server> <name> [key=value...]", help: "Get a prompt with its arguments filled in", isClaudelessOnly: true},
	}
}

func commandNamed(name string) command {
	all := commands()
	return all[slices.IndexFunc(all, func(c command) bool { return c.name == name })]
}

func commandHelp(o *Options, name string, options []argv.Option) {
	c := commandNamed(name)
	fmt.Fprintf(o.Stdout, "Usage: %s mcp %s\n\n%s.\n\nOptions:\n", o.Name, c.usage, c.help)
	for _, option := range options {
		if !option.Hidden {
			fmt.Fprintf(o.Stdout, "  %-27s  %s\n", option.Flags, option.Help)
		}
	}
	fmt.Fprintf(o.Stdout, "  %-27s  %s\n", "-h, --help", "Print this help and exit")
}
