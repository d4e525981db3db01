package bash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// TestBash checks the results of Bash for the model (spec: cli-observed 7).
func TestBash(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, command string
		isError       bool
		want          string
	}{
		{"merged", "echo out; echo err >&2", false, "out\nerr"},
		{"silent", "true", false, "(Bash completed with no output)"},
		{"failure", "echo out; exit 3", true, "Exit code 3\nout"},
		{"failure without output", "exit 1", true, "Exit code 1"},
		{"leading empty lines", `printf '\n  \n  a\n\nb \n\n'`, false, "  a\n\nb"},
		{"several lines", "cat <<X\nheredoc\nX\necho $((1+1))", false, "heredoc\n2"},
		{"signal to the shell", "kill -9 $$", true, "Exit code 1"},
		{"SIGTERM to the shell", "kill -15 $$", true, "Exit code 144"},
		{"signal to a program", "sh -c 'kill -9 $$' | cat; exit ${PIPESTATUS[0]}", true, "Exit code 137"},
		{"set -e has no effect", "set -e; false; echo on", false, "on"},
		{"not found", "nosuchcommand", true, "Exit code 127\n/bin/bash: line 1: nosuchcommand: command not found"},
		{"positional parameters are empty", `echo "$#"`, false, "0"},
		{"no input", "cat; echo end", false, "end"},
		{"own trap", "trap 'echo bye' EXIT; echo hi", false, "hi\nbye"},
		{"environment", `echo "$CLAUDECODE $MINE"`, false, "1 mine"},
		{"left behind", "cat <(sleep 60) & echo done", false, "done"},
		{"grep without a hit", "echo a | grep b", false, "(Bash completed with no output)"},
	}
	tools := newTools(t, testOptions{Environ: append(os.Environ(), "MINE=mine")})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := call(t, tools, "Bash", tooltest.Input{"command": tt.command})
			want := tooltest.WantText
			if tt.isError {
				want = tooltest.WantError
			}
			want(t, r.ToolResult, tt.want)
			if r.ShowsIsErrorFalse == tt.isError {
				t.Errorf("ExplicitOK = %v", r.ShowsIsErrorFalse)
			}
		})
	}
}

func TestBashOutput(t *testing.T) {
	tools := newTools(t, testOptions{})
	tooltest.WantOutput(t, call(t, tools, "Bash", tooltest.Input{"command": "mkdir x && touch x/y"}).ToolResult,
		`{"stdout":"","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":true}`)
	tooltest.WantOutput(t, call(t, tools, "Bash", tooltest.Input{"command": "diff a.txt b.txt; grep x <<< y"}).ToolResult,
		`{"stdout":"diff: a.txt: No such file or directory\ndiff: b.txt: No such file or directory","stderr":"","interrupted":false,"isImage":false,`+
			`"noOutputExpected":false,"returnCodeInterpretation":"No matches found"}`)
}

// A command that exceeds its time limit is stopped and has exit code 143 (spec: cli-observed 7).
func TestBashTimeout(t *testing.T) {
	t.Parallel()
	tools := newTools(t, testOptions{})
	start := time.Now()
	tooltest.WantError(t, call(t, tools, "Bash", tooltest.Input{"command": "echo begun; sleep 30", "timeout": 1000}).ToolResult,
		"Exit code 143\nCommand timed out after 1s\nbegun")
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestBashCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r := newTools(t, testOptions{}).Execute(ctx, protocol.ToolUse{Name: "Bash", Input: []byte(`{"command":"sleep 20"}`)})
	const output = `{"stdout":"","stderr":"","interrupted":true,"isImage":false,"noOutputExpected":false,"returnCodeInterpretation":"Command failed with exit code 145"}`
	if got, err := protocol.Marshal(r.Output); err != nil || string(got) != output {
		t.Errorf("output %s, want %s", got, output)
	}
	want := executor.InterruptedResult()
	want.Output = r.Output
	if diff := cmp.Diff(want, r.ToolResult); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// The directory that a command changes to is also that of later commands, and of the paths of other
// tools (spec: cli-observed 7).
func TestBashDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tooltest.WriteFile(t, dir, "sub/a.txt", "x")
	tools := newTools(t, testOptions{CWD: dir, AdditionalDirs: []string{other}})
	run := func(command, want string) {
		t.Helper()
		tooltest.WantText(t, call(t, tools, "Bash", tooltest.Input{"command": command}).ToolResult, want)
	}
	run("cd sub && pwd", dir+"/sub")
	run("pwd", dir+"/sub")
	tooltest.WantText(t, call(t, tools, "Read", tooltest.Input{"file_path": "a.txt"}).ToolResult, "1\tx")
	run("(cd ..)", "(Bash completed with no output)")
	run("pwd", dir+"/sub")
	call(t, tools, "Bash", tooltest.Input{"command": "cd ..; false"})
	run("pwd", dir+"/sub")
	run("cd "+other+" && pwd", other)
	run("pwd", other)
	r := call(t, tools, "Bash", tooltest.Input{"command": "cd / && pwd"})
	tooltest.WantText(t, r.ToolResult, "/\nShell cwd was reset to "+dir)
	if got := tooltest.Output[commandOutput](t, r.ToolResult).Stderr; got != "\nShell cwd was reset to "+dir {
		t.Errorf("stderr = %q", got)
	}
	run("pwd", dir)
	run("mkdir gone && cd gone", "(Bash completed with no output)")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	run("pwd", dir)
}

