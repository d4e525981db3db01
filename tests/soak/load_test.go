package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

const pause = 60 * time.Millisecond // maximum pause of a load between two steps

func claudeArgs(g *soakDir) []string {
	return []string{
		"--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--scenario", g.file("scenario.toml"),
		"--mcp-config", g.file("mcp.json"), "--allowedTools", "Bash,mcp__near,mcp__far",
	}
}

// postRequest posts a body and reads the whole answer, or only a part of it.
func postRequest(ctx context.Context, url, body string, header http.Header, whole bool) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "X-Api-Key": {"any"}}
	maps.Copy(r.Header, header)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	in := io.Reader(res.Body)
	if !whole {
		in = io.LimitReader(in, 40)
	}
	text, err := io.ReadAll(in)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return res.Header, err
}

// requests is a load of Messages API clients; some disconnect during a response.
type requests struct {
	g   *soakDir
	url string
}

func (l requests) run(ctx context.Context, d randomSource) {
	for ; ctx.Err() == nil; d.rest(ctx, pause) {
		prompt := []string{"hi", "shell", "long"}[d.IntN(3)]
		body := fmt.Sprintf(`{"model":"claude-sonnet-5-5","max_tokens":1000,"stream":%t,"messages":[{"role":"user","content":"%s %d"}]}`, d.IntN(2) == 0, prompt, d.IntN(1000))
		what := "request"
		if d.IntN(5) == 0 {
			what = "cut"
		}
		if _, err := postRequest(ctx, l.url+"/v1/messages", body, nil, what == "request"); err != nil && ctx.Err() == nil {
			l.g.t.Errorf("%s of the API: %v", what, err)
			return
		}
		l.g.count(what)
	}
}

// mcpCalls is a load of MCP sessions over HTTP. Most of them end without being closed.
type mcpCalls struct {
	g         *soakDir
	url, tool string
}

