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
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/parity"
)

func (p *laneRun) runAll(ctx context.Context) {
	for i := range p.Case.Runs {
		if !p.runOnce(ctx, &p.Case.Runs[i]) {
			return
		}
	}
}

// runOnce executes one run. It returns false if the remaining runs cannot be executed.
func (p *laneRun) runOnce(ctx context.Context, r *parity.CaseRun) bool {
	program := cmp.Or(p.Program, p.path("bin", "claude"))
	args, err := p.arguments(r.Args)
	if err != nil {
		p.addProblem("start", err.Error())
		return false
	}
	errs := &bytes.Buffer{} // read only after Stop, when all writers have finished
	child, err := proc.Start(ctx, proc.Options{
		Command: proc.Command{Path: program, Args: args, Env: p.env, Dir: p.path("cwd")},
		Stderr:  errs, Grace: time.Millisecond,
	})
	if err != nil {
		p.addProblem("start", err.Error())
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	out := collectOutput(child)
	talked := p.runDialogue(ctx, child, out, r)
	select {
	case <-child.Done():
	case <-ctx.Done():
		p.addProblem("timeout", fmt.Sprintf("%s did not exit within %s and was killed", p.laneName(), p.Timeout))
	}
	exit, ended := child.Exit()
	out.waitQuiet(ctx)
	child.Stop(ctx)
	<-out.done
	if !ended {
		exit, _ = child.Exit()
	}
	if talked != "" && ended {
		p.addProblem("dialogue", talked)
	}
	p.recording.Runs = append(p.recording.Runs, parity.Run{Stdout: out.text(), Stderr: errs.String(), Code: exit.Code, Signal: exit.Signal})
	return ended
}

func (p *laneRun) laneName() string {
	if p.isReal() {
		return p.Program
	}
	return "the double"
}

// arguments returns the arguments of a run, preceded by the options for the MCP servers of the case.
func (p *laneRun) arguments(given []string) ([]string, error) {
	var args []string
	command := len(given) > 0 && !strings.HasPrefix(given[0], "-") && given[0] == "mcp"
	if p.Case.MCP != nil && !command {
		args = append(args, "--mcp-config="+p.path("mcp.json"))
	}
	if p.isReal() && !command {
		if servers := p.api.Servers(); servers != nil {
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

// programOutput collects the output of a program for readers that wait for more.
type programOutput struct {
	done chan struct{} // closed at the end of the output

	mu        sync.Mutex
	lines     []string
	lineAdded chan struct{} // closed when a line arrives
}

func collectOutput(child *proc.Process) *programOutput {
	o := &programOutput{done: make(chan struct{}), lineAdded: make(chan struct{})}
	go func() { // returns at EOF of stdout
		defer close(o.done)
		r := bufio.NewReader(child.Stdout())
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				o.add(line)
			}
			if err != nil {
				return
			}
		}
	}()
	return o
}

func (o *programOutput) add(line string) {
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

// waitQuiet waits at most 200 ms for the rest of the output.
func (o *programOutput) waitQuiet(ctx context.Context) {
	select {
	case <-o.done:
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// waitForLine waits for a line, from index i on, for which matches returns true, and returns the index after it. ok is
// false if the stream was closed or the time ran out before.
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

// runDialogue executes the steps of the host. It returns a description of the expected event that did not happen, or ""
// after success.
func (p *laneRun) runDialogue(ctx context.Context, child *proc.Process, out *programOutput, r *parity.CaseRun) string {
	stdin := child.Stdin()
	defer stdin.CloseWhenSent()
	if len(r.Steps) == 0 {
		_, _ = stdin.Write(r.Stdin) // the program may ignore its input
		return ""
	}
	h := &host{ctx: ctx, child: child, output: out}
	for _, s := range r.Steps {
		if s.Verb == "close" {
			stdin.CloseWhenSent()
			continue
		}
		if wrong := h.executeStep(s, strings.ReplaceAll(s.Text, "$CWD", p.path("cwd"))); wrong != "" {
			return fmt.Sprintf("%s:%d: %s", p.Case.File, s.Line, wrong)
		}
	}
	if r.Steps[len(r.Steps)-1].Verb == "signal" { // the effect of the signal precedes the end of stdin
		out.waitQuiet(ctx)
	}
	return ""
}

// stringField returns the string at a dotted path in a line of JSON.
func stringField(line, path string) (value string, ok bool) {
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
