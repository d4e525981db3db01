package flags

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var ignoreGiven = cmp.Options{cmpopts.IgnoreUnexported(Flags{}), cmpopts.IgnoreFields(Flags{}, "Given")}

// The flags of the real CLI: those in its --help, and those that it accepts but does not list.
const (
	listedFlags = `--add-dir --agent --agents --allow-dangerously-skip-permissions --allowedTools --allowed-tools
		--append-system-prompt --autocompact --ax-screen-reader --bg --background --bare --betas --brief --chrome --cloud -c
		--continue --dangerously-skip-permissions -d --debug --debug-file --desktop --disable-slash-commands
		--disallowedTools --disallowed-tools --effort --environment --exclude-dynamic-system-prompt-sections
		--fallback-model --file --fork-session --forward-subagent-text --from-pr -h --help --ide --include-hook-events
		--include-partial-messages --input-format --json-schema --max-budget-usd --mcp-config --model -n --name --no-chrome
		--no-session-persistence --output-format --permission-mode --permission-prompts --plugin-dir --plugin-url -p
		--print --prompt-suggestions --remote-control --remote-control-session-name-prefix --replay-user-messages
		--restricted -r --resume --safe-mode --session-id --setting-sources --settings --strict-mcp-config
		--system-prompt --system-prompt-snapshot --teleport --tmux --tools --verbose -v --version -w --worktree`
	unlistedFlags = `--max-turns --permission-prompt-tool --system-prompt-file --append-system-prompt-file
		--max-thinking-tokens --thinking --task-budget --debug-to-stderr --init --resume-session-at --resume-drops-turn
		--session-mirror --await-initialize --await-claim --initialize-fields --managed-settings
		--managed-settings-in-initialize --plugin-dir-no-mcp --channels --project-config-root --thinking-display`
	ownFlags = `--scenario --failure --capture --expect --mcp-debug --mcp-require --debugger --cwd --claude-version`
)

// sampleValue returns a valid value for a flag.
func sampleValue(o option) string {
	switch {
	case len(o.Choices) > 0:
		return o.Choices[len(o.Choices)-1]
	case strings.Contains(o.Flags, "--permission-mode"):
		return "plan"
	case strings.Contains(o.Flags, "--autocompact"):
		return "500k"
	}
	return "7"
}

// Checklist row 3: --flag v and --flag=v are equivalent for every flag with a value.
func TestEveryFlagInBothForms(t *testing.T) {
	options := append(claudeOptions(&Flags{}), claudelessOptions(&Flags{})...)
	for _, o := range options {
		if !strings.ContainsAny(o.Flags, "<[") {
			continue
		}
		for part := range strings.FieldsSeq(strings.ReplaceAll(o.Flags, ",", " ")) {
			if !strings.HasPrefix(part, "--") {
				continue
			}
			t.Run(part, func(t *testing.T) {
				s, _ := fakeSystem(t)
				apart, err := Parse(s, []string{part, sampleValue(o)})
				if err != nil {
					t.Fatal(err)
				}
				joined, err := Parse(s, []string{part + "=" + sampleValue(o)})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(apart, joined, cmpopts.IgnoreUnexported(Flags{})); diff != "" {
					t.Errorf("(-apart +joined):\n%s", diff)
				}
				if !apart.WasGiven(o.Name()) {
					t.Errorf("%s was not noted as given", o.Name())
				}
				if o.Set != nil && cmp.Equal(apart, &Flags{InputOutputFlags: InputOutputFlags{OutputFormat: "text", InputFormat: "text"}}, ignoreGiven) {
					t.Error("the value went nowhere")
				}
			})
		}
	}
}

