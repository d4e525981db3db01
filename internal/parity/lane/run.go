package lane

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
	"github.com/claudeless/claudeless/internal/parity/cases"
)

// runs does the runs of the case.
func (p *play) runs(ctx context.Context) {
	for i := range p.Case.Runs {
		if !p.run(ctx, &p.Case.Runs[i]) {
			return
		}
	}
}

// run does one. False: the rest makes no sense.
func (p *play) run(ctx context.Context, r *cases.Run) bool {
	program := cmp.Or(p.Program, p.at("bin", "claude"))
	args, err := p.args(r.Args)
	if err != nil {
		p.problem("start", err.Error())
		return false
	}
	errs := &bytes.Buffer{} // read after Stop, when nobody writes any more
	child, err := proc.Start(ctx, proc.Options{
		Command: proc.Command{Path: program, Args: args, Env: p.env, Dir: p.at("cwd")},
		Stderr:  errs, Grace: time.Millisecond,
	})
	if err != nil {
		p.problem("start", err.Error())
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	out := listen(child)
	talked := p.talk(ctx, child, out, r)
	select {
	case <-child.Done():
	case <-ctx.Done():
		p.problem("timeout", fmt.Sprintf("%s did not end within %s; it was killed", p.name(), p.Timeout))
	}
	exit, ended := child.Exit()
	out.settle(ctx)
	child.Stop(ctx)
	<-out.done
	if !ended {
		exit, _ = child.Exit()
	}
	if talked != "" && ended {
		p.problem("dialogue", talked)
	}
	p.rec.Runs = append(p.rec.Runs, parity.Run{Stdout: out.text(), Stderr: errs.String(), Code: exit.Code, Signal: exit.Signal})
	return ended
}

func (p *play) name() string {
	if p.real() {
		return p.Program
	}
	return "the double"
}

// args are the arguments of a run, with the servers of the case in front.
func (p *play) args(given []string) ([]string, error) {
	var args []string
	command := len(given) > 0 && !strings.HasPrefix(given[0], "-") && given[0] == "mcp"
	if p.Case.MCP != nil && !command {
		args = append(args, "--mcp-config="+p.at("mcp.json"))
	}
	if p.real() && !command {
		if servers := p.api.Servers(); servers != nil {
			file := p.at("servers.json")
			if err := os.WriteFile(file, servers, 0o644); err != nil {
				return nil, err
			}
			args = append(args, "--mcp-config="+file)
		}
	}
	for _, a := range given {
		args = append(args, strings.NewReplacer("$CWD", p.at("cwd"), "$HOME", p.at("home")).Replace(a))
	}
	return args, nil
}

// output is what a program has written so far, and who waits for more.
type output struct {
	done chan struct{} // closed at its end

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed when a line has come
}

func listen(child *proc.Process) *output {
	o := &output{done: make(chan struct{}), more: make(chan struct{})}
	go func() { // ends with stdout
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

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, line)
	close(o.more)
	o.more = make(chan struct{})
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, "")
}

// settle gives the rest of the output the time to arrive.
func (o *output) settle(ctx context.Context) {
	select {
	case <-o.done:
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// next waits for a line from number i on that holds; it returns the number behind
// it. Not ok: the stream or the time ended before.
func (o *output) next(ctx context.Context, i int, holds func(line string) bool) (behind int, line string, ok bool) {
	for {
		o.mu.Lock()
		more := o.more
		for ; i < len(o.lines); i++ {
			if holds(o.lines[i]) {
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

// talk is what the host says. It returns what did not come to pass.
func (p *play) talk(ctx context.Context, child *proc.Process, out *output, r *cases.Run) string {
	stdin := child.Stdin()
	defer stdin.CloseWhenSent()
	if len(r.Steps) == 0 {
		_, _ = stdin.Write(r.Stdin) // a program that does not read it is no mistake of ours
		return ""
	}
	h := &host{ctx: ctx, child: child, out: out}
	for _, s := range r.Steps {
		if s.Verb == "close" {
			stdin.CloseWhenSent()
			continue
		}
		if wrong := h.do(s, strings.ReplaceAll(s.Text, "$CWD", p.at("cwd"))); wrong != "" {
			return fmt.Sprintf("%s:%d: %s", p.Case.File, s.Line, wrong)
		}
	}
	if r.Steps[len(r.Steps)-1].Verb == "signal" { // what it does comes before the end of stdin
		out.settle(ctx)
	}
	return ""
}

// field is a string in JSON, found by a dotted path.
func field(line, path string) (value string, ok bool) {
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
