// Package mcpcmd is the command `mcp`: it configures MCP servers as the real
// CLI does, and looks at them as a small MCP client for people and scripts.
//
// It has two grammars. The commands of the real CLI are read by internal/argv,
// with that CLI's texts; our own are kong structs and print JSON on request.
//
// Invariant: files other than those of [Store] are never written, and of those
// nothing but the entry named in the command changes. Values of headers are
// never printed. The package knows no scenario and no session.
package mcpcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/mcp"
)

// Options are the surroundings of the command. Name, Stdin, Stdout and Stderr
// are required.
type Options struct {
	Name  string // the program's name, for help
	Store Store
	// Own adds the commands and flags that the real CLI does not have.
	Own bool
	// Approved says which servers of .mcp.json the settings approve; nil = none.
	Approved func(name string) bool
	// DisabledProject names servers of .mcp.json that are left out.
	DisabledProject []string
	// Manager makes the manager for some servers; nil = mcp.New with no other
	// options.
	Manager        func(mcp.Options) (*mcp.Manager, error)
	Client         mcp.Options // what every manager gets, Servers apart
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Progress       io.Writer // gets the progress line; nil = there is none
}

// Error ends the command with exit code 1. Text is printed as it stands; empty
// = all there is to say was said.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func errorf(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// UsageError is a command line that our own commands do not understand.
type UsageError struct{ Text, Hint string }

func (e *UsageError) Error() string { return e.Text }

type command struct {
	name, usage, help string
	own               bool // the real CLI does not have it
	run               func(ctx context.Context, o *Options, words []string) error
}

func commands() []command {
	return []command{
		{name: "add", usage: "add [options] <name> <commandOrUrl> [args...]", help: "Add a server", run: add},
		{name: "add-json", usage: "add-json [options] <name> <json>", help: "Add a server given as JSON", run: addJSON},
		{name: "get", usage: "get <name>", help: "Show a configured server", run: get},
		{name: "list", usage: "list", help: "List configured servers and check them", run: list},
		{name: "remove", usage: "remove [options] <name>", help: "Remove a server", run: remove},
		{name: "status", usage: "status [server...]", help: "Connect and say what each server is", own: true, run: own[statusCmd]("status")},
		{name: "tools", usage: "tools [server...]", help: "List tools", own: true, run: own[toolsCmd]("tools")},
		{name: "call", usage: "call <server> <tool> [json]", help: "Call a tool", own: true, run: own[callCmd]("call")},
		{name: "resources", usage: "resources [server...]", help: "List resources and their templates", own: true, run: own[resourcesCmd]("resources")},
		{name: "read", usage: "read <server> <uri>", help: "Read a resource", own: true, run: own[readCmd]("read")},
		{name: "prompts", usage: "prompts [server...]", help: "List prompts", own: true, run: own[promptsCmd]("prompts")},
		{name: "get-prompt", usage: "get-prompt <server> <name> [key=value...]", help: "Fill in a prompt", own: true, run: own[getPromptCmd]("get-prompt")},
	}
}

// Run runs one command. Without a word it prints the help to stderr and fails,
// as the real CLI does.
func Run(ctx context.Context, o Options, words []string) error {
	if o.Manager == nil {
		o.Manager = mcp.New
	}
	if o.Approved == nil {
		o.Approved = func(string) bool { return false }
	}
	switch {
	case len(words) == 0:
		help(o.Stderr, &o)
		return &Error{}
	case words[0] == "help", words[0] == "-h", words[0] == "--help":
		help(o.Stdout, &o)
		return nil
	}
	for _, c := range commands() {
		if c.name == words[0] && (o.Own || !c.own) {
			return c.run(ctx, &o, words[1:])
		}
	}
	if slices.Contains(strings.Fields("add-from-claude-desktop login logout reset-project-choices serve"), words[0]) {
		return fmt.Errorf(`the command "mcp %s" of claude is not simulated`, words[0])
	}
	return errorf("error: unknown command '%s'", words[0])
}

func help(w io.Writer, o *Options) {
	fmt.Fprintf(w, "Usage: %s mcp [options] [command]\n\nConfigure and look at MCP servers.\n\nOptions:\n  -h, --help  Print this help and exit\n\nCommands:\n", o.Name)
	for _, c := range commands() {
		if o.Own || !c.own {
			fmt.Fprintf(w, "  %-50s  %s\n", c.usage, c.help)
		}
	}
	fmt.Fprintf(w, "  %-50s  %s\n", "help", "Print this help and exit")
}

// own runs a kong struct, whose Run takes a context.Context and an *Options.
func own[C any](name string) func(context.Context, *Options, []string) error {
	return func(ctx context.Context, o *Options, words []string) error {
		var c C
		exited := false
		parser, err := kong.New(&c,
			kong.Name(o.Name+" mcp "+name),
			kong.Writers(o.Stdout, o.Stderr),
			kong.Exit(func(int) { exited = true }),
			kong.BindTo(ctx, (*context.Context)(nil)),
			kong.Bind(o),
		)
		if err != nil {
			return err
		}
		parsed, err := parser.Parse(words)
		switch {
		case exited: // --help; kong would have ended the process here
			return nil
		case err != nil:
			return &UsageError{Text: err.Error(), Hint: "see " + o.Name + " mcp " + name + " --help"}
		}
		return parsed.Run()
	}
}
