package mcpcmd

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
)

type callCmd struct {
	clientFlags
	Timeout time.Duration `name:"timeout" placeholder:"D" help:"Timeout for the call; progress messages restart it (default: that of the server)"`
	Server  string        `arg:"" help:"Name of the server, or SERVER/TOOL"`
	Tool    string        `arg:"" optional:"" help:"Name of the tool, without the server prefix"`
	Input   string        `arg:"" optional:"" name:"json" default:"{}" help:"Arguments as a JSON object (- to read them from stdin)"`
}

// splitServerSlashToolArgument accepts SERVER/TOOL as one word, as scenarios write it. The next word is then the input.
func (c *callCmd) splitServerSlashToolArgument(o *Options) error {
	server, tool, found := strings.Cut(c.Server, "/")
	isInput := c.Tool == "" || c.Tool == "-" || strings.HasPrefix(strings.TrimSpace(c.Tool), "{")
	if found && isInput {
		c.Server, c.Tool, c.Input = server, tool, cmp.Or(c.Tool, c.Input)
	}
	if c.Tool == "" {
		return process.WithHint("missing tool name for the server "+c.Server, `for example: `+o.Name+` mcp call server tool '{"key": "value"}'`)
	}
	return nil
}

// Run prints the result, and fails if the tool reports an error.
func (c *callCmd) Run(ctx context.Context, o *Options) error {
	if err := c.splitServerSlashToolArgument(o); err != nil {
		return err
	}
	input := []byte(c.Input)
	if c.Input == "-" {
		var err error
		if input, err = io.ReadAll(o.Stdin); err != nil {
			return fmt.Errorf("reading the arguments of the tool from stdin: %w", err)
		}
	}
	if _, err := plainjson.ParseKeepingLastDuplicates(input); err != nil {
		return process.WithHint(fmt.Sprintf("the arguments are not a JSON object: %v", err), `for example: `+o.Name+` mcp call server tool '{"key": "value"}'`)
	}
	m, stop, err := c.connectServerOrFail(ctx, o, c.Server)
	if err != nil {
		return err
	}
	defer stop()
	request := mcp.CallRequest{Tool: c.Server + "/" + c.Tool, Input: input, Timeout: c.Timeout}
	if o.Progress != nil {
		request.OnProgress = func(p mcp.Progress) { fmt.Fprintln(o.Progress, progressText(p)) }
	}
	raw, err := m.CallRaw(ctx, request)
	if err != nil {
		return c.addCauseOrHintToCallError(ctx, m, err)
	}
	var result struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading the result of tools/call: %w", err)
	}
	switch {
	case c.JSON:
		fmt.Fprintf(o.Stdout, "%s\n", raw)
	case len(result.Content) == 0 && result.Structured != nil:
		fmt.Fprintf(o.Stdout, "%s\n", result.Structured)
	default:
		for _, block := range result.Content {
			fmt.Fprintln(o.Stdout, blockText(block))
		}
	}
	if !c.JSON {
		printProtocolRevisionsToStderr(o, m.Servers())
	}
	if result.IsError {
		return &process.ExitError{Code: process.ExitFailed}
	}
	return nil
}

func (c *callCmd) addCauseOrHintToCallError(ctx context.Context, manager *mcp.Manager, err error) error {
	const patience = 2 * time.Second
	switch {
	case errors.Is(err, mcp.ErrConnectionClosed):
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		reason, stderr := manager.LossReason(ctx, c.Server)
		if reason == "" || reason == err.Error() {
			break
		}
		text := fmt.Sprintf("MCP server %q ended during the call: %s", c.Server, reason)
		if len(stderr) > 1 {
			text += "\nits standard error ends with:\n  " + strings.Join(stderr, "\n  ")
		}
		return errors.New(text)
	case errors.Is(err, mcp.ErrUnknownTool):
		var known []string
		for _, st := range manager.Servers() {
			for _, t := range st.Tools {
				known = append(known, t.RawName)
			}
		}
		if hint := diag.NameHint(c.Tool, known); hint != "" {
			return process.WithHint(err.Error(), hint)
		}
	}
	if late, ok := errors.AsType[*mcp.CallTimeoutError](err); ok {
		return process.WithHint(late.Error(), "set the limit with --timeout, MCP_TOOL_TIMEOUT (ms) or `timeout` in the server's entry")
	}
	return describeCallError(err)
}

func progressText(p mcp.Progress) string {
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf("/%g", p.Total)
	}
	if p.Message != "" {
		text += " " + p.Message
	}
	return text
}

