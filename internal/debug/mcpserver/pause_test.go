package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
	"github.com/claudeless/claudeless/internal/debug/mcpserver"
)

func TestToolsAreListed(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c := f.dialStdio(t)
	r, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	counts := map[string]int{}
	for _, tool := range r.Tools {
		prefix, _, _ := strings.Cut(tool.Name, "_")
		counts[prefix]++
		if seen[tool.Name] { // S4
			t.Errorf("%s is listed twice", tool.Name)
		}
		seen[tool.Name] = true
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler() // S3
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err == nil {
			err = compiler.AddResource("tool.json", doc)
		}
		if err == nil {
			_, err = compiler.Compile("tool.json")
		}
		if err != nil {
			t.Errorf("schema of %s: %v", tool.Name, err)
		}
		// S87: for each tool, each required parameter that is missing is named.
		for _, p := range tool.InputSchema.Required {
			args := kindObject{}
			for _, other := range tool.InputSchema.Required {
				if other != p {
					args[other] = "x"
				}
			}
			raw, _ := json.Marshal(args)
			if strings.HasPrefix(tool.Name, "external_") {
				continue // without external servers, these tools do not check parameters
			}
			expect(t, ask(t, c, tool.Name, string(raw)), `{"error":"missing_parameter","parameter":"`+p+`"}`)
		}
	}
	// S1, S2, C132, C133.
	if counts["breakpoint"] != 14 || counts["external"] != 5 || len(r.Tools) != 19 {
		t.Errorf("tools: %v", counts)
	}
}

