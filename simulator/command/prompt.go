package command

import (
	"context"
	"encoding/json"
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
	given := map[string]string{}
	for i, a := range c.definition.Arguments {
		switch {
		case i < len(words):
			given[a.Name] = words[i]
		case a.Required:
			text := "Error: Missing required argument: " + a.Name + ". Usage: /" + c.definition.Command() + " " + mcpPromptUsage(c.definition.Arguments)
			return "", errors.New(text)
		}
	}
	raw, err := c.servers.GetPrompt(ctx, c.definition.Server, c.definition.Name, given)
	if err != nil {
		return "", fmt.Errorf("%s: %w", mcpErrorClassName(err), err)
	}
	var result struct {
		Messages []struct {
			Content struct {
				Text     string `json:"text"`
				Resource struct {
					Text string `json:"text"`
				} `json:"resource"`
			} `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", fmt.Errorf("reading the MCP prompt %s: %w", c.definition.Name, err)
	}
	var texts []string
	for _, m := range result.Messages {
		if text := m.Content.Text + m.Content.Resource.Text; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

func mcpPromptUsage(arguments []mcp.PromptArgument) string {
	names := make([]string, len(arguments))
	for i, a := range arguments {
		names[i] = a.Name
	}
	return strings.Join(names, " ")
}

func mcpErrorClassName(err error) string {
	if _, answered := errors.AsType[*mcp.RPCError](err); answered {
		return "ProtocolError"
	}
	return "SdkError"
}
