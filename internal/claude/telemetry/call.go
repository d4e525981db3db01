package telemetry

import (
	"cmp"
	_ "embed" // for names.json
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type toolCall struct {
	name, rawTool        string
	input                string // input as JSON
	command, path, skill string
	editsFile            bool
	attributes           attributeValues // all attributes of the call's events
	output               fileToolOutput  // output of editing tools
}

type fileToolOutput struct {
	Type    string `json:"type"` // "create" or "update" for Write; empty for other tools
	Content string `json:"content"`
	Patch   []struct {
		OldStart int      `json:"oldStart"`
		OldLines int      `json:"oldLines"`
		NewStart int      `json:"newStart"`
		NewLines int      `json:"newLines"`
		Lines    []string `json:"lines"`
	} `json:"structuredPatch"`
}

func (r *Recorder) describeCall(ev *protocol.ToolExecuted) toolCall {
	use := ev.Use
	var in struct {
		Command      string `json:"command"`
		Description  string `json:"description"`
		FilePath     string `json:"file_path"`
		NotebookPath string `json:"notebook_path"`
		Skill        string `json:"skill"`
		SubagentType string `json:"subagent_type"`
	}
	_ = json.Unmarshal(use.Input, &in) // other inputs have none of these fields
	c := toolCall{name: use.Name, command: in.Command, path: cmp.Or(in.FilePath, in.NotebookPath), skill: in.Skill, input: string(use.Input)}
	c.editsFile = use.Name == "Edit" || use.Name == "Write" || use.Name == "NotebookEdit"
	if use.Name != "Skill" {
		c.skill = ""
	}
	name, source := use.Name, "builtin"
	v := attributeValues{
		"tool_use_id": use.ID, "tool_name_safe": use.Name, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": use.Name, "gen_ai.tool.call.id": use.ID, "duration_ms": milliseconds(ev.Duration),
	}
	parameters := [][2]string{}
	if rest, ok := strings.CutPrefix(use.Name, "mcp__"); ok {
		server, tool, _ := strings.Cut(rest, "__")
		name, source, c.rawTool = "mcp_tool", "mcp", tool
		v["tool_name_safe"], v["gen_ai.tool.name"], v["anthropic.mcp.server.name"] = "mcp_other", tool, server
		parameters = [][2]string{{"mcp_server_name", server}, {"mcp_tool_name", tool}}
	}
	switch use.Name {
	case "Bash":
		word, _, _ := strings.Cut(strings.TrimSpace(in.Command), " ")
		v["bash_command_class"], v["bash_argv0"] = classifyFirstShellProgram(in.Command)
		parameters = [][2]string{{"bash_command", word}, {"full_command", in.Command}, {"description", in.Description}}
	case "Skill":
		parameters = [][2]string{{"skill_name", in.Skill}}
	case "Agent", "Task":
		parameters = [][2]string{{"subagent_type", in.SubagentType}}
	}
	v["tool_name"], v["tool_source"] = name, source
	if r.options.ToolDetails {
		if len(parameters) > 0 {
			v["tool_parameters"] = jsonObjectOfPairs(parameters)
		}
		v["full_command"], v["file_path"], v["skill_name"], v["subagent_type"] = in.Command, c.path, c.skill, in.SubagentType
	}
	if raw, err := json.Marshal(ev.Result.Output); err == nil && c.editsFile {
		_ = json.Unmarshal(raw, &c.output) // the output of a failed call is a text
	}
	c.attributes = v
	return c
}

// failedCallErrorText returns the error of a failed call in the form in which the real CLI reports it.
func (c toolCall) failedCallErrorText(executed *protocol.ToolExecuted) string {
	if c.name == "Bash" {
		return "Shell command failed"
	}
	return strings.TrimSuffix(strings.TrimPrefix(executed.Result.Content.Plain(), "<tool_use_error>"), "</tool_use_error>")
}

func (c toolCall) contentEvents(ev *protocol.ToolExecuted, now time.Time) []spanEvent {
	var list []attribute
	switch {
	case c.name == "Bash":
		list = []attribute{{"bash_command", newValue(c.command)}, {"output", newValue(ev.Result.Content.Plain())}}
	case c.rawTool != "":
		list = []attribute{{"output", newValue(ev.Result.Content.Plain())}}
	case c.editsFile:
		patch, _ := json.Marshal(c.output.Patch)
		list = []attribute{{"file_path", newValue(c.path)}, {"diff", newValue(string(patch))}}
		if c.output.Type == "create" {
			list[1] = attribute{"content", newValue(c.output.Content)}
		}
	default:
		return nil
	}
	return []spanEvent{{Name: "tool.output", Time: toWholeMillisecondUnixNanos(now), Attributes: list}}
}

func (c toolCall) errorType() string {
	switch {
	case c.name == "Bash":
		return "ShellError"
	case strings.HasPrefix(c.name, "mcp__"):
		return "McpToolCallError"
	}
	return "TelemetrySafeError"
}

func jsonObjectOfPairs(pairs [][2]string) string {
	var b strings.Builder
	for i, pair := range pairs {
		b.WriteString([]string{"{", ","}[min(i, 1)])
		key, _ := json.Marshal(pair[0])
		text, _ := json.Marshal(pair[1])
		b.Write(key)
		b.WriteByte(':')
		b.Write(text)
	}
	return b.String() + "}"
}

//go:embed names.json
var namesJSON string

// names has the names of languages by file extension, and the classes of shell programs.
var names = sync.OnceValue(func() (t struct{ LanguageByExtension, ClassByProgram map[string]string }) {
	_ = json.Unmarshal([]byte(namesJSON), &t) // the file is part of the program
	return t
})

// classifyFirstShellProgram returns the class and the name of the first command of a command line; both are
// "other" for programs that the real CLI does not know (observed with 2.1.330).
func classifyFirstShellProgram(shellCommandLine string) (programClass, programName string) {
	script, err := shellcmd.Parse(shellCommandLine)
	if err != nil || len(script.Commands) == 0 {
		return "other", "other"
	}
	programName = filepath.Base(script.Commands[0].Name())
	if strings.HasPrefix(programName, "python") {
		programName = "python"
	}
	if programClass = names().ClassByProgram[programName]; programClass == "" {
		return "other", "other"
	}
	return programClass, programName
}