// TestContinue decides about a call of A with the input {"x":1} before it runs.
func TestContinue(t *testing.T) {
	for name, tc := range map[string]struct {
		args, want string
		failed     bool
	}{
		"S41 continue":               {`{}`, `A {"x":1}`, false},
		"S42 skip":                   {`{"action":"skip","fake_result":"made up"}`, `made up`, false},
		"S42 skip with JSON":         {`{"action":"skip","fake_result":{"n":12345678901234567890}}`, `{"n":12345678901234567890}`, false},
		"S43 raise":                  {`{"action":"raise","exception_type":"ValueError","exception_message":"no"}`, `no`, true},
		"S44 list":                   {`{"modified_args":[{"x":2}]}`, `A {"x":2}`, false},
		"S45 S50 B2 fields":          {`{"modified_kwargs":{"x":3}}`, `A {"x":3}`, false},
		"modify":                     {`{"action":"modify","modified_kwargs":{}}`, `A {}`, false},
		"expression":                 {`{"modified_input_expr":"{x: input.x + 1}"}`, `A {"x":2}`, false},
		"S46 replacement":            {`{"replacement_function":"B"}`, `B {"x":1}`, false},
		"S47 replacement wins":       {`{"action":"raise","replacement_function":"B"}`, `B {"x":1}`, false},
		"unknown parameters ignored": {`{"fake_result_data":7}`, `A {"x":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestServer(t, mcpserver.Options{})
			c := f.dialStdio(t)
			ask(t, c, "breakpoint_add", `{"function_name":"A","after_behavior":"go"}`)
			id, done := f.stopped(t, "A", `{"x":1}`)
			args := `{"pause_id":"` + id + `",` + strings.TrimPrefix(tc.args, "{")
			args = strings.Replace(args, ",}", "}", 1)
			expect(t, ask(t, c, "breakpoint_continue", args), `{"status":"ok","pause_id":"`+id+`"}`)
			if got, failed := result(t, done); got != tc.want || failed != tc.failed {
				t.Errorf("result %q, failed %v; want %q, %v", got, failed, tc.want, tc.failed)
			}
			// S49: the second decision has no effect.
			expect(t, ask(t, c, "breakpoint_continue", args), `{"error":"pause_already_resumed","pause_id":"`+id+`"}`)
		})
	}
}

// TestRefusedContinue: after a refused request the call is still paused (S89, B7, B11).
func TestRefusedContinue(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c := f.dialStdio(t)
	ask(t, c, "breakpoint_add", `{"function_name":"A","after_behavior":"go"}`)
	id, done := f.stopped(t, "A", `{"x":1}`)
	for args, want := range map[string]string{
		`"action":"explode"`:              `{"error":"invalid_action","action":"explode"}`,
		`"modified_kwargs":[1]`:           `{"error":"invalid_arguments","parameter":"modified_kwargs"}`,
		`"modified_args":{}`:              `{"error":"invalid_arguments","parameter":"modified_args"}`,
		`"modified_args":[1,2]`:           `{"error":"invalid_arguments"}`,
		`"modified_args":[7]`:             `{"error":"invalid_arguments"}`,
		`"action":"modify"`:               `{"error":"invalid_arguments"}`,
		`"action":7`:                      `{"error":"invalid_arguments","parameter":"action"}`,
		`"modified_input_expr":"input +"`: `{"error":"invalid_condition"}`,
	} {
		expect(t, ask(t, c, "breakpoint_continue", `{"pause_id":"`+id+`",`+args+`}`), want)
	}
	if len(f.hub.Pauses()) != 1 {
		t.Fatal("the call is not paused any more")
	}
	ask(t, c, "breakpoint_continue", `{"pause_id":"`+id+`"}`)
	result(t, done)
}

// TestAfter: a call that is paused after it ran shows its result, even if it failed (B1), and the result can be
// changed.
func TestAfter(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c := f.dialStdio(t)
	ask(t, c, "breakpoint_add", `{"function_name":"fails","behavior":"go","after_behavior":"exception"}`)
	id, done := f.stopped(t, "fails", `{}`)
	paused := ask(t, c, "breakpoint_list_paused", "")["paused"].([]any)[0].(kindObject)
	expect(t, paused["call_data"].(kindObject), `{"phase":"after","pause_reason":"exception","exception":"it broke","pretty_result":"it broke"}`)
	ask(t, c, "breakpoint_continue", `{"pause_id":"`+id+`","modified_result":"mended"}`)
	if got, failed := result(t, done); got != "mended" || failed {
		t.Errorf("result %q, failed %v", got, failed)
	}
}

func TestPausedCallIsShown(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	f.register(t, map[string]string{"A": `{"type":"object"}`})
	c := f.dialStdio(t)
	ask(t, c, "breakpoint_add", `{"function_name":"A"}`)
	id, done := f.stopped(t, "A", `{"x":1}`)

	// S62, S63: a session is created; S64: it is used again, with its variables.
	first := ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+id+`","expression":"two := input.x + 1"}`)
	expect(t, first, `{"output":"2","stdout":"","is_error":false}`) // S68
	session := fmt.Sprint(first["session_id"])
	eval := func(expr, more string) kindObject {
		t.Helper()
		raw, _ := json.Marshal(expr)
		return ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+id+`","session_id":"`+session+`","expression":`+string(raw)+more+`}`)
	}
	expect(t, eval("vars.two + 2", ""), `{"output":"4","session_id":"`+session+`"}`)
	bad := eval("input +", "") // S65
	expect(t, bad, `{"is_error":true}`)
	if !strings.Contains(fmt.Sprint(bad["output"]), "column") {
		t.Errorf("no position in %v", bad)
	}
	expect(t, eval(" \t", ""), `{"error":"missing_expression"}`) // S66
	expect(t, eval("1", `,"timeout_s":0`), `{"error":"invalid_arguments","parameter":"timeout_s"}`)

	paused := ask(t, c, "breakpoint_list_paused", "")
	one := paused["paused"].([]any)[0].(kindObject)
	expect(t, one, `{"id":"`+id+`","repl_sessions":["`+session+`"]}`) // S40
	expect(t, one["call_data"].(kindObject), `{"method_name":"A","input":{"x":1},"pretty_kwargs":{"x":1},"pretty_args":[],
		"signature":"{\"type\":\"object\"}","call_site":{"turn":3},"pause_reason":"breakpoint","phase":"before","session_id":"agent-1"}`) // S39
	if at, ok := one["paused_at"].(float64); !ok || at < 1e9 {
		t.Errorf("paused_at is %v", one["paused_at"])
	}

	// S84, S85.
	get := mcp.GetPromptRequest{}
	get.Params.Name, get.Params.Arguments = "inspect-paused-call", map[string]string{"pause_id": id}
	prompt, err := c.GetPrompt(t.Context(), get)
	if err != nil {
		t.Fatal(err)
	}
	text := prompt.Messages[0].Content.(mcp.TextContent).Text
	for _, want := range []string{id, "a call of A", `"x": 1`, `"turn": 3`, `"type": "object"`} {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("no %q in the prompt:\n%s", want, text)
		}
	}
	for _, unknown := range []map[string]string{{"pause_id": "nope"}, {}} {
		get.Params.Arguments = unknown
		if _, err := c.GetPrompt(t.Context(), get); err == nil {
			t.Errorf("a prompt for %v", unknown)
		}
	}

	if err := f.hub.CloseREPLSession(session); err != nil { // S70
		t.Fatal(err)
	}
	expect(t, eval("1", ""), `{"error":"session_closed"}`)
	session = "7-1795225672.572335" // has the form of a session id, but no such session exists
	expect(t, eval("1", ""), `{"error":"session_not_found"}`)
	for _, none := range []string{`"nope"`, `"7-"`, `"-1.5"`, `7`, `{}`} {
		expect(t, ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+id+`","session_id":`+none+`,"expression":"1"}`), `{"error":"invalid_session_id"}`)
	}

	ask(t, c, "breakpoint_continue", `{"pause_id":"`+id+`"}`)
	after := f.pause(t, 1)[0]
	expect(t, ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+id+`","expression":"1"}`), `{"error":"pause_already_resumed"}`) // S67: not any more
	session = fmt.Sprint(first["session_id"])
	expect(t, ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+after+`","session_id":"`+session+`","expression":"1"}`), `{"error":"invalid_session_id"}`)
	ask(t, c, "breakpoint_continue", `{"pause_id":"`+after+`"}`)
	result(t, done)
}

