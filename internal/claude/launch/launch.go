// Package launch resolves flags, environment, settings and scenario into one [Plan].
//
// All rules of precedence are in this package; code that receives a Plan does not read flags or the environment again.
// Resolving a plan starts nothing and only reads from disk, except that it saves a copy of a broken configuration file.
package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/scenarios"
)

// Resolve computes the plan of a run from its flags, environment, settings and scenario. If it fails, it also returns the incomplete plan:
// if this contains a clock, the caller can report the error as an event. Errors and warnings that the real CLI also has are in its words.
// Warnings are written to stderr.
//
// A command that runs no session passes nil flags. Its plan has only directories, settings and options for MCP servers.
func Resolve(sys *process.System, f *flags.Flags) (Plan, error) {
	r := &planResolver{sys: sys, flags: f, plan: &Plan{}}
	r.plan.resolver = r
	steps := []func(*planResolver) error{
		(*planResolver).resolveOutput, (*planResolver).resolveDirectoriesAndProcess, (*planResolver).loadScenario, (*planResolver).createClock, (*planResolver).rejectAndBackUpInvalidConfig, (*planResolver).readSettingsAndApplyEnvironment, (*planResolver).refuseOrWarnWithoutSandboxPrograms,
		(*planResolver).loadCustomizationsAndAgent, (*planResolver).resolveServers, (*planResolver).resolveModelAndFailure, (*planResolver).resolvePermissionAndPrintNotices, (*planResolver).setTranscriptOptionsAndWarnWithoutHome, (*planResolver).setHostToolsLimitsAndRecords,
	}
	if f == nil {
		r.flags, r.plan.Scenario.Scenario = &flags.Flags{}, &scenarios.Scenario{}
		steps = []func(*planResolver) error{(*planResolver).resolveDirectoriesAndProcess, (*planResolver).readSettingsAndApplyEnvironment}
	}
	if f != nil && isEnvEnabled(sys, "CLAUDE_CODE_SIMPLE") {
		simple := *f
		simple.Bare = true
		r.flags = &simple
	}
	for _, step := range steps {
		if err := step(r); err != nil {
			return *r.plan, err
		}
	}
	return *r.plan, nil
}

// resolveOutput resolves the part of the plan that is needed even if the run cannot start.
func (r *planResolver) resolveOutput() error {
	f := r.flags
	r.plan.Output = OutputOptions{
		Format: f.OutputFormat, Verbose: f.Verbose, PartialMessages: f.IncludePartialMessages, ReplayPrompts: f.ReplayUserMessages,
		HookEvents: f.IncludeHookEvents, AgentText: f.ForwardSubagentText, FailOnMissedExpectations: f.Expect, DeferVerdict: f.DeferVerdict, MirrorTranscript: f.SessionMirror,
	}
	if f.ThinkingDisplay == "summarized" { // other values of the flag are not visible in events
		r.plan.Output.ThinkingDisplay = f.ThinkingDisplay
	}
	return nil
}

func (r *planResolver) loadScenario() (err error) {
	r.plan.Scenario, err = loadScenario(r.flags.Scenario, r.plan.DirectoriesAndProcess)
	return err
}

// resolveModelAndFailure determines the model at the start and the variables of the scenario's expressions. With --failure, or if
// the environment has no login, it also sets the failure that every request of the run gets.
func (r *planResolver) resolveModelAndFailure() (err error) {
	r.plan.Model = initialModel(r.sys, r.flags, r.plan)
	r.plan.Model.Thinking = initialThinking(r.sys, r.flags)
	r.plan.Scenario.Engine = scenarios.EngineOptions{Env: r.sys.Environ, Args: r.sys.Args[1:], CWD: r.plan.CWD}
	r.plan.Scenario.Failure, err = failureOfFlag(r.flags.Failure)
	if r.plan.Profile.Environment().Credential == claudecode.CredentialNone {
		r.plan.Scenario.Failure = &scenarios.Failure{Type: scenarios.FailNotLoggedIn}
	}
	return err
}

// initialThinking returns how models may think. The variable MAX_THINKING_TOKENS has precedence over the flags.
func initialThinking(sys *process.System, f *flags.Flags) claudecode.Thinking {
	t := claudecode.Thinking{Off: isEnvEnabled(sys, "CLAUDE_CODE_DISABLE_THINKING"), Budget: f.MaxThinkingTokens}
	if f.Thinking == "disabled" {
		t.Budget = new(0)
	}
	if n, err := strconv.Atoi(sys.Getenv("MAX_THINKING_TOKENS")); err == nil {
		t.Budget = &n
	}
	return t
}

