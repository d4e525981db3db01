package debug

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// RegisteredFunction is something that can be called: a tool, or a function of an older client.
type RegisteredFunction struct {
	Name string
	// Signature is the text of a signature, or a schema as canonical JSON. Empty means unknown. A function may
	// replace another one only if both have the same known signature.
	Signature string
	Alias     string          // "server/tool" for the tools of MCP servers
	Metadata  json.RawMessage // a JSON object; nil means none
}

type functionRegistry struct {
	*hubState
	functions  map[string]RegisteredFunction
	aliases    map[string]string // "server/tool" → canonical name
	totalBytes int               // size of the functions in bytes
}

func (f RegisteredFunction) size() int { return len(f.Name+f.Signature+f.Alias) + len(f.Metadata) }

type toolMetadata struct {
	Server      string          `json:"server,omitempty"`
	Original    string          `json:"original_name,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// FunctionFromTool describes a tool as a function.
func FunctionFromTool(t protocol.Tool) (RegisteredFunction, error) {
	f := RegisteredFunction{Name: t.Name, Signature: string(t.InputSchema)}
	if t.Server != "" {
		f.Alias = t.Server + "/" + t.RawName
	}
	var err error
	if f.Metadata, err = protocol.Marshal(toolMetadata{t.Server, t.RawName, t.Description, t.InputSchema}); err != nil {
		err = NewError(CodeInvalidPayload, err.Error(), "function_name", t.Name)
	}
	return f, err
}

// Register adds tools with their schemas; it sets no breakpoints.
func (r *functionRegistry) Register(_ context.Context, tools []protocol.Tool) error {
	for _, t := range tools {
		f, err := FunctionFromTool(t)
		if err != nil {
			return err
		}
		if err := r.AddOrReplaceFunction(f); err != nil {
			return err
		}
	}
	return nil
}

// AddOrReplaceFunction adds a function or replaces it.
func (r *functionRegistry) AddOrReplaceFunction(f RegisteredFunction) error {
	if f.Name == "" {
		return NewError(CodeMissingParameter, "function_name required", "parameter", "function_name")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addOrReplaceLocked(f)
}

// addOrReplaceLocked adds or replaces a function. The caller must have locked r.
func (r *functionRegistry) addOrReplaceLocked(f RegisteredFunction) error {
	if strings.HasPrefix(strings.TrimSpace(f.Signature), "{") {
		if canonical, err := cas.CanonicalJSON([]byte(f.Signature)); err == nil {
			f.Signature = string(canonical)
		}
	}
	before, known := r.functions[f.Name]
	if !known && len(r.functions) >= maxRegisteredFunctions {
		return NewError(CodeLimit, "too many functions")
	}
	bytes := r.totalBytes + f.size()
	if known {
		bytes -= before.size()
	}
	if bytes > maxTotalBytesOfRegisteredFunctions {
		return NewError(CodeLimit, fmt.Sprintf("signatures and metadata of all functions together are over %d bytes", maxTotalBytesOfRegisteredFunctions))
	}
	r.totalBytes = bytes
	r.functions[f.Name] = f
	if f.Alias != "" {
		r.aliases[f.Alias] = f.Name
	}
	r.publishLocked(Event{Kind: EventConfigurationChanged, Topic: TopicRegisteredFunctions})
	return nil
}

// RegisterSignature sets the signature of a function. If the function is unknown, it is added.
func (r *functionRegistry) RegisterSignature(name, signature string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.functions[name]
	f.Name, f.Signature = name, signature
	return r.addOrReplaceLocked(f)
}

// DebuggedFunctionsSortedByName lists all functions, sorted by name.
func (r *functionRegistry) DebuggedFunctionsSortedByName() []RegisteredFunction {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.functions), func(a, b RegisteredFunction) int { return strings.Compare(a.Name, b.Name) })
}

// FunctionNamesSignaturesAndMetadata returns the sorted names of all functions, and the signatures and metadata that
// are known, keyed by function name.
func (r *functionRegistry) FunctionNamesSignaturesAndMetadata() (sortedNames []string, signatureByName map[string]string, metadataByName map[string]json.RawMessage) {
	sortedNames, signatureByName, metadataByName = []string{}, map[string]string{}, map[string]json.RawMessage{}
	for _, f := range r.DebuggedFunctionsSortedByName() {
		sortedNames = append(sortedNames, f.Name)
		if f.Signature != "" {
			signatureByName[f.Name] = f.Signature
		}
		if len(f.Metadata) > 0 {
			metadataByName[f.Name] = f.Metadata
		}
	}
	return sortedNames, signatureByName, metadataByName
}

// canonicalNameOfToolSpelling returns the canonical name for any spelling of a tool name; r.mu must be held.
func (r *functionRegistry) canonicalNameOfToolSpelling(anySpelling string) string {
	if _, ok := r.functions[anySpelling]; ok {
		return anySpelling
	}
	if c, ok := r.aliases[anySpelling]; ok {
		return c
	}
	if server, tool, ok := strings.Cut(anySpelling, "/"); ok && server != "" && tool != "" {
		return mcp.CanonicalToolName(server, tool)
	}
	return anySpelling
}