// Checklist row 4: every flag of the real CLI is accepted under both program names; flags of claudeless only under the
// name claudeless.
func TestEveryFlagIsKnown(t *testing.T) {
	parse := func(t *testing.T, name, flag string) error {
		t.Helper()
		s, _ := fakeSystem(t)
		s.Args[0] = name
		words := []string{flag}
		for _, o := range append(claudeOptions(&Flags{}), claudelessOptions(&Flags{})...) {
			if slices.Contains(strings.FieldsFunc(o.Flags, func(r rune) bool { return r == ' ' || r == ',' }), flag) && strings.Contains(o.Flags, "<") {
				words = append(words, sampleValue(o))
			}
		}
		_, err := Parse(s, words)
		return err
	}
	for flag := range strings.FieldsSeq(listedFlags + " " + unlistedFlags) {
		for _, name := range []string{"claude", "claudeless"} {
			if err := parse(t, name, flag); err != nil {
				t.Errorf("%s %s: %v", name, flag, err)
			}
		}
	}
	for flag := range strings.FieldsSeq(ownFlags) {
		if err := parse(t, "claudeless", flag); err != nil {
			t.Errorf("claudeless %s: %v", flag, err)
		}
		if err := parse(t, "claude", flag); err == nil || !strings.HasPrefix(err.Error(), "error: unknown option '"+flag+"'") {
			t.Errorf("claude %s: error %v, want an unknown option", flag, err)
		}
	}
}

