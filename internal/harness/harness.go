// Package harness runs a command with the double in the place of claude: shims
// first on PATH, a private directory, one journal of every process, and a verdict
// at the end.
//
// Its one invariant: the command's own streams and signals pass through as they
// are, nothing that it has started outlives it, and the report is written
// whatever happens. It judges nothing itself; see package verdict.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/proc"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/internal/verdict"
)

// Options say what to run and how. Command, Setup.Self and System are required.
type Options struct {
	Command []string
	// Setup is what claude is to be; where processes write to is filled in.
	Setup Setup
	// Capture keeps the journal there; empty = it goes with the private directory.
	Capture string
	// Reports says what is written beside the lines on Stderr.
	Reports Reports
	Guard   Guard
	// FreshHome gives the command an empty home directory.
	FreshHome bool
	// EnvFor are hosts, or variables, that are told where claude is.
	EnvFor []string

	// Faults are tried one by one, a run of the command each; empty = it is run once,
	// without any.
	Faults []string

	// System is this process: its streams and signals are those of the command.
	System *process.System
}

// Reports are the files of a verdict; empty = not written.
type Reports struct {
	JUnit, JSON string
	Summary     string // Markdown is appended to it: GITHUB_STEP_SUMMARY
	GitHub      bool   // annotations on stderr
}

// ExitNotFound is what shells say of a command that is not there.
const (
	ExitNotFound = 127
	exitNotRun   = 126
)

// grace is how long what the command leaves behind may take to end.
const grace = 500 * time.Millisecond

// Run runs the command and judges it. The report says how it ended; the error
// says that the run could not be prepared, or that a report could not be written.
func Run(ctx context.Context, o Options) (*verdict.Report, error) {
	r, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	began := o.System.Now()
	result := verdict.Command{Argv: o.Command}
	exit, left, err := r.command(ctx)
	result.Code, result.Signal, result.MS = exit.Code, exit.Signal, float64(o.System.Now().Sub(began).Microseconds())/1000
	report, judgeErr := r.judge(left)
	if report == nil {
		return nil, errors.Join(err, judgeErr)
	}
	report.Command = &result
	if report.ExitCode() != 0 {
		report.Verdict = "failed"
	}
	if err != nil {
		fmt.Fprintf(o.System.Stderr, "claudeless: error: %v\n", err)
	}
	return report, errors.Join(judgeErr, o.Reports.Write(report, o.System.Stderr))
}

// run is one command under way.
type run struct {
	Options
	dir     string
	remove  func() error
	journal string
	api     *api
	key     string // that opens nothing
}

func prepare(ctx context.Context, o Options) (*run, error) {
	r := &run{Options: o}
	if len(o.Command) == 0 {
		return nil, errors.New("there is no command after --")
	}
	var err error
	if r.dir, r.remove, err = proc.TempDir("claudeless-exec-"); err != nil {
		return nil, fmt.Errorf("making a private directory: %w", err)
	}
	if r.journal, err = filepath.Abs(o.Capture); o.Capture == "" || err != nil {
		r.journal = filepath.Join(r.dir, "journal.jsonl")
	}
	r.Setup.Journal, r.Setup.Config, r.Setup.Run = r.journal, filepath.Join(r.dir, "config"), filepath.Base(r.dir)
	r.key = canary()
	if err = r.files(); err == nil {
		if r.api, err = listen(ctx, r); err == nil {
			err = r.shims()
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// files makes what the command finds in place.
func (r *run) files() error {
	for _, dir := range []string{r.Setup.Config, filepath.Join(r.dir, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making a private directory: %w", err)
		}
	}
	file, err := os.OpenFile(r.journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && r.Capture != "" && info.Size() > 0 {
		if err := os.Truncate(r.journal, 0); err != nil { // a run has one of its own
			return fmt.Errorf("opening the journal: %w", err)
		}
	}
	return nil
}

// shims puts claude into place: the double, or the real one.
func (r *run) shims() error {
	r.Setup.BaseURL, r.Setup.Key = r.api.url, r.key
	if r.Setup.Real != "" {
		if err := r.seed(r.key); err != nil {
			return err
		}
	}
	return MakeShims(r.bin(), r.Setup, pathOf(r.System.Environ))
}

func (r *run) bin() string { return filepath.Join(r.dir, "bin") }

func (r *run) close() {
	if r.api != nil {
		_ = r.api.close() // what it served was served
	}
	_ = r.remove() // a directory that stays behind in /tmp harms nobody
}

// command runs it to its end; left is what it left running.
func (r *run) command(ctx context.Context) (exit proc.Exit, left []leftover, err error) {
	a, err := proc.Attach(ctx, proc.AttachOptions{
		Command: proc.Command{Path: r.Command[0], Args: r.Command[1:], Env: r.environ()},
		Stdin:   r.System.Stdin, Stdout: r.System.Stdout, Stderr: r.System.Stderr, Terminal: r.System.StdinIsTTY,
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return proc.Exit{Code: ExitNotFound}, nil, err
	case err != nil:
		return proc.Exit{Code: exitNotRun}, nil, err
	}
	stop := r.relay(a)
	exit = a.Exit()
	stop()
	left = leftovers(r.Setup.Run)
	for _, p := range left {
		p.signal(syscall.SIGTERM)
	}
	a.Stop(grace)
	finish(left, grace)
	return exit, left, nil
}

// relay passes signals on to the command until the function it returns is called.
// The second of a kind is the last that is asked politely.
func (r *run) relay(a *proc.Attached) (stop func()) {
	if r.System.Notify == nil {
		return func() {}
	}
	signals, done := make(chan os.Signal, 8), make(chan struct{})
	unsubscribe := r.System.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() { // ends when done is closed
		seen := map[os.Signal]int{}
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				s, ok := sig.(syscall.Signal)
				if !ok {
					continue
				}
				a.Signal(s)
				if seen[sig]++; seen[sig] == 2 {
					go a.Hurry(2 * time.Second) // ends with the command
				}
			}
		}
	}()
	return func() { unsubscribe(); close(done) }
}

// judge reads the journal, holds the run against the scenario and writes the
// verdict behind the lines.
func (r *run) judge(left []leftover) (*verdict.Report, error) {
	in := verdict.Input{Lenient: r.Setup.Lenient, Findings: append(findings(left), r.api.found()...)}
	for _, p := range left {
		in.Killed = append(in.Killed, p.pid)
	}
	if err := in.ReadFiles([]string{r.journal}, r.Setup.Scenario); err != nil {
		return nil, err
	}
	if len(in.Entries) == 0 && r.Setup.Scenario == "" {
		in.Findings = append(in.Findings, verdict.Finding{
			ID: "S01", Level: "error", Text: "no scenario was given, and claude was not called", Advice: "name a scenario with -s FILE",
		})
	}
	report := verdict.Judge(in)
	report.Guard = r.Guard.String()
	return &report, r.record(report.Lines())
}

// record appends the verdict to a journal that is kept.
func (r *run) record(lines []journal.Body) error {
	if r.Capture == "" {
		return nil
	}
	file, err := os.OpenFile(r.journal, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the verdict into the journal: %w", err)
	}
	j := journal.New(journal.Options{W: file, Now: r.System.Now, PID: r.System.PID, Environ: r.System.Environ})
	for _, line := range lines {
		j.Write(line)
	}
	return errors.Join(j.Err(), file.Close())
}
