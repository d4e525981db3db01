package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/messages"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/internal/serve"
	"github.com/claudeless/claudeless/internal/verdict"
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
	case GuardOff, GuardPath:
		return g, nil
	case GuardStrict:
		return "", errors.New("--guard=strict is not there yet: path is what this version has")
	}
	return "", fmt.Errorf("--guard: %q is none of off and path", s)
}

// String is what the report says of the protection.
func (g Guard) String() string {
	if g == GuardOff {
		return "off"
	}
	return "path: shims on PATH, a canary key, base URLs on loopback; not a sandbox"
}

// api is the Messages API of a run, on loopback. It plays the scenario, and it
// notices a real claude that has found its way past the shims.
type api struct {
	url     string
	cancel  context.CancelFunc
	done    chan error
	capture *os.File // nil = there is no scenario to serve
	guard   Guard
	real    bool // a real claude is what was asked for

	mu       sync.Mutex
	breaches map[int]verdict.Finding // by process
}

// listen starts it.
func listen(ctx context.Context, r *run) (*api, error) {
	a := &api{done: make(chan error, 1), guard: r.Guard, real: r.Setup.Real != "", breaches: map[int]verdict.Finding{}}
	handler, err := a.handler(r)
	if err != nil {
		return nil, err
	}
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ln, err := serve.Listen(ctx, serve.Options{})
	if err != nil {
		a.cancel()
		return nil, err
	}
	a.url = "http://" + ln.Addr().String()
	go func() { // ends with close
		a.done <- serve.Serve(ctx, ln, handler, serve.Options{Grace: time.Millisecond})
	}()
	return a, nil
}

func (a *api) close() error {
	a.cancel()
	err := <-a.done
	if a.capture != nil {
		err = errors.Join(err, a.capture.Close())
	}
	return err
}

// handler is the scenario as the Messages API, behind the watch for real claudes.
func (a *api) handler(r *run) (http.Handler, error) {
	next := http.NotFoundHandler()
	if r.Setup.Scenario != "" {
		scenario, err := verdict.LoadScenario(r.Setup.Scenario)
		if err != nil {
			return nil, err
		}
		if a.capture, err = os.OpenFile(r.journal, os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("opening the journal: %w", err)
		}
		s := r.System
		cwd, _ := s.Getwd() // expressions may do without
		next, err = messages.New(messages.Options{
			Scenario: scenario, Clock: wall{s}, Capture: a.capture,
			Environ: s.Environ, Args: s.Args, CWD: cwd, PID: s.PID,
		})
		if err != nil {
			return nil, err
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !a.real && a.guard != GuardOff && strings.HasPrefix(q.UserAgent(), "claude-cli/") {
			a.breach(q)
			http.Error(w, `{"type":"error","error":{"type":"permission_error","message":"claudeless: a real claude is not to be reached here"}}`, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, q)
	}), nil
}

// wall is the clock of the process.
type wall struct{ sys *process.System }

// Now is the time.
func (w wall) Now() time.Time { return w.sys.Now() }

// NewID is a fresh UUID.
func (w wall) NewID() string { return w.sys.NewID() }

// Sleep waits, or returns the error of ctx.
func (w wall) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// breach notes the process at the other end of a request.
func (a *api) breach(q *http.Request) {
	pid := peer(q.RemoteAddr)
	text := "a real claude was reached: " + q.UserAgent()
	if pid > 0 {
		text = fmt.Sprintf("a real claude was reached: %s, started by %s", strings.Join(argvOf(pid), " "), parentOf(pid))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.breaches[pid]; !known {
		a.breaches[pid] = verdict.Finding{
			ID: "G01", Level: "error", PID: pid, Text: text,
			Advice: "the command found it past PATH: an absolute path, a bundled copy, or a PATH of its own; name the shim in the host's option for the executable (cli_path, pathToClaudeCodeExecutable), or see --env-for",
		}
	}
}

// found are the breaches so far.
func (a *api) found() []verdict.Finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []verdict.Finding
	for _, f := range a.breaches {
		list = append(list, f)
	}
	return list
}

// peer finds the process that holds the other end of a local connection; 0 = it is
// not to be found.
func peer(addr string) int {
	_, port, _ := strings.Cut(addr, ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	inode := ""
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(file) // elsewhere there is none
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) {
				inode = f[9]
			}
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && inode != "" && to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			return pid
		}
	}
	return 0
}

// parentOf names the parent of a process, with its id and command line.
func parentOf(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(`(?m)^PPid:\s+(\d+)$`).FindSubmatch(status)
	if m == nil {
		return "somebody"
	}
	parent, _ := strconv.Atoi(string(m[1]))
	return fmt.Sprintf("process %d (%s)", parent, strings.Join(argvOf(parent), " "))
}