func (l mcpCalls) run(ctx context.Context, d randomSource) {
	for ; ctx.Err() == nil; d.rest(ctx, pause) {
		header, err := postRequest(ctx, l.url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`, nil, true)
		session := http.Header{"Mcp-Session-Id": {header.Get("Mcp-Session-Id")}, "Mcp-Protocol-Version": {"2025-06-18"}}
		for range d.IntN(4) {
			if err == nil {
				_, err = postRequest(ctx, l.url, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, l.tool), session, true)
				l.g.count("call")
			}
		}
		if err != nil && ctx.Err() == nil {
			l.g.t.Errorf("%s: %v", l.url, err)
			return
		}
		l.g.count("mcp")
	}
}

// turns is a load of prompts in one session that never ends; some turns are interrupted.
type turns struct {
	g *soakDir
	p *program
}

func (l turns) run(ctx context.Context, d randomSource) {
	out := bufio.NewReaderSize(l.p.out, 1<<20)
	for i := 0; ctx.Err() == nil; d.rest(ctx, pause) {
		i++
		prompt := []string{"hi", "shell", "near", "far", "hang", "slow"}[d.IntN(6)]
		err := sendPrompt(l.p.in, prompt)
		if prompt == "hang" || prompt == "slow" {
			d.rest(ctx, 300*time.Millisecond)
			_, err = fmt.Fprintf(l.p.in, `{"type":"control_request","request_id":"i%d","request":{"subtype":"interrupt"}}`+"\n", i)
			l.g.count("interrupt")
		}
		for kind := ""; err == nil && kind != "result"; {
			kind, err = nextEvent(out)
		}
		if err != nil {
			l.g.t.Errorf("turn %d of the session: %v", i, err)
			return
		}
		l.g.count("turn")
	}
}

func sendPrompt(in io.Writer, prompt string) error {
	_, err := fmt.Fprintf(in, `{"type":"user","message":{"role":"user","content":%q}}`+"\n", prompt)
	return err
}

func nextEvent(out *bufio.Reader) (kind string, err error) {
	line, err := out.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var event struct{ Type string }
	return event.Type, json.Unmarshal(line, &event)
}

// runs is a load of sessions that end at any moment: normally, by a signal, or killed.
type runs struct{ g *soakDir }

func (l runs) run(ctx context.Context, d randomSource) {
	for ; ctx.Err() == nil; d.rest(ctx, pause) {
		dir := l.g.newDir("run")
		if err := l.one(ctx, d, l.g.command(dir, claudeArgs(l.g)...)); err != nil {
			l.g.t.Errorf("a run: %v", err)
			return
		}
		l.g.checkNoneLeft(dir, 5*time.Second)
		if err := os.RemoveAll(dir); err != nil {
			l.g.t.Error(err)
		}
		l.g.count("run")
	}
}

func (l runs) one(ctx context.Context, d randomSource, cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	how := []string{"eof", "signal", "kill"}[d.IntN(3)]
	prompts := []string{"hi", "shell", "near", "far", "hang", "slow"}
	if how == "eof" {
		prompts = prompts[:4] // the prompts whose turns end
	}
	for range 1 + d.IntN(3) {
		if err := sendPrompt(in, prompts[d.IntN(len(prompts))]); err != nil {
			return fmt.Errorf("it ended by itself: %w", err)
		}
		d.rest(ctx, 3*pause)
	}
	l.g.count(how)
	switch how {
	case "eof":
		err = in.Close()
	case "signal":
		err = cmd.Process.Signal(os.Interrupt)
	case "kill":
		err = cmd.Process.Kill()
	}
	late := time.AfterFunc(20*time.Second, func() {
		l.g.t.Errorf("a run does not end within 20s of %s", how)
		_ = cmd.Process.Kill() // it may just have exited
	})
	defer late.Stop()
	if waited := cmd.Wait(); how == "eof" && waited != nil {
		return waited
	}
	return err
}

// debuggedRuns is a load of runs whose calls the debugger pauses. Some are killed during the pause.
type debuggedRuns struct {
	g   *soakDir
	url string
}

func (l debuggedRuns) run(ctx context.Context, d randomSource) {
	if _, err := postRequest(ctx, l.url+"/api/breakpoints", `{"function_name":"Bash","behavior":"stop","after_behavior":"go"}`, nil, true); err != nil {
		l.g.t.Error(err)
		return
	}
	for ; ctx.Err() == nil; d.rest(ctx, pause) {
		dir := l.g.newDir("attached")
		cmd := l.g.command(dir, "-p", "shell", "--scenario", l.g.file("scenario.toml"), "--allowedTools", "Bash", "--debugger", l.url)
		limit, cancel := context.WithTimeout(ctx, 20*time.Second)
		killed := d.IntN(4) == 0
		if err := cmd.Start(); err != nil {
			l.g.t.Error(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if killed {
			d.rest(ctx, 3*pause)
			_ = cmd.Process.Kill() // it may have exited
		}
		select {
		case err := <-ended:
			if err != nil && !killed {
				l.g.t.Errorf("an attached run: %v", err)
			}
		case <-limit.Done():
			if ctx.Err() == nil {
				l.g.t.Error("an attached run does not end within 20s")
			}
			_ = cmd.Process.Kill() // it may just have exited
			<-ended
		}
		cancel()
		l.g.checkNoneLeft(dir, 5*time.Second)
		if err := os.RemoveAll(dir); err != nil {
			l.g.t.Error(err)
		}
		l.g.count("attached")
	}
}

// decisions is a load that resumes calls paused in the debugger, with each kind of decision.
type decisions struct {
	g   *soakDir
	url string
}

func (l decisions) run(ctx context.Context, d randomSource) {
	for ; ctx.Err() == nil; d.rest(ctx, pause) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/api/paused", nil)
		if err != nil {
			l.g.t.Error(err)
			return
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			if ctx.Err() == nil {
				l.g.t.Error(err)
			}
			return
		}
		var paused struct{ Paused []struct{ ID string } }
		err = json.NewDecoder(res.Body).Decode(&paused)
		res.Body.Close()
		if err != nil && ctx.Err() == nil {
			l.g.t.Error(err)
		}
		for _, p := range paused.Paused {
			decision := []string{`{}`, `{"action":"skip","fake_result":"none"}`, `{"action":"raise","exception_message":"no"}`}[d.IntN(3)]
			if _, err := postRequest(ctx, l.url+"/api/paused/"+p.ID+"/continue", decision, nil, true); err == nil {
				l.g.count("decision") // otherwise the call has ended, because its caller was killed
			}
		}
	}
}
