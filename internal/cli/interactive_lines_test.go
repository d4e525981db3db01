package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
)

const linesScenario = `
[[responses]]
pattern = { type = "contains", text = "agent please" }
[[responses.response.steps]]
tool_calls = [ { tool = "Agent", input = { description = "Count", prompt = "count the files", run_in_background = false } } ]
[[responses.response.steps]]
text = "It runs."
[[responses]]
pattern = { type = "contains", text = "task-notification" }
response = "It has finished."
[[responses]]
pattern = { type = "contains", text = "slow" }
[[responses.response.steps]]
gate = "never"
text = "Slow."
[[responses]]
pattern = { type = "contains", text = "bash" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "mkdir -p seen", description = "Make the directory" } } ]
[[responses.response.steps]]
text = "Ran."
[[responses]]
pattern = { type = "contains", text = "pause" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "true", description = "Do nothing" } } ]
[[responses.response.steps]]
gate = "never"
text = "Never."
[[responses]]
pattern = { type = "contains", text = "wait" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "until [ -e go ]; do read -t 60 x; done", description = "Wait" } } ]
[[responses]]
pattern = { type = "contains", text = "overload" }
once = true
failure = { type = "server_error" }
[[responses]]
pattern = { type = "any" }
response = "Hello there."
`

// TestInteractiveLines: the lines about retries and agents, and the name of the shell, are those of a session in a terminal
// of 2.1.330, not those of print mode.
func TestInteractiveLines(t *testing.T) {
	type step struct{ wait, keys string }
	for name, tt := range map[string]struct {
		mode  string
		steps []step
		want  string // a line for each line of the transcript with one of the shown keys
	}{
		"agents": {"bypassPermissions", []step{{"bypass permissions on", "agent please\r"}, {"● It has finished.\n\n✻", "and you\r"}, {"● Hello there.\n\n✻", "/exit\r"}}, `
file-history-snapshot
user "agent please" typed 1
attachment auto_mode
user [tool_result]
queue-operation enqueue <task-notification>
queue-operation dequeue
user "<task-notification>" system 1
file-history-snapshot
user "and you" typed 2
file-history-snapshot
last-prompt and you`},
		"queue": {"default", []step{{"? for shortcuts", "slow\r"}, {"esc to interrupt", "one\r"}, {"Queued", "two\r"}, {"two", "\x1b"}, {"● Hello there.\n\n✻", "/exit\r"}}, `
file-history-snapshot
user "slow" typed 1
queue-operation enqueue one
queue-operation enqueue two
user [text]
queue-operation dequeue
queue-operation dequeue
file-history-snapshot
file-history-snapshot
user "one" queued 2
user "two" queued 2
file-history-snapshot
last-prompt one`},
		"renamed": {"default", []step{{"? for shortcuts", "/rename my name\r"}, {"Session renamed to: my name", "slow\r"}, {"esc to interrupt", "/exit\r"}}, `
system local_command
system local_command
user "<system-reminder>"
file-history-snapshot
user "slow" typed 1
last-prompt slow`},
		"refused with a text": {"default", []step{{"? for shortcuts", "bash\r"}, {"Do you want", keyUp}, {"❯ 4. No", "\t"}, {"differently", "use another name\r"}, {"● Ran.\n\n✻", "/exit\r"}}, `
file-history-snapshot
user "bash" typed 1
user [tool_result] said use another name
file-history-snapshot
last-prompt bash`},
		"permitted": {"default", []step{{"? for shortcuts", "bash\r"}, {"Do you want", "\r"}, {"● Ran.\n\n✻", "/exit\r"}}, `
file-history-snapshot
user "bash" typed 1
file-history-snapshot other changes
user [tool_result]
file-history-snapshot
last-prompt bash`},
		"a running call is interrupted": {"bypassPermissions", []step{{"bypass permissions on", "wait\r"}, {"until [", "\x1b"}, {"Interrupted", "/exit\r"}}, `
file-history-snapshot
user "wait" typed 1
attachment auto_mode
user [tool_result]
user [text] interrupted
file-history-snapshot
last-prompt wait`},
		"a running call is interrupted for a queued prompt": {"bypassPermissions", []step{{"bypass permissions on", "wait\r"}, {"until [", "and you\r"}, {"Queued", "\x1b"}, {"● Hello there.\n\n✻", "/exit\r"}}, `
file-history-snapshot
user "wait" typed 1
attachment auto_mode
queue-operation enqueue and you
queue-operation dequeue
user [tool_result]
user [text] interrupted
file-history-snapshot
user "and you" queued 2
file-history-snapshot
last-prompt and you`},
		"modes": {"plan", []step{{"plan mode on", "a\r"}, {"● Hello there.\n\n✻", shiftTab}, {"auto mode on", "b\r"}, {"❯ b\n\n● Hello there.\n\n✻", ""}, {"● Auto mode lets Claude", shiftTab}, {"manual mode on", "c\r"}, {"❯ c\n\n● Hello there.\n\n✻", "/exit\r"}}, `
file-history-snapshot
user "a" typed 1
attachment plan_mode
file-history-snapshot
user "b" typed 2
attachment plan_mode_exit
attachment auto_mode
system informational
file-history-snapshot
user "c" typed 3
attachment auto_mode_exit
file-history-snapshot
last-prompt c`},
		"exit during a turn": {"default", []step{{"? for shortcuts", "pause\r"}, {"Ran 1 shell command", "/exit\r"}}, `
file-history-snapshot
user "pause" typed 1
user [tool_result]
last-prompt pause`},
		"retry": {"default", []step{{"? for shortcuts", "overload\r"}, {"API Error", ""}, {"? for shortcuts", "/exit\r"}}, `
file-history-snapshot
user "overload" typed 1
file-history-snapshot
last-prompt overload`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startInteractive(t, linesScenario, func(_ *interactiveRun, s *process.System) {
				s.Environ = append(s.Environ, "IS_SANDBOX=1", "SHELL=/bin/sh", "CLAUDELESS_RETRY_SCALE=0")
			}, "--permission-mode", tt.mode)
			for _, s := range tt.steps {
				if r.wait(s.wait); strings.HasSuffix(s.wait, "✻") {
					r.waitGone("esc to interrupt") // otherwise the prompt would wait in the queue
				}
				if text, enter := strings.CutSuffix(s.keys, "\r"); enter && text != "" {
					r.press(text, "\r")
				} else if s.keys != "" {
					r.press(s.keys)
				}
			}
			r.waitExit(0)
			if diff := cmp.Diff(strings.Split(strings.TrimSpace(tt.want), "\n"), r.shownLines()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// shownLines returns the lines of the transcript about prompts, queues, files and failures.
func (r *interactiveRun) shownLines() (shown []string) {
	last := "" // only the last line of its type is compared
	files, _ := filepath.Glob(filepath.Join(r.config, "projects", "*", "*.jsonl"))
	text, _ := os.ReadFile(strings.Join(files, " "))
	for line := range strings.Lines(string(text)) {
		var l struct {
			Type, Subtype, Operation, Content, LastPrompt, PromptSource string
			IsMeta                                                      bool
			Message                                                     struct{ Content json.RawMessage }
			Attachment                                                  struct {
				Type     string
				Snapshot struct{ Shell string }
			}
			TurnPosition struct{ PromptIndex json.Number }
			Snapshot     struct{ HasUntrackedChanges bool }

			UserFeedback, InterruptedMessageID string
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			r.t.Fatal(err)
		}
		words := []string{l.Type}
		switch l.Type {
		case "user":
			words = append(words, contentKind(l.Message.Content))
			if n := string(l.TurnPosition.PromptIndex); n != "" {
				words = append(words[:2], l.PromptSource, n)
			}
			if l.UserFeedback != "" {
				words = append(words, "said", l.UserFeedback)
			}
			if l.InterruptedMessageID != "" {
				words = append(words, "interrupted")
			}
		case "file-history-snapshot":
			if l.Snapshot.HasUntrackedChanges {
				words = append(words, "other changes")
			}
		case "queue-operation":
			content, _, _ := strings.Cut(l.Content, "\n")
			words = append(words, l.Operation, content)
		case "last-prompt":
			words = append(words, l.LastPrompt)
		case "attachment":
			if l.Attachment.Type == "environment" && l.Attachment.Snapshot.Shell != "bash (login shell: sh)" {
				r.t.Errorf("the shell is %q", l.Attachment.Snapshot.Shell)
			}
			words = append(words, l.Attachment.Type)
		case "system":
			words = append(words, l.Subtype)
		}
		switch {
		case l.IsMeta && !strings.Contains(string(l.Message.Content), "named this session"):
		case l.Type == "last-prompt":
			last = strings.Join(words, " ")
		case l.Type == "user" || l.Type == "queue-operation" || l.Type == "file-history-snapshot" || l.Subtype == "api_error" || l.Subtype == "informational" || l.Subtype == "local_command" || strings.Contains(l.Attachment.Type, "_mode"):
			shown = append(shown, strings.TrimRight(strings.Join(words, " "), " "))
		}
	}
	return append(shown, last)
}

// contentKind returns a text up to the end of its first line, or the types of the blocks.
func contentKind(content json.RawMessage) string {
	var blocks []struct{ Type string }
	if json.Unmarshal(content, &blocks) != nil {
		first, _, more := strings.Cut(string(content), `\n`)
		return first + map[bool]string{true: `"`, false: ""}[more]
	}
	var types []string
	for _, b := range blocks {
		types = append(types, b.Type)
	}
	return "[" + strings.Join(types, " ") + "]"
}