func TestBashSymlinkedDirectory(t *testing.T) {
	base := t.TempDir()
	tooltest.WriteFile(t, base, "real/sub/a.txt", "x")
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(base, "real"), link); err != nil {
		t.Fatal(err)
	}
	tools := newTools(t, testOptions{CWD: link})
	call(t, tools, "Bash", tooltest.Input{"command": "cd sub"})
	if got := tools.Dir(); got != filepath.Join(link, "sub") {
		t.Errorf("directory is %s, want the one below the link", got)
	}
}

// An output that is too large is saved in a file, and the model receives a preview in
// <persisted-output> (spec: cli-observed 7).
func TestBashLargeOutput(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "tool-results")
	tools := newTools(t, testOptions{OutputDir: kept})
	r := call(t, tools, "Bash", tooltest.Input{"command": "yes 0123456789abcde | head -n 12800"})
	path := filepath.Join(kept, task.NewTaskID(task.KindBash, "id")+".txt")
	if got := len(tooltest.FileText(t, path)); got != 12800*16 {
		t.Errorf("kept %d bytes", got)
	}
	want := "<persisted-output>\nOutput too large (200KB). Full output saved to: " + path + "\n\nPreview (first 2KB):\n" +
		strings.TrimSuffix(strings.Repeat("0123456789abcde\n", 125), "\n") + "\n...\n</persisted-output>"
	tooltest.WantText(t, r.ToolResult, want)
	out := tooltest.Output[commandOutput](t, r.ToolResult)
	if out.PersistedPath != path || out.PersistedSize != 12800*16 || len(out.Stdout) != 29_999 { // the preview has no newline at its end
		t.Errorf("output %s, %d bytes, stdout %d bytes", out.PersistedPath, out.PersistedSize, len(out.Stdout))
	}
}

// Observed with 2.1.330: the preview is cut from the shown text and ends without dots if nothing of that text is
// omitted.
func TestBashOutputLength(t *testing.T) {
	for _, tt := range []struct {
		value string
		whole bool
	}{{"10", false}, {"0", true}, {"many", true}, {"1000000", true}} {
		kept := t.TempDir()
		tools := newTools(t, testOptions{OutputDir: kept, Environ: append(os.Environ(), "BASH_MAX_OUTPUT_LENGTH="+tt.value)})
		r := call(t, tools, "Bash", tooltest.Input{"command": "yes abcd | head -n 20 | tr -d '\\n'; echo; echo abc"})
		if tt.whole {
			tooltest.WantText(t, r.ToolResult, strings.Repeat("abcd", 20)+"\nabc")
			continue
		}
		want := "<persisted-output>\nOutput too large (85 bytes). Full output saved to: " + filepath.Join(kept, task.NewTaskID(task.KindBash, "id")+".txt") +
			"\n\nPreview (first 2KB):\nabcdabcdab\n</persisted-output>"
		tooltest.WantText(t, r.ToolResult, want)
	}
}

