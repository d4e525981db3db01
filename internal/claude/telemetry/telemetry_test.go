package telemetry

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func getenv(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	const on, all = "CLAUDE_CODE_ENABLE_TELEMETRY=1", "OTEL_LOGS_EXPORTER=otlp"
	for _, c := range []struct {
		name    string
		env     []string
		want    *ExportTarget
		warning string
	}{
		{"off", []string{all}, nil, ""},
		{"not a true value", []string{"CLAUDE_CODE_ENABLE_TELEMETRY=0", all}, nil, ""},
		{"no exporter", []string{on}, nil, ""},
		{"none", []string{on, "OTEL_LOGS_EXPORTER=none"}, nil, ""},
		{"default", []string{on, all}, &ExportTarget{Protocol: protocolHTTPProtobuf, URL: "http://localhost:4318/v1/logs", Interval: 5 * time.Second}, ""},
		{
			"endpoint and headers",
			[]string{on, all, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1/", "OTEL_EXPORTER_OTLP_HEADERS=x=1, y=a%20b", "OTEL_LOGS_EXPORT_INTERVAL=10"},
			&ExportTarget{Protocol: protocolHTTPJSON, URL: "http://a:1/v1/logs", Headers: [][2]string{{"x", "1"}, {"y", "a b"}}, Interval: 10 * time.Millisecond}, "",
		},
		{
			"of the signal",
			[]string{on, all, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://b/x"},
			&ExportTarget{Protocol: protocolHTTPJSON, URL: "http://b/x", Interval: 5 * time.Second}, "",
		},
		{"grpc", []string{on, all, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4317"}, &ExportTarget{Protocol: protocolGRPC, URL: "http://c:4317", Interval: 5 * time.Second}, ""},
		{"console", []string{on, "OTEL_LOGS_EXPORTER=console"}, nil, `OTEL_LOGS_EXPORTER: the exporter "console" is not simulated; use otlp`},
		{"protocol", []string{on, all, "OTEL_EXPORTER_OTLP_PROTOCOL=tcp"}, nil, `OTEL_EXPORTER_OTLP_PROTOCOL: unknown protocol "tcp": expected http/json, http/protobuf or grpc`},
	} {
		got, warnings := ReadConfig(getenv(c.env...))
		if diff := cmp.Diff(c.want, got.Logs); diff != "" {
			t.Errorf("%s: target (-want +got):\n%s", c.name, diff)
		}
		if joined := strings.Join(warnings, "\n"); joined != c.warning {
			t.Errorf("%s: warnings %q, want %q", c.name, joined, c.warning)
		}
		if got.IsEnabled() != (c.want != nil) {
			t.Errorf("%s: enabled is %v", c.name, got.IsEnabled())
		}
	}
}

// recordTurn plays a turn and returns its recorder.
func recordTurn(config Config) *Recorder {
	start := time.Unix(1_700_000_000, 5_000_000)
	seed := int64(1)
	at := SessionModeAndModel{Mode: "default", Effort: "medium", Model: "claude-opus-5-5"}
	r := New(Options{Config: config, Version: "2.1.330", SessionID: "s", Clock: clock.New(clock.Options{Seed: &seed, Start: &start})})
	r.Record(&protocol.PromptAccepted{PromptID: "p", UUID: "u", Content: protocol.Content{Text: "hi"}}, at)
	r.Record(&protocol.InitEvent{}, at)
	r.Record(&protocol.AssistantEvent{RequestID: "req", Message: protocol.AssistantMessage{
		ID: "m", Model: "claude-opus-5-5", Content: []protocol.Block{protocol.TextBlock{Type: "text", Text: "hello"}},
	}, Final: &protocol.CompletedMessageInfo{StopReason: "end_turn", Usage: protocol.Usage{InputTokens: 3, OutputTokens: 2}}}, at)
	r.Record(&protocol.ResultEvent{}, at)
	return r
}

// TestProtobufIsThatOfOpenTelemetry decodes requests with the message types of OpenTelemetry, and compares them with
// the JSON of the same requests.
func TestProtobufIsThatOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	target := &ExportTarget{Protocol: protocolHTTPProtobuf}
	r := recordTurn(Config{Metrics: target, Logs: target, Traces: target})
	for signal, message := range map[string]proto.Message{
		metricsSignalName: &metrics.ExportMetricsServiceRequest{}, logsSignalName: &logs.ExportLogsServiceRequest{}, tracesSignalName: &trace.ExportTraceServiceRequest{},
	} {
		request, ok := r.takeUnsent(signal)
		if !ok {
			t.Fatalf("%s: nothing to send", signal)
		}
		body, err := encodeRequest(request, protocolHTTPProtobuf)
		if err != nil {
			t.Fatal(err)
		}
		if err := (proto.UnmarshalOptions{DiscardUnknown: false}).Unmarshal(body, message); err != nil {
			t.Fatalf("%s: %v", signal, err)
		}
		if unknown := message.ProtoReflect().GetUnknown(); len(unknown) > 0 {
			t.Errorf("%s: unknown fields %x", signal, unknown)
		}
		decoded, err := protojson.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := encodeRequest(request, protocolHTTPJSON)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(leaves(t, plain), leaves(t, decoded)); diff != "" {
			t.Errorf("%s: (-JSON +protobuf):\n%s", signal, diff)
		}
	}
}

// leaves counts the texts of a JSON document that are long enough to be distinct: names, keys, times. Ids are
// hexadecimal in one encoding and base64 in the other, and one encoding omits zero values.
func leaves(t *testing.T, raw []byte) map[string]int {
	t.Helper()
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				if !strings.HasSuffix(key, "Id") {
					walk(item)
				}
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case string:
			if len(v) > 3 && !strings.HasPrefix(v, "AGGREGATION_") && !strings.HasPrefix(v, "SPAN_KIND_") {
				found[v]++
			}
		}
	}
	walk(tree)
	return found
}

// TestGRPC sends to a server that speaks HTTP/2 without TLS, as a collector does on port 4317.
func TestGRPC(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		whole := err == nil && len(body) > 5 && int(binary.BigEndian.Uint32(body[1:5])) == len(body)-5
		got[r.URL.Path] = whole && r.ProtoMajor == 2 && r.Header.Get("Content-Type") == "application/grpc" && r.Header.Get("Te") == "trailers"
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = w.Write([]byte{0, 0, 0, 0, 0})
		w.Header().Set("Grpc-Status", "0")
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	target := &ExportTarget{Protocol: protocolGRPC, URL: server.URL}
	r := recordTurn(Config{Metrics: target, Logs: target, Traces: target, FlushTimeout: time.Minute})
	r.Close(t.Context())
	if err := r.LastError(); err != nil {
		t.Error(err)
	}
	want := map[string]bool{
		"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": true, "/opentelemetry.proto.collector.logs.v1.LogsService/Export": true,
		"/opentelemetry.proto.collector.trace.v1.TraceService/Export": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if r.CollectorAcceptedCounts()["claude_code.token.usage"] != 4 || r.CollectorAcceptedCounts()["claude_code.interaction"] != 1 {
		t.Errorf("sent: %v", r.CollectorAcceptedCounts())
	}
}

// TestDeltaAndCumulative reads the sums of two exports.
func TestDeltaAndCumulative(t *testing.T) {
	t.Parallel()
	for cumulative, want := range map[bool][]float64{false: {2, 1}, true: {2, 3}} {
		r := recordTurn(Config{Metrics: &ExportTarget{}, Cumulative: cumulative})
		r.takeUnsent(metricsSignalName)
		r.counters = nil
		r.addToMetric("commit.count", 2, nil)
		first, _ := r.takeUnsent(metricsSignalName)
		r.addToMetric("commit.count", 1, nil)
		second, _ := r.takeUnsent(metricsSignalName)
		for i, q := range []exportRequest{first, second} {
			sum := q.Metrics[0].Scopes[0].Metrics[0].Sum
			if *sum.Points[0].Value != want[i] || (sum.Temporality == 2) != cumulative {
				t.Errorf("cumulative %v: export %d is %v with temporality %d, want %v", cumulative, i, *sum.Points[0].Value, sum.Temporality, want[i])
			}
		}
	}
}

// TestIntervals checks that only new data is sent, at the intervals of the signals.
func TestIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recordTurn(Config{Metrics: &ExportTarget{Protocol: protocolHTTPJSON, URL: "http://x", Interval: time.Minute}, Logs: &ExportTarget{Protocol: protocolHTTPJSON, URL: "http://x", Interval: time.Second}})
		calls := map[string]int{}
		for signal, e := range r.exporters {
			e.client.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
				calls[signal]++
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
		}
		quit := make(chan struct{})
		time.AfterFunc(150*time.Second, func() { close(quit) })
		r.Run(t.Context(), quit)
		if calls[logsSignalName] != 1 || calls[metricsSignalName] != 1 {
			t.Errorf("requests: %v, want one of each: nothing was recorded after the first", calls)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
