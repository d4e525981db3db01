package suite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/parity"
)

// executeRunOfCase executes one run. It returns false if the remaining runs cannot be executed.
func (p *caseRunOfProgram) executeRunOfCase(ctx context.Context, r *parity.CaseRun) (canExecuteNextRun bool) {
	program := cmp.Or(p.Program, p.path("bin", "claude"))
	args, err := p.writeMCPConfigAndBuildArgs(r.Args)
	if err != nil {
		p.addProblem("start", err.Error())
		return false
	}
	errs := &bytes.Buffer{} // read only after Stop, when all writers have finished
	child, err := proc.Start(ctx, proc.Options{Command: proc.Command{Path: program, Args: args, Env: p.env, Dir: p.path("cwd", p.Case.Subdirectory)}, Stderr: errs, Grace: time.Millisecond})
	if err != nil {
		p.addProblem("start", err.Error())
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	out := startCollectingStdout(child)
	talked := p.sendStdinOrExecuteHostSteps(ctx, child, out, r)
	select {
	case <-child.Done():
	case <-ctx.Done():
		p.addProblem("timeout", fmt.Sprintf("%s did not exit within %s and was killed", cmp.Or(p.Program, "the double"), p.Timeout))
	}
	exit, ended := child.ExitStatus()
	out.waitBrieflyForOutputEnd(ctx)
	child.Stop(ctx)
	<-out.done
	if !ended {
		exit, _ = child.ExitStatus()
	}
	if talked != "" && ended {
		p.addProblem("dialogue", talked)
	}
	p.recording.Runs = append(p.recording.Runs, parity.Run{Stdout: out.text(), Stderr: errs.String(), Code: exit.Code, Signal: exit.Signal})
	return ended
}

// writeMCPConfigAndBuildArgs returns the command line of a run, preceded by the options for the MCP servers of the case. $CWD and
// $HOME are replaced by the directories of the run.
func (p *caseRunOfProgram) writeMCPConfigAndBuildArgs(given []string) ([]string, error) {
	var args []string
	command := len(given) > 0 && !strings.HasPrefix(given[0], "-") && given[0] == "mcp"
	if p.Case.MCP != nil && !command {
		args = append(args, "--mcp-config="+p.path("mcp.json"))
	}
	if p.isProgramRealClaude() && !command {
		if servers := p.api.servers; servers != nil {
			file := p.path("servers.json")
			if err := os.WriteFile(file, servers, 0o644); err != nil {
				return nil, err
			}
			args = append(args, "--mcp-config="+file)
		}
	}
	for _, a := range given {
		args = append(args, strings.NewReplacer("$CWD", p.path("cwd"), "$HOME", p.path("home")).Replace(a))
	}
	return args, nil
}

// programOutput collects the output of a program. Its methods wait until the output contains something, such as a line.
type programOutput struct {
	done chan struct{} // closed at the end of the output

	mu        sync.Mutex
	lines     []string
	lineAdded chan struct{} // closed when a line arrives
}

func startCollectingStdout(child *proc.Process) *programOutput {
	o := &programOutput{done: make(chan struct{}), lineAdded: make(chan struct{})}
	go func() { // returns at EOF of stdout
		defer close(o.done)
		r := bufio.NewReader(child.Stdout())
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				o.addLine(line)
			}
			if err != nil {
				return
			}
		}
	}()
	return o
}

func (o *programOutput) addLine(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, line)
	close(o.lineAdded)
	o.lineAdded = make(chan struct{})
}

func (o *programOutput) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, "")
}

// waitBrieflyForOutputEnd waits at most 200 ms for the rest of the output.
func (o *programOutput) waitBrieflyForOutputEnd(ctx context.Context) {
	select {
	case <-o.done:
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// waitForLine waits for the first matching line whose index is at least i. next is the index after this line. ok is false
// if the output or ctx ended first.
func (o *programOutput) waitForLine(ctx context.Context, i int, matches func(line string) bool) (next int, line string, ok bool) {
	for {
		o.mu.Lock()
		more := o.lineAdded
		for ; i < len(o.lines); i++ {
			if matches(o.lines[i]) {
				line = o.lines[i]
				o.mu.Unlock()
				return i + 1, line, true
			}
		}
		o.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return i, "", false
		case <-o.done:
			o.mu.Lock()
			ended := i >= len(o.lines)
			o.mu.Unlock()
			if ended {
				return i, "", false
			}
		}
	}
}

// sendStdinOrExecuteHostSteps executes the host's steps. It returns a description of the expected event that did not happen, or "".
func (p *caseRunOfProgram) sendStdinOrExecuteHostSteps(ctx context.Context, child *proc.Process, out *programOutput, r *parity.CaseRun) (missingEventOrEmpty string) {
	stdin := child.Stdin()
	defer stdin.CloseWhenSent()
	if len(r.Steps) == 0 {
		_, _ = stdin.Write(r.Stdin) // the program may ignore its input
		return ""
	}
	h := &dialogueHost{ctx: ctx, child: child, output: out}
	for _, s := range r.Steps {
		if s.Verb == "close" {
			stdin.CloseWhenSent()
			continue
		}
		if wrong := h.executeHostStep(s, strings.ReplaceAll(s.Text, "$CWD", p.path("cwd"))); wrong != "" {
			return fmt.Sprintf("%s:%d: %s", p.Case.File, s.Line, wrong)
		}
	}
	if r.Steps[len(r.Steps)-1].Verb == "signal" { // let the signal take effect before stdin ends
		out.waitBrieflyForOutputEnd(ctx)
	}
	return ""
}

func fieldAsText(line, path string) (value string, ok bool) {
	var v any
	if json.Unmarshal([]byte(line), &v) != nil {
		return "", false
	}
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			v = nil
			var i int
			if _, err := fmt.Sscan(key, &i); err == nil && i >= 0 && i < len(at) {
				v = at[i]
			}
		default:
			return "", false
		}
	}
	if s, isText := v.(string); isText {
		return s, true
	}
	raw, err := json.Marshal(v)
	return string(raw), err == nil && v != nil
}

