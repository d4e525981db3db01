package runner

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Refuse answers a client that bypassed the claude of the run with an error of the Messages API that clients do not
// retry, and with advice. It returns the finding.
func Refuse(w http.ResponseWriter, r *http.Request, advice string) verdict.Finding {
	agent := cmp.Or(r.UserAgent(), "a program without a name")
	f := verdict.Finding{ID: "G01", Level: "error", Text: "a program used the base URL that belongs to claude: " + agent, Advice: advice}
	if isClaude(r) {
		f.Text = "a real claude was started instead of this one: " + agent
	}
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	body, _ := json.Marshal(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{"permission_error", "claudeless: G01: " + f.Text + "; " + f.Advice}}) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(body) // a client that has disconnected needs no answer
	return f
}

// isClaude reports whether a request is one of the real CLI.
func isClaude(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), "claude-cli/") }
