package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	protocolHTTPJSON     = "http/json"
	protocolHTTPProtobuf = "http/protobuf"
	protocolGRPC         = "grpc"
)

// The signals, as the names of environment variables contain them: METRICS in OTEL_METRICS_EXPORTER.
const (
	metricsSignalName = "METRICS"
	logsSignalName    = "LOGS"
	tracesSignalName  = "TRACES"
)

// Config is the telemetry configuration of the environment. Config{} means that telemetry is off.
type Config struct {
	// Metrics, Logs and Traces are the destinations of the signals; nil means that the signal is not sent.
	Metrics, Logs, Traces *ExportTarget

	Prompts      bool        // OTEL_LOG_USER_PROMPTS: prompts are not redacted
	Responses    bool        // OTEL_LOG_ASSISTANT_RESPONSES: send the text of replies
	ToolDetails  bool        // OTEL_LOG_TOOL_DETAILS: send inputs of tools, and names of the user's own servers, skills and so on
	ToolContent  bool        // OTEL_LOG_TOOL_CONTENT: what tools read and wrote, in spans
	Resource     [][2]string // OTEL_RESOURCE_ATTRIBUTES
	Cumulative   bool        // metrics are sums since the start (OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=cumulative)
	NoSessionID  bool        // OTEL_METRICS_INCLUDE_SESSION_ID=false
	AppVersion   bool        // OTEL_METRICS_INCLUDE_VERSION=true
	FlushTimeout time.Duration
	Terminal     string // terminal.type; empty means unknown
}

// ExportTarget is the destination of one signal.
type ExportTarget struct {
	Protocol string
	URL      string // for grpc, without the path of the signal
	Headers  [][2]string
	Interval time.Duration
}

// ReadConfig returns the telemetry configuration in the environment. The warnings name values that the real CLI
// supports, but claudeless does not.
func ReadConfig(getenv func(string) string) (c Config, warnings []string) {
	if !isTrueInEnvironment(getenv("CLAUDE_CODE_ENABLE_TELEMETRY")) {
		return Config{}, nil
	}
	read := func(signal, interval string, fallback time.Duration) *ExportTarget {
		target, warning := readExportTarget(getenv, signal)
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if target != nil {
			target.Interval = parseMilliseconds(getenv(interval), fallback)
		}
		return target
	}
	c.Metrics = read(metricsSignalName, "OTEL_METRIC_EXPORT_INTERVAL", time.Minute)
	c.Logs = read(logsSignalName, "OTEL_LOGS_EXPORT_INTERVAL", 5*time.Second)
	if isTrueInEnvironment(getenv("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA")) || isTrueInEnvironment(getenv("ENABLE_ENHANCED_TELEMETRY_BETA")) {
		c.Traces = read(tracesSignalName, "OTEL_TRACES_EXPORT_INTERVAL", 5*time.Second)
	}
	c.Prompts, c.Responses = isTrueInEnvironment(getenv("OTEL_LOG_USER_PROMPTS")), isTrueInEnvironment(getenv("OTEL_LOG_ASSISTANT_RESPONSES"))
	c.ToolDetails, c.ToolContent = isTrueInEnvironment(getenv("OTEL_LOG_TOOL_DETAILS")), isTrueInEnvironment(getenv("OTEL_LOG_TOOL_CONTENT"))
	c.Resource = parseKeyValuePairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))
	c.Cumulative = strings.EqualFold(getenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"), "cumulative")
	c.NoSessionID = strings.EqualFold(getenv("OTEL_METRICS_INCLUDE_SESSION_ID"), "false")
	c.AppVersion = isTrueInEnvironment(getenv("OTEL_METRICS_INCLUDE_VERSION"))
	c.FlushTimeout = parseMilliseconds(getenv("CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS"), 2*time.Second)
	c.Terminal = cmp.Or(getenv("TERM_PROGRAM"), getenv("TERM"))
	return c, warnings
}

// IsEnabled reports whether any signal is sent.
func (c Config) IsEnabled() bool { return c.Metrics != nil || c.Logs != nil || c.Traces != nil }

