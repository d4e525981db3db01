// Package telemetry reports the events of a session as OpenTelemetry metrics, events and spans, as the real CLI does
// with CLAUDE_CODE_ENABLE_TELEMETRY (observed with 2.1.330): a dashboard or a collector can be tested without a model.
//
// [ReadConfig] reads the variables, [New] returns a [Recorder], and [Recorder.Record] takes the events of the session.
// [Recorder.Run] sends at the intervals of the configuration and [Recorder.Close] sends the rest.
//
// The SDK of OpenTelemetry is not used: its exporters do not support http/json, add 9.5 MB to the binary and 2.5 ms of
// processor time to every start, and cannot use another clock. The names and attributes are in table.txt; a test
// compares them with recordings of the real CLI.
package telemetry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Recorder].
type Options struct {
	Config
	Version                             string // version of claude
	Machine                             Machine
	SessionID                           string
	Resumed, CustomBaseURL, Interactive bool
	Clock                               *clock.TimeAndIDSource
	Hooks                               []RegisteredHook // hooks of the settings
}

// SessionModeAndModel is the state of the session at the time of an event.
type SessionModeAndModel struct {
	Mode          protocol.PermissionMode
	Effort, Model string
}

// RegisteredHook is a hook from the settings, as the events about hooks report it.
type RegisteredHook struct{ Event, Kind, Source, Matcher string }

// Machine describes the computer on which the session runs.
type Machine struct {
	Arch, OS, Release string // values reported by uname; empty ones are omitted
	UserID            string // identifies the installation
}

// Recorder turns events into telemetry. Its methods may be called from several goroutines.
type Recorder struct {
	options          Options
	exporters        map[string]*exporter
	commonAttributes []attribute // attributes of all events and metrics
	tables           map[string][]metricEventOrSpanRow
	resource         telemetryResource

	mu             sync.Mutex // guards the following fields
	state          recorderState
	moment         SessionModeAndModel
	lastErr        error          // error of the last request that could not be sent
	acceptedCounts map[string]int // numbers of accepted items, by full name
	records        []logRecord
	counters       []*metricCounter
	spans          []spanData
	idCount        int
}

// metricCounter is the sum of the values of one metric that have the same attributes.
type metricCounter struct {
	metric     string
	attributes []attribute
	start      time.Time
	sum        float64
}

// New returns a recorder; nil means telemetry is off.
func New(o Options) *Recorder {
	if !o.IsEnabled() {
		return nil
	}
	r := &Recorder{
		options: o, exporters: map[string]*exporter{}, acceptedCounts: map[string]int{},
		state:  recorderState{conversations: map[string]*conversationState{}, servers: map[string]string{}, connected: map[string]time.Time{}},
		tables: rowsBySignalName(),
	}
	for signal, target := range map[string]*ExportTarget{metricsSignalName: o.Metrics, logsSignalName: o.Logs, tracesSignalName: o.Traces} {
		if target != nil {
			r.exporters[signal] = newExporter(*target, signal)
		}
	}
	var given []attribute
	for _, pair := range o.Resource {
		given = append(given, attribute{pair[0], newValue(pair[1])})
	}
	r.resource.Attributes = slices.Concat(given, newNonEmptyAttributes(
		"host.arch", o.Machine.Arch, "os.type", o.Machine.OS, "os.version", o.Machine.Release, "service.name", "claude-code", "service.version", o.Version,
	))
	session, version := o.SessionID, ""
	if o.NoSessionID {
		session = ""
	}
	if o.AppVersion {
		version = o.Version
	}
	r.commonAttributes = slices.Concat(given, newNonEmptyAttributes("user.id", o.Machine.UserID, "session.id", session, "app.version", version, "anthropic.provider", "firstParty"))
	if o.CustomBaseURL {
		r.commonAttributes = append(r.commonAttributes, attribute{"anthropic.custom_base_url", newValue(true)})
	}
	r.commonAttributes = append(r.commonAttributes, newNonEmptyAttributes("terminal.type", o.Terminal)...)
	return r
}

