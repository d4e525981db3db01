package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/slash"
)

type mcpPromptCommand struct {
	definition mcp.Prompt
	servers    Servers
}

// Run lets the server evaluate the prompt.
func (c mcpPromptCommand) Run(ctx context.Context, call slash.Call) (*slash.Outcome, *slash.Expansion) {
	text, err := c.promptText(ctx, call.Args)
	name := c.definition.Server + ":" + c.definition.Name + " (MCP)"
	if err != nil {
		return &slash.Outcome{Text: err.Error(), Name: name, Result: "mcp", Failed: true}, nil
	}
	return nil, &slash.Expansion{Text: text, Kind: "mcp_prompt", Source: "mcp"}
}

// promptText lets the server evaluate the prompt. Words become arguments in order. Quotes have no meaning, and words without
// an argument are dropped, as in the real CLI.
func (c mcpPromptCommand) promptText(ctx context.Context, args string) (string, error) {
	words := strings.Fields(args)
	usage, missing := ". Usage: /"+c.definition.Command(), ""
	for i, a := range c.definition.Arguments {
		usage += " " + a.Name
		if i >= len(words) && a.Required {
			missing = cmp.Or(missing, a.Name)
		}
	}
	if missing != "" {
		return "", errors.New("Error: Missing required argument: " + missing + usage)
	}
	text, err := c.servers.PromptText(ctx, c.definition, words)
	if err != nil {
		return "", fmt.Errorf("%s: %w", mcpErrorClassName(err), err)
	}
	return text, nil
}

func mcpErrorClassName(err error) string {
	if _, answered := errors.AsType[*mcp.RPCError](err); answered {
		return "ProtocolError"
	}
	return "SdkError"
}
