package mcpcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

type promptsCmd struct{ listFlags }

// Run lists the prompts of the connected servers and fails if some are not connected.
func (c *promptsCmd) Run(ctx context.Context, o *Options) error {
	return c.printList(ctx, o, func(_ *mcp.Manager, servers []mcp.ServerStatus) (map[string]any, func(), error) {
		prompts := []mcp.Prompt{}
		for _, st := range servers {
			prompts = append(prompts, st.Prompts...)
		}
		return map[string]any{"prompts": prompts}, func() {
			for _, p := range prompts {
				printDescription(o.Stdout, p.Server+"  "+p.Name+formatArguments(p), p.Description)
			}
		}, nil
	})
}

// formatArguments formats the arguments of a prompt: "  x=… [y=…]", where y is optional.
func formatArguments(p mcp.Prompt) string {
	var b strings.Builder
	for _, a := range p.Arguments {
		if a.Required {
			fmt.Fprintf(&b, " %s=…", a.Name)
		} else {
			fmt.Fprintf(&b, " [%s=…]", a.Name)
		}
	}
	return b.String()
}

type getPromptCmd struct {
	clientFlags
	Server string   `arg:"" help:"Name of the server"`
	Name   string   `arg:"" help:"Name of the prompt"`
	Args   []string `arg:"" optional:"" name:"key=value" sep:"none" help:"Arguments of the prompt"`
}

func (c *getPromptCmd) Run(ctx context.Context, o *Options) error {
	args := map[string]string{}
	for _, kv := range c.Args {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return process.WithHint(fmt.Sprintf("the argument %q is not of the form key=value", kv), "see "+o.Name+" mcp get-prompt --help")
		}
		args[key] = value
	}
	var result struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	err := c.queryServer(ctx, o, c.Server, &result, func(m *mcp.Manager) (json.RawMessage, error) {
		return m.GetPrompt(ctx, c.Server, c.Name, args)
	})
	for _, message := range result.Messages {
		fmt.Fprintf(o.Stdout, "%s: %s\n", message.Role, blockText(message.Content))
	}
	return err
}