// readExportTarget returns the destination of a signal (nil if it is not sent), and a warning if a value is not supported.
func readExportTarget(getenv func(string) string, signal string) (*ExportTarget, string) {
	name := "OTEL_" + signal + "_EXPORTER"
	wanted := false
	for word := range strings.SplitSeq(getenv(name), ",") {
		switch strings.TrimSpace(word) {
		case "", "none":
		case "otlp":
			wanted = true
		default:
			return nil, fmt.Sprintf("%s: the exporter %q is not simulated; use otlp", name, word)
		}
	}
	if !wanted {
		return nil, ""
	}
	setting := func(suffix string) (own, shared string) {
		return getenv("OTEL_EXPORTER_OTLP_" + signal + "_" + suffix), getenv("OTEL_EXPORTER_OTLP_" + suffix)
	}
	own, shared := setting("PROTOCOL")
	t := &ExportTarget{Protocol: cmp.Or(own, shared, protocolHTTPProtobuf)}
	if !slices.Contains([]string{protocolHTTPJSON, protocolHTTPProtobuf, protocolGRPC}, t.Protocol) {
		return nil, fmt.Sprintf("OTEL_EXPORTER_OTLP_PROTOCOL: unknown protocol %q: expected http/json, http/protobuf or grpc", t.Protocol)
	}
	own, shared = setting("ENDPOINT")
	switch {
	case t.Protocol == protocolGRPC:
		t.URL = cmp.Or(own, shared, "http://localhost:4317")
		if !strings.Contains(t.URL, "://") {
			t.URL = "http://" + t.URL
		}
	case own != "":
		t.URL = own
	default:
		t.URL = strings.TrimSuffix(cmp.Or(shared, "http://localhost:4318"), "/") + "/v1/" + strings.ToLower(signal)
	}
	own, shared = setting("HEADERS")
	t.Headers = slices.Concat(parseKeyValuePairs(shared), parseKeyValuePairs(own))
	return t, ""
}

func isTrueInEnvironment(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}

func parseMilliseconds(text string, fallback time.Duration) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return fallback
	}
	return time.Duration(n) * time.Millisecond
}

// userAgent is the User-Agent header of the telemetry requests of the real CLI (observed with 2.1.330).
const userAgent = "OTel-OTLP-Exporter-JavaScript/0.208.0"

type exporter struct {
	target ExportTarget
	signal string
	client *http.Client
}

// newExporter prepares an exporter; it connects when it sends.
func newExporter(t ExportTarget, signal string) *exporter {
	transport := &http.Transport{}
	if t.Protocol == protocolGRPC { // without TLS, HTTP/2 must be set; with TLS, client and server negotiate it
		transport.Protocols = &http.Protocols{}
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	return &exporter{target: t, signal: signal, client: &http.Client{Transport: transport}}
}

func (e *exporter) send(ctx context.Context, request exportRequest) error {
	body, err := encodeRequest(request, e.target.Protocol)
	if err != nil {
		return err
	}
	url, kind := e.target.URL, "application/json"
	switch e.target.Protocol {
	case protocolHTTPProtobuf:
		kind = "application/x-protobuf"
	case protocolGRPC:
		service := map[string]string{metricsSignalName: "metrics.v1.Metrics", logsSignalName: "logs.v1.Logs", tracesSignalName: "trace.v1.Trace"}[e.signal]
		kind, url = "application/grpc", strings.TrimSuffix(url, "/")+"/opentelemetry.proto.collector."+service+"Service/Export"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, h := range e.target.Headers {
		r.Header.Set(h[0], h[1])
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("User-Agent", userAgent)
	if e.target.Protocol == protocolGRPC {
		r.Header.Set("Te", "trailers")
	}
	response, err := e.client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	switch status := response.Trailer.Get("Grpc-Status"); {
	case err != nil:
		return err
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("the OpenTelemetry collector answered %s", response.Status)
	case e.target.Protocol == protocolGRPC && status != "0":
		return fmt.Errorf("the OpenTelemetry collector answered with gRPC status %q", status)
	}
	return nil
}
