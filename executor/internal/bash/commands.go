// Package bash implements the tools that run and stop commands: Bash, Monitor and TaskStop.
//
// A background command is a task of a [task.Set]. Closing the set stops it.
package bash

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // sizes of pictures
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options configure [New]. Shell, Clock and Files are required.
type Options struct {
	Shell *tool.Shell
	Clock tool.ClockWithIDs      // provides the names of files with saved output
	Files *files.SeenFileTracker // records the files that a command prints
	Tasks *task.Set              // contains the background commands; nil means that commands cannot run in the background
	// Snapshot returns the state of the repository of a directory before a command. The result of the command lists the
	// files that differ from this state. If Snapshot is nil or returns nil, or if the command only reads, the result lists no files.
	Snapshot func(ctx context.Context, dir string) *gitworktree.Snapshot
	// OutputDir is the directory for output that is too large to show; it is created when needed. If OutputDir is empty,
	// such output is truncated.
	OutputDir string
}

// CommandRunner runs the commands of a session. Many goroutines may call its methods.
type CommandRunner struct {
	options Options
	differ  gitworktree.SessionDiffer
}

// New returns the Commands of a session. It starts no process.
func New(o Options) *CommandRunner { return &CommandRunner{options: o} }

const (
	defaultTimeoutMS           = 120_000
	maxTimeoutMS               = 600_000
	defaultBackgroundTimeoutMS = 600_000
	maxBackgroundTimeoutMS     = 7_200_000
)

type bashInput struct {
	Command         string                  `json:"command"`
	Timeout         *tool.IntFromJSONNumber `json:"timeout"`
	Description     string                  `json:"description"`
	RunInBackground bool                    `json:"run_in_background"`
	NoSandbox       bool                    `json:"dangerouslyDisableSandbox"`
}

func taskInfoOfCall(call protocol.ToolUse, in bashInput) task.Info {
	info := task.Info{Kind: task.KindBash, ToolUseID: call.ID, Description: cmp.Or(in.Description, in.Command), Command: in.Command}
	if a := call.Agent; a != nil {
		info.ParentID, info.EndsWithAgent = a.ID, !a.InBackground
	}
	return info
}

func (c *CommandRunner) timeoutOfCall(in bashInput) time.Duration {
	ms, most := defaultBackgroundTimeoutMS, maxBackgroundTimeoutMS
	if !in.RunInBackground {
		ms = cmp.Or(c.envMilliseconds("BASH_DEFAULT_TIMEOUT_MS"), defaultTimeoutMS)
		most = max(ms, cmp.Or(c.envMilliseconds("BASH_MAX_TIMEOUT_MS"), maxTimeoutMS))
	}
	if in.Timeout != nil && *in.Timeout > 0 {
		ms = int(*in.Timeout)
	}
	return time.Duration(min(ms, most)) * time.Millisecond
}

