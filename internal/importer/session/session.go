// Package session reads recordings of real sessions: transcripts including those of sub-agents, stream-json logs, journals, SDK
// recordings and API traffic. All are converted to one form: prompts, replies, tool calls and results, with file and line.
//
// Values that a recording does not contain are left empty and never guessed.
package session

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// Place is a position in the input.
type Place struct {
	File string
	Line int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Error is an input that cannot be read. Line 0 means the whole file.
type Error struct {
	Place
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return e.String() + ": " + e.Text
}

// Session is one conversation. The zero value is an empty one.
type Session struct {
	ID, CWD      string
	Version      string // version of the CLI
	Mode         string // permission mode at the start
	Date         string // date of the first line, YYYY-MM-DD
	Files        []string
	Tools        []string // names of all tools, if the input lists them
	Prompts      []*Prompt
	Environ      []string             // variables of the recorded process ("K=V"), if recorded
	IDs          []string             // the ids of the session, its lines and its requests
	UnknownLines map[string]int       // counts lines of unknown types
	Compacted    []Place              // lists the places of compactions
	Damaged      []DamagedLineSummary // lists the files with unreadable lines
}

// DamagedLineSummary counts the unreadable lines of a file, which were skipped.
type DamagedLineSummary struct {
	Lines           int
	First           *Error
	LastLineDamaged bool // the last line of the file is unreadable
}

func (d *DamagedLineSummary) addError(e *Error) {
	if d.Lines++; d.Lines == 1 {
		d.First = e
	}
	d.LastLineDamaged = true
}

// String describes how many lines are skipped, and why.
func (d *DamagedLineSummary) String() string {
	switch {
	case d.Lines == 1 && d.LastLineDamaged:
		return d.First.String() + ": the last line was cut off and is ignored"
	case d.Lines == 1:
		return d.First.Error() + "; the line is ignored"
	default:
		return fmt.Sprintf("%s; this line and %d more of the file are ignored", d.First, d.Lines-1)
	}
}

// EscapeControls escapes characters that a terminal would interpret.
func EscapeControls(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// Prompt is a prompt and the messages that answer it.
type Prompt struct {
	At          Place
	Text        string
	TextMissing bool      // the input does not contain the text
	IsNotice    bool      // set for a message about finished background work, which no person wrote
	OtherParts  int       // number of parts other than text: images, documents
	Hooks       []HookRun // hooks that ran during the turn
	Messages    []*Message
}

// HookRun is a recorded run of a hook.
type HookRun struct {
	Name    string // event and matcher: "PreToolUse:Bash"
	Outcome string // outcome: "blocked", "failed"; empty means success
}

// Message is one message of the model, or a failure instead of it.
type Message struct {
	At         Place
	StopReason string
	Blocks     []Block
	Failure    *Failure
}

// Block is one part of a message: a tool call if Call is set, otherwise text.
type Block struct {
	Thinking bool
	Text     string
	Call     *Call
}

// Failure is an error of the API because of which a prompt got no complete answer.
type Failure struct {
	Status int    // 0 means no response came
	Text   string // the message of the CLI
}

// APIError extracts the status and message of the API from the CLI's message.
func (f *Failure) APIError() (status int, message string) {
	status = f.Status
	rest, ok := strings.CutPrefix(f.Text, "API Error: ")
	if !ok {
		return status, f.Text
	}
	if code, tail, found := strings.Cut(rest, " "); found {
		if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
			status, rest = n, tail
		}
	}
	var body struct{ Error struct{ Message string } }
	if json.Unmarshal([]byte(rest), &body) == nil && body.Error.Message != "" {
		return status, body.Error.Message
	}
	return status, rest
}

// Call is a recorded tool call, with its result if the recording has one.
type Call struct {
	At     Place
	Tool   string
	Input  json.RawMessage
	Result *Result // nil means none
	Agent  *Agent  // conversation of the sub-agent that the call started
}

// Agent is a conversation of a sub-agent.
type Agent struct {
	ID, Type, Prompt string
	Background       bool
	Messages         []*Message
}

// Result is the recorded result of a tool call.
type Result struct {
	At              Place
	Text            string
	IsError, Denied bool
	OtherParts      int              // number of parts other than text
	Raw             json.RawMessage  // MCP result as the server sent it; nil means not recorded
	File            *PrintedFilePart // content shown by a Read call
}

// PrintedFilePart contains lines of a file that a recorded call printed.
type PrintedFilePart struct {
	Path, Content string
	IsComplete    bool
}

// SplitMCPToolName splits an MCP tool's name into the server and its name for the tool; ok is false for built-in tools.
func SplitMCPToolName(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

// Calls lists the calls of all messages in order; calls of sub-agents follow the call that started them.
func (s *Session) Calls() []*Call {
	var all []*Call
	for _, p := range s.Prompts {
		all = appendCalls(all, p.Messages)
	}
	return all
}

func appendCalls(all []*Call, messages []*Message) []*Call {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Call == nil {
				continue
			}
			all = append(all, b.Call)
			if b.Call.Agent != nil {
				all = appendCalls(all, b.Call.Agent.Messages)
			}
		}
	}
	return all
}

// IsBuiltInCallWithoutChanges reports whether a call of a built-in tool made no changes.
func (c *Call) IsBuiltInCallWithoutChanges() bool {
	switch c.Tool {
	case "Bash":
		var in struct{ Command string }
		if json.Unmarshal(c.Input, &in) != nil {
			return false
		}
		script, err := shellcmd.Parse(in.Command)
		return err == nil && script.IsReadOnly()
	case "Read", "Grep", "Glob", "LS", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ToolSearch", "AskUserQuestion",
		"ExitPlanMode", "EnterPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool", "Skill", "TaskOutput":
		return true
	}
	return false
}

// IsBuiltInToolUnlistedByDefault reports whether this is the name of a built-in tool that a session does not list by default.
func IsBuiltInToolUnlistedByDefault(toolName string) bool {
	t := claudecode.ToolNamed(toolName)
	return t.Name != "" && t.Listing != claudecode.InitListsToolAlways
}