// A command of a sub-agent, or any command with CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR, does not change the shell's
// directory.
func TestBashStays(t *testing.T) {
	dir := t.TempDir()
	tools := newTools(t, testOptions{CWD: dir})
	use := protocol.ToolUse{Name: "Bash", Input: []byte(`{"command":"mkdir -p d; cd d; pwd"}`), Agent: &protocol.AgentRef{ID: "a"}}
	if tools.Execute(t.Context(), use); tools.Dir() != dir {
		t.Errorf("an agent's command moved the shell to %s", tools.Dir())
	}
	use.Agent = nil
	if tools.Execute(t.Context(), use); tools.Dir() != filepath.Join(dir, "d") {
		t.Errorf("the shell is in %s", tools.Dir())
	}
	tools = newTools(t, testOptions{CWD: dir, Environ: append(os.Environ(), "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR=1")})
	if tools.Execute(t.Context(), use); tools.Dir() != dir {
		t.Errorf("with the variable the command moved the shell to %s", tools.Dir())
	}
}

// A command that stays where it started does not undo the change of directory of a command that runs at the same time.
func TestBashMovesBesideAnother(t *testing.T) {
	dir := t.TempDir()
	tools := newTools(t, testOptions{CWD: dir})
	done := make(chan tool.Result)
	go func() {
		done <- tools.Execute(t.Context(), protocol.ToolUse{Name: "Bash", Input: []byte(`{"command":"touch started; until [ -e d/here ]; do :; done"}`)})
	}()
	moves := protocol.ToolUse{Name: "Bash", Input: []byte(`{"command":"until [ -e started ]; do :; done; mkdir d; cd d"}`)}
	tools.Execute(t.Context(), moves)
	if err := os.WriteFile(filepath.Join(dir, "d", "here"), nil, 0o600); err != nil || (<-done).IsError || tools.Dir() != filepath.Join(dir, "d") {
		t.Errorf("the shell is in %s", tools.Dir())
	}
}

func TestBashLargeOutputWithoutStore(t *testing.T) {
	r := call(t, newTools(t, testOptions{}), "Bash", tooltest.Input{"command": "yes 0123456789abcde | head -n 12800"})
	if !strings.HasSuffix(r.Content.Text, "... [10925 lines truncated] ...") || r.IsError {
		t.Errorf("ends with %q", r.Content.Text[len(r.Content.Text)-60:])
	}
}

func TestBashSleepChains(t *testing.T) {
	tools := newTools(t, testOptions{})
	for command, blocked := range map[string]string{
		"sleep 25; echo hi":              "sleep 25 followed by: echo hi. To wait for a condition, use Monitor ",
		"sleep 40 && make | tail":        "sleep 40 followed by: make tail.",
		"sleep 24; true":                 "",
		"sleep 1; true":                  "",
		"sleep 30":                       "standalone sleep 30. To wait for a condition, use Monitor ",
		"sleep 30; # later":              "standalone sleep 30.",
		"sleep 25.5 & wait":              "sleep 25.5 followed by: wait.",
		"sleep 20 10; true":              "",
		`sleep "30"; true`:               "",
		"(sleep 30; true)":               "",
		"sleep 5; sleep 30":              "",
		"sleep 0.1 && true":              "",
		"true; sleep 0":                  "",
		"for i in; do sleep 9; ls; done": "",
	} {
		use := protocol.ToolUse{Name: "Bash", Input: fmt.Appendf(nil, `{"command":%q}`, command)}
		r := tools.Precheck(t.Context(), use)
		if (r != nil) != (blocked != "") {
			t.Errorf("%q: %+v", command, r)
		} else if r != nil && !strings.HasPrefix(r.Content.Text, "<tool_use_error>Blocked: "+blocked) {
			t.Errorf("%q: %s", command, r.Content.Text)
		}
	}
}

func TestClosedShellRunsNothing(t *testing.T) {
	tools := newTools(t, testOptions{})
	for range 2 {
		tools.Close()
	}
	if r := call(t, tools, "Bash", tooltest.Input{"command": "true"}); !r.IsError {
		t.Error("a command ran after Close")
	}
}

