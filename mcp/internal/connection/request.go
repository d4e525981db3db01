package connection

import (
	"context"
	"encoding/json"
	"fmt"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

func rawRequest(ctx context.Context, stub string, send func(context.Context) error) (json.RawMessage, error) {
	ex := &rawResultSlot{stub: json.RawMessage(stub)}
	if err := send(context.WithValue(ctx, rawResultKey{}, ex)); err != nil {
		return nil, unwrapClientError(err)
	}
	return ex.result, nil
}

func (c *Conn) fetchPage(ctx context.Context, list ListKind, req wire.PaginatedRequest) (err error) {
	switch list {
	case ListTools:
		_, err = c.client.ListToolsByPage(ctx, wire.ListToolsRequest{PaginatedRequest: req})
	case ListPrompts:
		_, err = c.client.ListPromptsByPage(ctx, wire.ListPromptsRequest{PaginatedRequest: req})
	case ListResources:
		_, err = c.client.ListResourcesByPage(ctx, wire.ListResourcesRequest{PaginatedRequest: req})
	case ListTemplates:
		_, err = c.client.ListResourceTemplatesByPage(ctx, wire.ListResourceTemplatesRequest{PaginatedRequest: req})
	default:
		err = fmt.Errorf("unknown MCP list %s: expected tools, prompts, resources or templates", list)
	}
	return err
}

// maxListPages is how many pages of a list are read (observed with 2.1.330).
const maxListPages = 20

// List returns the elements of all pages of a list as sent. A repeated cursor or too many pages end it with a warning.
func (c *Conn) List(ctx context.Context, list ListKind) (all []json.RawMessage, warning string, err error) {
	var req wire.PaginatedRequest
	seen := map[wire.Cursor]bool{"": true}
	for range maxListPages {
		result, err := rawRequest(ctx, `{}`, func(ctx context.Context) error { return c.fetchPage(ctx, list, req) })
		if err != nil {
			return all, "", err
		}
		method := string(list) + "/list"
		defects := c.options.Defects(method, result)
		if defects == "" && c.IsModern() {
			defects = CacheDefects(result)
		}
		if defects != "" {
			return all, "", MalformedResult(method, defects)
		}
		p := plainjson.DecodeOrZero[map[string]json.RawMessage](result)
		all = append(all, plainjson.DecodeOrZero[[]json.RawMessage](p[string(list)])...)
		next := plainjson.DecodeOrZero[wire.Cursor](p["nextCursor"])
		if next == "" {
			return all, "", nil
		}
		if seen[next] {
			return all, fmt.Sprintf("the list of %s repeats the cursor %q; only %d entries were read", list, next, len(all)), nil
		}
		seen[next] = true
		req.Params.Cursor = next
	}
	return all, fmt.Sprintf("the list of %s has more than %d pages; only %d entries were read", list, maxListPages, len(all)), nil
}

// CheckTool returns why a tool with this definition cannot be called over this connection; nil means that it can. Over
// HTTP, revision 2026-07-28 sends some arguments as headers. A definition whose headers are invalid cannot be called.
func (c *Conn) CheckTool(definition json.RawMessage) error {
	var tool wire.Tool
	if !c.IsModern() || !c.IsRemote() || json.Unmarshal(definition, &tool) != nil {
		return nil
	}
	return wire.ValidateParamHeaderAnnotations(&tool)
}

// ReadResource returns the result as the server sent it.
func (c *Conn) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	var req wire.ReadResourceRequest
	req.Params.URI = uri
	return rawRequest(ctx, `{"contents":[]}`, func(ctx context.Context) error {
		_, err := c.client.ReadResource(ctx, req)
		return err
	})
}

// GetPrompt fills in a prompt and returns the result as the server sent it.
func (c *Conn) GetPrompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error) {
	var req wire.GetPromptRequest
	req.Params.Name, req.Params.Arguments = name, args
	return rawRequest(ctx, `{"messages":[]}`, func(ctx context.Context) error {
		_, err := c.client.GetPrompt(ctx, req)
		return err
	})
}

// Subscribe subscribes to changes of a resource.
func (c *Conn) Subscribe(ctx context.Context, uri string) error {
	if c.subscription != nil {
		c.subscription.add(uri)
		return nil
	}
	var req wire.SubscribeRequest
	req.Params.URI = uri
	var legacy interface { // does not exist in revision 2026-07-28, so mcp-go calls it deprecated
		Subscribe(ctx context.Context, req wire.SubscribeRequest) error
	} = c.client
	_, err := rawRequest(ctx, `{}`, func(ctx context.Context) error { return legacy.Subscribe(ctx, req) })
	return err
}
