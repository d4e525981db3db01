package history

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Client holds information about the sender from the headers.
type Client struct {
	Namespace, Path string
	Session, Agent  string // sent by Claude Code; "" means unknown
	UserAgent       string
	Betas           []string
	Retries         int         // how often an SDK has repeated the request
	Header          http.Header // headers of the request
}

const maxReportedRetries = 1000

// ReadClient reads the headers of a request to a path of a namespace.
func ReadClient(r *http.Request, namespace, path string) Client {
	c := Client{
		Namespace: namespace, Path: path, Header: r.Header, UserAgent: r.UserAgent(),
		Session: r.Header.Get("X-Claude-Code-Session-Id"), Agent: r.Header.Get("X-Claude-Code-Agent-Id"),
	}
	c.Retries, _ = strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")) // anything else is not a retry
	c.Retries = min(max(c.Retries, 0), maxReportedRetries)
	for _, line := range r.Header.Values("Anthropic-Beta") {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" {
				c.Betas = append(c.Betas, beta)
			}
		}
	}
	return c
}

// IsClaudeCode reports whether the request comes from Claude Code.
func (c *Client) IsClaudeCode() bool {
	return strings.HasPrefix(c.UserAgent, "claude-cli/") || strings.HasPrefix(c.UserAgent, "claude-code/")
}

// VisibleHeaders returns the headers that expressions may read. Their names are in lower case, and credentials are
// replaced by "[redacted]".
func (c *Client) VisibleHeaders() map[string]string {
	out := make(map[string]string, len(c.Header))
	for name, values := range c.Header {
		name = strings.ToLower(name)
		if isSecretHeader(name) {
			out[name] = "[redacted]"
			continue
		}
		out[name] = strings.Join(values, ", ")
	}
	return out
}

// isSecretHeader reports whether a header, in lower case, may contain a credential.
func isSecretHeader(name string) bool {
	return slices.ContainsFunc([]string{"token", "secret", "credential", "api-key", "authorization", "cookie"}, func(part string) bool { return strings.Contains(name, part) })
}
