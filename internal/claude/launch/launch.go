// Package launch resolves flags, environment, settings and scenario into one
// [Plan].
//
// All rules of precedence are in this package; code that receives a Plan does
// not look at flags or the environment again. Resolving a plan starts nothing
// and only reads from disk, except that it saves a copy of a broken
// configuration file.
package launch

import (
	"fmt"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/scenarios"
)

// Resolve decides what a run is. After an error the plan is as far as it got; with a clock, the error can be told in an
// event. Faults and warnings are in the real CLI's words where it has some; warnings go to stderr.
//
// Nil flags are those of a command that runs no session: its plan says where things are, what the settings are and how
// servers are reached.
func Resolve(sys *process.System, f *flags.Flags) (Plan, error) {
	r := &resolver{sys: sys, f: f, p: &Plan{}}
	steps := []func(*resolver) error{
		(*resolver).shown, (*resolver).locate, (*resolver).scenario, (*resolver).clock, (*resolver).checkConfig, (*resolver).settings,
		(*resolver).catalog, (*resolver).servers, (*resolver).model, (*resolver).permission, (*resolver).transcript, (*resolver).rest,
	}
	if f == nil {
		r.f = &flags.Flags{}
		steps = []func(*resolver) error{(*resolver).locate, (*resolver).noScenario, (*resolver).settings}
	}
	for _, step := range steps {
		if err := step(r); err != nil {
			return *r.p, err
		}
	}
	return *r.p, nil
}

// shown is what of the plan even a run that does not come to be needs.
func (r *resolver) shown() error {
	f := r.f
	r.p.Output = Output{
		Format: f.OutputFormat, Verbose: f.Verbose, Partial: f.IncludePartialMessages, Replay: f.ReplayUserMessages,
		HookEvents: f.IncludeHookEvents, AgentText: f.ForwardSubagentText, Expect: f.Expect, Defer: f.Defer, Mirror: f.SessionMirror,
	}
	if f.ThinkingDisplay == "summarized" { // of what the flag may say, one thing shows
		r.p.Output.ThinkingDisplay = f.ThinkingDisplay
	}
	return nil
}

func (r *resolver) noScenario() error {
	r.p.Scenario.Scenario = &scenarios.Scenario{}
	return nil
}

func (r *resolver) scenario() (err error) {
	r.p.Scenario, err = loadScenario(r.f.Scenario, r.p.Directories)
	return err
}

func (r *resolver) clock() (err error) {
	r.p.Clock, err = newClock(r.sys, r.f, r.p)
	return err
}

// model is the model, and how the scenario plays it: what its expressions see, and the one failure that --failure names.
func (r *resolver) model() (err error) {
	r.p.Model = startModel(r.sys, r.f, r.p)
	r.p.Scenario.Engine = scenarios.EngineOptions{Env: r.sys.Environ, Args: r.sys.Args[1:], CWD: r.p.CWD}
	r.p.Scenario.Failure, err = oneFailure(r.f.Failure)
	return err
}

func (r *resolver) permission() (err error) {
	if r.p.Permission, err = startPermission(r.f, r.p); err == nil && r.f.OutputFormat == "text" {
		fmt.Fprint(r.sys.Stderr, notices(r.f, r.p))
	}
	return err
}

func (r *resolver) transcript() error {
	if r.p.State == "" && !r.f.NoSessionPersistence {
		r.p.warn("HOME is not set: the session is not saved (set HOME or CLAUDELESS_CONFIG_DIR)")
	}
	r.p.Transcript = conversation(r.sys, r.f, r.p)
	return nil
}

// rest is what follows from flags and environment alone.
func (r *resolver) rest() error {
	if r.f.InputFormat == "stream-json" {
		r.p.Host = Host{
			AwaitInitialize: r.f.AwaitInitialize, OneByOne: r.sys.Getenv("CLAUDELESS_MERGE_PROMPTS") == "0",
			Checkpoints:  on(r.sys, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"),
			States:       on(r.sys, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"),
			StatesToHost: on(r.sys, "CLAUDE_CODE_SDK_READS_SESSION_STATE"),
		}
	}
	r.p.Tools = r.p.Tools.withRules(r.sys, r.f)
	r.p.Limits = limits(r.sys, r.f, r.p)
	r.p.Records = followed(r.sys, r.f, r.p)
	if r.p.Records.Gates != "" && r.sys.Getenv("CLAUDELESS_RUN") != "" {
		r.p.Scenario.Engine.Claims = gate.Claims{Dir: r.p.Records.Gates}
	}
	return nil
}
