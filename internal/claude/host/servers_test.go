package host

import (
	"testing"

	"github.com/claudeless/claudeless/mcp"
)

// TestStatusError checks that mcp_status shows why a server failed, but no error if a login is
// required or the server is disabled (observed with 2.1.330).
func TestStatusError(t *testing.T) {
	for status, want := range map[string]string{"failed": "refused", "needs-auth": "", "disabled": ""} {
		st := mcp.ServerStatus{Name: "s", Status: status, WireError: "refused", Config: mcp.ServerConfig{Type: "http", URL: "http://127.0.0.1"}}
		if got := serverStatusForHost(st, true).Error; got != want {
			t.Errorf("%s: error %q, want %q", status, got, want)
		}
	}
}
