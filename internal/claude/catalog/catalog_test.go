package catalog

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func disk() func(string) fs.FS {
	trees := map[string]fstest.MapFS{
		"/user": {
			"agents/reviewer.md":     file("---\nname: reviewer\ndescription: of the user\n---\nReview."),
			"commands/mine.md":       file("Mine: $ARGUMENTS"),
			"commands/shared.md":     file("of the user"),
			"output-styles/terse.md": file("---\nname: Terse\n---\nShort."),
			"skills/cook/SKILL.md":   file("---\nname: cook\ndescription: Cooks\n---\nCook it."),
			"skills/broken/notes.md": file("no skill"),
		},
		"/p/.claude": {
			"agents/sub/fs-test-agent.md": file("---\nname: fs-test-agent\ndescription: >-\n  Two\n  lines\ntools: Read, Bash(git *)\nmodel: haiku\nbackground: false\nmaxTurns: 3\n---\n\nYou test.\n"),
			"agents/reviewer.md":          file("---\nname: reviewer\ndescription: of the project: with a colon\n---\nReview more."),
			"agents/README.md":            file("not an agent"),
			"commands/testcmd.md":         file("---\ndescription: Tests\nargument-hint: \"[n]\"\n---\nRun test $1"),
			"commands/dir/deep.md":        file("Deep"),
			"commands/shared.md":          file("of the project"),
		},
		"/plug": {
			".claude-plugin/plugin.json": file(`{"name":"demo","version":"1.2.0"}`),
			"commands/greet.md":          file("Greet $ARGUMENTS"),
			"agents/helper.md":           file("---\nname: helper\ndescription: Helps\n---\nHelp."),
		},
		"/bad": {".claude-plugin/plugin.json": file(`{`)},
	}
	return func(dir string) fs.FS {
		if tree, ok := trees[dir]; ok {
			return tree
		}
		return fstest.MapFS{}
	}
}

func commandNames(c *Catalog) []string {
	return mapToNames(c.Commands(), func(k Command) string { return k.Name })
}

