package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// helperOptions describe one run of a helper. Command is required.
type helperOptions struct {
	Command     string // shell command, for sh -c
	Dir         string
	Environ     []string // "K=V"
	Server, URL string   // CLAUDE_CODE_MCP_SERVER_NAME and _URL
	Timeout     time.Duration
}

// helperTimeout is the timeout of the real CLI.
const helperTimeout = 10 * time.Second

// runHeadersHelper runs the helper once and returns the headers that it prints. Errors never contain its output.
func runHeadersHelper(ctx context.Context, o helperOptions) (map[string]string, error) {
	if o.Timeout <= 0 {
		o.Timeout = helperTimeout
	}
	const longest = 64 << 10
	res, err := proc.Run(ctx, proc.RunOptions{
		Command: proc.Command{
			Path: proc.Shell, Args: []string{"-c", o.Command}, Dir: o.Dir,
			Env: append(o.Environ[:len(o.Environ):len(o.Environ)],
				"CLAUDE_CODE_MCP_SERVER_NAME="+o.Server, "CLAUDE_CODE_MCP_SERVER_URL="+o.URL),
		},
		Limit: longest, Timeout: o.Timeout,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("running headersHelper: %w", err)
	case res.TimedOut:
		return nil, fmt.Errorf("headersHelper did not finish within %v", o.Timeout)
	case res.Exit.Code != 0 || res.Exit.Signal != "":
		return nil, fmt.Errorf("headersHelper failed with %s", res.Exit)
	}
	return parseHeaders(res.Stdout)
}

var errHeadersShape = errors.New("headersHelper did not print a JSON object of strings")

func parseHeaders(out []byte) (map[string]string, error) {
	var headers map[string]string
	if err := json.Unmarshal(out, &headers); err != nil || headers == nil {
		return nil, errHeadersShape
	}
	return headers, nil
}
