package claudecode_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestProfile checks the measured differences between neighbouring versions.
func TestProfile(t *testing.T) {
	tests := []struct {
		version         string
		measured, probe bool
		mode            protocol.PermissionMode
		monitor         bool
		capabilities    int
		missing         string // the first thing that is missing
	}{
		{"2.1.333", true, true, "default", true, 23, ""},
		{"2.1.332", true, true, "default", true, 23, "events without a timestamp say when they were written (since 2.1.333)"},
		{"2.1.331", true, true, "default", true, 23, "responses with invalid JSON are described like other malformed responses (since 2.1.332)"},
		{"2.1.330", true, true, "default", true, 22, "results of Write and Edit report changes that the host made to the content (since 2.1.331)"},
		{"2.1.329", true, true, "default", true, 21, "problems in settings are reported per source (since 2.1.330)"},
		{"2.1.310", true, true, "default", true, 13, "key result modelUsage.*.cacheCreationEphemeral1hInputTokens (since 2.1.311)"},
		{"2.1.307", true, true, "default", false, 13, "key result model_usage_since_last_result (since 2.1.309)"},
		{"2.1.301", true, true, "auto", false, 11, "sessions start in permission mode default (since 2.1.302)"},
		{"2.1.300", true, true, "auto", false, 10, "key system/init original_cwd (since 2.1.301)"},
		{"2.1.231", false, false, "default", false, 10, "MCP servers are asked for revision 2026-07-28 first (since 2.1.232)"},
		{"3.0.0", false, true, "default", true, 23, ""},
		{"latest", false, false, "default", false, 10, "MCP servers are asked for revision 2026-07-28 first (since 2.1.232)"},
	}
	for _, test := range tests {
		t.Run(test.version, func(t *testing.T) {
			p := claudecode.ProfileForExactVersion(test.version)
			if got := p.IsVersionInMeasuredRange(); got != test.measured {
				t.Errorf("Measured() = %t", got)
			}
			if got := p.Has(claudecode.FeatureAsksServersForNewMCPRevisionFirst); got != test.probe {
				t.Errorf("Has(MCPProbe) = %t", got)
			}
			if got := p.DefaultMode(""); got != test.mode {
				t.Errorf("DefaultMode() = %s, want %s", got, test.mode)
			}
			onTerminal := protocol.ModeDefault
			if p.Has(claudecode.FeatureTerminalSessionsStartInPermissionModeAuto) {
				onTerminal = protocol.ModeAuto
			}
			if got := p.DefaultMode("claude-opus-4-6"); got != onTerminal || p.DefaultMode("claude-opus-4-5-20251101") != protocol.ModeDefault {
				t.Errorf("DefaultMode() on a terminal = %s, want %s", got, onTerminal)
			}
			if got := p.HasTool("Monitor"); got != test.monitor || !p.HasTool("Read") {
				t.Errorf("HasTool(Monitor) = %t, HasTool(Read) = %t", got, p.HasTool("Read"))
			}
			if got := len(p.InitEventTemplate().Capabilities); got != test.capabilities {
				t.Errorf("%d capabilities, want %d", got, test.capabilities)
			}
			first := append(slices.Clone(p.FeaturesOnlyInNewerVersions()), "")[0]
			if first != test.missing {
				t.Errorf("Missing() begins with %q, want %q", first, test.missing)
			}
		})
	}
}

