package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// fakeSession implements the interfaces that commands need.
type fakeSession struct {
	title   string
	granted []string
}

func (*fakeSession) ID() string                              { return "12345678-0000-4000-8000-000000000000" }
func (s *fakeSession) SetTitle(title string)                 { s.title = title }
func (s *fakeSession) SetGrantedRules(r []string)            { s.granted = r }
func (*fakeSession) ProjectDir() string                      { return "/project" }
func (*fakeSession) ModelNameAfterOverrides(n string) string { return "resolved-" + n }
func (*fakeSession) SystemPromptAndToolTokens() slash.LoadedContextTokens {
	return slash.LoadedContextTokens{SystemTools: 7}
}

func (*fakeSession) GrantRulesAndRunShellCommand(_ context.Context, rules []string, command, pattern string) (string, error) {
	if command == "refused" {
		return "", errors.New("Shell command permission check failed for pattern \"" + pattern + "\"")
	}
	if command == "broken" {
		return "", errors.New("broken")
	}
	return "output of " + command + " under " + strings.Join(rules, " "), nil
}

func (s *fakeSession) RunSkill(_ context.Context, k catalog.Command, text string, _ []string) (string, error) {
	return "agent of " + k.Name + " answers " + text, nil
}

// newServers returns the manager of servers with these names. They have a tool and prompts, but "two" cannot be reached.
func newServers(t *testing.T, names ...string) *mcp.Manager {
	t.Helper()
	m, err := mcp.New(mcp.Options{SDK: func(_ context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments map[string]string
			}
		}
		if err := json.Unmarshal(message, &request); err != nil || server == "two" {
			return nil, errors.New("cannot be reached")
		}
		result := map[string]string{
			"initialize":   `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"one","version":"1"},"instructions":"Use it."}`,
			"tools/list":   `{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}`,
			"prompts/list": `{"prompts":[{"name":"review","arguments":[{"name":"file","required":true},{"name":"style"}]},{"name":"fail"},{"name":"lost"}]}`,
			"prompts/get":  fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":"review of %s in %s style"}}]}`, request.Params.Arguments["file"], request.Params.Arguments["style"]),
		}[request.Method]
		switch {
		case request.Params.Name == "fail":
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no"}}`, request.ID), nil
		case request.Params.Name == "lost":
			return nil, errors.New("connection lost")
		case request.ID == nil: // a notification
			return json.RawMessage(`{}`), nil
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.StartAndWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.WithoutCancel(t.Context())) })
	var servers []mcp.ServerConfig
	for _, name := range names {
		servers = append(servers, mcp.ServerConfig{Name: name, Type: "sdk"})
	}
	if _, err := m.ReplaceServersOfSource(t.Context(), "sdk", servers); err != nil {
		t.Fatal(err)
	}
	return m
}

func newSet(t *testing.T, change func(*Options)) (*Set, *fakeSession) {
	t.Helper()
	files := fstest.MapFS{
		"commands/greet.md":      {Data: []byte("---\ndescription: greets\nmodel: opus\nallowed-tools: Read, Bash(ls:*)\n---\nHello $ARGUMENTS in ${CLAUDE_PROJECT_DIR} with ${CLAUDE_EFFORT} of ${CLAUDE_SESSION_ID}\n")},
		"commands/shell.md":      {Data: []byte("---\ndescription: runs\nallowed-tools: Bash(ls:*)\n---\nFiles: !`ls $1`\n")},
		"commands/refused.md":    {Data: []byte("---\ndescription: is refused\n---\n!`refused`\n")},
		"commands/broken.md":     {Data: []byte("---\ndescription: fails\n---\n!`broken`\n")},
		"skills/shout/SKILL.md":  {Data: []byte("---\nname: shout\ndescription: shouts\n---\nSHOUT $ARGUMENTS from ${CLAUDE_SKILL_DIR}\n")},
		"skills/hidden/SKILL.md": {Data: []byte("---\nname: hidden\ndescription: is for the model\nuser-invocable: false\n---\nHIDDEN\n")},
		"skills/forked/SKILL.md": {Data: []byte("---\nname: forked\ndescription: runs in an agent\ncontext: fork\n---\nFORK $ARGUMENTS\n")},
		"agents/helper.md":       {Data: []byte("---\nname: helper\ndescription: helps\n---\nHelp.\n")},
		"output-styles/terse.md": {Data: []byte("---\nname: terse\ndescription: few words\n---\nBe terse.\n")},
	}
	c, warnings := catalog.New(catalog.Options{ProjectDirs: []string{"/project/.claude"}, Open: func(dir string) fs.FS {
		if dir != "/project/.claude" {
			return fstest.MapFS{}
		}
		return files
	}})
	if warnings != nil {
		t.Fatal(warnings)
	}
	session := &fakeSession{}
	state := &simulator.SessionState{}
	state.BeginConversation(session.ID(), "")
	state.SetModelAndClearTurnModel("claude-sonnet-5")
	state.SetReportedEffort("high")
	state.SetOutputStyle("default")
	o := Options{
		State: state, Catalog: c, Servers: newServers(t, "one", "two"), Rules: session, Session: session, Models: session, Shell: session, Agents: session, Context: session,
		InstructionFiles: []catalog.InstructionFile{{Path: "/project/CLAUDE.md", Type: "Project", Text: "Rules"}, {Path: "/x", Type: "User", Text: "short", Raw: "a longer text, as it is in the file"}},
	}
	if change != nil {
		change(&o)
	}
	return New(o), session
}

