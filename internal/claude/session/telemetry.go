package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/telemetry"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

type telemetryExport struct {
	recorder *telemetry.Recorder
	hooks    *hook.Runner
	state    *simulator.SessionState
	quit     chan struct{} // closed to stop the goroutine that sends at intervals
	stopped  chan struct{} // closed when the goroutine has returned
	once     sync.Once
	ctx      context.Context // context of the start, without its cancellation
}

// startTelemetry starts the telemetry that the environment requests; nil means none.
func startTelemetry(ctx context.Context, plan launch.Plan, t *transcript.Transcript, state *simulator.SessionState, hooks *hook.Runner) *telemetryExport {
	if !plan.Records.Telemetry.Enabled() {
		return nil
	}
	e := &telemetryExport{ctx: context.WithoutCancel(ctx), hooks: hooks, state: state, quit: make(chan struct{}), stopped: make(chan struct{}), recorder: telemetry.Open(telemetry.Options{
		Config: plan.Records.Telemetry, Clock: plan.Clock, Version: plan.Version, Machine: describeMachine(plan), SessionID: t.ID(), Resumed: t.Resumed(),
		CustomBaseURL: !plan.Profile.Environment().UsesDefaultURL, Interactive: plan.Records.Run.Interactive, Hooks: registeredHooks(plan),
	})}
	go func() {
		defer close(e.stopped)
		e.recorder.Run(e.ctx, e.quit)
	}()
	return e
}

func describeMachine(plan launch.Plan) telemetry.Machine {
	user := sha256.Sum256([]byte("user of " + plan.State))
	m := telemetry.Machine{Arch: runtime.GOARCH, OS: runtime.GOOS, UserID: hex.EncodeToString(user[:])}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil { // other systems have no such file, and the value is omitted
		m.Release = strings.TrimSpace(string(release))
	}
	return m
}

func registeredHooks(plan launch.Plan) (list []telemetry.Hook) {
	if plan.Settings.DisableAllHooks || plan.Customization.HooksDisabled() {
		return nil
	}
	var sources []hook.Source
	for _, h := range plan.Settings.Hooks {
		sources = append(sources, hook.Source{Name: string(h.Source), Raw: h.Raw})
	}
	for _, h := range hook.List(sources, hook.Policy{}).Hooks {
		list = append(list, telemetry.Hook{Event: h.Event, Kind: h.Type, Source: h.Source, Matcher: h.Matcher})
	}
	return list
}

// record passes the hooks that ran, and then an event, to the recorder. mode is the current permission mode.
func (e *telemetryExport) record(ev protocol.Event, mode protocol.PermissionMode) {
	if e == nil {
		return
	}
	for _, ran := range e.hooks.TakeReports() {
		e.recorder.RecordHooks(telemetry.HookRun(ran))
	}
	now := e.state.Snapshot()
	e.recorder.Record(ev, telemetry.SessionMoment{Mode: mode, Effort: now.Effort, Model: claudecode.ResolveModel(now.Model)})
}

// close stops the goroutine, sends the remaining data and returns how many items of each name were accepted.
func (e *telemetryExport) close() (map[string]int, error) {
	if e == nil {
		return nil, nil
	}
	e.once.Do(func() {
		close(e.quit)
		<-e.stopped
		e.recorder.Close(e.ctx)
	})
	return e.recorder.AcceptedCounts(), e.recorder.Err()
}
