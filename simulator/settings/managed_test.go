package settings_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/settings"
)

const etc = "/etc/claude-code"

func loadManaged(files map[string]string) (settings.Settings, error) {
	return settings.Load(settings.Options{
		StateDir: state, CWD: cwd, ManagedDir: etc, ReadFile: fileReader(files),
		Glob: func(string) ([]string, error) {
			return []string{etc + "/managed-settings.d/10.json", etc + "/managed-settings.d/20.json"}, nil
		},
	})
}

// Managed files take precedence over the user's file, and a later managed file over an earlier one.
// Errors in managed files are reported individually.
func TestManagedFiles(t *testing.T) {
	s, err := loadManaged(map[string]string{
		state + "/settings.json":            `{"model":"user","language":"x"}`,
		etc + "/managed-settings.json":      `{"model":"machine","outputStyle":5}`,
		etc + "/managed-settings.d/20.json": `{"model":"part","zzz":1}`,
	})
	if err != nil || s.Model != "part" || s.OutputStyle != "" {
		t.Errorf("model %q, style %q, %v", s.Model, s.OutputStyle, err)
	}
	want := []string{"/etc/claude-code/managed-settings.json (outputStyle): Failed schema validation. This field was ignored."}
	if diff := cmp.Diff(want, s.ManagedFaults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	_, err = loadManaged(map[string]string{etc + "/managed-settings.json": `{"model":`})
	if _, ok := errors.AsType[*settings.InvalidManagedSettingsError](err); !ok {
		t.Errorf("no JSON: %v", err)
	}
}

// The settings of a host can restrict a session, but they cannot select options for the user.
func TestManagedByHost(t *testing.T) {
	s := load(t, settings.Options{Managed: []byte(`{
		"model":"m","hooks":{"Stop":[]},"env":{"A":"1","defaultMode":"2"},"permissions":{"deny":["Bash"],"defaultMode":"plan","disableAutoMode":"disable"},
		"availableModels":["haiku"],"agent":5}`)}, nil)
	if s.Model != "" || len(s.Hooks) > 0 || s.Permissions.DefaultMode != "" {
		t.Errorf("model %q, hooks %v, mode %q", s.Model, s.Hooks, s.Permissions.DefaultMode)
	}
	if len(s.Permissions.Rules) != 1 || !s.Permissions.DisableAuto || !cmp.Equal(s.Env, map[string]string{"A": "1", "defaultMode": "2"}) || !cmp.Equal(s.AvailableModels, []string{"haiku"}) {
		t.Errorf("permissions %+v, env %v, models %v", s.Permissions, s.Env, s.AvailableModels)
	}
	if diff := cmp.Diff([]string{"parent managed settings (agent): Failed schema validation. This field was ignored."}, s.ManagedFaults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// Managed settings can exclude the hooks and rules of all other sources.
func TestManagedOnly(t *testing.T) {
	const hooks = `{"hooks":{"Stop":[]}}`
	tests := []struct {
		name, user, machine string
		hooks               []settings.Source
	}{
		{"both", hooks, hooks, []settings.Source{settings.SourceUser, settings.SourceManaged}},
		{"the user switches off", `{"hooks":{"Stop":[]},"disableAllHooks":true}`, hooks, []settings.Source{settings.SourceManaged}},
		{"the machine switches off", hooks, `{"hooks":{"Stop":[]},"disableAllHooks":true}`, nil},
		{"only the machine's", hooks, `{"hooks":{"Stop":[]},"allowManagedHooksOnly":true}`, []settings.Source{settings.SourceManaged}},
	}
	for _, tt := range tests {
		s, err := loadManaged(map[string]string{state + "/settings.json": tt.user, etc + "/managed-settings.json": tt.machine})
		var got []settings.Source
		for _, h := range s.Hooks {
			got = append(got, h.Source)
		}
		if diff := cmp.Diff(tt.hooks, got); diff != "" || err != nil {
			t.Errorf("%s: %v, hooks of (-want +got):\n%s", tt.name, err, diff)
		}
	}
	s, err := loadManaged(map[string]string{
		state + "/settings.json":       `{"permissions":{"allow":["Write"]}}`,
		etc + "/managed-settings.json": `{"allowManagedPermissionRulesOnly":true,"permissions":{"allow":["Read"]}}`,
	})
	if err != nil || len(s.Permissions.Rules) != 1 || s.Permissions.Rules[0].Text != "Read" || !s.Permissions.ManagedOnly {
		t.Errorf("permissions %+v, %v", s.Permissions, err)
	}
}

func TestServerLists(t *testing.T) {
	local := settings.MCPServer{Name: "a", Command: []string{"srv", "x"}}
	remote := settings.MCPServer{Name: "b", URL: "https://mcp.example/x"}
	tests := []struct {
		name, text string
		want       [4]bool // local allowed, remote allowed, local denied, remote denied
	}{
		{"none", `{}`, [4]bool{true, true, false, false}},
		{"no list", `{"allowedMcpServers":"x","deniedMcpServers":5}`, [4]bool{true, true, false, false}},
		{"empty", `{"allowedMcpServers":[],"deniedMcpServers":[]}`, [4]bool{false, false, false, false}},
		{"name", `{"allowedMcpServers":[{"serverName":"b"}],"deniedMcpServers":[{"serverName":"a"}]}`, [4]bool{false, true, true, false}},
		{"command", `{"allowedMcpServers":[{"serverCommand":["srv"]},{"serverName":"a"}],"deniedMcpServers":[{"serverCommand":["srv","x"]}]}`, [4]bool{false, false, true, false}},
		{"address", `{"allowedMcpServers":[{"serverUrl":"https://*.example/*"},{"serverName":"a"}],"deniedMcpServers":[{"serverUrl":"https://mcp.example/*"}]}`, [4]bool{true, true, false, true}},
	}
	for _, tt := range tests {
		s := load(t, settings.Options{}, map[string]string{state + "/settings.json": tt.text})
		got := [4]bool{s.AllowedServers.Allows(local), s.AllowedServers.Allows(remote), s.DeniedServers.Denies(local), s.DeniedServers.Denies(remote)}
		if got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