// newNonEmptyAttributes returns attributes from keys and values. Empty values are omitted.
func newNonEmptyAttributes(pairs ...string) (list []attribute) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, attribute{pairs[i], newValue(pairs[i+1])})
		}
	}
	return list
}

// Run sends the recorded data at the configured intervals until quit is closed.
func (r *Recorder) Run(ctx context.Context, quit <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	for signal, e := range r.exporters {
		wait.Go(func() {
			ticker := time.NewTicker(e.target.Interval)
			defer ticker.Stop()
			for {
				select {
				case <-quit:
					return
				case <-ticker.C:
					r.exportUnsentOfSignal(ctx, signal)
				}
			}
		})
	}
	<-quit
	cancel()
	wait.Wait()
}

// Close sends the remaining data within the time limit of the configuration.
func (r *Recorder) Close(ctx context.Context) {
	r.recordServersDisconnectedAtClose()
	ctx, cancel := context.WithTimeout(ctx, r.options.FlushTimeout)
	defer cancel()
	for _, signal := range []string{tracesSignalName, logsSignalName, metricsSignalName} { // in the order of the real CLI
		r.exportUnsentOfSignal(ctx, signal)
		if e := r.exporters[signal]; e != nil {
			e.client.CloseIdleConnections()
		}
	}
}

// CollectorAcceptedCounts returns how many data points, events and spans of each name the collector has accepted.
func (r *Recorder) CollectorAcceptedCounts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.acceptedCounts)
}

// LastError returns the error of the last failed request; nil means that none failed.
func (r *Recorder) LastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastErr
}

func (r *Recorder) exportUnsentOfSignal(ctx context.Context, signal string) {
	e := r.exporters[signal]
	if e == nil {
		return
	}
	request, ok := r.takeUnsent(signal)
	if !ok {
		return
	}
	err := e.send(ctx, request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.lastErr = err
		return
	}
	for name, n := range request.countsByName {
		r.acceptedCounts[name] += n
	}
}

func (r *Recorder) takeUnsent(signal string) (request exportRequest, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := instrumentationScope{"com.anthropic.claude_code", r.options.Version}
	request.countsByName = map[string]int{}
	switch signal {
	case logsSignalName:
		own.Name += ".events"
		request.Logs = []resourceLogs{{r.resource, []scopeLogs{{own, r.records}}}}
		for _, l := range r.records {
			request.countsByName[*l.Body.String]++
		}
		r.records = nil
	case tracesSignalName:
		own = instrumentationScope{own.Name + ".tracing", "1.0.0"}
		request.Spans = []resourceSpans{{r.resource, []scopeSpans{{own, r.spans}}}}
		for _, s := range r.spans {
			request.countsByName[s.Name]++
		}
		r.spans = nil
	default:
		metrics := r.metricSumsWithoutReset()
		request.Metrics = []resourceMetrics{{r.resource, []scopeMetrics{{own, metrics}}}}
		for _, m := range metrics {
			request.countsByName[m.Name] += len(m.Sum.Points)
		}
		if !r.options.Cumulative {
			r.counters = nil
		}
	}
	return request, len(request.countsByName) > 0
}

func (r *Recorder) metricSumsWithoutReset() (list []metricData) {
	const delta, cumulative = 1, 2
	for _, row := range r.tables[metricsSignalName] {
		m := metricData{Name: signalNamePrefix + row.name, Description: row.description, Unit: row.unit, Sum: sumData{Temporality: delta, Monotonic: true}}
		if r.options.Cumulative {
			m.Sum.Temporality = cumulative
		}
		for _, c := range r.counters {
			if c.metric == row.name {
				m.Sum.Points = append(m.Sum.Points, dataPoint{Attributes: c.attributes, Start: toWholeMillisecondUnixNanos(c.start), Time: toWholeMillisecondUnixNanos(r.options.Clock.Now()), Value: new(c.sum)})
			}
		}
		if len(m.Sum.Points) > 0 {
			list = append(list, m)
		}
	}
	return list
}

