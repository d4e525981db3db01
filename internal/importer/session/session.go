// Package session reads recordings of real sessions: transcripts including
// those of sub-agents, stream-json logs, journals, SDK recordings and API
// traffic. All of them are converted to one form: prompts, replies, tool calls
// and results, each with its file and line.
//
// What a recording does not contain is left empty and never guessed.
package session

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// Place is where something was read.
type Place struct {
	File string
	Line int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Error is an input that cannot be read. Line 0 is the whole file.
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
	ID      string
	CWD     string
	Version string // of the CLI
	Mode    string // permission mode at the start
	Date    string // of the first line, YYYY-MM-DD
	Files   []string
	Servers []string // names of MCP servers that connected
	Tools   []string // names of all tools, where the input lists them
	Prompts []*Prompt
	// Environ are variables of the recorded process ("K=V"), where it says.
	Environ []string
	// IDs are ids of the session's own: session, lines, requests.
	IDs []string
	// Unknown counts lines of types that are not known here.
	Unknown map[string]int
	// Compacted are the places where older messages were summed up.
	Compacted []Place
	// Damaged are the files with lines that could not be read.
	Damaged []Damage
}

// Damage are the lines of a file that could not be read and were left out.
type Damage struct {
	Lines int
	First *Error
	Last  bool // one of them is the last line of the file
}

func (d *Damage) add(e *Error) {
	if d.Lines++; d.Lines == 1 {
		d.First = e
	}
	d.Last = true
}

// String tells how many lines are left out, and why.
func (d *Damage) String() string {
	switch {
	case d.Lines == 1 && d.Last:
		return d.First.String() + ": the last line was cut off and is left out"
	case d.Lines == 1:
		return d.First.Error() + "; the line is left out"
	default:
		return fmt.Sprintf("%s; this line and %d more of the file are left out", d.First, d.Lines-1)
	}
}

// Visible is a text without characters that a terminal would obey: they are
// written as escapes.
func Visible(text string) string {
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

// Prompt is a prompt and what came of it.
type Prompt struct {
	At   Place
	Text string
	// Unrecorded says that the input does not hold the text.
	Unrecorded bool
	// Notice says that no person wrote it: work in the background has ended.
	Notice   bool
	Other    int    // parts that are no text: images, documents
	Hooks    []Hook // that ran meanwhile
	Messages []*Message
}

// Hook is one that ran beside a prompt.
type Hook struct {
	At   Place
	Name string // its event, with what it matched: "PreToolUse:Bash"
	Came string // what came of it: "blocked", "failed"; empty = it went well
}

// Message is one message of the model, or a failure in its place.
type Message struct {
	At         Place
	ID         string
	StopReason string
	Blocks     []Block
	Failure    *Failure
}

// Block is one part of a message; Call is set for a tool call, else Text counts.
type Block struct {
	Thinking bool
	Text     string
	Call     *Call
}

// Failure is an error of the API that ended a prompt.
type Failure struct {
	Status int // 0 = no response came
	Kind   string
	Text   string // as the CLI says it
}

// API takes what the API said out of the words of the CLI.
func (f *Failure) API() (status int, message string) {
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

// Call is a tool call.
type Call struct {
	At     Place
	ID     string
	Tool   string
	Input  json.RawMessage
	Result *Result // nil = there is none
	Agent  *Agent  // what the sub-agent said that the call started
}

// Agent is a conversation of a sub-agent.
type Agent struct {
	ID, Type   string
	Prompt     string
	Background bool
	Messages   []*Message
}

// Result is what came of a call.
type Result struct {
	At      Place
	Text    string
	IsError bool
	Denied  bool
	Other   int             // parts that are no text
	Raw     json.RawMessage // MCP result as the server sent it; nil = not recorded
	File    *File           // what a Read showed
}

// File is a part of a file that a call has shown.
type File struct {
	Path    string
	Content string
	Whole   bool
}

// Server is the MCP server of a tool and its own name of it; ok = false for
// built-in tools.
func Server(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

// Calls lists the calls of all messages in their order, those of agents behind
// the call that started them.
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

// Harmless tells of a call of a built-in tool that it changed nothing.
func (c *Call) Harmless() bool {
	switch c.Tool {
	case "Bash":
		var in struct{ Command string }
		if json.Unmarshal(c.Input, &in) != nil {
			return false
		}
		script, err := shellcmd.Parse(in.Command)
		return err == nil && script.ReadOnly()
	case "Read", "Grep", "Glob", "LS", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ToolSearch", "AskUserQuestion",
		"ExitPlanMode", "EnterPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool", "Skill", "TaskOutput":
		return true
	}
	return false
}
