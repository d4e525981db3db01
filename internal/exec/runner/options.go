package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
	"github.com/claudeless/claudeless/scenarios"
)

// Options configure a run. Command, Setup.Executable and System are required.
type Options struct {
	Command      []string
	Setup        ClaudeSetup            // describes the simulated claude; the runner itself sets Journal, Config and RunID
	Rules        verdict.JudgingOptions // what counts as a failure
	Capture      string                 // file that keeps the journal; empty means it is deleted with the private directory
	RecordOutput bool                   // also keeps the output of each claude in the journal
	Guard        guard.StrictnessLevel
	JudgeLater   bool // omits the verdict; the journal in the file Capture then contains all that a later verdict needs
	FreshHome    bool // gives the command an empty home directory
	// EnvFor lists variables that are set to the path of claude. An entry is the name of a variable, or the name of a
	// host such as zed. The name of a host stands for the variable in which this host looks for claude.
	EnvFor []string

	Terminal *TerminalSettings // gives the command a pseudo-terminal; nil means it has the streams of this process

	Faults []string // tried one after another, with one run of the command each; empty means one run without a fault

	System *process.System // this process; the command uses its streams and signals
}

// TerminalSettings is a pseudo-terminal for the command.
type TerminalSettings = console.Settings

// ParseTerminalSettings reads the flags of a pseudo-terminal: its size, "COLSxROWS" or empty, and a directory for its screens.
func ParseTerminalSettings(size, screensDir string) (t *TerminalSettings, err error) {
	t = &TerminalSettings{Screens: screensDir}
	if size != "" {
		t.Size, err = console.ParseSize(size)
	}
	return t, err
}

// loopbackServers holds the servers of a run on loopback: the Messages API, which plays the scenario, and the proxy, which
// reports connections to vendors. A request of a real claude to the API shows that no shim started this claude.
type loopbackServers struct {
	url         string
	proxy       string // empty means no proxy
	handler     http.Handler
	vendorProxy *guard.VendorBlockingProxy // nil means no proxy
	capture     *os.File                   // journal that the API appends to; nil means that no scenario is served
	log         guard.BreachCollector

	cancel context.CancelFunc // nil means not serving
	tasks  sync.WaitGroup
	mu     sync.Mutex
	err    error
}

// newLoopbackServers creates the servers of a run, which do not listen yet. The proxy does not report the files in own as a real claude.
func newLoopbackServers(o Options, journal string, own guard.ClaudelessFiles) (*loopbackServers, error) {
	a := &loopbackServers{}
	next, err := a.newModelHandler(o, journal)
	if err != nil {
		return nil, err
	}
	watched := o.Setup.Real.Path == "" && o.Guard != guard.LevelOff
	a.handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if watched && fromRealClaude(q) {
			a.log.RecordRealClaudeRequest(q.RemoteAddr, q.UserAgent())
			RefuseForeignClient(w, q, shimAdvice) // the finding is in the log, with the process
			return
		}
		next.ServeHTTP(w, q)
	})
	upstream, ok := guard.ParseUpstreamProxy(cmp.Or(o.System.Getenv("HTTPS_PROXY"), o.System.Getenv("https_proxy")))
	if watched && (ok || o.Guard == guard.LevelStrict) {
		a.vendorProxy = &guard.VendorBlockingProxy{Log: &a.log, Upstream: upstream, RefusesAll: o.Guard == guard.LevelStrict, OwnFiles: own}
	}
	return a, nil
}

func (a *loopbackServers) newModelHandler(o Options, journal string) (http.Handler, error) {
	if o.Setup.Scenario == "" {
		return http.NotFoundHandler(), nil
	}
	scenario, err := verdict.LoadScenario(o.Setup.Scenario)
	if err != nil {
		return nil, err
	}
	if a.capture, err = os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	failure := apiFailureOfFault(procio.FaultByName(o.Setup.Fault))
	s := o.System
	cwd, _ := s.Getwd() // expressions can also be evaluated without a working directory
	return api.New(api.Options{
		Scenario: scenario, Clock: systemClockWithIDs{s}, Capture: a.capture,
		Environ: s.Environ, Args: s.Args, CWD: cwd, PID: s.PID, Gates: cmp.Or(s.Getenv("CLAUDELESS_GATES"), journal+".gates"), Failure: failure, IsPartOfRun: true,
	})
}

