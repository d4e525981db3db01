package scripts

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var recordTelemetry = flag.String("telemetry-real", "", "record the shapes of telemetry with this real claude instead of comparing them")

// telemetryCase is a run whose telemetry was recorded with the real CLI: the names, and the keys and
// types of their attributes.
type telemetryCase struct {
	name string
	args []string
	env  []string
}

func telemetryCases() []telemetryCase {
	traces := []string{"OTEL_TRACES_EXPORTER=otlp", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1"}
	details := slices.Concat(traces, []string{"OTEL_LOG_USER_PROMPTS=1", "OTEL_LOG_TOOL_DETAILS=1", "OTEL_LOG_ASSISTANT_RESPONSES=1", "OTEL_LOG_TOOL_CONTENT=1"})
	named := []string{"OTEL_RESOURCE_ATTRIBUTES=team=red,region=north", "OTEL_METRICS_INCLUDE_VERSION=true"}
	allowed := []string{"-p", "permissions", "--allowedTools", "Bash(gh:*),mcp__fx,Skill", "--mcp-config", "mcp.json", "--strict-mcp-config"}
	return []telemetryCase{
		{"prompt", []string{"-p", "hi"}, nil},
		{"tools", []string{"-p", "tools", "--permission-mode", "bypassPermissions"}, slices.Concat(details, named)},
		{"permissions", allowed, traces},
		{"details", allowed, details},
		{"failure", []string{"-p", "failure"}, []string{"CLAUDE_CODE_MAX_RETRIES=2"}},
	}
}

// TestTelemetryShapes compares the telemetry of claudeless with the recorded telemetry of the real CLI 2.1.330.
func TestTelemetryShapes(t *testing.T) {
	t.Parallel()
	for _, c := range telemetryCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", "testdata", "telemetry", c.name+".txt")
			got := runTelemetry(t, c)
			if *recordTelemetry != "" {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("telemetry (-real CLI +claudeless):\n%s", diff)
			}
		})
	}
}

// runTelemetry runs a case with a collector and returns the shape of the telemetry that it sends.
func runTelemetry(t *testing.T, c telemetryCase) string {
	t.Helper()
	received := &collector{shapes: map[string]bool{}}
	server := httptest.NewServer(received)
	defer server.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "telemetry", "project"))); err != nil {
		t.Fatal(err)
	}
	scenario, err := filepath.Abs(filepath.Join("..", "testdata", "telemetry", "scenario.toml"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"exec", "--lenient", "-s", scenario}
	if *recordTelemetry != "" {
		args = append(args, "--real="+*recordTelemetry)
	}
	cmd := exec.Command("claudeless", slices.Concat(args, []string{"--", "claude"}, c.args)...)
	cmd.Dir = dir
	cmd.Env = append(slices.Concat(os.Environ(), c.env), "HOME="+t.TempDir(), "IS_SANDBOX=1", "TERM=xterm", "ANTHROPIC_API_KEY=dummy", "CLAUDELESS_RETRY_SCALE=0",
		"CLAUDELESS_ENVIRONMENT=base-url,no-traffic", "CLAUDE_CODE_ENABLE_TELEMETRY=1", "OTEL_METRICS_EXPORTER=otlp", "OTEL_LOGS_EXPORTER=otlp",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL,
		"PATH="+filepath.Join(dir, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil && c.name != "failure" {
		t.Fatalf("%v\n%s", err, out)
	}
	return received.String()
}

// collector is an OTLP/HTTP collector that stores the shape of the received data.
type collector struct {
	mu     sync.Mutex
	shapes map[string]bool
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := make([]string, 0, len(c.shapes))
	for line := range c.shapes {
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var tree any
	if err != nil || json.Unmarshal(body, &tree) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.add(r.URL.Path, tree)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

// add records every object of a request that has a name or attributes: its keys, the name, and the
// keys and types of the attributes.
func (c *collector) add(at string, tree any) {
	switch tree := tree.(type) {
	case []any:
		for _, item := range tree {
			c.add(at, item)
		}
	case map[string]any:
		name, _ := tree["name"].(string)
		if body, ok := tree["body"].(map[string]any); ok {
			name, _ = body["stringValue"].(string)
		}
		if name != "" {
			at += " " + name
		}
		var line strings.Builder
		line.WriteString(at + ":")
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			if key == "attributes" || key == "unit" || key == "aggregationTemporality" || key == "isMonotonic" {
				continue
			}
			line.WriteString(" " + key)
			c.add(at+" "+key, tree[key])
		}
		for _, key := range []string{"unit", "aggregationTemporality", "isMonotonic"} {
			if value, ok := tree[key]; ok {
				text, _ := json.Marshal(value)
				line.WriteString(" " + key + "=" + string(text))
			}
		}
		attributes, ok := tree["attributes"].([]any)
		if ok {
			line.WriteString(" |")
		}
		for _, item := range attributes {
			pair, _ := item.(map[string]any)
			value, _ := pair["value"].(map[string]any)
			key, _ := pair["key"].(string)
			line.WriteString(" " + key + ":" + strings.TrimSuffix(strings.Join(slices.Sorted(maps.Keys(value)), ","), "Value"))
		}
		if ok || tree["unit"] != nil || tree["aggregationTemporality"] != nil {
			c.shapes[line.String()] = true
		}
	}
}