// blockText formats a content block for people: text unchanged, the size of binary content, everything else as JSON.
func blockText(block json.RawMessage) string {
	var b struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Data     string          `json:"data"`
		MIMEType string          `json:"mimeType"`
		Resource resourceContent `json:"resource"`
	}
	if json.Unmarshal(block, &b) != nil {
		return string(block)
	}
	switch {
	case b.Type == "text":
		return b.Text
	case b.Type == "image", b.Type == "audio":
		return fmt.Sprintf("[%s: %s, %d bytes]", b.Type, b.MIMEType, base64DecodedLength(b.Data))
	case b.Type == "resource" && b.Resource.Blob == nil:
		return b.Resource.Text
	case b.Type == "resource":
		return fmt.Sprintf("[resource %s: %s, %d bytes]", b.Resource.URI, b.Resource.MIMEType, base64DecodedLength(*b.Resource.Blob))
	}
	return string(block)
}

func base64DecodedLength(encoded string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "=")))
}

type promptsCmd struct{ listFlags }

// Run lists the prompts of the connected servers and fails if some are not connected.
func (c *promptsCmd) Run(ctx context.Context, o *Options) error {
	return c.connectAndPrintList(ctx, o, func(_ *mcp.Manager, servers []mcp.ServerStatus) (map[string]any, func(), error) {
		prompts := []mcp.Prompt{}
		for _, st := range servers {
			prompts = append(prompts, st.Prompts...)
		}
		return map[string]any{"prompts": prompts}, func() {
			for _, p := range prompts {
				printNameAndDescription(o.Stdout, p.Server+"  "+p.Name+formatPromptArguments(p), p.Description)
			}
		}, nil
	})
}

// formatPromptArguments formats the arguments of a prompt: "  x=… [y=…]", where y is optional.
func formatPromptArguments(p mcp.Prompt) string {
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
	args := object{}
	for _, kv := range c.Args {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" {
			return process.WithHint(fmt.Sprintf("the argument %q is not of the form key=value", kv), "see "+o.Name+" mcp get-prompt --help")
		}
		args = args.Set(key, jsonString(value))
	}
	var result struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	err := c.queryServerAndDecodeOrPrint(ctx, o, c.Server, &result, func(m *mcp.Manager) (json.RawMessage, error) {
		return m.GetPrompt(ctx, c.Server, c.Name, args.Raw())
	})
	for _, message := range result.Messages {
		fmt.Fprintf(o.Stdout, "%s: %s\n", message.Role, blockText(message.Content))
	}
	return err
}

type resourcesCmd struct{ listFlags }

type templateReport struct {
	Server   string          `json:"server"`
	Template json.RawMessage `json:"template"`
}

// Run lists the resources of the connected servers and fails if some are not connected.
func (c *resourcesCmd) Run(ctx context.Context, o *Options) error {
	return c.connectAndPrintList(ctx, o, func(m *mcp.Manager, servers []mcp.ServerStatus) (map[string]any, func(), error) {
		resources, err := m.Resources("")
		templates := []templateReport{}
		for _, st := range servers {
			if st.Status != "connected" {
				continue
			}
			all, err := m.ResourceTemplates(ctx, st.Name)
			if err != nil {
				fmt.Fprintf(o.Stderr, "MCP server '%s': listing resource templates: %v\n", st.Name, err)
			}
			for _, t := range all {
				templates = append(templates, templateReport{st.Name, t})
			}
		}
		report := map[string]any{"resources": append([]mcp.Resource{}, resources...), "resourceTemplates": templates}
		return report, func() { printResources(o.Stdout, resources, templates) }, err
	})
}

func printResources(w io.Writer, resources []mcp.Resource, templates []templateReport) {
	for _, r := range resources {
		printNameAndDescription(w, r.Server+"  "+r.URI, r.Name)
	}
	for _, t := range templates {
		var def struct {
			URI  string `json:"uriTemplate"`
			Name string `json:"name"`
		}
		if json.Unmarshal(t.Template, &def) == nil {
			printNameAndDescription(w, t.Server+"  "+def.URI, def.Name+" (template)")
		}
	}
}

type readResourceCmd struct {
	clientFlags
	Server string `arg:"" help:"Name of the server"`
	URI    string `arg:"" help:"URI of the resource"`
}

// resourceContent is one part of a resource, as received.
type resourceContent struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     string  `json:"text"`
	Blob     *string `json:"blob"`
}

// Run writes the content itself, including binary content.
func (c *readResourceCmd) Run(ctx context.Context, o *Options) error {
	var result struct {
		Contents []resourceContent `json:"contents"`
	}
	err := c.queryServerAndDecodeOrPrint(ctx, o, c.Server, &result, func(m *mcp.Manager) (json.RawMessage, error) {
		return m.ReadResource(ctx, c.Server, c.URI)
	})
	if err != nil {
		return err
	}
	for _, part := range result.Contents {
		data := []byte(part.Text)
		if part.Blob != nil {
			if data, err = base64.StdEncoding.DecodeString(*part.Blob); err != nil {
				return fmt.Errorf("decoding the base64 content of %s: %w", part.URI, err)
			}
		}
		if _, err := o.Stdout.Write(data); err != nil {
			return err
		}
	}
	return nil
}
