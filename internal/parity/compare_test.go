package parity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/parity"
)

const (
	idA, idB = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	idC, idD = "33333333-3333-3333-3333-333333333333", "44444444-4444-4444-4444-444444444444"
)

func eventMessage(stdout string) *parity.Recording {
	return &parity.Recording{Runs: []parity.Run{{Stdout: stdout}}}
}

// withPrompts returns a recording in which the model receives these prompts.
func withPrompts(r *parity.Recording, prompts ...string) *parity.Recording {
	for _, p := range prompts {
		r.Requests = append(r.Requests, json.RawMessage(`{"type":"prompt","text":"`+p+`"}`))
	}
	return r
}

func lines(list ...string) []json.RawMessage {
	var all []json.RawMessage
	for _, l := range list {
		all = append(all, json.RawMessage(l))
	}
	return all
}

// P1, P2: values that count as equal, and the report of a difference.
func TestCompare(t *testing.T) {
	type paths = []string
	tests := []struct {
		name       string
		ours, real *parity.Recording
		want       paths
	}{
		{
			"ids by first sight", eventMessage(`{"type":"a","uuid":"` + idA + `"}` + "\n" + `{"type":"b","of":"` + idA + `"}`),
			eventMessage(`{"type":"a","uuid":"` + idB + `"}` + "\n" + `{"type":"b","of":"` + idB + `"}`), nil,
		},
		{
			"an id that is another one", eventMessage(`{"type":"a","uuid":"` + idA + `"}` + "\n" + `{"type":"b","uuid":"` + idA + `"}`),
			eventMessage(`{"type":"a","uuid":"` + idB + `"}` + "\n" + `{"type":"b","uuid":"` + idC + `"}`),
			paths{"stdout.b.uuid"},
		},
		{
			"an id that one side has shifts no others", eventMessage(`{"type":"a","uuid":"` + idA + `"}`),
			eventMessage(`{"type":"a","more":"` + idB + `","uuid":"` + idC + `"}`),
			paths{"stdout.a.more"},
		},
		{
			"times, durations, costs, versions", eventMessage(`{"type":"a","timestamp":"x","duration_ms":1,"total_cost_usd":2,"version":"1"}`),
			eventMessage(`{"type":"a","timestamp":"y","duration_ms":2,"total_cost_usd":3,"version":"2"}`), nil,
		},
		{"a duration is there on both sides", eventMessage(`{"type":"a","duration_ms":1}`), eventMessage(`{"type":"a"}`), paths{"stdout.a.duration_ms"}},
		{"a duration is a number", eventMessage(`{"type":"a","duration_ms":1}`), eventMessage(`{"type":"a","duration_ms":null}`), paths{"stdout.a.duration_ms"}},
		{"keys in another order", eventMessage(`{"type":"a","x":1,"y":2}`), eventMessage(`{"type":"a","y":2,"x":1}`), nil},
		{"an event that one side lacks", eventMessage(`{"type":"a"}` + "\n" + `{"type":"b"}` + "\n" + `{"type":"c"}`), eventMessage(`{"type":"a"}` + "\n" + `{"type":"c"}`), paths{"stdout.b"}},
		{"events in another order", eventMessage(`{"type":"a"}` + "\n" + `{"type":"b"}`), eventMessage(`{"type":"b"}` + "\n" + `{"type":"a"}`), paths{"stdout.a", "stdout.a"}},
		{
			"agents side by side", eventMessage(calls("1", "2") + agent("2", "begins") + agent("1", "begins", "ends") + agent("2", "ends") + results("1", "2")),
			eventMessage(calls("1") + agent("1", "begins") + calls("2") + agent("2", "begins") + agent("1", "ends") + results("1") + agent("2", "ends") + results("2")), nil,
		},
		{
			"what agents side by side ask", withPrompts(eventMessage(calls("1", "2")+agent("1", "begins")+agent("2", "begins")), "go", "b", "a"),
			withPrompts(eventMessage(calls("1", "2")+agent("1", "begins")+agent("2", "begins")), "go", "a", "b"), nil,
		},
		{
			"agents that only their task names", eventMessage(calls("1", "2") + agent("2", "begins") + agent("1", "begins", "reports") + agent("2", "reports") + results("1", "2")),
			eventMessage(calls("1", "2") + agent("1", "begins") + agent("2", "begins", "reports") + agent("1", "reports") + results("1", "2")), nil,
		},
		{
			"one agent that begins before its call", eventMessage(calls("1") + agent("1", "begins")), eventMessage(agent("1", "begins") + calls("1")), paths{"stdout.assistant[tool_use]", "stdout.assistant[tool_use]"},
		},
		{
			"hooks of parallel calls", &parity.Recording{Runs: eventMessage(calls("1", "2")).Runs, Hooks: lines(hookOf("1", 1), hookOf("2", 2))}, &parity.Recording{Runs: eventMessage(calls("1", "2")).Runs, Hooks: lines(hookOf("2", 2), hookOf("1", 1))}, nil,
		},
		{
			"hooks without a call", &parity.Recording{Hooks: lines(`{"hook_event_name":"A"}`, `{"hook_event_name":"B"}`)}, &parity.Recording{Hooks: lines(`{"hook_event_name":"B"}`, `{"hook_event_name":"A"}`)}, paths{"hooks.A", "hooks.A"},
		},
		{
			"results of the model's requests", &parity.Recording{Runs: eventMessage(calls("1", "2")).Runs, Requests: lines(`{"type":"result","tool_use_id":"toolu_00000001","x":1}`, `{"type":"result","tool_use_id":"toolu_00000002","x":2}`)},
			&parity.Recording{Runs: eventMessage(calls("1", "2")).Runs, Requests: lines(`{"type":"result","tool_use_id":"toolu_00000002","x":2}`, `{"type":"result","tool_use_id":"toolu_00000001","x":1}`)}, nil,
		},
		{"a run that one side lacks", &parity.Recording{Runs: []parity.Run{{Code: 1}, {Code: 2}}}, &parity.Recording{Runs: []parity.Run{{Code: 1}}}, paths{"runs"}},
		{"the second of two runs", &parity.Recording{Runs: []parity.Run{{Code: 1}, {Code: 2}}}, &parity.Recording{Runs: []parity.Run{{Code: 1}, {Code: 3}}}, paths{"exit"}},
		{"what one conversation asks", withPrompts(eventMessage(""), "b", "a"), withPrompts(eventMessage(""), "a", "b"), paths{"requests.prompt.text"}},
		{
			"an agent that ends before it begins", eventMessage(calls("1", "2") + agent("1", "begins", "ends") + agent("2", "begins", "ends")),
			eventMessage(calls("1", "2") + agent("1", "ends", "begins") + agent("2", "begins", "ends")),
			paths{"stdout.system/task_started", "stdout.system/task_started"},
		},
		{
			"the line after parallel results", chained(idA, idB), chained(idB, idA), nil,
		},
		{"results of parallel calls", eventMessage(calls("1", "2") + results("1", "2")), eventMessage(calls("1", "2") + results("2", "1")), nil},
		{"lists of words", eventMessage(`{"type":"a","tools":["x","y"]}`), eventMessage(`{"type":"a","tools":["x","z"]}`), paths{"stdout.a.tools"}},
		{"lists of ids", eventMessage(`{"type":"a","tail":["x","y"]}`), eventMessage(`{"type":"a","tail":["v","w"]}`), nil},
		{"lists of ids of another length", eventMessage(`{"type":"a","tail":["x","y"]}`), eventMessage(`{"type":"a","tail":["v"]}`), paths{"stdout.a.tail"}},
		{"names of files that tools have made", eventMessage(`{"type":"a","t":"mcp-desk-blob-1795384832589-652ox3.png"}`), eventMessage(`{"type":"a","t":"mcp-desk-blob-1795384839754-zn5huc.png"}`), nil},
		{"lists of objects", eventMessage(`{"type":"a","l":[{"n":1},{"n":2}]}`), eventMessage(`{"type":"a","l":[{"n":1},{"n":3}]}`), paths{"stdout.a.l[].n"}},
		{"text", eventMessage("one\ntwo\n"), eventMessage("one\nthree\n"), paths{"stdout.text"}},
		{"an array of events", eventMessage(`[{"type":"a"},{"type":"b"}]`), eventMessage(`[{"type":"a"}]`), paths{"stdout.b"}},
		{"exit and stderr", &parity.Recording{Runs: []parity.Run{{Code: 1, Stderr: "x\n"}}}, &parity.Recording{Runs: []parity.Run{{Code: 2}}}, paths{"stderr", "exit"}},
		{"files", &parity.Recording{Files: map[string]string{"a": "1", "b": "2"}}, &parity.Recording{Files: map[string]string{"a": "2"}}, paths{"files.a", "files.b"}},
		{"hooks", &parity.Recording{Hooks: lines(`{"hook_event_name":"Stop","x":1}`)}, &parity.Recording{Hooks: lines(`{"hook_event_name":"Stop","x":2}`)}, paths{"hooks.Stop.x"}},
		{
			"mcp", &parity.Recording{MCP: map[string][]json.RawMessage{"s": lines(`{"session":"1","from":"client","message":{"id":1,"method":"ping"}}`, `{"session":"1","from":"server","message":{"id":1,"result":{"a":1}}}`)}},
			&parity.Recording{MCP: map[string][]json.RawMessage{"s": lines(`{"session":"1","from":"client","message":{"id":1,"method":"ping"}}`, `{"session":"1","from":"server","message":{"id":1,"result":{"a":2}}}`)}},
			paths{"mcp.s.server answer to ping.message.result.a"},
		},
		{
			"a stream of notifications that one lane opens again", &parity.Recording{MCP: map[string][]json.RawMessage{"s": lines(
				`{"session":"1","from":"client","message":{"id":"listen:0","method":"subscriptions/listen"}}`,
				`{"session":"1","from":"server","message":{"id":"listen:0","result":{}}}`,
				`{"session":"1","from":"client","message":{"id":"listen:1","method":"subscriptions/listen"}}`,
				`{"session":"1","from":"server","message":{"method":"notifications/subscriptions/acknowledged"}}`,
				`{"session":"1","from":"client","message":{"id":2,"method":"tools/list"}}`,
				`{"session":"1","from":"server","message":{"id":2,"result":{}}}`)}},
			&parity.Recording{MCP: map[string][]json.RawMessage{"s": lines(
				`{"session":"1","from":"client","message":{"id":"listen:0","method":"subscriptions/listen"}}`,
				`{"session":"1","from":"server","message":{"id":"listen:0","result":{"a":1}}}`)}},
			paths{"mcp.s.server answer to subscriptions/listen.message.result.a"},
		},
		{
			"lists of a server that are asked for at once", exchanged("tools/list", "answer", "prompts/list", "answer"), exchanged("prompts/list", "tools/list", "answer", "answer"), nil,
		},
		{
			"another list", exchanged("tools/list", "answer", "prompts/list", "answer"), exchanged("tools/list", "answer", "resources/list", "answer"),
			paths{"mcp.s.client prompts/list", "mcp.s.server answer to prompts/list", "mcp.s.client resources/list", "mcp.s.server answer to resources/list"},
		},
		{
			"a line of a transcript is out of the chain", &parity.Recording{Transcripts: map[string][]json.RawMessage{"t.jsonl": lines(`{"type":"x","uuid":"`+idA+`"}`, `{"type":"y","uuid":"`+idB+`","parentUuid":"`+idA+`"}`)}},
			&parity.Recording{Transcripts: map[string][]json.RawMessage{"t.jsonl": lines(`{"type":"x","uuid":"`+idA+`"}`, `{"type":"more","uuid":"`+idC+`","parentUuid":"`+idA+`"}`, `{"type":"y","uuid":"`+idB+`","parentUuid":"`+idC+`"}`)}},
			paths{"transcript.more"},
		},
		{
			"a transcript that nothing else names", transcripts(idA+".jsonl", idD+".jsonl"), transcripts(idC+".jsonl", idB+".jsonl"), nil,
		},
		{"a transcript that one side lacks", transcripts(idA + ".jsonl"), &parity.Recording{}, paths{"transcript"}},
		{"ids of tasks in texts", eventMessage("Command was moved to the background (ID: b12345678)"), eventMessage("Command was moved to the background (ID: babcdefgh)"), nil},
		{
			"a session that nothing but its file names", &parity.Recording{Transcripts: map[string][]json.RawMessage{"p/" + idA + ".jsonl": lines(`{"type":"x"}`)}},
			&parity.Recording{Transcripts: map[string][]json.RawMessage{"p/" + idB + ".jsonl": lines(`{"type":"y"}`)}},
			paths{"transcript.x", "transcript.y"},
		},
		{"how long a command of the CLI says that it took", eventMessage(`{"t":"Total duration (wall): 1m 2s"}`), eventMessage(`{"t":"Total duration (wall): 0s"}`), nil},
		{"names of files of results", eventMessage(`{"t":"a/mcp-desk-blob-1795384275787-746931.png"}`), eventMessage(`{"t":"a/mcp-desk-blob-1795384284255-qzaw7f.png"}`), nil},
		{
			"state of a session is the last of each kind", &parity.Recording{Transcripts: map[string][]json.RawMessage{"t.jsonl": lines(`{"type":"last-prompt","n":1}`, `{"type":"y"}`, `{"type":"last-prompt","n":2}`)}},
			&parity.Recording{Transcripts: map[string][]json.RawMessage{"t.jsonl": lines(`{"type":"y"}`, `{"type":"last-prompt","n":2}`)}}, nil,
		},
		{"problems", &parity.Recording{}, &parity.Recording{Problems: []parity.LaneProblem{{Kind: "timeout", Text: "x"}}}, paths{"problem.timeout"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got paths
			for _, d := range parity.Compare(test.ours, test.real) {
				got = append(got, d.Path)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func calls(ids ...string) (s string) {
	for _, id := range ids {
		s += `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Read","id":"toolu_0000000` + id + `"}]}}` + "\n"
	}
	return s
}

func results(ids ...string) (s string) {
	for _, id := range ids {
		s += `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_0000000` + id + `","content":"` + id + `"}]}}` + "\n"
	}
	return s
}

// transcripts returns files with increasing start times.
func transcripts(names ...string) *parity.Recording {
	r := &parity.Recording{Transcripts: map[string][]json.RawMessage{}}
	for i, name := range names {
		at := `,"timestamp":"2026-01-01T00:00:0` + strconv.Itoa(i) + `Z"}`
		r.Transcripts[name] = lines(`{"type":"mode"}`, `{"type":"x","n":`+strconv.Itoa(i)+at)
	}
	return r
}

func agent(call string, what ...string) (s string) {
	for _, w := range what {
		if w == "reports" {
			s += `{"type":"system","subtype":"task_progress","task_id":"t` + call + `","n":` + call + "}\n"
			continue
		}
		kind := map[string]string{"begins": "task_started", "ends": "task_notification"}[w]
		s += `{"type":"system","subtype":"` + kind + `","task_id":"t` + call + `","tool_use_id":"toolu_0000000` + call + `"}` + "\n"
	}
	return s
}

func hookOf(call string, x int) string {
	return fmt.Sprintf(`{"hook_event_name":"PreToolUse","tool_use_id":"toolu_0000000%s","x":%d}`, call, x)
}

// chained returns the results of two calls, in some order, and the line that follows them.
func chained(first, second string) *parity.Recording {
	result := map[string]string{
		idA: `{"type":"user","uuid":"` + idA + `","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_00000001"}]}}`,
		idB: `{"type":"user","uuid":"` + idB + `","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_00000002"}]}}`,
	}
	return &parity.Recording{
		Runs: []parity.Run{{Stdout: calls("1", "2")}}, Transcripts: map[string][]json.RawMessage{
			"t.jsonl": lines(result[first], result[second], `{"type":"x","uuid":"`+idC+`","parentUuid":"`+second+`"}`),
		},
	}
}

// exchanged returns the requests of a client to a server; the answers are in the order of the method names.
func exchanged(steps ...string) *parity.Recording {
	asked := slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return s == "answer" })
	slices.Sort(asked)
	slices.Reverse(asked)
	var all []json.RawMessage
	for _, s := range steps {
		if s != "answer" {
			all = append(all, lines(`{"session":"1","from":"client","message":{"id":"`+s+`","method":"`+s+`"}}`)...)
			continue
		}
		all = append(all, lines(`{"session":"1","from":"server","message":{"id":"`+asked[0]+`","result":{}}}`)...)
		asked = asked[1:]
	}
	return &parity.Recording{MCP: map[string][]json.RawMessage{"s": all}}
}

// A difference has the values of both sides, the number of its event (0 means none), and the number of differences at
// its path.
func TestDifference(t *testing.T) {
	got := parity.Compare(&parity.Recording{
		Runs:  []parity.Run{{Stdout: `{"type":"a","x":1}` + "\n" + `{"type":"a","x":2}`, Stderr: strings.Repeat("e", 401)}, {Stdout: `{"type":"b"}`}},
		Hooks: lines(`{"hook_event_name":"A","x":1}`), Files: map[string]string{"f": "1", "g": "same"},
		Transcripts: map[string][]json.RawMessage{"t.jsonl": lines(`{"type":"mode","n":1}`, `{"type":"mode","n":2}`, `{"type":"y"}`)},
	}, &parity.Recording{
		Runs:  []parity.Run{{Stdout: `{"type":"a","x":3}` + "\n" + `{"type":"a","x":[1]}`}, {Stdout: `{"type":"b"}`, Code: 1}},
		Hooks: lines(`{"hook_event_name":"A","x":{}}`), Files: map[string]string{"h": "1", "g": "same"},
		Transcripts: map[string][]json.RawMessage{"t.jsonl": lines(`{"type":"mode","n":3}`, `{"type":"y"}`)},
	})
	if diff := cmp.Diff([]parity.Difference{
		{Path: "stdout.a.x", Ours: "1", Real: "3", Event: 1, Count: 2},
		{Path: "stderr", Ours: strings.Repeat("e", 400) + "…", Count: 1},
		{Path: "exit", Ours: "0", Real: "1", Count: 1},
		{Path: "hooks.A.x", Ours: "1", Real: "{}", Event: 1, Count: 1},
		{Path: "transcript.mode.n", Ours: "2", Real: "3", Event: 2, Count: 1},
		{Path: "files.f", Ours: "there", Count: 1},
		{Path: "files.h", Real: "there", Count: 1},
	}, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// The report lists the equal cases in which a difference occurred only in some attempts. Other equal cases have no
// line.
func TestReportText(t *testing.T) {
	r := &parity.Report{Cases: []*parity.Verdict{
		{Case: "quiet", File: "a.txtar", Line: 1, Status: parity.StatusSame},
		{Case: "chance", File: "b.txtar", Line: 1, Version: "1.0.0", Status: parity.StatusSame, Flaky: []string{"exit"}},
		{Case: "slow", File: "c.txtar", Line: 1, Status: parity.StatusNotCompared, Reasons: []string{"too slow"}},
	}}
	var got strings.Builder
	if err := r.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	text := got.String()
	const want = "flaky: chance (b.txtar:1), claude 1.0.0: differed once, then matched: exit\nnot compared: slow (c.txtar:1): too slow\n3 cases, 2 same, 0 known, 0 differ, 0 not comparable, 1 not compared\n"
	if text != want {
		t.Errorf("report: %q, want %q", text, want)
	}
}

// TestReportFitsOnAScreen: without -v, a report of any size fits on one screen: the first cases with some of their
// differences, the number of the others, and the totals. With -v it contains everything, including the tables.
func TestReportFitsOnAScreen(t *testing.T) {
	r := &parity.Report{}
	for i := range 30 {
		v := &parity.Verdict{Case: fmt.Sprintf("case %d", i), File: "a.txtar", Version: "1.0.0", Area: fmt.Sprintf("area %d", i)}
		for j := range 10 {
			v.Differences = append(v.Differences, parity.Difference{Path: fmt.Sprintf("stdout.%d", j), Ours: "a", Real: strings.Repeat("long\n", 100)})
		}
		v.SetStatusFromDifferences()
		r.Cases = append(r.Cases, v)
	}
	r.Cases = append(r.Cases, &parity.Verdict{Case: "other", File: "b.txtar", Status: parity.StatusNotComparable, Reasons: []string{"a canned result"}})
	var short, long strings.Builder
	err := r.WriteText(&short)
	r.Verbose = true
	if err = errors.Join(err, r.WriteText(&long)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(short.String(), "\n"), "\n")
	want := []string{"… 25 more like these", "hint: -v prints the whole report", "31 cases, 0 same, 0 known, 30 differ, 1 not comparable"}
	if diff := cmp.Diff(want, lines[len(lines)-3:]); diff != "" || len(lines) > 24 {
		t.Errorf("%d lines, the last ones (-want +got):\n%s", len(lines), diff)
	}
	for _, text := range []string{"case 29", "stdout.9", "a canned result", "area 29", "the same in every key"} {
		if strings.Contains(short.String(), text) || !strings.Contains(long.String(), text) {
			t.Errorf("%q is in the short report, or it is not in the long one", text)
		}
	}
}

// Files of agents have ids in their names.
func TestCompareFilesNamedByAnID(t *testing.T) {
	recording := func(id, text string) *parity.Recording {
		return &parity.Recording{
			Runs:  []parity.Run{{Stdout: `{"type":"system","subtype":"task_started","task_id":"` + id + `"}`}},
			Files: map[string]string{"agent-" + id: text},
		}
	}
	ours := recording("a0123456789abcdef", "1")
	if found := parity.Compare(ours, recording("afedcba9876543210", "1")); len(found) > 0 {
		t.Errorf("the same file differs: %v", found)
	}
	if found := parity.Compare(ours, recording("afedcba9876543210", "2")); len(found) != 1 {
		t.Errorf("another text: %v", found)
	}
}
