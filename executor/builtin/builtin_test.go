package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTools(t *testing.T, o Options) *Tools {
	t.Helper()
	if o.CWD == "" {
		o.CWD = t.TempDir()
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Paths == nil {
		o.Paths = fakePaths{tasks: filepath.Join(t.TempDir(), "tasks")}
	}
	tools, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tools.Close)
	return tools
}

type fakePaths struct{ plan, tasks string }

func (p fakePaths) PlanFileCreatingName() string { return p.plan }
func (p fakePaths) TaskListDir() string          { return p.tasks }

// fakeModes holds a permission mode. If err is set, the mode cannot be changed.
type fakeModes struct {
	mode protocol.PermissionMode
	err  error
}

func (m *fakeModes) Mode() protocol.PermissionMode { return m.mode }

func (m *fakeModes) ModeAfterPlan() protocol.PermissionMode { return protocol.ModeDefault }

func (m *fakeModes) SetMode(mode protocol.PermissionMode) error {
	if m.err == nil {
		m.mode = mode
	}
	return m.err
}

// call runs a tool; input is JSON or a value to marshal.
func call(t *testing.T, tools *Tools, name string, input any) executor.Result {
	t.Helper()
	r, err := tools.Execute(t.Context(), tooltest.Use(t, name, input))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

func TestNewNeedsAbsoluteDirectory(t *testing.T) {
	for _, dir := range []string{"", ".", "a/b"} {
		if _, err := New(Options{CWD: dir}); err == nil {
			t.Errorf("New with directory %q gave no error", dir)
		}
	}
}

// The rules of a session hold for the tools that change files and for those that search.
func TestAccess(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	path := tooltest.WriteFile(t, outside, "a.txt", "one\n")
	tooltest.WriteFile(t, dir, "open.txt", "")
	tooltest.WriteFile(t, dir, "secret.txt", "")
	tools := newTools(t, Options{CWD: dir, Access: tooltest.Access{Readable: dir, Hidden: func(path string) bool { return filepath.Base(path) == "secret.txt" }}})
	use := protocol.ToolUse{Name: "Write", Input: []byte(`{"file_path":"` + path + `","content":"two\n"}`)}
	if r := tools.Precheck(t.Context(), use); r == nil || !strings.Contains(r.Content.Plain(), "File has not been read yet.") {
		t.Errorf("a file that was not read: %+v", r)
	}
	tooltest.WantText(t, call(t, tools, "Glob", tooltest.Input{"pattern": "*.txt"}).ToolResult, "open.txt")
}

func TestUnknownTool(t *testing.T) {
	tools := newTools(t, Options{})
	for _, name := range []string{"Frobnicate", "mcp__s__t", "StructuredOutput", ""} {
		use := protocol.ToolUse{Name: name}
		if _, err := tools.Execute(t.Context(), use); !errors.Is(err, executor.ErrUnknownTool) {
			t.Errorf("%q: err = %v, want ErrUnknownTool", name, err)
		}
		if r := tools.Precheck(t.Context(), use); r != nil {
			t.Errorf("%q: Check refuses a tool that is none of ours: %+v", name, r)
		}
	}
}

// A call of a tool that --disallowedTools or --tools has removed is refused (spec: cli-contract
// 6.1).
func TestDisabledTool(t *testing.T) {
	tools := newTools(t, Options{Allowed: func(name string) bool { return name != "Bash" }})
	want := protocol.UsageErrorResult("Error: No such tool available: Bash. Bash is disabled for this session, in subagents as well as here.")
	if diff := cmp.Diff(want, call(t, tools, "Bash", tooltest.Input{"command": "true"}).ToolResult); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if r := tools.Precheck(t.Context(), protocol.ToolUse{Name: "Bash"}); r == nil {
		t.Error("Check lets a disabled tool pass")
	}
	list, err := tools.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(list, func(x protocol.Tool) bool { return x.Name == "Bash" }) {
		t.Error("Bash is listed")
	}
	if _, ok := tools.Tool("Bash"); ok {
		t.Error("Tool finds Bash")
	}
	if x, ok := tools.Tool("Read"); !ok || x.Name != "Read" {
		t.Errorf("Tool(Read) = %+v, %v", x, ok)
	}
}

// A session with few tools finds them also after it has listed them.
func TestToolAfterList(t *testing.T) {
	tools := newTools(t, Options{Allowed: func(name string) bool { return name == "Write" }})
	for range 2 {
		if list, err := tools.Tools(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("Tools = %d tools, %v", len(list), err)
		}
		if x, ok := tools.Tool("Write"); !ok || x.Name != "Write" {
			t.Errorf("Tool(Write) = %+v, %v", x, ok)
		}
	}
}

// Every tool that a session can list can be called.
func TestListedTools(t *testing.T) {
	var have []string
	for _, d := range Definitions() {
		have = append(have, d.Name)
	}
	for _, tool := range claudecode.Tools() {
		fromServers := tool.Listing == claudecode.InitListsToolIfMCPServerHasResources
		if tool.Listing != claudecode.InitListsToolNever && !fromServers && !slices.Contains(have, tool.Name) {
			t.Errorf("%s is listed and does not exist", tool.Name)
		}
	}
}

// Every default tool, and every tool that appears on request, exists and has a valid schema (spec:
// cli-observed 2).
func TestToolList(t *testing.T) {
	const wanted = "Task Bash CronCreate CronDelete CronList DesignSync Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read " +
		"RemoteTrigger ReportFindings ScheduleWakeup SendMessage Skill TaskStop ToolSearch WebFetch WebSearch Workflow Write " +
		"Agent Glob Grep TaskCreate TaskGet TaskList TaskUpdate TodoWrite AskUserQuestion ExitPlanMode EnterPlanMode"
	list, err := newTools(t, Options{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, x.Name)
		var s struct{ Type string }
		if err := json.Unmarshal(x.InputSchema, &s); err != nil || s.Type != "object" {
			t.Errorf("%s: schema %s: %v", x.Name, x.InputSchema, err)
		}
		if x.Description == "" {
			t.Errorf("%s has no description", x.Name)
		}
	}
	if !slices.IsSorted(got) {
		t.Errorf("not sorted: %v", got)
	}
	want := strings.Fields(wanted)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// An invalid call does not run; its refusal needs no run either.
func TestInvalidCall(t *testing.T) {
	tools := newTools(t, Options{})
	const want = "<tool_use_error>InputValidationError: Read failed due to the following issue:\nThe required parameter `file_path` is missing</tool_use_error>"
	tooltest.WantError(t, call(t, tools, "Read", `{}`).ToolResult, want)
	if r := tools.Precheck(t.Context(), protocol.ToolUse{Name: "Read", Input: json.RawMessage(`{}`)}); r == nil || r.Content.Plain() != want {
		t.Errorf("Precheck: %+v", r)
	}
}

func TestCheckLetsGoodCallsPass(t *testing.T) {
	tools := newTools(t, Options{})
	for name, input := range map[string]string{
		"Read": `{"file_path":"nosuch"}`, "Bash": `{"command":"exit 1"}`, "Skill": `{"skill":"x"}`, "TaskList": `{}`, "Grep": `{"pattern":"x"}`,
	} {
		if r := tools.Precheck(t.Context(), protocol.ToolUse{Name: name, Input: json.RawMessage(input)}); r != nil {
			t.Errorf("%s: refused: %+v", name, r)
		}
	}
}

func TestNotSimulated(t *testing.T) {
	tools := newTools(t, Options{})
	for _, name := range []string{"Agent", "Task", "Workflow", "WebSearch"} {
		input := tooltest.Input{"anything": 1}
		switch name {
		case "Agent", "Task":
			input = tooltest.Input{"description": "d", "prompt": "p"}
		case "WebSearch":
			input = tooltest.Input{"query": "qq"}
		}
		r := call(t, tools, name, input)
		if !r.IsError || !strings.HasPrefix(r.Content.Text, name+" ") || !strings.Contains(r.Content.Text, "tool_execution.tools."+name) {
			t.Errorf("%s: %q does not say how to can its result", name, r.Content.Text)
		}
	}
}

// WebFetch answers as the real CLI does without a network.
func TestWebFetchWithoutNetwork(t *testing.T) {
	r := call(t, newTools(t, Options{}), "WebFetch", tooltest.Input{"url": "http://x.y/z", "prompt": "p"})
	if want := "Unable to verify if domain x.y is safe to fetch. "; !r.IsError || !strings.HasPrefix(r.Content.Text, want) {
		t.Errorf("%q, want %q", r.Content.Text, want)
	}
}

func TestReadOnlyCall(t *testing.T) {
	tests := []struct {
		name, input string
		want        bool
	}{
		{"Read", `{"file_path":"a"}`, true},
		{"Glob", `{}`, true},
		{"Grep", `{}`, true},
		{"Bash", `{"command":"echo hi"}`, true},
		{"Bash", `{"command":"ls -la && cat x"}`, true},
		{"Bash", `{"command":"touch x"}`, false},
		{"Bash", `{"command":"false"}`, true},
		{"Bash", `{"command":"echo 'x"}`, true}, // the real CLI reads the rest as one string, and bash refuses it
		{"Bash", `{"command":"touch 'x"}`, false},
		{"Bash", `{"command":"ls","run_in_background":true}`, false},
		{"Bash", `{"command":1}`, false},
		{"Write", `{}`, false},
		{"mcp__s__t", `{}`, false},
	}
	for _, tt := range tests {
		if got := ReadOnlyCall(protocol.ToolUse{Name: tt.name, Input: json.RawMessage(tt.input)}); got != tt.want {
			t.Errorf("ReadOnlyCall(%s %s) = %v, want %v", tt.name, tt.input, got, tt.want)
		}
	}
}

// ReadOnlyCall agrees with the list of read-only tools.
func TestReadOnlyList(t *testing.T) {
	list, err := newTools(t, Options{}).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if got := ReadOnlyCall(protocol.ToolUse{Name: x.Name}); got != x.ReadOnly {
			t.Errorf("ReadOnlyCall(%s) = %v, the list says %v", x.Name, got, x.ReadOnly)
		}
	}
}

func TestShape(t *testing.T) {
	r := ShapeResult(protocol.ToolUse{Name: "Bash"}, "out")
	tooltest.WantOutput(t, executor.ResultOf(r).ToolResult, `{"stdout":"out","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}`)
	if !r.ShowsIsErrorFalse {
		t.Error("a canned Bash success lacks is_error:false")
	}
	r = ShapeResult(protocol.ToolUse{Name: "WebFetch", Input: json.RawMessage(`{"url":"http://x","prompt":"p"}`)}, "page")
	tooltest.WantOutput(t, executor.ResultOf(r).ToolResult, `{"bytes":4,"code":200,"codeText":"OK","result":"page","durationMs":0,"url":"http://x"}`)
	r = ShapeResult(protocol.ToolUse{Name: "WebSearch", Input: json.RawMessage(`{"query":"q"}`)}, "hit")
	tooltest.WantOutput(t, executor.ResultOf(r).ToolResult, `{"query":"q","results":["hit"],"durationSeconds":0}`)
	if r := ShapeResult(protocol.ToolUse{Name: "Read"}, "x"); r.Output != nil || r.ShowsIsErrorFalse {
		t.Errorf("Read: %+v, want the text alone", r)
	}
}

func TestCancelledCall(t *testing.T) {
	tools := newTools(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, input := range map[string]string{"Read": `{"file_path":"a"}`, "Bash": `{"command":"true"}`, "Grep": `{"pattern":"a"}`} {
		r, err := tools.Execute(ctx, protocol.ToolUse{Name: name, Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(executor.InterruptedResult(), r.ToolResult); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Calls can run concurrently; run with -race.
func TestParallelCalls(t *testing.T) {
	dir := t.TempDir()
	tooltest.WriteFile(t, dir, "a.txt", "x\n")
	tools := newTools(t, Options{CWD: dir})
	calls := map[string]string{
		"Read": `{"file_path":"a.txt"}`, "Bash": `{"command":"cd . && cat a.txt"}`, "Grep": `{"pattern":"x"}`, "Glob": `{"pattern":"*"}`,
		"TaskCreate": `{"subject":"s","description":"d"}`, "TaskList": `{}`, "TodoWrite": `{"todos":[]}`,
	}
	var wg sync.WaitGroup
	for name, input := range calls {
		for range 3 {
			wg.Go(func() {
				r, err := tools.Execute(t.Context(), protocol.ToolUse{Name: name, Input: json.RawMessage(input)})
				if err != nil || r.IsError {
					t.Errorf("%s: %v %+v", name, err, r.Content)
				}
			})
		}
	}
	wg.Wait()
}

func FuzzExecute(f *testing.F) {
	for _, seed := range []struct{ name, input string }{
		{"Read", `{"file_path":"a.txt","offset":-1,"limit":1e300}`},
		{"Read", `{"file_path":"n.ipynb"}`},
		{"Edit", `{"file_path":"a.txt","old_string":"x","new_string":"y","replace_all":true}`},
		{"NotebookEdit", `{"notebook_path":"n.ipynb","new_source":"s","cell_id":"cell-0","edit_mode":"insert","cell_type":"code"}`},
		{"Glob", `{"pattern":"**/{a,b}*"}`},
		{"Grep", `{"pattern":"(x|)+","output_mode":"content","multiline":true,"-o":true,"-C":3,"offset":1}`},
		{"TaskUpdate", `{"taskId":"1","addBlocks":["1","2"],"metadata":{"a":null}}`},
		{"AskUserQuestion", `{"questions":[{"question":"q","options":[]}],"answers":{"q":["a",1]}}`},
		{"TodoWrite", `{"todos":[null]}`},
		{"ExitPlanMode", `{"plan":null}`},
	} {
		f.Add(seed.name, seed.input)
	}
	f.Fuzz(func(t *testing.T, name, input string) {
		// Fuzzed commands and paths must not reach the machine.
		if name == "Bash" || name == "Monitor" || name == "Write" || strings.ContainsAny(input, "/\\~") {
			return
		}
		dir := t.TempDir()
		tooltest.WriteFile(t, dir, "a.txt", "x\ny\nx\n")
		tooltest.WriteFile(t, dir, "n.ipynb", `{"cells":[{"cell_type":"code","source":["a"],"outputs":[{}]}],"nbformat":4,"nbformat_minor":5}`)
		tools := newTools(t, Options{CWD: dir})
		use := protocol.ToolUse{Name: name, Input: json.RawMessage(input)}
		r, err := tools.Execute(t.Context(), use)
		if err != nil && !errors.Is(err, executor.ErrUnknownTool) {
			t.Fatalf("%s %s: %v", name, input, err)
		}
		tools.Precheck(t.Context(), use)
		if _, err := protocol.Marshal(r.Output); err != nil {
			t.Fatalf("%s %s: output: %v", name, input, err)
		}
	})
}

// Hooks and hosts receive what CLI 2.1.329 was observed to send about calls.
func TestObserved(t *testing.T) {
	tools := newTools(t, Options{CWD: "/w", Environ: []string{"HOME=/home/u"}})
	tests := []struct{ tool, input, want string }{
		{"Write", `{"file_path":"a","content":"x"}`, `{"file_path":"/w/a","content":"x"}`},
		{"Write", `{"file_path":"~/a","content":"x"}`, `{"file_path":"/home/u/a","content":"x"}`},
		{"Edit", `{"file_path":"/w/b/../a"}`, `{"file_path":"/w/a"}`},
		{"Read", `{"file_path":"../a"}`, `{"file_path":"/a"}`},
		{"Read", `{"file_path":"/a"}`, ""},
		{"Read", `{"file_path":5}`, ""},
		{"NotebookEdit", `{"notebook_path":"a.ipynb"}`, `{"notebook_path":"/w/a.ipynb"}`},
		{"Glob", `{"path":"a"}`, ""},
		{"ToolSearch", `{"query":"a"}`, `{"query":"a","max_results":5}`},
		{"ToolSearch", `{"query":"a","max_results":5}`, ""},
	}
	for _, tt := range tests {
		if got := string(tools.ObservedInput(protocol.ToolUse{Name: tt.tool, Input: json.RawMessage(tt.input)})); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.input, got, tt.want)
		}
	}
}

// CLI 2.1.329 was observed to show these descriptions of calls before it runs them.
func TestPrepare(t *testing.T) {
	tests := []struct{ name, tool, input, want string }{
		{"default", "Edit", `{"file_path":"a","old_string":"b","new_string":"c"}`, `{"replace_all":false,"file_path":"a","old_string":"b","new_string":"c"}`},
		{"no default for half a call", "Edit", `{"file_path":"a"}`, ``},
		{"given", "Edit", `{"file_path":"a","new_string":"c","old_string":"b","replace_all":true}`, `{"replace_all":true,"file_path":"a","old_string":"b","new_string":"c"}`},
		{"keys of a new file", "Write", `{"content":"c","file_path":"a"}`, `{"file_path":"a","content":"c"}`},
		{"blanks", "Write", `{"file_path":"a.txt","content":"c  \nd\t\n  \ne \r\n  "}`, `{"file_path":"a.txt","content":"c\nd\n\ne\r\n"}`},
		{"blanks of an edit", "Edit", `{"replace_all":true,"file_path":"a","old_string":"b ","new_string":"c "}`, `{"replace_all":true,"file_path":"a","old_string":"b ","new_string":"c"}`},
		{"markdown", "Write", `{"file_path":"a.MD","content":"c  \n"}`, ``},
		{"command", "Bash", `{"command":"x "}`, ``},
		{"keys of a command", "Bash", `{"run_in_background":true,"timeout":5,"description":"d","command":"x"}`, `{"command":"x","description":"d","timeout":5,"run_in_background":true}`},
		{"cd into the directory", "Bash", `{"command":"cd /work && cd /work && find . -exec ls {} \\\\;"}`, `{"command":"cd /work && find . -exec ls {} \\;"}`},
		{"other forms of cd", "Bash", `{"command":" cd /work && x"}`, ``},
		{"invalid command", "Bash", `{"count":1,"command":"cd /work && x \\\\;"}`, ``},
		{"unknown tool", "mcp__a__b", `{"content":"x "}`, ``},
		{"no object", "Write", `"x"`, ``},
	}
	dir := t.TempDir()
	tools := newTools(t, Options{CWD: dir})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.input, tt.want = strings.ReplaceAll(tt.input, "/work", dir), strings.ReplaceAll(tt.want, "/work", dir)
			if tt.want == "" {
				tt.want = tt.input
			}
			if diff := cmp.Diff(tt.want, string(tools.PrepareInput(protocol.ToolUse{Name: tt.tool, Input: json.RawMessage(tt.input)}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
