package harness

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/claudeless/claudeless/internal/serve"
)

// Guard is how the command is kept from a real claude.
type Guard string

// The guards. The zero value is GuardPath.
const (
	GuardOff    Guard = "off"
	GuardPath   Guard = "path"
	GuardStrict Guard = "strict"
)

// ParseGuard reads the value of --guard.
func ParseGuard(s string) (Guard, error) {
	switch g := Guard(s); g {
	case "":
		return GuardPath, nil
	case GuardOff, GuardPath, GuardStrict:
		return g, nil
	}
	return "", fmt.Errorf("--guard: %q is none of off, path and strict", s)
}

// String is what the report says of the protection.
func (g Guard) String() string {
	switch g {
	case GuardOff:
		return "off"
	case GuardStrict:
		return "strict: shims on PATH, a canary key, no network but loopback; not a sandbox"
	default:
		return "path: shims on PATH, a canary key, base URLs on loopback; not a sandbox"
	}
}

// api is the Messages API of a run, on loopback.
type api struct {
	url    string
	cancel context.CancelFunc
	done   chan error
}

// listen starts it.
func listen(ctx context.Context, r *run) (*api, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ln, err := serve.Listen(ctx, serve.Options{})
	if err != nil {
		cancel()
		return nil, err
	}
	a := &api{url: "http://" + ln.Addr().String(), cancel: cancel, done: make(chan error, 1)}
	go func() { // ends with close
		a.done <- serve.Serve(ctx, ln, r.handler(), serve.Options{Grace: time.Millisecond})
	}()
	return a, nil
}

func (a *api) close() error {
	a.cancel()
	return <-a.done
}

func (r *run) handler() http.Handler {
	return http.NotFoundHandler()
}
