// Package helper runs a headersHelper: a shell command of the user that prints
// HTTP headers for a server as a JSON object of strings. Values that a helper
// prints never appear in errors.
package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// Options describe one run of a helper. Command is required.
type Options struct {
	Command     string // for sh -c
	Dir         string
	Environ     []string // "K=V"
	Server, URL string   // CLAUDE_CODE_MCP_SERVER_NAME and _URL
	Timeout     time.Duration
}

// defaultTimeout is the time-out of the real CLI.
const defaultTimeout = 10 * time.Second

// Headers runs the helper once and returns the headers that it prints. Errors never contain its output.
func Headers(ctx context.Context, o Options) (map[string]string, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
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
		return nil, fmt.Errorf("headersHelper gave no answer in %v", o.Timeout)
	case res.Exit.Code != 0 || res.Exit.Signal != "":
		return nil, fmt.Errorf("headersHelper ended with %s", res.Exit)
	}
	return parse(res.Stdout)
}

var errShape = errors.New("headersHelper did not print a JSON object of strings")

func parse(out []byte) (map[string]string, error) {
	var headers map[string]string
	if err := json.Unmarshal(out, &headers); err != nil || headers == nil {
		return nil, errShape
	}
	return headers, nil
}