// A command may print a picture.
func TestBashImage(t *testing.T) {
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	r := call(t, newTools(t, testOptions{}), "Bash", tooltest.Input{"command": "echo 'data:image/png;base64," + pixel + "'"})
	want := protocol.Content{Blocks: []protocol.Block{protocol.Image("image/png", pixel)}}
	if diff := cmp.Diff(want, r.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	tooltest.WantOutput(t, r.ToolResult, `{"stdout":"data:image/png;base64,`+pixel+`","stderr":"","interrupted":false,"isImage":true,"noOutputExpected":false}`)
	r = call(t, newTools(t, testOptions{}), "Bash", tooltest.Input{"command": "echo 'data:image/svg+xml;base64,aGk='"})
	if !r.IsError || !strings.HasPrefix(r.Content.Text, "Unable to resize image") {
		t.Errorf("not a picture: %+v", r)
	}
}

// Without an output file, the result does not mention one.
func TestBashInBackgroundWithoutOutputFile(t *testing.T) {
	tasks := task.New(task.Options{NewID: func() string { return "00000001-0000-4000-8000-000000000001" }, Dir: func() string { return "" }})
	t.Cleanup(tasks.Close)
	r := call(t, newTools(t, testOptions{Tasks: tasks}), "Bash", tooltest.Input{"command": "tail -f /dev/null", "run_in_background": true})
	tooltest.WantText(t, r.ToolResult, "Command running in background with ID: "+tasks.RunningInBackground()[0].ID+". You will be notified when it completes.")
}

// In a terminal, the model is told not to wait for a command in the background, and no time limit is mentioned.
func TestBashInBackgroundOfTerminal(t *testing.T) {
	dir := t.TempDir()
	tasks := task.New(task.Options{NewID: func() string { return "00000001-0000-4000-8000-000000000001" }, Dir: func() string { return dir }, IsTerminal: true})
	t.Cleanup(tasks.Close)
	r := call(t, newTools(t, testOptions{Tasks: tasks}), "Bash", tooltest.Input{"command": "tail -f /dev/null", "run_in_background": true})
	started := tasks.RunningInBackground()[0]
	tooltest.WantText(t, r.ToolResult, "Command running in background with ID: "+started.ID+". Output is being written to: "+started.OutputFile+". You will be notified when it completes — do not poll that file or "+
		"sleep while waiting. Read the file only if the user asks for progress, or if you need a line it prints before you can go on, such as a server's ready line or port.")
	r = call(t, newTools(t, testOptions{Tasks: tasks}), "Bash", tooltest.Input{"command": "tail -f /dev/null", "timeout": 1})
	if text := r.Content.Text; strings.Contains(text, "10m") || !strings.Contains(text, "You will be notified when it completes. It is running now:") {
		t.Errorf("moved to the background: %q", text)
	}
}

// A command that exceeds its time limit continues in the background and still prints to the same file.
func TestBashMovesToBackground(t *testing.T) {
	t.Parallel()
	tasks := newTasks(t)
	tools := newTools(t, testOptions{Tasks: tasks})
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	r := call(t, tools, "Bash", tooltest.Input{
		"command": "cd /; echo begun; until test -e " + gate + "; do read -rt 0.01 <> <(:); done; echo done", "timeout": 2000,
	})
	running := tasks.RunningInBackground()
	if len(running) != 1 {
		t.Fatalf("%d tasks in the background: %+v", len(running), r)
	}
	id, output := running[0].ID, running[0].OutputFile
	tooltest.WantText(t, r.ToolResult, "begun\nCommand did not complete within its 2s timeout and was moved to the background (ID: "+id+
		"). Output is being written to: "+output+". You will be notified when it completes. "+
		"If it is still running after 10m in the background, it will be stopped and you will be notified. "+
		"It is running now: do not start a second copy while it runs. If it is no longer needed, stop it with TaskStop. "+
		"To check interim output, use Read on that file path.\nSession cwd remains "+tools.Dir()+
		"; directory changes made by the backgrounded command do not apply to subsequent commands.")
	tooltest.WantOutput(t, r.ToolResult, `{"stdout":"begun","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false,"backgroundTaskId":"`+id+
		`","timedOutAfterMs":2000,"backgroundCwdHint":"Session cwd remains `+tools.Dir()+
		`; directory changes made by the backgrounded command do not apply to subsequent commands."}`)
	tooltest.WriteFile(t, dir, "gate", "")
	for tasks.HasRunningBackgroundTask() {
		<-tasks.ChangeSignal()
	}
	if got, want := tooltest.FileText(t, output), "begun\ndone\n\n[exited with code 0]\n"; got != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
	if n, ok := tasks.TakeNextNotice(task.ConversationPhaseInTurn); !ok || !strings.Contains(n.Text, "<status>completed</status>") {
		t.Errorf("notice %+v", n)
	}
}

// A command that ends right after its time limit is reported as the result of its call.
func TestBashEndsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	tasks := newTasks(t)
	r := call(t, newTools(t, testOptions{Tasks: tasks}), "Bash", tooltest.Input{"command": "echo a; read -rt 0.3 <> <(:); echo b", "timeout": 100})
	if !strings.HasPrefix(r.Content.Text, "a\nb\nCommand running in background with ID: ") {
		t.Errorf("text %q", r.Content.Text)
	}
	if n, ok := tasks.TakeNextNotice(task.ConversationPhaseInTurn); ok || len(tasks.RunningInBackground()) > 0 {
		t.Errorf("notice %+v", n)
	}
}

