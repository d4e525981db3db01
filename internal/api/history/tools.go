package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
)

// Toolset is the list of tools that a request offers. It is parsed only once for all requests with the same list.
type Toolset struct {
	Raw   json.RawMessage // the list as received; nil means none
	Names []string
	err   error // set if the list is invalid
}

// Schemas returns the input schemas by tool name.
func (t *Toolset) Schemas() map[string]json.RawMessage {
	var tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	out := map[string]json.RawMessage{}
	if json.Unmarshal(t.Raw, &tools) == nil {
		for _, tool := range tools {
			if tool.Schema != nil {
				out[tool.Name] = tool.Schema
			}
		}
	}
	return out
}

func (rd *Reader) readTools(raw []byte) *Toolset {
	sum := maphash.Bytes(rd.seed, raw)
	rd.mu.Lock()
	t, known := rd.tools.Get(sum)
	rd.mu.Unlock()
	if known {
		return t
	}
	t = parseTools(bytes.Clone(raw))
	rd.mu.Lock()
	rd.tools.Put(sum, t)
	rd.mu.Unlock()
	return t
}

func parseTools(raw []byte) *Toolset {
	t := &Toolset{Raw: raw}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return t
	}
	var tools []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &tools); err != nil {
		if t.err = InvalidRequest("tools", "Input should be a valid list"); !json.Valid(raw) {
			t.err = errSyntax
		}
		return t
	}
	for i, tool := range tools {
		switch {
		case tool.Name == "" && (tool.Type == "" || tool.Type == "custom"):
			t.err = InvalidRequest(fmt.Sprintf("tools.%d.name", i), "Field required")
			return t
		case tool.Name == "": // a set of tools that run on the server
		case slices.Contains(t.Names, tool.Name):
			t.err = InvalidRequest("tools", "Tool names must be unique.")
			return t
		default:
			t.Names = append(t.Names, tool.Name)
		}
	}
	return t
}