// Checklist rows 42, 43 and 44: agents, commands, skills and plugins on disk, and how init lists them.
func TestCatalog(t *testing.T) {
	c, warnings := New(Options{
		UserDir: "/user", ProjectDirs: []string{"/p/.claude"}, Plugins: []string{"/plug", "/bad"}, Open: disk(),
		Agents: `{"flagged":{"description":"d","prompt":"p","tools":["Read"],"background":true}}`,
	})
	ev := claudecode.ProfileForExactVersion(claudecode.DefaultVersion).InitEventTemplate()
	builtin := len(ev.SlashCommands)
	c.FillInit(&ev)
	want := []string{"claude", "demo:helper", "Explore", "flagged", "fs-test-agent", "general-purpose", "Plan", "reviewer", "statusline-setup"}
	if diff := cmp.Diff(want, ev.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	more := len(ev.SlashCommands) - builtin
	if diff := cmp.Diff([]string{"cook", "dir:deep", "mine", "shared", "testcmd", "deep-research", "demo:greet"}, ev.SlashCommands[:more+1]); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if ev.Skills[0] != "cook" || ev.Skills[1] != "deep-research" {
		t.Errorf("skills %q", ev.Skills)
	}
	if diff := cmp.Diff(protocol.Plugin{Name: "demo", Path: "/plug", Source: "demo@inline", Version: "1.2.0"}, ev.Plugins[0]); diff != "" || len(ev.Plugins) != 4 {
		t.Errorf("plugins %v\n%s", ev.Plugins, diff)
	}
	if diff := cmp.Diff([]string{"default", "Proactive", "Concise", "Explanatory", "Learning", "Terse"}, c.OutputStyleNames()); diff != "" {
		t.Error(diff)
	}
	no := false
	a, _ := c.Agent("fs-test-agent")
	if diff := cmp.Diff(Agent{
		Name: "fs-test-agent", Description: "Two lines", Prompt: "You test.", Tools: []string{"Read", "Bash(git *)"}, Model: "haiku",
		MaxTurns: 3, Background: &no, Source: "projectSettings", Path: "/p/.claude/agents/sub/fs-test-agent.md",
	}, a); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	if a, _ = c.Agent("reviewer"); a.Description != "of the project: with a colon" || a.Prompt != "Review more." {
		t.Errorf("the project's agent does not replace the user's: %+v", a)
	}
	if a, _ = c.Agent("flagged"); a.Source != "flagSettings" || !*a.Background {
		t.Errorf("--agents: %+v", a)
	}
	k, _ := c.Command("testcmd")
	if diff := cmp.Diff(Command{Name: "testcmd", Description: "Tests", ArgumentHint: "[n]", Body: "Run test $1", Source: "projectSettings", Path: "/p/.claude/commands/testcmd.md", HasDescription: true}, k); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if k, _ = c.Command("shared"); k.Body != "of the user" {
		t.Errorf("the user's command does not replace the project's: %+v", k)
	}
	if k, _ = c.Command("cook"); !k.Skill || k.Dir != "/user/skills/cook" || k.Description != "Cooks" {
		t.Errorf("skill %+v", k)
	}
	if len(warnings) > 0 || len(ev.PluginErrors) != 1 || ev.PluginErrors[0].Type != "generic-error" || !strings.Contains(ev.PluginErrors[0].Message, " has a corrupt manifest file at ") || ev.PluginErrors[0].Plugin != "inline[1]" {
		t.Errorf("warnings %q, errors %+v", warnings, ev.PluginErrors)
	}
}

// Checklist row 43: --setting-sources user excludes the project's commands.
func TestCatalogBySource(t *testing.T) {
	c, _ := New(Options{UserDir: "/user", Open: disk()})
	if diff := cmp.Diff([]string{"cook", "mine", "shared"}, commandNames(c)); diff != "" {
		t.Error(diff)
	}
	c, _ = New(Options{UserDir: "/user", ProjectDirs: []string{"/p/.claude"}, Plugins: []string{"/plug"}, Agents: `{"flagged":{}}`, Open: disk(), Disabled: true})
	var ev protocol.InitEvent
	ev.SlashCommands, ev.Skills = []string{"built-in"}, []string{"built-in"}
	c.FillInit(&ev)
	want := []string{"claude", "Explore", "general-purpose", "Plan"}
	if len(c.Commands()) != 0 || len(c.InitialPluginParts()) != 0 || !slices.Equal(ev.Agents, want) || len(ev.Plugins) != 1 || ev.Plugins[0].Name != "demo" {
		t.Errorf("disabled: commands %v, agents %v, plugins %v", commandNames(c), ev.Agents, ev.Plugins)
	}
}

func TestDefineAgents(t *testing.T) {
	c, _ := New(Options{})
	if err := c.DefineAgents([]byte(`{"greeter":{"description":"d","prompt":"p","maxTurns":2}}`), "sdk"); err != nil {
		t.Fatal(err)
	}
	if a, ok := c.Agent("greeter"); !ok || a.MaxTurns != 2 || a.Source != "sdk" || a.Tools != nil {
		t.Errorf("%+v", a)
	}
	if c.DefineAgents([]byte(`[]`), "sdk") == nil {
		t.Error("an array of agents is accepted")
	}
}

func TestParseDocument(t *testing.T) {
	tests := []struct{ name, text, key, value, body string }{
		{"none", "# Title\n\ntext", "description", "", "# Title\n\ntext"},
		{"simple", "---\nname: x\n---\n\n  body \n\n", "name", "x", "body \n\n"},
		{"spaced", "\n  body \n", "name", "", "\n  body \n"},
		{"windows", "\ufeff---\r\nname: x\r\n---\r\nbody", "name", "x", "body"},
		{"empty", "---\n---\nbody", "name", "", "body"},
		{"not closed", "---\nname: x\nbody", "name", "", "---\nname: x\nbody"},
		{"not YAML", "---\nname: x\ndescription: Use: when <a>: b\n---\nbody", "description", "Use: when <a>: b", "body"},
		{"number", "---\nmaxTurns: 7\n---\n", "maxTurns", "7", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := parseDocument([]byte(tt.text))
			if d.textOfKey(tt.key) != tt.value || d.body != tt.body {
				t.Errorf("%q = %q, body %q", tt.key, d.textOfKey(tt.key), d.body)
			}
		})
	}
	if got := parseDocument([]byte("# The title\n\ntext")).descriptionOrFirstLine(); got != "The title" {
		t.Errorf("description %q", got)
	}
}