// A stopped command is not run again in the background.
func TestBashIsStopped(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command string
		environ []string
	}{
		"begins with a pause": {"sleep 20; echo on", nil},
		"no background":       {"true; sleep 20", []string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tasks := newTasks(t)
			tools := newTools(t, testOptions{Tasks: tasks, Environ: append(os.Environ(), tt.environ...)})
			tooltest.WantError(t, call(t, tools, "Bash", tooltest.Input{"command": tt.command, "timeout": 1000}).ToolResult, "Exit code 143\nCommand timed out after 1s")
			if n := len(tasks.RunningInBackground()); n > 0 {
				t.Errorf("%d tasks run", n)
			}
		})
	}
}

// A command in the background reports its state in frames. Its call returns immediately, and its
// output goes to a file (golden tool-bash-bg, checklist row 62).
func TestBashInBackground(t *testing.T) {
	set := newTasks(t)
	tools := newTools(t, testOptions{Tasks: set})
	r := call(t, tools, "Bash", tooltest.Input{"command": "echo bgdone; exit 3", "run_in_background": true})
	id := tooltest.Output[commandOutput](t, r.ToolResult).TaskID
	if r.IsError || !r.ShowsIsErrorFalse || !strings.HasPrefix(r.Content.Text, "Command running in background with ID: "+id+". Output is being written to: ") {
		t.Errorf("result %+v", r)
	}
	want := []string{
		"background_tasks_changed", "task_started true local_bash", "task_updated",
		`task_notification failed Background command "echo bgdone; exit 3" failed with exit code 3`, "background_tasks_changed",
	}
	if diff := cmp.Diff(want, waitFrames(t, set, 5)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if out, err := set.Output(id); string(out) != "bgdone\n\n[exited with code 3]\n" || err != nil {
		t.Errorf("output %q, %v", out, err)
	}
	if _, ok := set.TakeNextNotice(task.ConversationPhaseInTurn); !ok {
		t.Error("the model is not told")
	}
}

func TestTaskStop(t *testing.T) {
	set := newTasks(t)
	tools := newTools(t, testOptions{Tasks: set})
	id := tooltest.Output[commandOutput](t, call(t, tools, "Bash", tooltest.Input{"command": "sleep 100", "run_in_background": true, "description": "wait"}).ToolResult).TaskID
	r := call(t, tools, "TaskStop", tooltest.Input{"task_id": id})
	if want := `{"message":"Successfully stopped task: ` + id + ` (sleep 100)","task_id":"` + id + `","task_type":"local_bash","command":"sleep 100"}`; r.IsError || r.Content.Text != want {
		t.Errorf("result %+v", r)
	}
	var got []string // everything is reported before the result
	for _, ev := range set.TakeEvents(task.ConversationPhaseBetweenTurns) {
		got = append(got, frame(ev))
	}
	want := []string{"background_tasks_changed", "task_started true local_bash", "task_updated", "task_notification stopped wait", "background_tasks_changed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if _, ok := set.TakeNextNotice(task.ConversationPhaseInTurn); ok {
		t.Error("the model gets a notice about a task that it stopped itself")
	}
	for _, input := range []tooltest.Input{{"task_id": "nosuch"}, {"shell_id": id}, {}} {
		if r := call(t, tools, "TaskStop", input); !r.IsError {
			t.Errorf("%v: %+v", input, r)
		}
	}
}
