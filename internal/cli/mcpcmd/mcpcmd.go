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
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

func commands() []command {
	return []command{
		{name: "add", run: runAdd, usage: "add [options] <name> <commandOrUrl> [args...]", help: "Add a server"},
		{name: "add-json", run: runAddJSON, usage: "add-json [options] <name> <json>", help: "Add a server from a JSON string"},
		{name: "get", run: runGet, usage: "get <name>", help: "Show the configuration of a server"},
		{name: "list", run: runList, usage: "list", help: "List the configured servers and whether they connect"},
		{name: "login", run: runLogin, usage: "login [options] <name>", help: "Log in to a server behind OAuth"},
		{name: "logout", run: runLogout, usage: "logout <name>", help: "Delete the stored credentials of a server"},
		{name: "remove", run: runRemove, usage: "remove [options] <name>", help: "Remove a server"},
		{name: "reset-project-choices", run: runResetProjectChoices, usage: "reset-project-choices", help: "Forget which servers of .mcp.json were approved or refused"},
		{name: "serve", run: checkServeOptionsAndRequestServe, usage: "serve [options]", help: "Serve the built-in tools of claude as an MCP server"},
		{name: "status", run: parseAndRunKongCommand[statusCmd], usage: "status [server...]", help: "Connect to servers, and show their status and how many tools, prompts and resources they offer", isClaudelessOnly: true},
		{name: "tools", run: parseAndRunKongCommand[toolsCmd], usage: "tools [server...]", help: "List the tools of servers", isClaudelessOnly: true},
		{name: "call", run: parseAndRunKongCommand[callCmd], usage: "call <server> <tool> [json]", help: "Call a tool and print its result", isClaudelessOnly: true},
		{name: "resources", run: parseAndRunKongCommand[resourcesCmd], usage: "resources [server...]", help: "List the resources and resource templates of servers", isClaudelessOnly: true},
		{name: "read", run: parseAndRunKongCommand[readResourceCmd], usage: "read <server> <uri>", help: "Print the content of a resource", isClaudelessOnly: true},
		{name: "prompts", run: parseAndRunKongCommand[promptsCmd], usage: "prompts [server...]", help: "List the prompts of servers", isClaudelessOnly: true},
		{name: "get-prompt", run: parseAndRunKongCommand[getPromptCmd], usage: "get-prompt <server> <name> [key=value...]", help: "Get a prompt with its arguments filled in", isClaudelessOnly: true},
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
		return &process.ExitError{Code: process.ExitFailed}
	case words[0] == "help", words[0] == "-h", words[0] == "--help":
		printHelp(o.Stdout, &o)
		return nil
	}
	var names []string
	for _, c := range commands() {
		switch {
		case c.isClaudelessOnly && !o.Extended:
		case c.name == words[0]:
			o.command = c
			return c.run(ctx, &o, words[1:])
		default:
			names = append(names, c.name)
		}
	}
	if words[0] == "add-from-claude-desktop" {
		return process.Verbatimf("Unsupported platform - Claude Desktop integration only works on macOS and WSL.")
	}
	return process.Verbatimf("%s", argv.UnknownCommandText(words[0], names))
}

// ErrCallerMustServeBuiltinTools asks the caller to serve the built-in tools.
var ErrCallerMustServeBuiltinTools = errors.New("mcp serve")

// checkServeOptionsAndRequestServe returns ErrCallerMustServeBuiltinTools if the options of `mcp serve` are valid.
func checkServeOptionsAndRequestServe(_ context.Context, o *Options, serveArguments []string) error {
	ignore := func(string) error { return nil }
	options := []argv.OptionDefinition{{Flags: "-d, --debug", Help: "Accepted and ignored", Set: ignore}, {Flags: "--verbose", Help: "Accepted and ignored", Set: ignore}}
	if _, help, err := parseOperands(o, options, serveArguments); err != nil || help {
		return err
	}
	return ErrCallerMustServeBuiltinTools
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

// parseAndRunKongCommand runs a kong struct, whose Run method takes a context.Context and an *Options.
func parseAndRunKongCommand[C any](ctx context.Context, o *Options, words []string) error {
	name := o.Name + " mcp " + o.command.name
	usage := func(err error) error { return process.WithHint(err.Error(), "see "+name+" --help") }
	accept := func(*kong.Context) error { return nil }
	return RunKong(new(C), words, usage, accept, kong.Name(name), kong.Description(o.command.help), kong.Writers(o.Stdout, o.Stderr), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(o))
}

// RunKong parses words into a kong struct and calls its Run method, unless help was printed. If the words cannot be
// parsed, or if check refuses them, it returns the error as converted by usage.
func RunKong(c any, words []string, toUsageError func(error) error, check func(*kong.Context) error, options ...kong.Option) error {
	exited := false
	parser, err := kong.New(c, append(options, kong.Exit(func(int) { exited = true }))...)
	if err != nil {
		return err
	}
	parser.Model.HelpFlag.Help = "Print this help and exit"
	parsed, err := parser.Parse(words)
	if exited { // --help; kong would have exited the process here
		return nil
	}
	if err == nil {
		err = check(parsed)
	}
	if err != nil {
		return toUsageError(err)
	}
	return parsed.Run()
}