func (c *CommandRunner) areBackgroundTasksDisabled() bool {
	return c != nil && isSetAndNotFalse(c.options.Shell.Getenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")) // c is nil if only the definition of a tool is needed
}

func isSetAndNotFalse(value string) bool { return value != "" && value != "0" && value != "false" }

func (c *CommandRunner) envMilliseconds(key string) int {
	n, err := strconv.Atoi(c.options.Shell.Getenv(key))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

type taskStopInput struct {
	TaskID  string `json:"task_id"`
	ShellID string `json:"shell_id"`
}

// TaskStop returns the tool that stops a background task.
func TaskStop(c *CommandRunner) tool.Tool {
	return tool.Tool{
		Name: "TaskStop",
		Check: tool.TypedCheck(c, func(_ context.Context, c *CommandRunner, in taskStopInput) *protocol.ToolResult {
			_, refusal := c.findTask(in)
			return refusal
		}),
		Run: tool.TypedRun(c, runTaskStop),
	}
}

func (c *CommandRunner) findTask(in taskStopInput) (task.Info, *protocol.ToolResult) {
	no := func(format string, args ...any) (task.Info, *protocol.ToolResult) {
		return task.Info{}, new(tool.Refuse(format, args...))
	}
	id := cmp.Or(in.TaskID, in.ShellID)
	if id == "" {
		return no("Missing required parameter: task_id")
	}
	if c.options.Tasks == nil {
		return no("No task found with ID: %s", id)
	}
	info, found := c.options.Tasks.Find(id)
	if !found {
		return no("No task found with ID: %s%s", id, listRunningAgents(c.options.Tasks))
	}
	return info, nil
}

func listRunningAgents(tasks *task.Set) string {
	var agents []string
	for _, t := range tasks.RunningInBackground() {
		if t.Kind == task.KindAgent {
			agents = append(agents, t.ID+" ("+t.Description+")")
		}
	}
	if len(agents) == 0 {
		return ""
	}
	return ". Background agents running or waiting: " + strings.Join(agents, ", ")
}

func runTaskStop(_ context.Context, c *CommandRunner, in taskStopInput) protocol.ToolResult {
	info, refusal := c.findTask(in)
	if refusal != nil {
		return *refusal
	}
	if c.options.Tasks.Stop(info.ID, task.KilledByParent) == nil {
		return tool.Refuse("Task %s is not running", info.ID)
	}
	what := cmp.Or(info.Command, info.Description)
	out := struct {
		Message string                `json:"message"`
		TaskID  string                `json:"task_id"`
		Type    task.ShellOrAgentKind `json:"task_type"`
		Command string                `json:"command"`
	}{fmt.Sprintf("Successfully stopped task: %s (%s)", info.ID, what), info.ID, info.Kind, what}
	text, err := protocol.Marshal(out)
	if err != nil {
		return tool.Fail("%v", err)
	}
	return tool.TextResult(string(text), out)
}

const (
	defaultOutputLimitBytes = 30_000  // maximum number of bytes that are shown of a command's output
	maxOutputLimitBytes     = 150_000 // maximum of BASH_MAX_OUTPUT_LENGTH
	maxCapturedBytes        = 64 << 20
	outputPreviewUTF16Units = 2000 // UTF-16 code units, as in JavaScript
)

type bashOutput struct {
	Stdout           string `json:"stdout"`
	Stderr           string `json:"stderr"`
	Interrupted      bool   `json:"interrupted"`
	IsImage          bool   `json:"isImage"`
	NoOutputExpected bool   `json:"noOutputExpected"`

	EditDiff *gitworktree.Diff `json:"bashEditDiff,omitempty"`
	// CodeMeaning explains why an exit code other than 0 is not a failure. It is also set for an interrupted command.
	CodeMeaning   string `json:"returnCodeInterpretation,omitempty"`
	TaskID        string `json:"backgroundTaskId,omitempty"`
	TimedOutMS    int    `json:"timedOutAfterMs,omitempty"`
	CWDHint       string `json:"backgroundCwdHint,omitempty"`
	PersistedPath string `json:"persistedOutputPath,omitempty"`
	PersistedSize int    `json:"persistedOutputSize,omitempty"`
	NoSandbox     bool   `json:"dangerouslyDisableSandbox,omitempty"` // the call asked to run outside of the sandbox
	StaleHint     string `json:"staleReadFileStateHint,omitempty"`
}

const noOutputText = "(Bash completed with no output)"

// PrintedResult returns the result of a command that printed s and succeeded.
func PrintedResult(s string) protocol.ToolResult {
	r := tool.TextResult(s, bashOutput{Stdout: s})
	r.ShowsIsErrorFalse = true
	return r
}

// ModelTextFromHookOutput returns the text that the model receives if a hook replaced the output of Bash. It returns false
// if the new output does not have the structure of Bash output.
func ModelTextFromHookOutput(hookOutput json.RawMessage) (modelText protocol.Content, isBashOutput bool) {
	var out struct {
		Stdout, Stderr *string
		Interrupted    *bool
	}
	if json.Unmarshal(hookOutput, &out) != nil || out.Stdout == nil || out.Stderr == nil || out.Interrupted == nil {
		return protocol.Content{}, false
	}
	return protocol.Content{Text: cmp.Or(joinNonEmptyLines(*out.Stdout, *out.Stderr), noOutputText)}, true
}

var imageDataURLPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^data:(image/[A-Za-z0-9.+_-]+);base64,([A-Za-z0-9+/=]+)$`)
})

func imageResult(mediaType, encoded, output string, out bashOutput) protocol.ToolResult {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if _, _, badImage := image.DecodeConfig(bytes.NewReader(data)); err != nil || badImage != nil {
		return tool.Fail("Unable to resize image — image processing is unavailable and dimensions could not be read from the file header. " +
			"Please convert the image to PNG, JPEG, GIF, or WebP.")
	}
	out.Stdout, out.IsImage = output, true
	return protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Image(mediaType, encoded)}}, Output: out}
}

// modifiedSeenFilesHint returns a hint about files that the session had read before a command modified them. It returns "" if there are none.
func (c *CommandRunner) modifiedSeenFilesHint(versionsBeforeCommand files.ModificationTimesByPath) string {
	const most = 5
	paths := c.options.Files.PathsWithChangedModTime(versionsBeforeCommand)
	if len(paths) == 0 {
		return ""
	}
	noun, more := "files", ""
	if len(paths) == 1 {
		noun = "file"
	}
	total := len(paths)
	if total > most {
		paths, more = paths[:most], fmt.Sprintf(" and %d more", total-most)
	}
	for i, path := range paths {
		if name, err := filepath.Rel(c.options.Shell.Dir(), path); err == nil {
			paths[i] = name
		}
	}
	return fmt.Sprintf("[This command modified %d %s you've previously read: %s%s. Call Read before editing.]", total, noun, strings.Join(paths, ", "), more)
}

func (c *CommandRunner) outputLimitBytes() int {
	if n, err := strconv.Atoi(c.options.Shell.Getenv("BASH_MAX_OUTPUT_LENGTH")); err == nil && n > 0 {
		return min(n, maxOutputLimitBytes)
	}
	return defaultOutputLimitBytes
}

// storeAndLimitOutput stores an output in out.Stdout and returns the text for the model. If the output is too large, it stores only
// the beginning in out.Stdout and saves raw, the untrimmed output, in a file. The text is then a preview with the path of this file.
func (c *CommandRunner) storeAndLimitOutput(output, raw string, out *bashOutput) string {
	out.Stdout = output
	if len(output) <= c.outputLimitBytes() {
		return output
	}
	out.Stdout = string(process.ReplaceInvalidUTF8LikeJavaScriptStream([]byte(output[:c.outputLimitBytes()]))) // a character that the limit cuts in two becomes U+FFFD
	if c.options.OutputDir == "" {
		return tool.TruncateWithMissingLinesNote(output, c.outputLimitBytes())
	}
	path := filepath.Join(c.options.OutputDir, task.NewTaskID(task.KindBash, c.options.Clock.NewID())+".txt")
	if err := os.MkdirAll(c.options.OutputDir, 0o755); err != nil {
		return out.Stdout + "\n\n[the rest of the output could not be saved: " + err.Error() + "]"
	}
	if err := os.WriteFile(path, []byte(raw), 0o644); err != nil {
		return out.Stdout + "\n\n[the rest of the output could not be saved: " + err.Error() + "]"
	}
	out.PersistedPath, out.PersistedSize = path, len(raw)
	out.Stdout = strings.TrimRight(out.Stdout, "\n")
	return fmt.Sprintf("<persisted-output>\nOutput too large (%s). Full output saved to: %s\n\nPreview (first 2KB):\n%s\n</persisted-output>",
		tool.FormatSize(len(raw)), path, outputPreview(out.Stdout))
}

// outputPreview returns the beginning of an output, at most [outputPreviewUTF16Units] long. If more follows, it cuts
// the preview at the last line end in its second half, if there is one, and appends "..." on a new line.
func outputPreview(output string) string {
	units := utf16.Encode([]rune(output))
	if len(units) <= outputPreviewUTF16Units {
		return output
	}
	end := outputPreviewUTF16Units
	if low := units[end]; 0xdc00 <= low && low < 0xe000 {
		end-- // the preview must not end within a character
	}
	for i := end - 1; i > outputPreviewUTF16Units/2; i-- {
		if units[i] == '\n' {
			end = i
			break
		}
	}
	return string(utf16.Decode(units[:end])) + "\n..."
}

// trimBlankLinesAndTrailingSpace removes empty lines at the beginning of an output and white space at its end. It replaces invalid UTF-8.
func trimBlankLinesAndTrailingSpace(commandOutput string) string {
	commandOutput = validUTF8WithoutTrailingSpace(commandOutput)
	line, rest, ok := strings.Cut(commandOutput, "\n")
	for ok && strings.TrimSpace(line) == "" {
		commandOutput = rest
		line, rest, ok = strings.Cut(rest, "\n")
	}
	return commandOutput
}

func validUTF8WithoutTrailingSpace(commandOutput string) string {
	return strings.TrimRight(string(process.ReplaceInvalidUTF8LikeJavaScriptStream([]byte(commandOutput))), " \t\r\n")
}

func joinNonEmptyLines(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n")
}
