package connection

import (
	"context"
	"encoding/json"
	"fmt"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// requestUncheckedResult sends a request and returns its result as the server sent it.
func (c *Conn) requestUncheckedResult(ctx context.Context, method wire.MCPMethod, params plainjson.Object) (json.RawMessage, error) {
	result, err := c.client.requestAnsweringQuestions(ctx, string(method), params)
	if err != nil {
		return nil, rootCauseOfClientError(err)
	}
	return result, nil
}

// maxListPages is how many pages of a list are read (observed with 2.1.330).
const maxListPages = 20

// List returns the elements of all pages of a list as sent. A repeated cursor or too many pages end the list with a warning.
func (c *Conn) List(ctx context.Context, list ListKind) (all []json.RawMessage, warning string, err error) {
	var params plainjson.Object
	seen := map[wire.Cursor]bool{"": true}
	for range maxListPages {
		result, err := c.requestUncheckedResult(ctx, list.method(), params)
		if err != nil {
			return all, "", err
		}
		method := string(list) + "/list"
		defects := c.options.Defects(method, result)
		if defects == "" && c.IsModern() {
			defects = shapes().DefectsJSON("cache keys", result)
		}
		if defects != "" {
			return all, "", NewMalformedResultError(method, defects)
		}
		p := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](result)
		items := plainjson.DecodeIgnoringErrors[[]json.RawMessage](p[string(list)])
		if list == ListTools {
			c.storeToolsForHeaderArguments(items)
		}
		all = append(all, items...)
		next := plainjson.DecodeIgnoringErrors[wire.Cursor](p["nextCursor"])
		if next == "" {
			return all, "", nil
		}
		if seen[next] {
			return all, fmt.Sprintf("listing %s: the server repeated the cursor %q; only %d entries were read", list, next, len(all)), nil
		}
		seen[next] = true
		params = newJSONObject("cursor", next)
	}
	return all, fmt.Sprintf("the list of %s has more than %d pages; only %d entries were read", list, maxListPages, len(all)), nil
}

func (c *Conn) storeToolsForHeaderArguments(toolDefinitions []json.RawMessage) {
	for _, definition := range toolDefinitions {
		tool := &wire.Tool{}
		if c.IsModern() && c.IsRemote() && json.Unmarshal(definition, tool) == nil && wire.ValidateParamHeaderAnnotations(tool) == nil {
			c.client.toolsWithHeaderArguments.Store(tool.Name, tool)
		}
	}
}

// ToolHeaderAnnotationError returns why a tool cannot be called over this connection; nil means that it can.
// In revision 2026-07-28, some arguments are HTTP headers, and their definition may be invalid.
func (c *Conn) ToolHeaderAnnotationError(definition json.RawMessage) error {
	var tool wire.Tool
	if !c.IsModern() || !c.IsRemote() || json.Unmarshal(definition, &tool) != nil {
		return nil
	}
	return wire.ValidateParamHeaderAnnotations(&tool)
}

// ReadResource reads a resource and returns the result as the server sent it.
func (c *Conn) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	return c.requestUncheckedResult(ctx, wire.MethodResourcesRead, newJSONObject("uri", uri))
}

// GetPrompt fills in a prompt and returns the result as the server sent it.
func (c *Conn) GetPrompt(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	return c.requestUncheckedResult(ctx, wire.MethodPromptsGet, newJSONObject("name", name, "arguments", args))
}

// Subscribe subscribes to changes of a resource.
func (c *Conn) Subscribe(ctx context.Context, uri string) error {
	if c.subscription != nil {
		c.subscription.addURI(uri)
		return nil
	}
	_, err := c.requestUncheckedResult(ctx, "resources/subscribe", newJSONObject("uri", uri))
	return err
}