func (r *Recorder) addToMetric(name string, n float64, v attributeValues) {
	row := findRowByName(r.tables[metricsSignalName], name)
	attributes := slices.Concat(r.commonAttributes, row.attributesOf(v))
	for _, c := range r.counters {
		if c.metric == name && slices.EqualFunc(c.attributes, attributes, attribute.equalKeyAndStringValue) {
			c.sum += n
			return
		}
	}
	r.counters = append(r.counters, &metricCounter{metric: name, attributes: attributes, start: r.options.Clock.Now(), sum: n})
}

func (a attribute) equalKeyAndStringValue(b attribute) bool {
	return a.Key == b.Key && (a.Value.String == nil || b.Value.String == nil || *a.Value.String == *b.Value.String)
}

// recordLogEvent records an event. span is the span that the event belongs to; it is used only if spans are sent.
func (r *Recorder) recordLogEvent(name string, span hexID, v attributeValues) {
	if r.exporters[logsSignalName] == nil {
		return
	}
	now := r.options.Clock.Now()
	own := []attribute{{"event.name", newValue(name)}, {"event.timestamp", newValue(now.UTC().Format("2006-01-02T15:04:05.000Z"))}, {"event.sequence", newValue(r.state.sequence)}}
	r.state.sequence++
	if r.state.promptID != "" {
		own = append(own, attribute{"prompt.id", newValue(r.state.promptID)})
	}
	row := findRowByName(r.tables[logsSignalName], name)
	record := logRecord{Time: toWholeMillisecondUnixNanos(now), Observed: toWholeMillisecondUnixNanos(now), Body: newValue(signalNamePrefix + name), Attributes: slices.Concat(r.commonAttributes, own, row.attributesOf(v))}
	if r.options.Traces != nil && span != nil {
		record.TraceID, record.SpanID, record.Flags = r.state.traceID, span, 1
	}
	r.records = append(r.records, record)
}

func (r *Recorder) recordSpan(name string, s spanData, v attributeValues) {
	if r.options.Traces == nil {
		return
	}
	row := findRowByName(r.tables[tracesSignalName], name)
	v["gen_ai.conversation.id"] = r.options.SessionID
	s.TraceID, s.Name, s.Kind, s.Flags = r.state.traceID, signalNamePrefix+name, 1, 257
	s.Attributes = slices.Concat(r.commonAttributes, newNonEmptyAttributes("gen_ai.provider.name", "anthropic", "span.type", name), row.attributesOf(v))
	s.Links = []struct{}{}
	if s.Events == nil {
		s.Events = []spanEvent{}
	}
	r.spans = append(r.spans, s)
}

// newRepeatableID returns the id of a trace or a span. Ids depend only on the session, so that a run with a seed is repeatable.
func (r *Recorder) newRepeatableID(sizeBytes int) hexID {
	r.idCount++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(r.options.SessionID), uint64(r.idCount)))
	return sum[:sizeBytes]
}

// toWholeMillisecondUnixNanos converts a time with millisecond precision, as in the real CLI.
func toWholeMillisecondUnixNanos(t time.Time) unixNanoseconds {
	return unixNanoseconds(t.Truncate(time.Millisecond).UnixNano())
}

// textOrSubstitute returns text if maySend is true. Otherwise it returns substitute, or "<REDACTED>" if that is empty.
func textOrSubstitute(maySend bool, text, substitute string) string {
	if maySend {
		return text
	}
	return cmp.Or(substitute, "<REDACTED>")
}

