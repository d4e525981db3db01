package connection

import (
	"encoding/json"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// isMessage reports whether a line is a message of JSON-RPC. The real CLI ignores one without the version, with other
// members, or with metadata that is not an object (observed with 2.1.330).
func isMessage(line []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || plainjson.String(members["jsonrpc"]) != wire.JSONRPC_VERSION {
		return false
	}
	bodies := 0
	for name, value := range members {
		switch name {
		case "jsonrpc", "id":
		case "params", "result":
			if object(optional("_meta", ofType("object")))(value) != nil {
				return false
			}
			if name == "result" {
				bodies++
			}
		case "method", "error":
			bodies++
		default:
			return false
		}
	}
	return bodies == 1
}
