package permission_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestSetMode checks the answers to set_permission_mode (row 30, contract 4.3).
func TestSetMode(t *testing.T) {
	tests := []struct {
		mode          protocol.PermissionMode
		bypassAllowed bool
		code, text    string
	}{
		{"acceptEdits", false, "", ""},
		{"plan", false, "", ""},
		{"bogus", false, "invalid_mode", "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"},
		{"manual", false, "invalid_mode", "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"},
		{"bypassPermissions", false, "bypass_not_launched", "Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions"},
		{"bypassPermissions", true, "", ""},
	}
	for _, tt := range tests {
		p := newPolicy(t, permission.Options{BypassAllowed: tt.bypassAllowed})
		err := p.SetMode(tt.mode)
		if tt.code == "" {
			if err != nil || p.Mode() != tt.mode {
				t.Errorf("%s: %v, mode %s", tt.mode, err, p.Mode())
			}
			continue
		}
		refused, ok := errors.AsType[*permission.ModeError](err)
		if !ok || refused.Code != tt.code || refused.Message != tt.text || p.Mode() != protocol.ModeDefault {
			t.Errorf("%s: %v, mode %s", tt.mode, err, p.Mode())
		}
	}
	for mode, code := range map[protocol.PermissionMode]string{"bypassPermissions": "bypass_disabled", "auto": "auto_mode_settings"} {
		err := newPolicy(t, permission.Options{BypassAllowed: true, NoBypass: true, NoAuto: true}).SetMode(mode)
		if refused, ok := errors.AsType[*permission.ModeError](err); !ok || refused.Code != code {
			t.Errorf("%s forbidden by settings: %v, want %s", mode, err, code)
		}
		if err := newPolicy(t, permission.Options{BypassAllowed: true}).SetMode(mode); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	p := newPolicy(t, permission.Options{Mode: protocol.ModeBypass})
	if err := errors.Join(p.SetMode(protocol.ModePlan), p.SetMode(protocol.ModeBypass)); err != nil {
		t.Errorf("back to the mode of the start: %v", err)
	}
}

func TestParseMode(t *testing.T) {
	for text, want := range map[string]protocol.PermissionMode{
		"default": "default", "manual": "default", "delegate": "default", "acceptEdits": "acceptEdits", "accept-edits": "acceptEdits",
		"bypass-permissions": "bypassPermissions", "bypassPermissions": "bypassPermissions", "dont-ask": "dontAsk", "auto": "auto", "plan": "plan",
	} {
		if got, err := permission.ParseMode(text); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := permission.ParseMode("bogus"); err == nil {
		t.Error("bogus is a mode")
	}
	if _, err := permission.New(permission.Options{Mode: "bogus"}); err == nil {
		t.Error("New takes the mode bogus")
	}
}

// TestSuggestions checks the suggestions that a host receives (contract 6.3).
func TestSuggestions(t *testing.T) {
	type update = protocol.PermissionUpdate
	edits := update{Type: "setMode", Mode: "acceptEdits", Destination: "session"}
	rule := func(tool, content string) update {
		return update{Type: "addRules", Rules: []protocol.PermissionRule{{ToolName: tool, RuleContent: content}}, Behavior: "allow", Destination: "localSettings"}
	}
	readDir := rule("Read", "//etc/**")
	readDir.Destination = "session"
	tests := []struct {
		use     protocol.ToolUse
		want    []update
		blocked string
	}{
		{newCall("Bash", "touch a"), []update{rule("Bash", "touch a *"), {Type: "addDirectories", Directories: []string{cwd}, Destination: "session"}, edits}, cwd + "/a"},
		{newCall("Bash", "npm install x"), []update{rule("Bash", "npm install *")}, ""},
		{newCall("mcp__s__t", "{}"), []update{rule("mcp__s__t", "")}, ""},
		{newCall("Write", cwd+"/a"), []update{edits}, ""},
		{newCall("Write", "/w/a"), []update{edits, {Type: "addDirectories", Directories: []string{"/w"}, Destination: "session"}}, ""},
		{newCall("Read", "/etc/hosts"), []update{readDir}, ""},
		{newCall("WebFetch", "https://example.com/a"), []update{rule("WebFetch", "domain:example.com")}, ""},
		{newCall("AskUserQuestion", "{}"), nil, ""},
	}
	for _, tt := range tests {
		p := newPolicy(t, permission.Options{AsksPerson: true})
		v := p.Decide(tt.use)
		if diff := cmp.Diff(tt.want, v.Suggestions); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.use.Name, tt.use.Input, diff)
		}
		if v.BlockedPath != tt.blocked {
			t.Errorf("%s: blocked path %q, want %q", tt.use.Name, v.BlockedPath, tt.blocked)
		}
		if tt.want == nil {
			continue
		}
		// A host that returns all suggestions is not asked again.
		p.Apply(v.Suggestions)
		if v := p.Decide(tt.use); v.Behavior != permission.Allow {
			t.Errorf("%s %s asks again: %s", tt.use.Name, tt.use.Input, v.Message)
		}
	}
}