// apiFailureOfFault returns the failure that fault causes in the API server; nil means that fault is not a fault of the API.
func apiFailureOfFault(fault *procio.Fault) *scenarios.Failure {
	switch {
	case fault == nil || fault.Interface != "api":
		return nil
	case fault.Effects.StreamFault != "":
		return &scenarios.Failure{Type: scenarios.FailStreamFault, Fault: fault.Effects.StreamFault}
	}
	return scenarios.FailureByName(fault.Effects.Failure)
}

func (a *loopbackServers) listenAndServeInBackground(ctx context.Context) error {
	ln, err := localhttp.ListenAndWritePortFile(ctx, localhttp.Options{})
	if err != nil {
		return err
	}
	a.url = "http://" + ln.Addr().String()
	var trap net.Listener
	if a.vendorProxy != nil {
		if trap, err = localhttp.ListenAndWritePortFile(ctx, localhttp.Options{}); err != nil {
			return errors.Join(err, ln.Close())
		}
		a.proxy = "http://" + trap.Addr().String()
	}
	a.startServingUntilClose(ctx, ln, trap)
	return nil
}

// startServingUntilClose answers requests until close is called. If proxyListener is nil, no proxy is served.
func (a *loopbackServers) startServingUntilClose(ctx context.Context, ln, proxyListener net.Listener) {
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	a.tasks.Go(func() { // returns after close
		a.addErrorReturnedByClose(localhttp.Serve(ctx, ln, a.handler, localhttp.Options{Grace: time.Millisecond, Access: localhttp.Access{OwnOriginOnly: true}}))
	})
	if proxyListener == nil {
		return
	}
	server := &http.Server{Handler: a.vendorProxy, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	a.tasks.Go(func() { // returns after close
		<-ctx.Done()
		a.addErrorReturnedByClose(server.Close())
	})
	a.tasks.Go(func() { // returns after close
		if err := server.Serve(proxyListener); !errors.Is(err, http.ErrServerClosed) {
			a.addErrorReturnedByClose(err)
		}
	})
}

func (a *loopbackServers) addErrorReturnedByClose(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = errors.Join(a.err, err)
}

func (a *loopbackServers) close() error {
	if a.cancel != nil {
		a.cancel()
	}
	a.tasks.Wait()
	if a.capture != nil {
		a.addErrorReturnedByClose(a.capture.Close())
	}
	return a.err
}

const shimAdvice = "the command did not take claude from PATH but from an absolute path, a bundled copy, or its own PATH; " +
	"set the host's option for the executable to the claude on PATH (cli_path=shutil.which(\"claude\"), pathToClaudeCodeExecutable), or see --env-for"

func (a *loopbackServers) guardFindings() []verdict.Finding {
	var list []verdict.Finding
	for _, b := range a.log.Breaches() {
		f := verdict.Finding{ID: "G01", Level: "error", PID: b.PID, Text: b.Text}
		switch b.Kind {
		case guard.BreachRealClaude:
			f.Advice = shimAdvice
		case guard.BreachVendorAccess:
			f.ID, f.Advice = "G02", "the command talks to the vendor directly: use ANTHROPIC_BASE_URL as the base URL of its client, and do not set a provider in code"
		case guard.BreachExternalNonVendorAddress:
			f.ID, f.Level, f.Advice = "G03", "info", "--guard=strict allows only loopback connections"
		}
		list = append(list, f)
	}
	return list
}

type systemClockWithIDs struct{ sys *process.System }

func (w systemClockWithIDs) Now() time.Time { return w.sys.Now() }

func (w systemClockWithIDs) NewID() string { return w.sys.NewID() }

func (w systemClockWithIDs) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RefuseForeignClient refuses a request to the API by a program that is not the claude which the run provides. The response is an
// error of the Messages API that clients do not retry; it contains advice for the user. The returned finding describes the request.
func RefuseForeignClient(w http.ResponseWriter, r *http.Request, advice string) verdict.Finding {
	agent := cmp.Or(r.UserAgent(), "a program without a name")
	f := verdict.Finding{ID: "G01", Level: "error", Text: "a program other than claude used the base URL that is reserved for claude: " + agent, Advice: advice}
	if fromRealClaude(r) {
		f.Text = "a real claude was started instead of claudeless: " + agent
	}
	message, _ := json.Marshal("claudeless: G01: " + f.Text + "; " + f.Advice) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, `{"type":"error","error":{"type":"permission_error","message":%s}}`, message) // a client that has disconnected needs no answer
	return f
}

func fromRealClaude(r *http.Request) bool { return strings.HasPrefix(r.UserAgent(), "claude-cli/") }