// TestOlderClient: expressions are relayed (B3), end with their timeout (S69) and with the pause (B6); the output of
// its client is included (S68).
func TestOlderClient(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c, other := f.dialStdio(t), f.dialHTTP(t)
	ask(t, c, "breakpoint_add", `{"function_name":"add"}`)
	older := compat.New(f.hub)
	begun, err := f.hub.ReportCallStart(t.Context(), older.WithOlderClientAsCaller(debug.Call{Tool: "add", PID: 7, Started: 1, Signature: "(a, b)"}, compat.CallData{}))
	if err != nil || begun.PauseID == "" {
		t.Fatalf("%+v, %v", begun, err)
	}
	ask1 := func(expr, more string) kindObject {
		return ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+begun.PauseID+`","expression":"`+expr+`"`+more+`}`)
	}
	expect(t, ask1("never", `,"timeout_s":0.05`), `{"error":"eval_timeout"}`)
	expect(t, ask1(" ", ""), `{"error":"missing_expression"}`) // S66: before the client is asked
	if q := older.TakeEvalRequest(begun.PauseID); q != nil {
		t.Errorf("the client is asked %+v", q)
	}
	answers := make(chan kindObject, 2)
	question := func() *compat.EvalRequest {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); runtime.Gosched() {
			if q := older.TakeEvalRequest(begun.PauseID); q != nil {
				return q
			}
		}
		t.Fatal("no question came")
		return nil
	}
	go func() { answers <- ask1("2 + 2", "") }()
	q := question()
	if q.Expr != "2 + 2" {
		t.Fatalf("asked %q: a question that timed out is still there", q.Expr)
	}
	err = older.DeliverEvalResponse(compat.EvalResponse{EvalID: q.EvalID, SessionID: q.SessionID, PauseID: q.PauseID, Result: "4", Stdout: "hi\n"})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, <-answers, `{"output":"4","stdout":"hi\n","is_error":false}`)
	go func() { answers <- ask1("wait()", "") }()
	question()
	expect(t, ask(t, other, "breakpoint_continue", `{"pause_id":"`+begun.PauseID+`"}`), `{"status":"ok"}`)
	expect(t, <-answers, `{"error":"session_closed"}`)

	// S50, B2: the client gets new arguments as pickles, and a replaced result as JSON, whatever front end sends them.
	for args, want := range map[string]string{
		`"modified_args":[10],"modified_kwargs":{"b":null}`: `"modified_args":[{"cid":"995f`,
		`"action":"skip","fake_result":{"a":1}`:             `{"action":"skip","fake_result":{"a":1}}`,
		`"action":"raise","exception_type":"KeyError"`:      `{"action":"raise","exception_type":"KeyError","exception_message":"KeyError"}`,
	} {
		begun, err := f.hub.ReportCallStart(t.Context(), older.WithOlderClientAsCaller(debug.Call{Tool: "add", PID: 7, Started: 1}, compat.CallData{Preferred: "dill"}))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, ask(t, c, "breakpoint_continue", `{"pause_id":"`+begun.PauseID+`",`+args+`}`), `{"status":"ok"}`)
		d, _, err := f.hub.Wait(t.Context(), begun.PauseID)
		if err != nil || !strings.Contains(string(d.Encoded), want) {
			t.Errorf("%s: the client reads %s, %v", args, d.Encoded, err)
		}
		if d.Action == debug.ActionModify && (!strings.Contains(string(d.Encoded), `"data":"gARLCi4=","serialization_format":"dill"`) || !strings.Contains(string(d.Encoded), `"modified_kwargs":{"b":{`)) {
			t.Errorf("%s: the client reads %s", args, d.Encoded)
		}
	}
}