// TestApply checks the permission updates of an answer (row 53).
func TestApply(t *testing.T) {
	rules := []protocol.PermissionRule{{ToolName: "mcp__s__t"}}
	call := newCall("mcp__s__t", "{}")
	steps := []struct {
		name    string
		update  protocol.PermissionUpdate
		changed bool
		want    string
	}{
		{"add", protocol.PermissionUpdate{Type: "addRules", Rules: rules, Behavior: "allow", Destination: "session"}, false, "allow rule"},
		{"remove elsewhere", protocol.PermissionUpdate{Type: "removeRules", Rules: rules, Behavior: "allow", Destination: "localSettings"}, false, "allow rule"},
		{"remove", protocol.PermissionUpdate{Type: "removeRules", Rules: rules, Behavior: "allow", Destination: "session"}, false, "ask"},
		{"deny", protocol.PermissionUpdate{Type: "addRules", Rules: rules, Behavior: "deny", Destination: "session"}, false, "deny rule"},
		{"replace", protocol.PermissionUpdate{Type: "replaceRules", Behavior: "deny", Destination: "session"}, false, "ask"},
		{"mode", protocol.PermissionUpdate{Type: "setMode", Mode: "dontAsk", Destination: "session"}, true, "deny mode"},
		{"mode again", protocol.PermissionUpdate{Type: "setMode", Mode: "dontAsk", Destination: "session"}, false, "deny mode"},
		{"mode not launched", protocol.PermissionUpdate{Type: "setMode", Mode: "bypassPermissions"}, false, "deny mode"},
		{"unknown", protocol.PermissionUpdate{Type: "other"}, false, "deny mode"},
	}
	p := newPolicy(t, permission.Options{})
	for _, s := range steps {
		if changed := p.Apply([]protocol.PermissionUpdate{s.update}); changed != s.changed {
			t.Errorf("%s: mode changed %v", s.name, changed)
		}
		if got := verdictText(p.Decide(call)); got != s.want {
			t.Errorf("%s: got %q, want %q", s.name, got, s.want)
		}
	}
	var changes []string
	changed := func(dirs []string) { changes = append(changes, strings.Join(dirs, " ")) }
	p = newPolicy(t, permission.Options{Mode: protocol.ModeAcceptEdits, AdditionalDirs: []permission.WorkingDirectory{{Path: "../beside"}}, OnDirectories: changed})
	p.Apply([]protocol.PermissionUpdate{{Type: "setMode", Mode: "plan"}})
	p.Apply([]protocol.PermissionUpdate{{Type: "addDirectories", Directories: []string{"/w"}}})
	if diff := cmp.Diff([]string{cwd, "/work/beside", "/w"}, p.WorkingDirectories()); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	p.Apply([]protocol.PermissionUpdate{{Type: "removeDirectories", Directories: []string{"/work/beside", cwd}}})
	if diff := cmp.Diff([]string{cwd, "/w"}, p.WorkingDirectories()); diff != "" {
		t.Errorf("directories after removal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{cwd + " /work/beside /w", cwd + " /w"}, changes); diff != "" {
		t.Errorf("changes of the directories (-want +got):\n%s", diff)
	}
}

// TestRequest checks the fields of can_use_tool (row 23).
func TestRequest(t *testing.T) {
	tools := map[string]protocol.Tool{
		"Bash":     {Name: "Bash", Description: "Runs a command."},
		"Write":    {Name: "Write", Description: "Writes a file.\nMore."},
		"WebFetch": {Name: "WebFetch", Description: "Fetches a page."},

		"AskUserQuestion": {Name: "AskUserQuestion", Description: "Asks the user."},
		"mcp__s__t":       {Name: "mcp__s__t", Server: "s", ServerSource: "dynamic", RawName: "t", Description: "Does it."},
	}
	p := newPolicy(t, permission.Options{AsksPerson: true, Home: "/home/u", Tool: func(name string) (protocol.Tool, bool) {
		tool, found := tools[name]
		return tool, found
	}})
	call := newCall("Write", "/w/a")
	r := p.BuildPermissionRequest(call, p.Decide(call))
	if r.DisplayName != "Write" || r.Description != "/w/a" || r.DecisionReasonType != "workingDir" || len(r.Suggestions) != 2 {
		t.Errorf("Write: %+v", r)
	}
	for input, want := range map[string]string{
		`Bash {"command":"touch a","description":"Make a file"}`:       "Make a file",
		`Bash {"command":"touch a"}`:                                   "touch a",
		`Bash {"command":"touch ` + strings.Repeat("a", 44) + `"}`:     "touch " + strings.Repeat("a", 44),
		`Bash {"command":"touch ` + strings.Repeat("a", 45) + `"}`:     "touch " + strings.Repeat("a", 43) + "…",
		`WebFetch {"url":"https://x/` + strings.Repeat("ä", 80) + `"}`: "https://x/" + strings.Repeat("ä", 39) + "…",
		`Write {"file_path":"` + cwd + `/in/a.txt"}`:                   "in/a.txt",
		`Write {"file_path":"/home/u/.bashrc"}`:                        "~/.bashrc",
		`Write {}`:                                                     "Writes a file.",
		`AskUserQuestion {"questions":[]}`:                             "",
	} {
		name, raw, _ := strings.Cut(input, " ")
		call = protocol.ToolUse{Name: name, Input: json.RawMessage(raw)}
		if r = p.BuildPermissionRequest(call, p.Decide(call)); r.Description != want {
			t.Errorf("%s is described as %q, want %q", input, r.Description, want)
		}
	}
	call = protocol.ToolUse{Name: "Write", Input: json.RawMessage(`{"file_path":"a"}`), ObservedInput: json.RawMessage(`{"file_path":"/w/a"}`)}
	if r = p.BuildPermissionRequest(call, p.Decide(call)); string(r.Use.Input) != string(call.ObservedInput) {
		t.Errorf("a host sees %s, want %s", r.Use.Input, call.ObservedInput)
	}
	call = newCall("mcp__s__t", "{}")
	r = p.BuildPermissionRequest(call, p.Decide(call))
	if diff := cmp.Diff(&protocol.ServerNameAndSource{Name: "s", Source: "dynamic"}, r.Server); diff != "" || r.DisplayName != "t" || r.Description != "" {
		t.Errorf("MCP: display name %q, description %q, server (-want +got):\n%s", r.DisplayName, r.Description, diff)
	}
}

// TestServerAskOnly checks the field that says whether a rule caused a question about an MCP tool (observed with 2.1.329).
func TestServerAskOnly(t *testing.T) {
	for _, tt := range []struct {
		name        string
		mode        protocol.PermissionMode
		rules       []string
		want        *bool
		suggestions int
	}{
		{"no rule", protocol.ModeDefault, nil, new(true), 1},
		{"an ask rule", protocol.ModeDefault, []string{"ask mcp__s__t"}, new(false), 0},
		{"plan mode", protocol.ModePlan, nil, nil, 0},
	} {
		p := newPolicy(t, permission.Options{Mode: tt.mode, AsksPerson: true, Tool: func(name string) (protocol.Tool, bool) {
			return protocol.Tool{Name: name, Server: "s", RawName: "t"}, true
		}}, tt.rules...)
		call := newCall("mcp__s__t", "{}")
		r := p.BuildPermissionRequest(call, p.Decide(call))
		if diff := cmp.Diff(tt.want, r.ServerAskOnly); diff != "" || len(r.Suggestions) != tt.suggestions {
			t.Errorf("%s: %d suggestions, (-want +got):\n%s", tt.name, len(r.Suggestions), diff)
		}
	}
}

// Calls are decided while the host changes the mode.
func TestConcurrentUse(t *testing.T) {
	p := newPolicy(t, permission.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				p.Decide(newCall("Bash", "touch a"))
				p.Apply([]protocol.PermissionUpdate{{Type: "setMode", Mode: "acceptEdits"}, {Type: "addDirectories", Directories: []string{"/w"}}})
				if err := p.SetMode(protocol.ModeDefault); err != nil {
					t.Error(err)
				}
				_ = p.Rules()
			}
		})
	}
	wg.Wait()
}

