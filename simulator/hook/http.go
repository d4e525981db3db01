package hook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// bodyLimit bounds the response body of an HTTP hook, in bytes.
const bodyLimit = 1 << 20

// post sends the input to an HTTP hook. A 2xx body is interpreted like a command's
// standard output; everything else is an error that does not block.
func (r *Runner) post(ctx context.Context, c *call, e *entry) hookResult {
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, e.config.URL, bytes.NewReader(c.stdin))
	if err != nil {
		return failure(ctx, limited, err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range e.config.Headers {
		req.Header.Set(name, expandEnv(value, e.config.AllowedEnvVars, r.o.Environ))
	}
	resp, err := r.o.HTTP.Do(req)
	if err != nil {
		return failure(ctx, limited, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
	if err != nil {
		return failure(ctx, limited, err)
	}
	a := hookResult{stdout: string(body), exit: &resp.StatusCode, outcome: succeeded}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		a.outcome, a.fault = failed, faultFailed
		a.stderr = fmt.Sprintf("HTTP %d from %s", resp.StatusCode, e.config.URL)
		return a
	}
	a.read(c.event)
	return a
}

var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)
})

// expandEnv replaces $NAME and ${NAME}. A name that is not allowed becomes empty.
// Line ends and NUL are removed from values, because they would end the header.
func expandEnv(text string, allowed, environ []string) string {
	return variable().ReplaceAllStringFunc(text, func(m string) string {
		name := strings.Trim(m, "${}")
		if !slices.Contains(allowed, name) {
			return ""
		}
		return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(proc.Getenv(environ, name))
	})
}
