// Package mcpcmd implements the command `mcp`: it configures MCP servers as the real CLI does, and calls them as a
// small MCP client for people and scripts.
//
// It has two grammars. The commands of the real CLI are parsed by internal/base/argv, with the messages of that CLI;
// claudeless commands are kong structs and can print JSON.
//
// It writes only the files of [Store], and changes only the entry named in the command. It never prints header values.
package mcpcmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/mcp"
)

type runner func(ctx context.Context, o *Options, words []string) error

func runners() map[string]runner {
	return map[string]runner{
		"add":               runAdd,
		"add-json":          runAddJSON,
		"get":               runGet,
		"list":              runList,
		"login":             runLogin,
		"logout":            runLogout,
		"remove":            runRemove,
		resetChoicesCommand: runResetProjectChoices,
		"serve":             runServe,
		"status":            runKong[statusCmd]("status"),
		"tools":             runKong[toolsCmd]("tools"),
		"call":              runKong[callCmd]("call"),
		"resources":         runKong[resourcesCmd]("resources"),
		"read":              runKong[readResourceCmd]("read"),
		"prompts":           runKong[promptsCmd]("prompts"),
		"get-prompt":        runKong[getPromptCmd]("get-prompt"),
	}
}

// Run runs one command. Without a command it prints the help to stderr and fails, as the real CLI does.
func Run(ctx context.Context, o Options, words []string) error {
	if o.Manager == nil {
		o.Manager = mcp.New
	}
	if o.Approved == nil {
		o.Approved = func(string) bool { return false }
	}
	switch {
	case len(words) == 0:
		printHelp(o.Stderr, &o)
		return &Error{}
	case words[0] == "help", words[0] == "-h", words[0] == "--help":
		printHelp(o.Stdout, &o)
		return nil
	}
	var names []string
	for _, c := range commands() {
		switch {
		case c.isClaudelessOnly && !o.Extended:
		case c.name == words[0]:
			return runners()[c.name](ctx, &o, words[1:])
		default:
			names = append(names, c.name)
		}
	}
	if words[0] == "add-from-claude-desktop" {
		return errorf("Unsupported platform - Claude Desktop integration only works on macOS and WSL.")
	}
	return errorf("%s", argv.UnknownCommandText(words[0], names))
}

// ErrServeRequested asks the caller to serve the built-in tools.
var ErrServeRequested = errors.New("mcp serve")

// runServe checks the options of `mcp serve`, which have no effect.
func runServe(_ context.Context, o *Options, words []string) error {
	ignore := func(string) error { return nil }
	options := []argv.Option{{Flags: "-d, --debug", Help: "Accepted and ignored", Set: ignore}, {Flags: "--verbose", Help: "Accepted and ignored", Set: ignore}}
	if _, help, err := parseOperands(o, "serve", options, words); err != nil || help {
		return err
	}
	return ErrServeRequested
}

func printHelp(w io.Writer, o *Options) {
	fmt.Fprintf(w, "Usage: %s mcp [options] [command]\n\nConfigure, inspect and call MCP servers.\n\nOptions:\n  -h, --help  Print this help and exit\n\nCommands:\n", o.Name)
	for _, c := range commands() {
		if o.Extended || !c.isClaudelessOnly {
			fmt.Fprintf(w, "  %-50s  %s\n", c.usage, c.help)
		}
	}
	fmt.Fprintf(w, "  %-50s  %s\n", "help", "Print this help and exit")
}

// runKong runs a kong struct, whose Run method takes a context.Context and an *Options.
func runKong[C any](name string) runner {
	return func(ctx context.Context, o *Options, words []string) error {
		var c C
		exited := false
		parser, err := kong.New(&c,
			kong.Name(o.Name+" mcp "+name),
			kong.Description(commandNamed(name).help),
			kong.Writers(o.Stdout, o.Stderr),
			kong.Exit(func(int) { exited = true }),
			kong.BindTo(ctx, (*context.Context)(nil)),
			kong.Bind(o),
		)
		if err != nil {
			return err
		}
		parser.Model.HelpFlag.Help = "Print this help and exit"
		parsed, err := parser.Parse(words)
		switch {
		case exited: // --help; kong would have exited the process here
			return nil
		case err != nil:
			return &UsageError{Text: err.Error(), Hint: "see " + o.Name + " mcp " + name + " --help"}
		}
		return parsed.Run()
	}
}
