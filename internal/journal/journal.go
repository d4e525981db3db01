// Package journal writes what a run received and did to a file, one JSON object
// a line: what tests assert on (--capture FILE, CLAUDELESS_CAPTURE).
//
// Every line goes out in one append, so that many processes may share a file.
// Secrets are replaced before anything is written, as package redact finds them. The
// package reads events and decides nothing.
package journal

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/redact"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options says where lines go. W and Now are required.
type Options struct {
	W         io.Writer // opened for appending; one Write per line
	Now       func() time.Time
	PID       int
	SessionID string
	Environ   []string // source of the secret values to hide
}

// Journal writes lines. All methods may be called from many goroutines.
type Journal struct {
	o      Options
	redact *redact.Redactor

	mu  sync.Mutex // one line at a time
	err error
}

// Run is the first line: how the program was started.
type Run struct {
	Argv           []string          `json:"argv"`
	CWD            string            `json:"cwd"`
	Env            map[string]string `json:"env"`      // chosen names only
	Settings       []string          `json:"settings"` // sources that were read
	SystemPrompt   *string           `json:"system_prompt,omitempty"`
	AppendPrompt   *string           `json:"append_system_prompt,omitempty"`
	Scenario       string            `json:"scenario,omitempty"`
	Model          string            `json:"model"`
	PermissionMode string            `json:"permission_mode"`
	MCPServers     []string          `json:"mcp_servers,omitempty"`
}

// New makes a journal and writes nothing yet.
func New(o Options) *Journal {
	return &Journal{o: o, redact: redact.New(redact.Options{Environ: o.Environ})}
}

// Start writes the first line.
func (j *Journal) Start(r Run) {
	r.Argv = j.redact.Args(r.Argv)
	j.line("run", r)
}

// Err is the first error of writing; later lines are dropped after it.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Call writes what was asked of an MCP server and what came of it: a line
// mcp_call with the fields of call, a struct.
func (j *Journal) Call(call any) { j.line("mcp_call", call) }

// prompt, match, … are the lines that events give.
type (
	prompt struct {
		UUID     string           `json:"uuid"`
		Prompt   protocol.Content `json:"prompt"`
		Injected bool             `json:"injected,omitempty"`
	}
	attachment struct {
		Attachment any `json:"attachment"`
	}
	match struct {
		Rule string `json:"rule"`
		File string `json:"file,omitempty"`
		Line int    `json:"line,omitempty"`
	}
	permission struct {
		Tool       string `json:"tool"`
		ToolUseID  string `json:"tool_use_id"`
		Decision   string `json:"decision"`
		Source     string `json:"source"`
		ReasonType string `json:"reason_type,omitempty"`
	}
	breakpoint struct {
		Tool        string          `json:"tool"`
		ToolUseID   string          `json:"tool_use_id"`
		Phase       string          `json:"phase"`
		Action      string          `json:"action"`
		Breakpoint  string          `json:"breakpoint,omitempty"`
		PauseID     string          `json:"pause_id,omitempty"`
		Input       json.RawMessage `json:"input,omitempty"`
		Replacement string          `json:"replacement,omitempty"`
	}
	tool struct {
		Tool      string           `json:"tool"`
		ToolUseID string           `json:"tool_use_id"`
		Server    string           `json:"server,omitempty"`
		Input     json.RawMessage  `json:"input"`
		Result    protocol.Content `json:"result"`
		IsError   bool             `json:"is_error"`
		Executed  bool             `json:"executed"`
		MS        float64          `json:"ms"`
	}
	result struct {
		Subtype           string                      `json:"subtype"`
		IsError           bool                        `json:"is_error"`
		Result            *string                     `json:"result,omitempty"`
		Errors            []string                    `json:"errors,omitempty"`
		NumTurns          int                         `json:"num_turns"`
		TerminalReason    string                      `json:"terminal_reason,omitempty"`
		TotalCostUSD      float64                     `json:"total_cost_usd"`
		PermissionDenials []protocol.PermissionDenial `json:"permission_denials"`
	}
	retry struct {
		Attempt int    `json:"attempt"`
		Status  int    `json:"status,omitempty"`
		Message string `json:"message"`
	}
	text struct {
		Text string `json:"text"`
	}
)

// Event writes the lines of one event; most events give none.
func (j *Journal) Event(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Prompted:
		j.line("prompt", prompt{UUID: ev.UUID, Prompt: ev.Content, Injected: ev.Injected})
	case *protocol.Attached:
		j.line("attachment", attachment{ev.Attachment})
	case *protocol.Matched:
		j.line("match", match{Rule: ev.Rule, File: ev.File, Line: ev.Line})
	case *protocol.ToolRan:
		j.tool(ev)
	case *protocol.CLIRetry:
		j.line("retry", retry{Attempt: ev.Attempt, Status: ev.Status, Message: ev.Message})
	case *protocol.Warning:
		j.line("warning", text{Text: ev.Text})
	case *protocol.Unmet:
		j.line("unmet", text{Text: ev.Message})
	case *protocol.Result:
		j.line("result", result{
			Subtype: ev.Subtype, IsError: ev.IsError, Result: ev.Result, Errors: ev.Errors, NumTurns: ev.NumTurns,
			TerminalReason: ev.TerminalReason, TotalCostUSD: ev.TotalCostUSD, PermissionDenials: ev.PermissionDenials,
		})
	}
}

func (j *Journal) tool(ev *protocol.ToolRan) {
	if d := ev.Result.Decision; d != nil {
		j.line("permission", permission{
			Tool: ev.Use.Name, ToolUseID: ev.Use.ID, Decision: d.Decision, Source: d.Source, ReasonType: d.ReasonType,
		})
	}
	executed := ev.Result.NonExecutionKind == ""
	for _, b := range ev.Breakpoints {
		if b.Phase == "before" && (b.Action == "skip" || b.Action == "fail") {
			executed = false
		}
		j.line("breakpoint", breakpoint{
			Tool: ev.Use.Name, ToolUseID: ev.Use.ID, Phase: b.Phase, Action: b.Action, Breakpoint: b.Breakpoint, PauseID: b.Pause,
			Input: b.Input, Replacement: b.Replacement,
		})
	}
	j.line("tool", tool{
		Tool: ev.Use.Name, ToolUseID: ev.Use.ID, Server: ev.Result.Server, Input: ev.Use.Input,
		Result: ev.Result.Content, IsError: ev.Result.IsError, Executed: executed,
		MS: float64(ev.Duration) / float64(time.Millisecond),
	})
}

// line writes {"time","pid","session_id","type", …fields of v}.
func (j *Journal) line(kind string, v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return
	}
	head, err := protocol.Marshal(struct {
		Time      string `json:"time"`
		PID       int    `json:"pid"`
		SessionID string `json:"session_id"`
		Type      string `json:"type"`
	}{j.o.Now().UTC().Format(time.RFC3339Nano), j.o.PID, j.o.SessionID, kind})
	if err == nil {
		var body []byte
		if body, err = protocol.Marshal(v); err == nil {
			line := append(append(head[:len(head)-1], ','), body[1:]...)
			_, err = j.o.W.Write(append(j.redact.JSON(line), '\n'))
		}
	}
	j.err = err
}
