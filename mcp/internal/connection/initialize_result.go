package connection

import "encoding/json"

// ServerInfo is the name and version of a server.
type ServerInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// InitializeResult is a server's answer to initialize.
type InitializeResult struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ServerInfo      ServerInfo      `json:"serverInfo"`
	Instructions    string          `json:"instructions"`
}

// Has reports whether the server declared a capability.
func (h InitializeResult) Has(capability string) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(h.Capabilities, &all) != nil {
		return false
	}
	v, ok := all[capability]
	return ok && string(v) != "null" && string(v) != "false"
}

// IsEmpty reports whether the server declared nothing.
func (h InitializeResult) IsEmpty() bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(h.Capabilities, &all) != nil || len(all) == 0
}

// SupportsSubscriptions reports whether the server declared resource subscriptions.
func (h InitializeResult) SupportsSubscriptions() bool {
	var c struct {
		Resources struct {
			Subscribe bool `json:"subscribe"`
		} `json:"resources"`
	}
	return json.Unmarshal(h.Capabilities, &c) == nil && c.Resources.Subscribe
}