// A source's rules and directories are replaced as a whole.
func TestReplace(t *testing.T) {
	p := newPolicy(t, permission.Options{
		Rules:          []permission.Rule{{Behavior: "deny", Source: "flagSettings", Text: "Bash"}, {Behavior: "allow", Source: "cliArg", Text: "Task(Explore)"}},
		AdditionalDirs: []permission.WorkingDirectory{{Path: "/a", Source: "cliArg"}, {Path: "/b", Source: "localSettings"}},
	})
	p.ReplaceRules("flagSettings", []permission.Rule{{Behavior: "ask", Source: "flagSettings", Text: "Write(*)"}, {Behavior: "ask", Source: "flagSettings", Text: "Bash("}})
	p.ReplaceDirectories("localSettings", []string{"/c"})
	var rules []string
	for _, r := range p.Rules() {
		rules = append(rules, r.Behavior+" "+r.Source+" "+permission.FormatRule(r.Parts()))
	}
	if diff := cmp.Diff([]string{"allow cliArg Agent(Explore)", "ask flagSettings Write"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]permission.WorkingDirectory{{Path: "/a", Source: "cliArg"}, {Path: "/c", Source: "localSettings"}}, p.AdditionalDirectories()); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
}

// The suggestions of a question about a file depend on the mode (observed with 2.1.329).
func TestSuggestionsByMode(t *testing.T) {
	mode := protocol.PermissionUpdate{Type: "setMode", Mode: protocol.ModeAcceptEdits, Destination: "session"}
	dir := protocol.PermissionUpdate{Type: "addDirectories", Directories: []string{"/w"}, Destination: "session"}
	tests := []struct {
		mode            protocol.PermissionMode
		inside, outside []protocol.PermissionUpdate
	}{
		{protocol.ModeDefault, []protocol.PermissionUpdate{mode}, []protocol.PermissionUpdate{mode, dir}},
		{protocol.ModeAcceptEdits, []protocol.PermissionUpdate{}, []protocol.PermissionUpdate{dir}},
		{protocol.ModePlan, nil, nil},
	}
	for _, tt := range tests {
		p := newPolicy(t, permission.Options{AsksPerson: true, Mode: tt.mode})
		if diff := cmp.Diff(tt.inside, p.Decide(newCall("Write", cwd+"/.git/config")).Suggestions); diff != "" {
			t.Errorf("%s, inside (-want +got):\n%s", tt.mode, diff)
		}
		if diff := cmp.Diff(tt.outside, p.Decide(newCall("Write", "/w/a")).Suggestions); diff != "" {
			t.Errorf("%s, outside (-want +got):\n%s", tt.mode, diff)
		}
	}
}

func TestReadable(t *testing.T) {
	rules := []permission.Rule{
		{Behavior: "allow", Text: "Write"},
		{Behavior: "allow", Text: "Read"},
		{Behavior: "allow", Text: "Edit(//e/**)"},
		{Behavior: "allow", Text: "Read(//r/**)"},
	}
	p := newPolicy(t, permission.Options{Mode: protocol.ModePlan, Rules: rules, AdditionalDirs: []permission.WorkingDirectory{{Path: "/d"}}})
	for path, want := range map[string]bool{"a": true, cwd + "/a": true, "/d/a": true, "/e/a": true, "/r/a": true, "/w/a": false} {
		if got := p.IsReadableWithoutAsking(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if p = newPolicy(t, permission.Options{Mode: protocol.ModeBypass}); !p.IsReadableWithoutAsking("/w/a") {
		t.Error("bypassPermissions does not read everything")
	}
}