// Keys that a version does not have are removed at every level; all other keys are unchanged.
func TestKeyFilter(t *testing.T) {
	tests := []struct{ name, version, in, want string }{
		{
			"a key", "2.1.300", `{"type":"system","subtype":"init","original_cwd":"/","cwd":"/"}`,
			`{"type":"system","subtype":"init","cwd":"/"}`,
		},
		{"key of 2.1.331", "2.1.330", `{"type":"system","subtype":"init","sandbox_enabled":false,"cwd":"/"}`, `{"type":"system","subtype":"init","cwd":"/"}`},
		{"it has come", "2.1.328", `{"type":"system","subtype":"init","original_cwd":"/"}`, `{"type":"system","subtype":"init","original_cwd":"/"}`},
		{"another event", "2.1.300", `{"type":"system","subtype":"status","original_cwd":"/"}`, `{"type":"system","subtype":"status","original_cwd":"/"}`},
		{
			"below every key", "2.1.310", `{"type":"result","subtype":"success","modelUsage":{"a":{"cacheCreationEphemeral1hInputTokens":0,"x":1},"b":{"y":2}}}`,
			`{"type":"result","subtype":"success","modelUsage":{"a":{"x":1},"b":{"y":2}}}`,
		},
		{"in an array", "2.1.329", `[{"type":"result","begun_message_ids":[]}`, `[{"type":"result"}`},
		{"no object", "2.1.300", "text\n", "text\n"},
		{"time of writing", "2.1.333", `{"type":"result"}` + "\n", `{"type":"result","written_at":"1970-01-01T00:00:00.000Z"}` + "\n"},
		{"no time of writing", "2.1.333", `{"type":"assistant","timestamp":"x"}`, `{"type":"assistant","timestamp":"x"}`},
		{"with a newline", "2.1.329", `{"type":"result","begun_message_ids":["}"]}` + "\n", `{"type":"result"}` + "\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			w := claudecode.ProfileForExactVersion(test.version).EventWriter(&out, startOf1970{})
			if n, err := w.Write([]byte(test.in)); n != len(test.in) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
	if claudecode.ProfileForExactVersion(claudecode.NewestMeasuredVersion).FilterOfEventKeysMissingInVersion() != nil {
		t.Error("the newest version lacks keys")
	}
}

// A transcript line type that a version does not have is not written.
func TestTranscriptLines(t *testing.T) {
	f := claudecode.ProfileForExactVersion("2.1.310").TranscriptFilter()
	if got := f.Apply([]byte(`{"type":"tools-used","tools":[]}`)); got != nil {
		t.Errorf("tools-used stays: %s", got)
	}
	if got := string(f.Apply([]byte(`{"type":"assistant","madeBy":"model"}`))); strings.Contains(got, "madeBy") {
		t.Errorf("madeBy stays: %s", got)
	}
}

// CLAUDELESS_ENVIRONMENT sets the simulated account and network.
func TestReadEnvironment(t *testing.T) {
	tests := []struct {
		name string
		vars map[string]string
		want claudecode.Environment
	}{
		{"nothing", nil, claudecode.Environment{UsesDefaultURL: true, AllowsTelemetry: true, AllowsTraffic: true}},
		{"nothing, login", map[string]string{"CLAUDELESS_ENVIRONMENT": "login"}, claudecode.Environment{Credential: claudecode.CredentialNone, UsesDefaultURL: true, AllowsTelemetry: true, AllowsTraffic: true}},
		{
			"the recordings", map[string]string{
				"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://localhost:1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDELESS_ENVIRONMENT": "login",
			}, claudecode.Environment{},
		},
		{
			"a subscription",
			map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "t", "DISABLE_TELEMETRY": "1"},
			claudecode.Environment{Credential: claudecode.CredentialOAuth, TokenSource: "CLAUDE_CODE_OAUTH_TOKEN", UsesDefaultURL: true, AllowsTraffic: true},
		},
		{
			"a key wins",
			map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k", "CLAUDELESS_ENVIRONMENT": "base-url,no-traffic"},
			claudecode.Environment{TokenSource: "CLAUDE_CODE_OAUTH_TOKEN"},
		},
		{
			"the prompt cache",
			map[string]string{"ENABLE_PROMPT_CACHING_1H": "yes", "FORCE_PROMPT_CACHING_5M": "0", "CLAUDELESS_ENVIRONMENT": "no-traffic"},
			claudecode.Environment{UsesDefaultURL: true, LongPromptCache: true},
		},
		{"words", map[string]string{"CLAUDELESS_ENVIRONMENT": "none,no-telemetry"}, claudecode.Environment{Credential: claudecode.CredentialNone, UsesDefaultURL: true, AllowsTraffic: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := claudecode.ReadEnvironment(func(name string) string { return test.vars[name] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := claudecode.ReadEnvironment(func(string) string { return "offline" }); err == nil {
		t.Error("an unknown word is accepted")
	}
}

// Fast mode needs the newest Opus (observed with 2.1.330).
func TestFastModeNeedsModel(t *testing.T) {
	for want, lists := range map[string][][]string{
		"sdk_opt_in_required": {nil, {"haiku", "opus"}, {"claude-opus-5-5"}},
		"model_not_allowed":   {{}, {"sonnet"}, {"claude-opus-4-6"}},
	} {
		for _, available := range lists {
			if _, got := claudecode.ProfileForExactVersion("2.1.330").WithFastModeAllowedModels(available).FastMode(claudecode.DefaultModel); got != want {
				t.Errorf("with %q: %s, want %s", available, got, want)
			}
		}
	}
}

func TestFastModeRequested(t *testing.T) {
	for _, tt := range []struct {
		environment          claudecode.Environment
		model, state, reason string
	}{
		{claudecode.Environment{RequestsFastMode: true}, "opus", "on", ""},
		{claudecode.Environment{RequestsFastMode: true}, "claude-sonnet-5-5", "off", ""},
		{claudecode.Environment{NoFastMode: true, RequestsFastMode: true}, "opus", "off", "disabled_by_env"},
	} {
		p := claudecode.ProfileForExactVersion("2.1.330").WithEnvironment(tt.environment).WithFastModeAllowedModels(nil)
		if state, reason := p.FastMode(tt.model); state != tt.state || reason != tt.reason {
			t.Errorf("%+v: %s %q", tt, state, reason)
		}
	}
}

// A request of a subscription to the default URL has betas for its credential, its cache and the vendor's API.
func TestRequestBetas(t *testing.T) {
	f := claudecode.BetaHeaderConditions{Model: "claude-opus-5-5", CanThink: true, MillionTokens: true}
	for _, tt := range []struct{ environment, has, lacks string }{
		{"key", "context-1m-2025-08-07", "oauth-2025-04-20 extended-cache-ttl-2025-04-11 tool-provenance-2026-10-26 cache-diagnosis-2026-04-07"},
		{"oauth", "context-1m-2025-08-07 oauth-2025-04-20 extended-cache-ttl-2025-04-11", "cache-diagnosis-2026-04-07"},
		{"none,default-url", "tool-provenance-2026-10-26 cache-diagnosis-2026-04-07", "oauth-2025-04-20"},
	} {
		e, err := claudecode.ReadEnvironment(func(name string) string {
			return map[string]string{claudecode.EnvironmentOverrideVariable: tt.environment, "ANTHROPIC_BASE_URL": "http://localhost"}[name]
		})
		if err != nil {
			t.Fatal(err)
		}
		betas := claudecode.ProfileForExactVersion(claudecode.DefaultVersion).WithEnvironment(e).RequestBetas(f)
		for name := range strings.FieldsSeq(tt.has) {
			if !slices.Contains(betas, name) {
				t.Errorf("%s: no %s in %v", tt.environment, name, betas)
			}
		}
		for name := range strings.FieldsSeq(tt.lacks) {
			if slices.Contains(betas, name) {
				t.Errorf("%s: %s in %v", tt.environment, name, betas)
			}
		}
	}
}

type startOf1970 struct{}

func (startOf1970) Now() time.Time { return time.Unix(0, 0) }
