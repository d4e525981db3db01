package executor

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const noResourcesText = "No resources found. MCP servers may still provide tools even if they have no resources."

// MCPResources is an executor with the tools that list and read resources of MCP servers. It has tools only while a
// connected server has resources (spec: cli-observed 3). The caller starts and closes the manager.
type MCPResources struct {
	Manager *mcp.Manager
	// SaveBlob saves a binary part of a resource and returns its path. index is the position of the part in the result.
	// If SaveBlob is nil, the bytes are discarded and the model receives only their number.
	SaveBlob func(index int, mime string, data []byte) (path string, err error)
}

// ReadResourceOutput is the tool_use_result of reading a resource.
type ReadResourceOutput struct {
	Contents []ResourceContent `json:"contents"`
}

// Error codes of an unknown resource: codeInvalidParams since revision 2026-07-28 of MCP, codeResourceNotFound before.
const codeResourceNotFound, codeInvalidParams = -32002, -32602

// missingResourceOutput is the result of reading an unknown resource: a successful result, not an error.
type missingResourceOutput struct {
	Contents []ResourceContent `json:"contents"`
	Error    string            `json:"error"`
}

// ResourceContent is one part of a resource. For a binary part, Text contains the path of the saved bytes.
type ResourceContent struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	SavedTo  string `json:"blobSavedTo,omitempty"` // path of a saved binary part
	Text     string `json:"text"`
}

// Tools returns the three tools that list and read resources, or nothing if no server has resources.
func (r MCPResources) Tools(context.Context) ([]protocol.Tool, error) {
	if !r.Manager.HasResources() {
		return nil, nil
	}
	return ResourceTools(), nil
}

// SearchOrResourceInputError returns the error result for an invalid input of ToolSearch or a tool of [MCPResources]. It is nil for other calls.
func SearchOrResourceInputError(call protocol.ToolUse) (refusalOrNil *protocol.ToolResult) {
	switch call.Name {
	case toolSearchName, listResourcesName, readResourceName, readResourceDirName:
		return tool.Tool{Name: call.Name}.Validate(call)
	}
	return nil
}

// ResourceTools returns the definitions of the tools of [MCPResources].
func ResourceTools() (tools []protocol.Tool) {
	for _, name := range []string{listResourcesName, readResourceDirName, readResourceName} {
		tools = append(tools, tool.Tool{Name: name}.Definition())
	}
	return tools
}

// Execute runs a call of a tool of [MCPResources]. For other tools, the error is [ErrUnknownTool].
func (r MCPResources) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	run := map[string]func(context.Context, resourceInput) protocol.ToolResult{
		listResourcesName: r.listResources, readResourceName: r.readResource, readResourceDirName: r.noDirectoryListingResult,
	}[call.Name]
	if run == nil || !r.Manager.HasResources() {
		return Result{}, ErrUnknownTool
	}
	if refused := SearchOrResourceInputError(call); refused != nil {
		return ResultOf(*refused), nil
	}
	var in resourceInput
	_ = json.Unmarshal(call.Input, &in) // the input is valid
	return ResultOf(run(ctx, in)), nil
}

type resourceInput struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

func (r MCPResources) listResources(_ context.Context, in resourceInput) protocol.ToolResult {
	all, err := r.Manager.Resources(in.Server)
	if err != nil {
		return r.failedResult(in.Server, err)
	}
	if len(all) == 0 {
		return protocol.ToolResult{Content: protocol.Content{Text: noResourcesText}, Output: []mcp.Resource{}}
	}
	return structuredResult(all)
}

// directoryListingNotEnabledText is the text of every result of ReadMcpResourceDirTool (observed with 2.1.329).
const directoryListingNotEnabledText = "Directory listing is not enabled in this build."

func (r MCPResources) noDirectoryListingResult(context.Context, resourceInput) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: directoryListingNotEnabledText}, Output: struct {
		Resources []mcp.Resource `json:"resources"`
		Error     string         `json:"error"`
	}{[]mcp.Resource{}, directoryListingNotEnabledText}}
}

func (r MCPResources) readResource(ctx context.Context, in resourceInput) protocol.ToolResult {
	raw, err := r.Manager.ReadResource(ctx, in.Server, in.URI)
	if rpc, ok := errors.AsType[*mcp.RPCError](err); ok && (rpc.Code == codeResourceNotFound || rpc.Code == codeInvalidParams) {
		gone := missingResourceOutput{Contents: []ResourceContent{}, Error: "Resource not found: " + in.URI + " — it may have been deleted or the URI is stale. " +
			"Re-run ListMcpResourcesTool to refresh."}
		return protocol.ToolResult{Content: protocol.Content{Text: gone.Error}, Output: gone}
	}
	if err != nil {
		return r.failedResult(in.Server, err)
	}
	contents, err := r.decodeContentsSavingBlobs(in.Server, raw)
	if err != nil {
		return r.failedResult(in.Server, err)
	}
	return structuredResult(contents)
}

func (r MCPResources) decodeContentsSavingBlobs(server string, raw json.RawMessage) (out ReadResourceOutput, err error) {
	var result struct {
		Contents []struct {
			ResourceContent
			Blob *string `json:"blob"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return out, fmt.Errorf("reading the answer of the MCP server to resources/read: %w", err)
	}
	out.Contents = []ResourceContent{}
	for i, c := range result.Contents {
		if c.Blob != nil {
			c.SavedTo, c.Text = r.saveBlob(i, c.MIMEType, *c.Blob)
			c.Text = fmt.Sprintf("[Resource from %s at %s] ", server, c.URI) + c.Text
		}
		out.Contents = append(out.Contents, c.ResourceContent)
	}
	return out, nil
}

// saveBlob saves a binary part. It returns the path, which is empty if nothing was saved, and a text for the model.
func (r MCPResources) saveBlob(index int, mime, blob string) (path, text string) {
	data, err := base64.StdEncoding.DecodeString(blob)
	if err != nil {
		return "", fmt.Sprintf("Binary content that is not base64: %v", err)
	}
	mime = cmp.Or(mime, "application/octet-stream")
	text = fmt.Sprintf("Binary content (%s, %d bytes)", mime, len(data))
	if r.SaveBlob == nil {
		return "", text
	}
	path, err = r.SaveBlob(index, mime, data)
	if err != nil {
		return "", fmt.Sprintf("%s could not be saved: %v", text, err)
	}
	return path, text + " saved to " + path
}

func (r MCPResources) failedResult(server string, err error) protocol.ToolResult {
	switch {
	case errors.Is(err, mcp.ErrUnknownServer):
		var names []string
		for _, st := range r.Manager.Servers() {
			names = append(names, st.Name)
		}
		return protocol.ErrorResult(fmt.Sprintf("Server %q not found. Available servers: %s", server, strings.Join(names, ", ")))
	case errors.Is(err, mcp.ErrNotConnected), errors.Is(err, mcp.ErrDisabled):
		return protocol.ErrorResult(fmt.Sprintf("Server %q is not connected", server))
	}
	return protocol.ErrorResult(err.Error())
}

func structuredResult(v any) protocol.ToolResult {
	text, err := protocol.Marshal(v)
	if err != nil {
		return protocol.ErrorResult(err.Error())
	}
	return protocol.ToolResult{Content: protocol.Content{Text: string(text)}, Output: v}
}