type dialogueHost struct {
	ctx    context.Context // context of the run; a host exists only while one run is executed
	child  *proc.Process
	output *programOutput

	position     int    // number of lines processed so far
	requestID    string // id of the request that the last wait received
	mcpMessageID string // id of the MCP message that the request of the last wait contains
	taskID       string // id of the task whose event was last awaited
	input        json.RawMessage
	requestCount int
}

// executeHostStep executes one step. It returns a description of the expected event that did not happen, or "".
func (h *dialogueHost) executeHostStep(step parity.CaseStep, text string) (missingEventOrEmpty string) {
	switch step.Verb {
	case "prompt":
		h.send(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
	case "send":
		_, _ = h.child.Stdin().Write([]byte(strings.ReplaceAll(text, "$id", h.requestID) + "\n"))
	case "ask", "request":
		text = strings.ReplaceAll(text, "$task", h.taskID)
		h.requestCount++
		id := fmt.Sprintf("ask-%d", h.requestCount)
		h.send(map[string]any{"type": "control_request", "request_id": id, "request": json.RawMessage(text)})
		if step.Verb == "request" && !h.awaitEventAndRememberIDs("control_response", "response.request_id="+id) {
			return "no answer to " + text
		}
	case "wait":
		if !h.awaitEventAndRememberIDs(text, step.Where...) {
			return "no " + text + " " + strings.Join(step.Where, " ")
		}
	case "allow", "deny":
		if !h.awaitEventAndRememberIDs("control_request/can_use_tool") {
			return "claude requested no permission within the time limit"
		}
		h.respondToLastReceivedRequest(h.permissionResponseBody(step.Verb, text))
	case "refuse":
		if !h.denyRequestsUntilResult() {
			return "no result"
		}
	case "answer":
		h.respondToLastReceivedRequest(json.RawMessage(strings.ReplaceAll(text, "$rpc", h.mcpMessageID)))
	case "signal":
		h.child.SignalChildOnly(map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[text])
	}
	return ""
}

// denyRequestsUntilResult denies every permission request until a result arrives. It returns false if no result arrives.
func (h *dialogueHost) denyRequestsUntilResult() bool {
	for {
		next, line, ok := h.output.waitForLine(h.ctx, h.position, func(line string) bool {
			kind := parity.KindOfRecordedEvent(json.RawMessage(line))
			return strings.HasPrefix(kind, "result") || kind == "control_request/can_use_tool"
		})
		h.position = next
		if !ok {
			return false
		}
		id, asks := fieldAsText(line, "request_id")
		if !asks {
			return true
		}
		h.requestID = id
		h.respondToLastReceivedRequest(h.permissionResponseBody("deny", ""))
	}
}

// permissionResponseBody returns the answer to a permission request. newInputOrDenyMessage is the new input or the deny
// message. If it is empty, the input is unchanged, or the deny message is "no".
func (h *dialogueHost) permissionResponseBody(allowOrDeny, newInputOrDenyMessage string) any {
	switch {
	case allowOrDeny == "deny" && newInputOrDenyMessage == "":
		return map[string]any{"behavior": "deny", "message": "no"}
	case allowOrDeny == "deny":
		return map[string]any{"behavior": "deny", "message": newInputOrDenyMessage}
	case newInputOrDenyMessage == "":
		return map[string]any{"behavior": "allow", "updatedInput": h.input}
	}
	return map[string]any{"behavior": "allow", "updatedInput": json.RawMessage(newInputOrDenyMessage)}
}

func (h *dialogueHost) respondToLastReceivedRequest(responseBody any) {
	h.send(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": h.requestID, "response": responseBody}})
}

func (h *dialogueHost) send(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: v contains only strings and valid JSON
	}
	_, _ = h.child.Stdin().Write(append(raw, '\n')) // an error shows as missing output
}

func (h *dialogueHost) awaitEventAndRememberIDs(kindPrefix string, fieldConditions ...string) (hasArrived bool) {
	next, line, ok := h.output.waitForLine(h.ctx, h.position, func(line string) bool {
		if !strings.HasPrefix(parity.KindOfRecordedEvent(json.RawMessage(line)), kindPrefix) {
			return false
		}
		for _, w := range fieldConditions {
			path, want, _ := strings.Cut(w, "=")
			if got, _ := fieldAsText(line, path); got != want {
				return false
			}
		}
		return true
	})
	h.position = next
	if !ok {
		return false
	}
	if id, ok := fieldAsText(line, "task_id"); ok {
		h.taskID = id
	}
	if id, asks := fieldAsText(line, "request_id"); asks {
		h.requestID = id
		input, _ := fieldAsText(line, "request.input")
		h.input = json.RawMessage(input)
		h.mcpMessageID, _ = fieldAsText(line, "request.message.id")
	}
	return true
}
