package mcpcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/mcp"
)

type promptsCmd struct {
	clientFlags
	Servers []string `arg:"" optional:"" name:"server" help:"Servers to look at; none = all."`
}

// Run lists the prompts of the servers that are there and fails if some are
// not.
func (c *promptsCmd) Run(ctx context.Context, o *Options) error {
	m, stop, err := c.open(ctx, o, c.Servers...)
	if err != nil {
		return err
	}
	defer stop()
	prompts := []mcp.Prompt{}
	servers := m.Servers()
	for _, st := range servers {
		prompts = append(prompts, st.Prompts...)
	}
	if c.JSON {
		err = printJSON(o.Stdout, map[string]any{"prompts": prompts})
	} else {
		for _, p := range prompts {
			describe(o.Stdout, p.Server+"  "+p.Name+arguments(p), p.Description)
		}
	}
	if err == nil {
		err = missing(servers)
	}
	return err
}

// arguments shows those of a prompt: "  x=… [y=…]", y being optional.
func arguments(p mcp.Prompt) string {
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
	Server string   `arg:"" help:"Name of the server."`
	Name   string   `arg:"" help:"Name of the prompt."`
	Args   []string `arg:"" optional:"" name:"key=value" sep:"none" help:"Arguments of the prompt."`
}

// Run prints the messages that a prompt becomes.
func (c *getPromptCmd) Run(ctx context.Context, o *Options) error {
	args := map[string]string{}
	for _, kv := range c.Args {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return &UsageError{Text: fmt.Sprintf("the argument %q is not of the form key=value", kv), Hint: "see " + o.Name + " mcp get-prompt --help"}
		}
		args[key] = value
	}
	m, stop, err := c.one(ctx, o, c.Server)
	if err != nil {
		return err
	}
	defer stop()
	raw, err := m.GetPrompt(ctx, c.Server, c.Name, args)
	if err != nil {
		return callError(err)
	}
	if c.JSON {
		_, err := fmt.Fprintf(o.Stdout, "%s\n", raw)
		return err
	}
	var result struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	for _, message := range result.Messages {
		fmt.Fprintf(o.Stdout, "%s: %s\n", message.Role, blockText(message.Content))
	}
	return nil
}
