// Package command implements the slash commands of a session: those of the CLI, custom commands and skills, and the
// prompts of MCP servers. Commands that change the conversation itself are part of package simulator.
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

// Options configure a Set. Servers and Memory are optional; everything else is required.
type Options struct {
	State    *simulator.SessionState
	Catalog  *catalog.Catalog
	Servers  Servers // nil means none
	Rules    Rules
	Session  Session
	Models   Models
	Shell    Shell
	Agents   Agents
	Memory   string // memory file of the project; empty means it is not read
	Disabled bool   // commands are disabled (--disable-slash-commands)
}

// Servers are the MCP servers of a session.
type Servers interface {
	Servers() []mcp.ServerStatus
	Tools() []protocol.Tool
	// GetPrompt evaluates a prompt of a server.
	GetPrompt(ctx context.Context, server, name string, arguments map[string]string) (json.RawMessage, error)
}

// Rules are the permission rules that commands add.
type Rules interface {
	// Grant makes rules apply until the next call of Grant.
	Grant(rules []string)
}

// Session is the current session.
type Session interface {
	ID() string
	SetTitle(title string)
}

// Shell runs the shell commands of command files.
type Shell interface {
	// RunCommand runs a command under the permission rules of the session and the given rules, and returns its output.
	// pattern is the command as written in the file; the error is shown to the user.
	RunCommand(ctx context.Context, rules []string, command, pattern string) (string, error)
	// ProjectDir returns the directory of the session.
	ProjectDir() string
}

// Agents runs skills in agents.
type Agents interface {
	// RunSkill runs a skill with its text for the model, and returns the answer.
	RunSkill(ctx context.Context, skill catalog.Command, text string) (string, error)
}

// Models substitutes model names.
type Models interface {
	// Name returns the model name that the environment substitutes for a name.
	Name(name string) string
}

func pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