// answer runs a command line and returns what it does as JSON.
func answer(t *testing.T, set *Set, line string) string {
	t.Helper()
	name, args, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	if strings.HasSuffix(line, slash.MCPPromptSuffix) {
		name, args = strings.TrimPrefix(line, "/"), ""
	}
	c, ok := set.Find(name)
	if !ok || c == nil {
		return map[bool]string{false: "no command", true: "run by the conversation"}[ok]
	}
	out, text := c.Run(t.Context(), slash.Call{Name: name, Args: args})
	var shown []any
	if out != nil {
		if work := out.Work; work != nil {
			done, err := work.Run(t.Context(), nil)
			shown = append(shown, []any{done, err})
			out.Work = nil
		}
		shown = append(shown, struct {
			slash.Outcome
			Work int `json:"Work,omitempty"`
		}{Outcome: *out})
	}
	if text != nil {
		shown = append(shown, *text)
	}
	raw, err := protocol.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	return withoutZeroValues(t, raw)
}

// withoutZeroValues removes keys without a value from the objects of a list.
func withoutZeroValues(t *testing.T, raw []byte) string {
	t.Helper()
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			for key, value := range object {
				if value == nil || value == "" && key != "Model" || value == false {
					delete(object, key)
				}
			}
		}
	}
	out, err := protocol.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestCommands plays testdata/*.txt. A line that begins with "/" is a command, and the line after it, which begins with ">", the
// outcome or the text for the model. The commands of a file share a session. With -update, the answers are rewritten.
func TestCommands(t *testing.T) {
	for file, change := range map[string]func(*Options){
		"commands":        nil,
		"disabled":        func(o *Options) { o.Disabled = true },
		"without-servers": func(o *Options) { o.Servers = newServers(t) },
	} {
		t.Run(file, func(t *testing.T) {
			name := filepath.Join("testdata", file+".txt")
			script, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set, session := newSet(t, change)
			var got strings.Builder
			for line := range strings.Lines(string(script)) {
				if strings.HasPrefix(line, ">") {
					continue
				}
				got.WriteString(line)
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
					got.WriteString("> " + answer(t, set, line) + "\n")
				}
			}
			state := set.options.State.SessionStateSnapshot()
			if diff := cmp.Diff([]string{session.title, state.Title}, []string{state.Title, session.title}); diff != "" {
				t.Errorf("title of the session and of its state:\n%s", diff)
			}
			if *update {
				if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(script), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The parts of the context other than the conversation.
func TestLoaded(t *testing.T) {
	set, _ := newSet(t, nil)
	got := set.LoadedContext()
	if diff := cmp.Diff([]slash.UsageItem{{Name: "mcp__one__read", Server: "one"}}, got.MCPTools); diff != "" {
		t.Errorf("tools of servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]slash.UsageItem{{Name: "one", Tokens: slash.EstimateTokensOfPart("## one\nUse it.")}}, got.MCPInstructions); diff != "" {
		t.Errorf("instructions of servers (-want +got):\n%s", diff)
	}
	if len(got.Agents) != 1 || got.Agents[0].Type != "helper" || got.Agents[0].Tokens == 0 {
		t.Errorf("agents %+v", got.Agents)
	}
	want := []slash.MemoryFile{
		{Path: "/project/CLAUDE.md", Type: "Project", Tokens: slash.EstimateTokensOfPart("Rules")},
		{Path: "/x", Type: "User", Tokens: slash.EstimateTokensOfPart("a longer text, as it is in the file")},
	}
	if diff := cmp.Diff(want, got.MemoryFiles); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	names := map[string]int{}
	for _, k := range got.Skills {
		names[k.Source]++
		if k.Tokens == 0 {
			t.Errorf("skill %+v", k)
		}
	}
	if names["projectSettings"] == 0 || names["built-in"] == 0 {
		t.Errorf("skills by source: %v", names)
	}
	set, _ = newSet(t, func(o *Options) { o.Servers, o.Context = newServers(t), noTools{} })
	if got := set.LoadedContext(); got.MCPTools != nil || got.MCPInstructions != nil || got.Skills != nil {
		t.Errorf("without servers and tools: %+v", got)
	}
}

type noTools struct{}

func (noTools) SystemPromptAndToolTokens() slash.LoadedContextTokens {
	return slash.LoadedContextTokens{}
}

func TestIsPath(t *testing.T) {
	set, session := newSet(t, nil)
	for text, want := range map[string]bool{"/": true, "/nosuch": false, "/nosuch.txt": true, t.TempDir(): true} {
		if got := set.LooksLikePath(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if set.SetGrantedRules([]string{"Read"}); len(session.granted) != 1 {
		t.Errorf("granted %v", session.granted)
	}
}

func TestSessionName(t *testing.T) {
	for title, want := range map[string]string{"": "session [123456]", "mine": "mine [123456]"} {
		if got := SessionName(title, "1234-5678"); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

// Only built-in commands are known, with those of a terminal.
func TestIsKnown(t *testing.T) {
	for name, want := range map[string]bool{"model": true, "vim": true, "nosuch": false, "dataviz": false} {
		if got := IsKnownBuiltin(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
