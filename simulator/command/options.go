// Package command implements the slash commands of a session: those of the CLI,
// customCommand commands and skills, and the prompts of MCP servers. Commands that act
// on the conversation itself are part of package simulator.
package command

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options is what commands are about. Everything but Servers is required.
type Options struct {
	Live    *simulator.SessionState
	Catalog *catalog.Catalog
	Servers Servers // nil = the session has none
	Rules   Rules
	Session Session
	Models  Models
	Shell   Shell
	Memory  string // memory file of the project; empty = it is not read
	Off     bool   // there are no commands (--disable-slash-commands)
}

// Servers are the MCP servers of a session.
type Servers interface {
	Servers() []mcp.ServerStatus
	Tools() []protocol.Tool
	// GetPrompt fills in a prompt of a server.
	GetPrompt(ctx context.Context, server, name string, arguments map[string]string) (json.RawMessage, error)
}

// Rules are the permission rules that commands bring.
type Rules interface {
	// Grant lets rules count until the next call.
	Grant(rules []string)
}

// Session is the session that is named.
type Session interface {
	ID() string
	Entitle(title string)
}

// Shell runs the shell commands of command files.
type Shell interface {
	// Print runs a command under the rules of the session and those given, and
	// returns what it prints. Pattern is how the file writes it; the error is for
	// the user.
	Print(ctx context.Context, rules []string, command, pattern string) (string, error)
}

// Models are the names of models.
type Models interface {
	// Name is what the environment has in the place of a model's name.
	Name(name string) string
}

func amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
