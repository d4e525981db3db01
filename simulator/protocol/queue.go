package protocol

import "encoding/json"

// QueuedCommand is the attachment queued_command: a prompt that became part of the running turn.
type QueuedCommand struct {
	Type       string          `json:"type"` // "queued_command"
	Prompt     Content         `json:"prompt"`
	SourceUUID string          `json:"source_uuid"`
	DeliveryID string          `json:"delivery_id"`
	Mode       string          `json:"commandMode"`         // "prompt"
	HumanTurn  bool            `json:"humanTurn,omitempty"` // typed in a terminal
	Origin     json.RawMessage `json:"origin,omitempty"`
	Timestamp  string          `json:"timestamp"`
}