// Checklist row 2: the exact command lines of both SDKs, without -p.
func TestSDKCommandLines(t *testing.T) {
	tests := map[string]struct {
		args []string
		want Flags
	}{
		"python, plain query": {
			args: []string{"--output-format", "stream-json", "--verbose", "--system-prompt", "", "--input-format", "stream-json"},
			want: Flags{InputOutputFlags: InputOutputFlags{Verbose: true}},
		},
		"python, everything": {
			args: []string{
				"--output-format", "stream-json", "--verbose", "--append-system-prompt", "A", "--tools", "", "--allowedTools", "Read,Bash(git log:*)",
				"--max-turns", "3", "--max-budget-usd", "0.5", "--disallowedTools", "Write", "--task-budget", "9", "--model", "sonnet", "--fallback-model", "haiku",
				"--betas", "context-1m-2025-08-07", "--permission-prompt-tool", "stdio", "--permission-mode", "acceptEdits", "--continue", "--resume=abc",
				"--settings", `{"a":1}`, "--add-dir", "/a", "--add-dir", "/b", "--mcp-config", `{"mcpServers":{}}`, "--include-partial-messages",
				"--include-hook-events", "--strict-mcp-config", "--fork-session", "--resume-session-at=M", "--resume-drops-turn=", "--session-mirror",
				"--setting-sources=user,project", "--plugin-dir", "/p", "--plugin-dir", "/q", "--max-thinking-tokens", "100", "--thinking-display", "omitted",
				"--effort", "high", "--json-schema", `{"type":"object"}`, "--input-format", "stream-json",
			},
			want: Flags{
				InputOutputFlags:   InputOutputFlags{Verbose: true, IncludePartialMessages: true, IncludeHookEvents: true, JSONSchema: `{"type":"object"}`},
				SystemPromptFlags:  SystemPromptFlags{AppendSystemPrompt: "A"},
				ToolFlags:          ToolFlags{AllowedTools: []string{"Read", "Bash(git log:*)"}, DisallowedTools: []string{"Write"}, PermissionPromptTool: "stdio", PermissionMode: "acceptEdits"},
				ModelFlags:         ModelFlags{MaxTurns: 3, MaxBudgetUSD: 0.5, TaskBudget: 9, Model: "sonnet", FallbackModel: "haiku", Betas: []string{"context-1m-2025-08-07"}, MaxThinkingTokens: new(100), ThinkingDisplay: "omitted", Effort: "high"},
				SessionFlags:       SessionFlags{Continue: true, Resume: "abc", ForkSession: true, ResumeSessionAt: "M", SessionMirror: true},
				ConfigSourceFlags:  ConfigSourceFlags{Settings: []string{`{"a":1}`}, AddDirs: []string{"/a", "/b"}, MCPConfig: []string{`{"mcpServers":{}}`}, StrictMCPConfig: true, SettingSources: []string{"user", "project"}},
				CustomizationFlags: CustomizationFlags{PluginDirs: []string{"/p", "/q"}},
			},
		},
		"typescript": {
			args: []string{
				"--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--tools=", "--allowedTools=a,b,Skill(x)", "--max-turns=2",
				"--max-budget-usd=1", "--disallowedTools=c", "--model=m", "--permission-prompt-tool=stdio", "--permission-mode=default",
				"--allow-dangerously-skip-permissions", "--permission-prompts=host", "--add-dir=/a", "--mcp-config", `{"mcpServers":{}}`, "--setting-sources=",
				"--plugin-dir-no-mcp=/p", "--thinking=disabled", "--effort=max", "--agent=x", "--debug", "--debug-file=/tmp/d", "--channels=c", "--project-config-root=/r",
				"--await-initialize", "--initialize-fields=a,b", "--managed-settings", "{}", "--managed-settings-in-initialize", "--await-claim",
				"--no-session-persistence", "--session-id=0F0E0D0C-0000-4000-8000-000000000000", "--settings", "s.json",
			},
			want: Flags{
				InputOutputFlags:            InputOutputFlags{Verbose: true},
				ToolFlags:                   ToolFlags{AllowedTools: []string{"a", "b", "Skill(x)"}, DisallowedTools: []string{"c"}, PermissionPromptTool: "stdio", PermissionMode: "default", AllowDangerouslySkipPermissions: true, PermissionPrompts: "host"},
				ModelFlags:                  ModelFlags{MaxTurns: 2, MaxBudgetUSD: 1, Model: "m", Thinking: "disabled", Effort: "max"},
				ConfigSourceFlags:           ConfigSourceFlags{AddDirs: []string{"/a"}, MCPConfig: []string{`{"mcpServers":{}}`}, ProjectConfigRoot: "/r", ManagedSettings: "{}", Settings: []string{"s.json"}},
				CustomizationFlags:          CustomizationFlags{PluginDirsNoMCP: []string{"/p"}, Agent: "x"},
				DebugFlags:                  DebugFlags{Debug: true, DebugFile: "/tmp/d"},
				InitializeAnnouncementFlags: InitializeAnnouncementFlags{AwaitInitialize: true, InitializeFields: "a,b", ManagedSettingsInInitialize: true, AwaitClaim: true},
				SessionFlags:                SessionFlags{NoSessionPersistence: true, SessionID: "0F0E0D0C-0000-4000-8000-000000000000"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.OutputFormat, tt.want.InputFormat = "stream-json", "stream-json"
			got := mustParse(t, tt.args...)
			if diff := cmp.Diff(&tt.want, got, ignoreGiven); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Checklist row 3: empty values count as given.
func TestEmptyValues(t *testing.T) {
	f := mustParse(t, "-p", "--tools", "", "--setting-sources=", "--system-prompt", "", "--resume=S", "--resume-session-at=M", "--resume-drops-turn=")
	for _, name := range []string{"tools", "setting-sources", "system-prompt", "resume-drops-turn"} {
		if !f.WasGiven(name) {
			t.Errorf("--%s was not noted as given", name)
		}
	}
	if f.WasGiven("model") || len(f.Tools)+len(f.SettingSources) > 0 {
		t.Errorf("more than was given: %+v", f)
	}
}

// Checklist row 3: lists with commas, lists with spaces, variadic words, and the words that end them.
func TestToolLists(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		tools  []string
		prompt string
	}{
		{[]string{"--allowedTools", "Read,Edit", "-p", "hi"}, []string{"Read", "Edit"}, "hi"},
		{[]string{"--allowed-tools", "Read Edit", "--", "hi"}, []string{"Read", "Edit"}, "hi"},
		{[]string{"hi", "--allowedTools", "Read", "Edit, Bash(git log:*, a b)"}, []string{"Read", "Edit", "Bash(git log:*, a b)"}, "hi"},
		{[]string{"--allowedTools=Read", "hi", "--allowedTools=Edit"}, []string{"Read", "Edit"}, "hi"},
		{[]string{"--allowedTools", "mcp__conf__*", "-p", "hi"}, []string{"mcp__conf__*"}, "hi"},
		{[]string{"--allowedTools", "Bash(()),x)", "-p", "hi"}, []string{"Bash(())", "x)"}, "hi"},
	} {
		f := mustParse(t, tt.args...)
		if diff := cmp.Diff(tt.tools, f.AllowedTools); diff != "" || f.Prompt != tt.prompt {
			t.Errorf("%q: prompt %q, tools (-want +got):\n%s", tt.args, f.Prompt, diff)
		}
	}
}

func TestFirstWordIsThePrompt(t *testing.T) {
	for _, tt := range []struct {
		args   string
		prompt string
		has    bool
	}{
		{"-p one two", "one", true},
		{"one -p two", "one", true},
		{"-pc hi", "hi", true},
		{"-c -p -- --model", "--model", true},
		{"-p", "", false},
		{"-r id hi", "hi", true},
		{"-d api hi", "hi", true},
		{"--worktree --verbose hi", "hi", true},
	} {
		f := mustParse(t, strings.Fields(tt.args)...)
		if f.Prompt != tt.prompt || f.HasPrompt != tt.has {
			t.Errorf("%s: prompt %q (%v), want %q (%v)", tt.args, f.Prompt, f.HasPrompt, tt.prompt, tt.has)
		}
	}
}

func TestPermissionModeSpellings(t *testing.T) {
	for given, want := range map[string]string{
		"acceptEdits": "acceptEdits", "accept-edits": "acceptEdits", "bypassPermissions": "bypassPermissions", "bypass-permissions": "bypassPermissions",
		"dontAsk": "dontAsk", "dont-ask": "dontAsk", "plan": "plan", "auto": "auto", "manual": "default", "default": "default",
	} {
		if got := mustParse(t, "-p", "--permission-mode", given).PermissionMode; got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

func TestOwnFlagsFromTheEnvironment(t *testing.T) {
	s, _ := fakeSystem(t)
	s.Args[0] = "claude"
	s.Environ = []string{
		"CLAUDELESS_SCENARIO=old.toml", "CLAUDELESS_SCENARIO=s.toml", "CLAUDELESS_FAILURE=rate-limit", "CLAUDELESS_MCP_DEBUG=1", "CLAUDELESS_MCP_REQUIRE=0",
		"CLAUDELESS_EXPECT=false", "CLAUDELESS_CWD=",
	}
	f, err := Parse(s, []string{"-p", "hi"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Flags{
		Prompt: "hi", HasPrompt: true,
		InputOutputFlags: InputOutputFlags{Print: true, OutputFormat: "text", InputFormat: "text"},
		ClaudelessFlags:  ClaudelessFlags{Scenario: "s.toml", Failure: "rate-limit", MCPDebug: true},
	}
	if diff := cmp.Diff(want, f, ignoreGiven); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Args[0] = "claudeless"
	f, err = Parse(s, []string{"-p", "hi", "--scenario", "mine.toml"})
	if err != nil || f.Scenario != "mine.toml" {
		t.Errorf("scenario %q, error %v; the command line wins", f.Scenario, err)
	}
}

// FuzzFlags: no command line makes the parser panic, and an accepted one has valid formats.
func FuzzFlags(f *testing.F) {
	for _, seed := range []string{"-p\nhi", "--output-format=json\n-pc", "--allowedTools\na(b,c)\n-p", "--permission-mode\na-b-", "-v\n--claude-version\nx", "--max-turns\n1e9", "--max-budget-usd\nNaN"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, _ := fakeSystem(t)
		flags, err := Parse(s, strings.Split(line, "\n"))
		if err == nil && (flags.OutputFormat == "" || flags.InputFormat == "") {
			t.Errorf("no format: %+v", flags)
		}
		if err == nil && flags.WasGiven("max-budget-usd") && !(flags.MaxBudgetUSD > 0) {
			t.Errorf("budget %v", flags.MaxBudgetUSD)
		}
	})
}

// The values of --allowedTools and --disallowedTools (row 26).
func TestSplitTools(t *testing.T) {
	tests := map[string][]string{
		"":                                    {},
		" , ":                                 {},
		"Bash(git *) Edit,mcp__s":             {"Bash(git *)", "Edit", "mcp__s"},
		"Bash(npm run a, b),Read":             {"Bash(npm run a, b)", "Read"},
		"Bash(echo (a b) c) Read":             {"Bash(echo (a b) c)", "Read"},
		"Read,Write,  Edit\tGlob":             {"Read", "Write", "Edit", "Glob"},
		"Bash(unfinished Read":                {"Bash(unfinished Read"},
		"WebFetch(domain:a.b) Agent(Explore)": {"WebFetch(domain:a.b)", "Agent(Explore)"},
	}
	for value, want := range tests {
		if diff := cmp.Diff(want, splitToolList(value)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}