func TestRecords(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c := f.dialStdio(t)
	for i := range 102 {
		result(t, f.run(t, "A", fmt.Sprintf(`{"i":%d}`, i)))
	}
	result(t, f.run(t, "fails", `{}`))
	records := func(args string) (kindObject, []any) {
		out := ask(t, c, "breakpoint_get_call_records", args)
		return out, out["calls"].([]any)
	}
	out, calls := records("") // S58, S59, S60
	expect(t, out, `{"total_count":103,"truncated":true}`)
	if len(calls) != 100 {
		t.Errorf("%d calls by default", len(calls))
	}
	last := calls[99].(kindObject)                                                                 // B5: the newest are kept
	expect(t, last, `{"method_name":"fails","status":"exception","exception_message":"it broke"}`) // S57
	for _, key := range []string{"call_id", "pretty_args", "pretty_result", "started_at", "completed_at"} {
		if _, ok := last[key]; !ok {
			t.Errorf("no %s in %v", key, last)
		}
	}
	if out, calls := records(`{"limit":200}`); len(calls) != 103 || out["truncated"] != false { // S54
		t.Errorf("%d calls, truncated %v", len(calls), out["truncated"])
	}
	if _, calls := records(`{"function_name":"fails"}`); len(calls) != 1 { // S55
		t.Errorf("%d calls of fails", len(calls))
	}
	if _, calls := records(`{"limit":2,"function_name":"A"}`); len(calls) != 2 || calls[1].(kindObject)["input"].(kindObject)["i"] != 101.0 { // S56
		t.Errorf("calls %v", calls)
	}

	// S71: the value of a record.
	_, calls = records(`{"limit":1,"function_name":"A"}`)
	cid := fmt.Sprint(calls[0].(kindObject)["input_cid"])
	expect(t, ask(t, c, "breakpoint_inspect_object", `{"cid":"`+cid+`"}`), `{"cid":"`+cid+`","type":"object","repr":"{\"i\":101}","attributes":{"i":101}}`)
	// S73, S74: bytes that are not JSON, and bytes that are not a pickle.
	binary, _ := f.hub.Store().Put([]byte{0xff, 0x00, 0x01})
	expect(t, ask(t, c, "breakpoint_inspect_object", `{"cid":"`+binary+`"}`), `{"type":"bytes","size":3}`)
	broken, _ := f.hub.Store().Put([]byte{0x80, 0x04, 'X'})
	expect(t, ask(t, c, "breakpoint_inspect_object", `{"cid":"`+broken+`"}`), `{"error":"deserialization_failed","cid":"`+broken+`"}`)
}

func TestFunctions(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c := f.dialStdio(t)
	expect(t, ask(t, c, "breakpoint_list_functions", ""), `{"functions":[],"signatures":{},"metadata":{}}`) // S51
	f.register(t, map[string]string{"A": `{"type":"object"}`})
	expect(t, ask(t, c, "breakpoint_list_functions", ""), `{"functions":["A"],"signatures":{"A":"{\"type\":\"object\"}"},
		"metadata":{"A":{"server":"t","original_name":"A","description":"does A","input_schema":{"type":"object"}}}}`) // S52
}