func (r *Recorder) recordSessionStartAndHeldPrompt(init *protocol.InitEvent) {
	if !r.state.started {
		r.state.started = true
		r.recordLogEvent("managed_settings_resolved", nil, attributeValues{
			"managed_settings.trigger": "startup", "managed_settings.sources": []string{}, "managed_settings.source_behavior": "first-wins",
			"managed_settings.helper.state": "none", "managed_settings.helper.applied": "none",
		})
		kind := "fresh"
		if r.options.Resumed {
			kind = "resume"
		}
		r.addToMetric("session.count", 1, attributeValues{"start_type": kind})
		if init != nil {
			r.recordHooksPluginsAndServers(init)
		}
	}
	if r.state.heldPrompt != nil {
		r.flushHeldPrompt()
	}
}

func (r *Recorder) recordHooksPluginsAndServers(init *protocol.InitEvent) {
	for _, h := range r.options.Hooks {
		v := attributeValues{"hook_event": h.Event, "hook_type": h.Kind, "hook_source": h.Source, "safe_mode": "false"}
		if r.options.ToolDetails {
			v["hook_matcher"] = h.Matcher
		}
		r.recordLogEvent("hook_registered", nil, v)
	}
	for _, p := range init.Plugins {
		name, market, _ := strings.Cut(p.Source, "@")
		scope, enabled := "user", "user-install"
		builtin := market == "builtin" || p.Path == "builtin"
		if builtin {
			scope, enabled, market = "default-bundle", "default-enable", "builtin"
		}
		r.recordLogEvent("plugin_loaded", nil, attributeValues{
			"plugin.name": cmp.Or(p.Name, name), "marketplace.name": market, "plugin.scope": scope, "enabled_via": enabled, "plugin_id_hash": fmt.Sprintf("%x", sha256.Sum256([]byte(p.Source)))[:16],
			"has_hooks": builtin, "has_mcp": false, "host_owned_mcp": false, "skill_path_count": 0, "command_path_count": 0, "agent_path_count": 0, "safe_mode": "false",
		})
	}
	for _, s := range init.MCPServers {
		r.state.servers[s.Name] = s.Source
		if s.Status != "pending" {
			r.recordServerConnection(s.Name, s.Status)
		}
	}
}

func (r *Recorder) recordServerConnection(server, status string) {
	v := attributeValues{"status": status, "transport_type": "stdio", "server_scope": r.state.servers[server], "duration_ms": "0", "is_plugin": false}
	if began := r.state.connected[server]; !began.IsZero() {
		v["duration_ms"] = strconv.Itoa(milliseconds(r.options.Clock.Now().Sub(began)))
	}
	if r.options.ToolDetails {
		v["server_name"] = server
	}
	if status == "connected" {
		r.state.connected[server] = r.options.Clock.Now()
	}
	r.recordLogEvent("mcp_server_connection", nil, v)
}

func (r *Recorder) recordServersDisconnectedAtClose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, server := range slices.Sorted(maps.Keys(r.state.connected)) {
		r.recordServerConnection(server, "disconnected")
	}
}

// RecordHooks records the hooks that ran for an event.
func (r *Recorder) RecordHooks(run protocol.HookEventStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := strconv.Itoa
	v := attributeValues{
		"hook_event": run.Event, "hook_name": run.Name, "num_hooks": number(run.Hooks), "num_success": number(run.Hooks - run.Blocked - run.Failed - run.Cancelled),
		"num_blocking": number(run.Blocked), "num_non_blocking_error": number(run.Failed), "num_cancelled": number(run.Cancelled), "total_duration_ms": number(milliseconds(run.Duration)),
		"stdout_chars": number(run.OutputBytes), "additional_context_chars": number(run.ContextBytes), "system_message_chars": "0", "initial_user_message_chars": "0", "num_outputs_persisted": "0",
		"managed_only": "false", "hook_source": "merged", "safe_mode": "false",
	}
	r.recordLogEvent("hook_execution_start", r.state.interaction.SpanID, v)
	r.recordLogEvent("hook_execution_complete", r.state.interaction.SpanID, v)
}

func milliseconds(d time.Duration) int { return max(int(d.Milliseconds()), 0) }