func (r *planResolver) resolvePermissionAndPrintNotices() (err error) {
	if r.plan.Permission, err = initialPermission(r.flags, r.plan); err == nil && r.flags.OutputFormat == "text" {
		fmt.Fprint(r.sys.Stderr, ineffectiveSettingNotices(r.flags, r.plan), r.plan.Model.Notice)
	}
	return err
}

func (r *planResolver) setTranscriptOptionsAndWarnWithoutHome() error {
	if r.plan.State == "" && !r.flags.NoSessionPersistence {
		r.plan.warn("HOME is not set: the session is not saved (set HOME or CLAUDELESS_CONFIG_DIR)")
	}
	r.plan.Transcript = transcriptOptions(r.sys, r.flags, r.plan)
	return nil
}

// setHostToolsLimitsAndRecords sets the parts of the plan that depend only on flags and environment.
func (r *planResolver) setHostToolsLimitsAndRecords() error {
	if r.flags.InputFormat == "stream-json" {
		r.plan.Host = HostModeOptions{
			AwaitInitialize: r.flags.AwaitInitialize, SeparateTurns: r.sys.Getenv("CLAUDELESS_MERGE_PROMPTS") == "0",
			Checkpoints:         isEnvEnabled(r.sys, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"),
			StateEvents:         isEnvEnabled(r.sys, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"),
			StateEventsHostOnly: isEnvEnabled(r.sys, "CLAUDE_CODE_SDK_READS_SESSION_STATE"),
		}
	}
	if r.flags.Interactive {
		r.plan.Host.Checkpoints = !isEnvEnabled(r.sys, "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING") && r.plan.Settings.Merged()["fileCheckpointingEnabled"] != false
	}
	r.plan.Tools = r.plan.Tools.withFlagsAndEnvironment(r.sys, r.flags)
	r.plan.Limits = newLimits(r.sys, r.flags, r.plan)
	r.plan.Records = recordOptionsAndWarn(r.sys, r.flags, r.plan)
	if r.plan.Records.Gates != "" && r.sys.Getenv("CLAUDELESS_RUN") != "" {
		r.plan.Scenario.Engine.Counter = gate.ExclusiveNameClaimsOfProcesses{Dir: r.plan.Records.Gates}
	}
	return nil
}

func loadScenario(name string, dirs DirectoriesAndProcess) (Scenario, error) {
	path, library := findNamedOrDefaultScenario(name, dirs)
	var size int64
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	process.DelayGarbageCollection(size) // collecting garbage now would take a fifth of the time and free nothing
	s := Scenario{Name: name}
	var err error
	switch {
	case library:
		s.Scenario, err = scenarios.LoadLibraryScenario(path)
	case path == "":
		s.Scenario = scenarios.Greeting()
	default:
		s.Path = path
		s.Scenario, err = scenarios.Load(path, scenarios.LoadOptions{})
	}
	return s, err
}

// findNamedOrDefaultScenario returns the path of the scenario; empty means none. A name without a slash that is not a file selects a
// scenario of the library. Without a name, it looks for claudeless.toml in the working and the state directory.
func findNamedOrDefaultScenario(name string, dirs DirectoriesAndProcess) (path string, isFromLibrary bool) {
	if name != "" {
		path = dirs.AbsFromStartDir(name)
		if _, err := os.Stat(path); err != nil && !strings.ContainsAny(name, `/\`) {
			return name, true
		}
		return path, false
	}
	for _, place := range []string{dirs.CWD, dirs.State} {
		path := filepath.Join(place, "claudeless.toml")
		if _, err := os.Stat(path); place != "" && err == nil {
			return path, false
		}
	}
	return "", false
}

func (r *planResolver) createClock() error {
	o := clock.Options{Now: r.sys.Now, NewID: r.sys.NewID, Seed: r.plan.Scenario.Seed}
	if text := r.plan.Scenario.LaunchTimestamp; text != "" {
		start, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("launch_timestamp: %w", err)
		}
		o.Start = &start
	}
	if r.flags.Continue || r.flags.Resume != "" {
		// A later process of the session must not generate the same ids as the first one.
		o.Salt = r.sys.Now().String()
	}
	r.plan.Clock = clock.New(o)
	return nil
}

// failureOfFlag returns the failure of --failure; nil means none.
func failureOfFlag(name string) (*scenarios.Failure, error) {
	if name == "" {
		return nil, nil
	}
	failure := scenarios.FailureByName(name)
	if failure == nil {
		return nil, process.WithHint(fmt.Sprintf("--failure: unknown failure %q", name),
			"one of network-unreachable, connection-timeout, auth-error, rate-limit, out-of-credits, partial-response, malformed-json, "+
				"overloaded, server-error, api-error, prompt-too-long, hang, crash")
	}
	return failure, nil
}