func TestResourcesAndPrompts(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	f.register(t, map[string]string{"A": `{"type":"object"}`})
	c := f.dialStdio(t)
	listed, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	if err != nil || len(listed.Resources) != 5 {
		t.Fatalf("%v, %v", listed, err)
	}
	read := func(uri string) kindObject {
		t.Helper()
		req := mcp.ReadResourceRequest{}
		req.Params.URI = uri
		r, err := c.ReadResource(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, r.Contents[0].(mcp.TextResourceContents).Text)
	}
	expect(t, read("breakpoint://status"), `{"breakpoints":0,"paused":0,"total_calls":0}`) // S77
	for i := range 60 {
		result(t, f.run(t, "A", fmt.Sprintf(`{"i":%d}`, i)))
	}
	ask(t, c, "breakpoint_add", `{"function_name":"A"}`)
	_, done := f.stopped(t, "A", `{"x":1}`)
	expect(t, read("breakpoint://status"), `{"breakpoints":1,"paused":1,"total_calls":60}`) // S82
	for uri, tool := range map[string]string{                                               // S78, S79, S81
		"breakpoint://breakpoints": "breakpoint_list_breakpoints", "breakpoint://paused": "breakpoint_list_paused", "breakpoint://functions": "breakpoint_list_functions",
	} {
		want, _ := json.Marshal(ask(t, c, tool, ""))
		expect(t, read(uri), string(want))
	}
	calls := read("breakpoint://call-history")["calls"].([]any) // S80: the newest 50, B5
	if len(calls) != 50 || calls[0].(kindObject)["input"].(kindObject)["i"] != 10.0 || calls[49].(kindObject)["input"].(kindObject)["i"] != 59.0 {
		t.Errorf("%d calls in the history, from %v", len(calls), calls[0])
	}
	req := mcp.ReadResourceRequest{}
	req.Params.URI = "breakpoint://nope"
	if _, err := c.ReadResource(t.Context(), req); err == nil || !strings.Contains(err.Error(), "breakpoint://nope") {
		t.Errorf("unknown resource: %v", err)
	}

	prompts, err := c.ListPrompts(t.Context(), mcp.ListPromptsRequest{})
	if err != nil || len(prompts.Prompts) != 2 {
		t.Fatalf("%v, %v", prompts, err)
	}
	get := mcp.GetPromptRequest{}
	get.Params.Name = "debug-session-start" // S83
	p, err := c.GetPrompt(t.Context(), get)
	if err != nil {
		t.Fatal(err)
	}
	text := p.Messages[0].Content.(mcp.TextContent).Text
	for _, want := range []string{`"paused": 1`, `"breakpoints": [`, f.hub.Pauses()[0].ID, `"functions": [`, `"total_count": 60`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the prompt:\n%s", want, text)
		}
	}
	get.Params.Name = "nope"
	if _, err := c.GetPrompt(t.Context(), get); err == nil {
		t.Error("an unknown prompt")
	}
	f.hub.Close()
	result(t, done)
}

// TestAtOnce: concurrent additions and removals over MCP and by other users of the hub are not lost (S90), and each
// side sees the changes of the other (S91, S92).
func TestAtOnce(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	c := f.dialHTTP(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { ask(t, c, "breakpoint_add", fmt.Sprintf(`{"function_name":"m%d"}`, i)) })
		wg.Go(func() {
			if err := f.hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: fmt.Sprintf("h%d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(ask(t, c, "breakpoint_list_breakpoints", "")["breakpoints"].([]any)); n != 40 || len(f.hub.BreakpointSet.Breakpoints()) != 40 {
		t.Errorf("%d and %d breakpoints, want 40", n, len(f.hub.BreakpointSet.Breakpoints()))
	}
	for i := range 20 {
		wg.Go(func() { ask(t, c, "breakpoint_remove", fmt.Sprintf(`{"function_name":"h%d"}`, i)) })
		wg.Go(func() { f.hub.BreakpointSet.RemoveBreakpoint(fmt.Sprintf("m%d", i)) })
	}
	wg.Wait()
	if n := len(f.hub.BreakpointSet.Breakpoints()); n != 0 {
		t.Errorf("%d breakpoints are left", n)
	}
	inARow(t, f.hub)
}

// inARow changes breakpoints at the end of a long list many times. Without the lock some changes would be lost, with or
// without the race detector.
func inARow(t *testing.T, hub *debug.Hub) {
	t.Helper()
	const others, each, workers = 500, 2_000, 4
	for i := range others {
		if err := hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: fmt.Sprintf("o%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	var changes, looks sync.WaitGroup
	for w := range workers {
		changes.Go(func() {
			own := debug.BreakpointSettings{Name: fmt.Sprintf("r%d", w)}
			for range each {
				err := hub.BreakpointSet.SetBreakpoint(own)
				if err == nil {
					_, err = hub.BreakpointSet.UpdateBreakpoint(own)
				}
				if err != nil {
					t.Errorf("the breakpoint %s is lost: %v", own.Name, err)
					return
				}
				hub.BreakpointSet.RemoveBreakpoint(own.Name)
				if _, err := hub.BreakpointSet.UpdateBreakpoint(own); err == nil {
					t.Errorf("the breakpoint %s is there again", own.Name)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	looks.Go(func() {
		for {
			if n := len(hub.BreakpointSet.Breakpoints()); n < others {
				t.Errorf("%d of %d breakpoints are seen", n, others)
				return
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	changes.Wait()
	close(over)
	looks.Wait()
}
