package settings_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/settings"
)

const (
	state = "/home/me/.claude"
	cwd   = "/work/project"
)

// fileReader serves files from a map.
func fileReader(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if text, found := files[path]; found {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

func load(t *testing.T, o settings.Options, files map[string]string) settings.Settings {
	t.Helper()
	o.StateDir, o.CWD, o.ReadFile = state, cwd, fileReader(files)
	s, err := settings.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A later source can restore the default that a classifier decides in plan mode.
func TestPlansAlone(t *testing.T) {
	user, local := state+"/settings.json", cwd+"/.claude/settings.local.json"
	for want, files := range map[string]map[string]string{
		"false":       {user: "{}"},
		"true":        {user: `{"useAutoModeDuringPlan":false}`, local: "{}"},
		"false again": {user: `{"useAutoModeDuringPlan":false}`, local: `{"useAutoModeDuringPlan":true}`},
	} {
		if s := load(t, settings.Options{}, files); s.Permissions.NoClassifierInPlanMode != (want == "true") {
			t.Errorf("%v: %t, want %s", files, s.Permissions.NoClassifierInPlanMode, want)
		}
	}
}

// Rows 40 and 41: the settings of the state directory are used, later sources have precedence, and --setting-sources
// filters.
func TestPrecedence(t *testing.T) {
	files := map[string]string{
		state + "/settings.json":             `{"outputStyle":"user","model":"opus","env":{"A":"u","B":"u"}}`,
		cwd + "/.claude/settings.json":       `{"outputStyle":"project","env":{"A":"p"}}`,
		cwd + "/.claude/settings.local.json": `{"outputStyle":"local-test-style"}`,
		"/elsewhere/flag.json":               `{"outputStyle":"flag"}`,
	}
	tests := []struct {
		name    string
		o       settings.Options
		style   string
		sources []settings.Source
	}{
		{"all", settings.Options{}, "local-test-style", []settings.Source{settings.SourceUser, settings.SourceProject, settings.SourceLocal}},
		{"none", settings.Options{Sources: []string{}}, "", nil},
		{"user", settings.Options{Sources: []string{"user"}}, "user", []settings.Source{settings.SourceUser}},
		{"order of the value does not matter", settings.Options{Sources: []string{"project", "user"}}, "project", []settings.Source{settings.SourceUser, settings.SourceProject}},
		{"flag text", settings.Options{FlagValue: `{"outputStyle":"text"}`}, "text", []settings.Source{settings.SourceUser, settings.SourceProject, settings.SourceLocal, settings.SourceFlag}},
		{"flag file", settings.Options{FlagValue: "../../elsewhere/flag.json", Sources: []string{}}, "flag", []settings.Source{settings.SourceFlag}},
		{"managed", settings.Options{FlagValue: `{"outputStyle":"text"}`, Managed: []byte(`{"outputStyle":"boss"}`)}, "text", []settings.Source{settings.SourceUser, settings.SourceProject, settings.SourceLocal, settings.SourceFlag, settings.SourceManaged}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := load(t, tt.o, files)
			var sources []settings.Source
			for _, l := range s.Layers {
				sources = append(sources, l.Source)
			}
			if diff := cmp.Diff(tt.sources, sources); diff != "" || s.OutputStyle != tt.style || len(s.Warnings) > 0 {
				t.Errorf("style %q, want %q; warnings %q; sources (-want +got):\n%s", s.OutputStyle, tt.style, s.Warnings, diff)
			}
		})
	}
	s := load(t, settings.Options{}, files)
	if diff := cmp.Diff(map[string]string{"A": "p", "B": "u"}, s.Env); diff != "" || s.Model != "opus" {
		t.Errorf("model %q, env (-want +got):\n%s", s.Model, diff)
	}
}

func TestParts(t *testing.T) {
	s := load(t, settings.Options{}, map[string]string{
		state + "/settings.json": `{
			"permissions": {"allow":["Read"],"deny":["Bash(rm *)"],"ask":["WebFetch"],"defaultMode":"plan","additionalDirectories":["/a"]},
			"hooks": {"Stop":[]}, "enabledMcpjsonServers":["a"], "disabledMcpjsonServers":["x"]}`,
		cwd + "/.claude/settings.local.json": `{
			"permissions": {"allow":["Write"],"defaultMode":"acceptEdits","additionalDirectories":["/b","/a"]},
			"hooks": {"PreToolUse":[]}, "enabledMcpjsonServers":["b","a"], "enableAllProjectMcpServers": true}`,
	})
	want := settings.Permissions{
		Rules: []settings.Rule{
			{Behavior: "allow", Text: "Read", Source: settings.SourceUser, Root: state},
			{Behavior: "deny", Text: "Bash(rm *)", Source: settings.SourceUser, Root: state},
			{Behavior: "ask", Text: "WebFetch", Source: settings.SourceUser, Root: state},
			{Behavior: "allow", Text: "Write", Source: settings.SourceLocal, Root: cwd},
		},
		DefaultMode: "acceptEdits",
		Directories: []settings.AdditionalWorkingDirectory{{Path: "/a", Source: settings.SourceUser}, {Path: "/b", Source: settings.SourceLocal}, {Path: "/a", Source: settings.SourceLocal}},
	}
	if diff := cmp.Diff(want, s.Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	// The hooks of all sources are kept in order (row 61).
	hooks := []settings.Hooks{{Source: settings.SourceUser, Raw: []byte(`{"Stop":[]}`)}, {Source: settings.SourceLocal, Raw: []byte(`{"PreToolUse":[]}`)}}
	if diff := cmp.Diff(hooks, s.Hooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"x"}}, [][]string{s.EnabledMCPJSONServers, s.DisabledMCPJSONServers}); diff != "" || !s.EnableAllProjectMCPServers {
		t.Errorf("MCP servers (-want +got):\n%s", diff)
	}
	merged := s.Merged()
	wantMerged := map[string]any{
		"allow": []any{"Read", "Write"}, "deny": []any{"Bash(rm *)"}, "ask": []any{"WebFetch"},
		"defaultMode": "acceptEdits", "additionalDirectories": []any{"/a", "/b"},
	}
	if diff := cmp.Diff(wantMerged, merged["permissions"]); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

// A file with an invalid value of a known key is ignored completely; if a rule is invalid, only the rule is ignored;
// unknown keys are accepted.
func TestFaultyFiles(t *testing.T) {
	tests := []struct{ name, text, warning, model string }{
		{"no JSON", `{"model":`, "settings.json: ", ""},
		{"no object", `[1]`, "settings.json: ", ""},
		{"null", `null`, "must be a JSON object", ""},
		{"wrong type", `{"model":"m","outputStyle":5}`, "the whole file is ignored, because the value of outputStyle is invalid", ""},
		{"two", `{"model":"m","verbose":"x","env":[]}`, "env, verbose", ""},
		{"wrong rule", `{"model":"m","permissions":{"allow":[1]}}`, "permissions.allow: the rule 1 must be a string", "m"},
		{"wrong permissions", `{"model":"m","permissions":[]}`, "value of permissions", ""},
		{"wrong mode", `{"model":"m","permissions":{"defaultMode":"x"}}`, "value of permissions", ""},
		{"wrong variable", `{"model":"m","env":{"A":{}}}`, "env.A must be a string, a number or a boolean", "m"},
		{"wrong guard", `{"model":"m","hooks":{"PreToolUse":"x"}}`, "value of hooks", ""},
		{"wrong hook of a guard", `{"model":"m","hooks":{"PermissionRequest":[{"hooks":[{"type":"command"}]}]}}`, "value of hooks", ""},
		{"wrong event", `{"model":"m","hooks":{"Stop":"x"}}`, "must be an array of matchers", "m"},
		{"wrong hook", `{"model":"m","hooks":{"Stop":[{"hooks":[{"type":"command"}]}]}}`, "entry ignored", "m"},
		{"wrong timeout", `{"model":"m","hooks":{"Stop":[{"hooks":[{"type":"command","command":"x","timeout":-1}]}]}}`, "entry ignored", "m"},
		{"other event", `{"model":"m","hooks":{"Zzz":5}}`, "Unknown hook event", "m"},
		{"forgiven", `{"model":"m","theme":5,"effortLevel":[],"allowedMcpServers":"x","zzz":1}`, "", "m"},
		{"days", `{"model":"m","cleanupPeriodDays":0}`, "cleanupPeriodDays", ""},
		{"status line", `{"model":"m","statusLine":{"type":"command"}}`, "statusLine", ""},
		{"null", `{"model":"m","enableAllProjectMcpServers":null,"channelsEnabled":null}`, "", "m"},
		{"share", `{"model":"m","feedbackSurveyRate":2}`, "feedbackSurveyRate", ""},
		{"plugins", `{"model":"m","enabledPlugins":{"a@b":["x"],"c@d":true},"attribution":false}`, "", "m"},
		{"byte order mark", "\ufeff" + `{"model":"m"}`, "", "m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := load(t, settings.Options{}, map[string]string{state + "/settings.json": tt.text})
			if s.Model != tt.model {
				t.Errorf("model %q", s.Model)
			}
			if got := strings.Join(s.Warnings, "\n"); !strings.Contains(got, tt.warning) || (got == "") != (tt.warning == "") {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
		})
	}
}

// A value that is not a JSON object is a path.
func TestFlagValue(t *testing.T) {
	read := func(path string) ([]byte, error) {
		if path == "/tmp" {
			return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
		}
		return nil, fs.ErrNotExist
	}
	for value, want := range map[string]string{
		`{"model":`:           "Settings file not found: " + cwd + `/{"model":`,
		"nosuch.json":         "Settings file not found: " + cwd + "/nosuch.json",
		"/x/../y.json":        "Settings file not found: /y.json",
		"[1]":                 "Settings file not found: " + cwd + "/[1]",
		"/tmp":                "Cannot use settings file (EISDIR: illegal operation on a directory, read): /tmp",
		` {/**/"model":"m"} `: "Invalid JSON provided to --settings",
	} {
		_, err := settings.Load(settings.Options{StateDir: state, CWD: cwd, FlagValue: value, ReadFile: read})
		if _, ok := errors.AsType[*settings.FlagError](err); !ok || err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Files of a repository cannot set the modes bypassPermissions and auto, but --settings can.
func TestFreeHand(t *testing.T) {
	mode := func(m string) string { return `{"permissions":{"defaultMode":"` + m + `"}}` }
	tests := []struct{ user, project, local, flag, want string }{
		{user: "plan", project: "bypassPermissions"},
		{user: "plan", local: "auto"},
		{user: "bypassPermissions", project: "plan", want: "plan"},
		{project: "dontAsk", want: "dontAsk"},
		{user: "auto", want: "auto"},
		{project: "auto", flag: "bypassPermissions", want: "bypassPermissions"},
	}
	for _, tt := range tests {
		files := map[string]string{}
		for path, m := range map[string]string{state + "/settings.json": tt.user, cwd + "/.claude/settings.json": tt.project, cwd + "/.claude/settings.local.json": tt.local} {
			if m != "" {
				files[path] = mode(m)
			}
		}
		o := settings.Options{}
		if tt.flag != "" {
			o.FlagValue = mode(tt.flag)
		}
		if got := load(t, o, files).Permissions.DefaultMode; got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// A path pattern with one leading slash is relative to the file of --settings, or to a temporary directory if --settings is a
// JSON text; in local settings it is relative to the working directory, even if the file is that of the repository.
func TestRootsOfRules(t *testing.T) {
	const deny = `{"permissions":{"deny":["Edit(/docs/**)"]}}`
	for _, tt := range []struct {
		flag string
		want []settings.Rule
	}{
		{deny, []settings.Rule{{Source: settings.SourceFlag, Root: "/tmp/claude-0"}}},
		{"shared/s.json", []settings.Rule{{Source: settings.SourceFlag, Root: cwd + "/shared"}}},
		{"", nil},
	} {
		o := settings.Options{FlagValue: tt.flag, TempDir: "/tmp/claude-0", LocalRoot: state}
		s := load(t, o, map[string]string{cwd + "/shared/s.json": deny, state + "/.claude/settings.local.json": deny})
		want := append([]settings.Rule{{Source: settings.SourceLocal, Root: cwd}}, tt.want...)
		for i := range want {
			want[i].Behavior, want[i].Text = "deny", "Edit(/docs/**)"
		}
		if diff := cmp.Diff(want, s.Permissions.Rules); diff != "" {
			t.Errorf("%q: rules (-want +got):\n%s", tt.flag, diff)
		}
	}
}

// The allow rules of a project apply only in a trusted folder. Its deny rules always apply (contract 6.1).
func TestTrust(t *testing.T) {
	project := `{"permissions":{"allow":["Write","Edit"],"deny":["Bash"]}}`
	tests := []struct {
		name, global string
		trusted      bool
	}{
		{"no global file", "", false},
		{"other folder", `{"projects":{"/work/other":{"hasTrustDialogAccepted":true}}}`, false},
		{"not accepted", `{"projects":{"/work/project":{"hasTrustDialogAccepted":false}}}`, false},
		{"accepted", `{"projects":{"/work/project":{"hasTrustDialogAccepted":true}}}`, true},
		{"accepted above", `{"projects":{"/work":{"hasTrustDialogAccepted":true}}}`, true},
		{"broken global file", `{"projects":`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{cwd + "/.claude/settings.json": project}
			if tt.global != "" {
				files[state+"/.claude.json"] = tt.global
			}
			s := load(t, settings.Options{}, files)
			want := 1
			if tt.trusted {
				want = 3
			}
			if len(s.Permissions.Rules) != want || (s.TrustWarning == "") != tt.trusted {
				t.Errorf("rules %v, warning %q", s.Permissions.Rules, s.TrustWarning)
			}
			if !tt.trusted && !strings.HasPrefix(s.TrustWarning, "Ignoring 2 permissions.allow entries from .claude/settings.json: ") {
				t.Errorf("warning %q", s.TrustWarning)
			}
		})
	}
	if s := load(t, settings.Options{}, nil); s.TrustWarning != "" {
		t.Errorf("a clean run warns: %q", s.TrustWarning) // row 6
	}
}

// In the home directory ~/.claude/settings.json is read once, as user settings.
func TestHomeAsProject(t *testing.T) {
	s, err := settings.Load(settings.Options{StateDir: "/home/me/.claude", CWD: "/home/me", ReadFile: fileReader(map[string]string{
		"/home/me/.claude/settings.json": `{"permissions":{"allow":["Write"]}}`,
	})})
	if err != nil || len(s.Layers) != 1 || s.TrustWarning != "" {
		t.Errorf("layers %v, warning %q, %v", s.Layers, s.TrustWarning, err)
	}
}

// Without ReadFile, files are read from disk. An unreadable file causes a warning.
func TestRealFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(`{"model":"m"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".claude", "settings.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(settings.Options{StateDir: dir, CWD: dir})
	if err != nil || s.Model != "m" || len(s.Warnings) != 1 {
		t.Errorf("model %q, warnings %q, %v", s.Model, s.Warnings, err)
	}
}

// Settings of a host take precedence over --settings, key by key, and have the same source (observed with 2.1.329).
func TestHost(t *testing.T) {
	object := func(text string) (keys map[string]json.RawMessage) {
		if err := json.Unmarshal([]byte(text), &keys); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	host := settings.MergeTopLevelKeys(nil, object(`{"env":{"B":"2"},"model":"opus","a":{"b":1}}`))
	host = settings.MergeTopLevelKeys(host, object(`{"permissions":{"deny":["Read"]},"model":null,"a":{"c":2}}`))
	s := load(t, settings.Options{FlagValue: `{"env":{"A":"1"},"model":"haiku","permissions":{"allow":["Edit"]}}`, HostSettings: host}, nil)
	want := map[string]any{
		"env": map[string]any{"A": "1", "B": "2"}, "model": "haiku", "a": map[string]any{"c": 2.0},
		"permissions": map[string]any{"allow": []any{"Edit"}, "deny": []any{"Read"}},
	}
	if diff := cmp.Diff(want, s.Merged()); diff != "" || len(s.Layers) != 1 || s.Layers[0].Source != settings.SourceFlag {
		t.Errorf("%d layers, merged (-want +got):\n%s", len(s.Layers), diff)
	}
	if s = load(t, settings.Options{HostSettings: object(`{"outputStyle":"x"}`)}, nil); s.OutputStyle != "x" {
		t.Errorf("without --settings: %q", s.OutputStyle)
	}
	for text, wrong := range map[string][]string{
		`{"model":null,"nosuch":5,"hooks":7,"effortLevel":"zz","permissions":{"allow":[5],"defaultMode":"manual"}}`: nil,
		`{"model":5,"env":7}`:                       {"env", "model"},
		`{"permissions":{"defaultMode":"zz"}}`:      {"permissions"},
		`{"permissions":{"deny":null}}`:             {"permissions"},
		`{"permissions":[],"cleanupPeriodDays":""}`: {"cleanupPeriodDays", "permissions"},
	} {
		if diff := cmp.Diff(wrong, settings.KeysWithInvalidNonNullValue(object(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{`{}`, `{"permissions":{"allow":[null,"a"]}}`, `{"env":{"A":1}}`, `{"hooks":null,"model":null}`, `x`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := load(t, settings.Options{FlagValue: `{}`}, map[string]string{state + "/settings.json": text})
		s.Merged()
	})
}