// Arguments are read as in the real CLI: numbers, empty arguments and values that are not text are not names of
// arguments.
func TestArguments(t *testing.T) {
	tests := map[string][]string{
		"[first, second]": {"first", "second"},
		"first  second":   {"first", "second"},
		"first, second":   {"first,", "second"},
		`[5, true, null, y, 2.5, "", "10", z, [q], "x y", w]`: {"y", "z", "x y", "w"},
		`"  a\tb  1 c "`: {"a", "b", "c"},
		"{x: 1}":         nil,
		"":               nil,
	}
	for text, want := range tests {
		got := parseDocument([]byte("---\narguments: " + text + "\n---\n")).wordListOfKey("arguments")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func FuzzParseDocument(f *testing.F) {
	f.Add("---\nname: x\ntools: [a, b]\n---\nbody")
	f.Add("---\n: :\n\t- x\n---")
	f.Fuzz(func(_ *testing.T, text string) {
		d := parseDocument([]byte(text))
		_, _, _, _ = d.commaListOfKey("tools"), d.boolOfKey("background"), d.numberOfKey("maxTurns"), d.descriptionOrFirstLine()
	})
}

// Checklist row 44: the texts of a plugin can refer to its directory; hooks and servers come from its files or its
// manifest; initialize may add plugins, each once.
func TestPlugins(t *testing.T) {
	open := func(dir string) fs.FS {
		return map[string]fstest.MapFS{
			"/one": {
				".claude-plugin/plugin.json": file(`{"name":"one"}`),
				"commands/go.md":             file("---\nargument-hint: [where]\n---\nGo to ${CLAUDE_PLUGIN_ROOT}"),
				"skills/sk/SKILL.md":         file("---\nname: sk\ndescription: Does it\n---\nDo it."),
				"hooks/hooks.json":           file(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/x"}]}]}}`),
				"output-styles/s.md":         file("STYLE"),
				".mcp.json":                  file(`{"s":{"command":"${CLAUDE_PLUGIN_ROOT}/server"}}`),
			},
			"/two": {".claude-plugin/plugin.json": file(`{"name":"two","hooks":{"Stop":[]},"mcpServers":"./servers.json"}`), "servers.json": file(`{"mcpServers":{"t":{}}}`)},
		}[dir]
	}
	c, _ := New(Options{Plugins: []string{"/one", "/none"}, Open: func(dir string) fs.FS {
		if tree := open(dir); tree.(fstest.MapFS) != nil {
			return tree
		}
		return os.DirFS(filepath.Join(t.TempDir(), dir))
	}})
	want := []PluginHooksAndServers{{
		Name: "one", Dir: "/one", ID: "one@inline", Servers: json.RawMessage(`{"s":{"command":"/one/server"}}`),
		Hooks: json.RawMessage(`{"Stop":[{"hooks":[{"type":"command","command":"/one/x"}]}]}`),
	}}
	if diff := cmp.Diff(want, c.InitialPluginParts()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if k, ok := c.Command("one:go"); !ok || k.Body != "Go to /one" || k.ArgumentHint != "where" {
		t.Errorf("command %+v", k)
	}
	if k, ok := c.Command("sk"); !ok || k.Name != "one:sk" || k.DescriptionWithSource() != "(one) Does it" {
		t.Errorf("skill %+v", k)
	}
	if c.OutputStyleText("one:s") != "STYLE" {
		t.Errorf("styles %q", c.OutputStyleNames())
	}
	if c.HasPluginInEach("/one", "/two") || !c.HasPluginInEach() {
		t.Error("a plugin that was not loaded is there")
	}
	more := c.AddPlugins(open, "/one", "/two")
	want = []PluginHooksAndServers{{Name: "two", Dir: "/two", ID: "two@inline", Hooks: json.RawMessage(`{"Stop":[]}`), Servers: json.RawMessage(`{"t":{}}`)}}
	if diff := cmp.Diff(want, more); diff != "" {
		t.Errorf("parts added (-want +got):\n%s", diff)
	}
	ev := claudecode.ProfileForExactVersion(claudecode.DefaultVersion).InitEventTemplate()
	c.FillInit(&ev)
	if !c.HasPluginInEach("/one", "/two") || len(ev.Plugins) != 5 || len(c.Commands()) != 2 {
		t.Errorf("plugins %v, commands %v", ev.Plugins, commandNames(c))
	}
	none := []protocol.PluginError{{Plugin: "inline[1]", Type: "path-not-found", Message: "Path not found: /none", Path: "/none"}}
	if diff := cmp.Diff(none, ev.PluginErrors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// A skill for some files becomes available when one of them is used, and stays so when the files of skills are read again.
func TestSkillsForPaths(t *testing.T) {
	tree := fstest.MapFS{
		"skills/auto/SKILL.md":   {Data: []byte("---\ndescription: On Python files\npaths: '**/*.py'\n---\nA")},
		"skills/hidden/SKILL.md": {Data: []byte("---\ndescription: For the model\nuser-invocable: false\npaths: '*.py'\n---\nH")},
		"skills/other/SKILL.md":  {Data: []byte("---\ndescription: On web files\npaths: web/**\n---\nO")},
	}
	c, warnings := New(Options{ProjectDirs: []string{"/w/.claude"}, Open: func(string) fs.FS { return tree }})
	if len(warnings) > 0 || len(c.Commands()) > 0 {
		t.Fatal(warnings, c.Commands())
	}
	if c.ActivateSkillsForFile("/w", "/w/a.txt") || c.ActivateSkillsForFile("/w", "/elsewhere/a.py") {
		t.Error("a file that matches nothing makes a skill available")
	}
	if !c.ActivateSkillsForFile("/w", "/w/a.py") || c.ActivateSkillsForFile("/w", "/w/b.py") {
		t.Error("the first file that matches must make the skills available, and later ones change nothing")
	}
	if c.ReloadCommands() {
		t.Error("names changed although no file did")
	}
	ev := protocol.InitEvent{SlashCommands: []string{"workflow", "skill", "command"}, Skills: []string{"workflow", "skill"}}
	c.FillInit(&ev)
	if diff := cmp.Diff([]string{"workflow", "skill", "auto", "command"}, ev.SlashCommands); diff != "" {
		t.Errorf("slash commands (-want +got):\n%s", diff)
	}
	if _, ok := c.Command("hidden"); !ok {
		t.Error("the model cannot use a skill that is hidden from users")
	}
	if !c.ActivateSkillsForFile("/w", "/w/web/a.js") {
		t.Error("after a reload, the other skill no longer becomes available")
	}
}
