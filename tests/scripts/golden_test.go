package scripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claudeless/claudeless/internal/parity"
)

// goldenVersion is the version of the real CLI that the captured runs are of.
const goldenVersion = "2.1.329"

// golden is one captured run of the real CLI: `# command`, `< stdout`, `> stdin`, `! stderr`, `# exit N`. Ids, times,
// paths, costs and long texts are placeholders. Goldens are evidence and are never rewritten.
type golden struct {
	env    []string
	args   []string // without the program
	stdin  []string
	stdout []any
	raw    []json.RawMessage // stdout as written, where a line is one event
	stderr []string
	exit   int
}

func readGolden(name string) (*golden, error) {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "golden", goldenVersion, name+".txt"))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(withTaskIDs(string(b))), "\n")
	g := &golden{args: shellWords(strings.TrimPrefix(lines[0], "# "))}
	for len(g.args) > 0 && g.args[0] != "claude" {
		g.env, g.args = append(g.env, g.args[0]), g.args[1:]
	}
	if len(g.args) == 0 {
		return nil, fmt.Errorf("golden %s: no command in its first line", name)
	}
	g.args = g.args[1:]
	for _, line := range lines[1:] {
		mark, rest := line[:2], line[2:]
		switch mark {
		case "< ":
			events, err := parseEvents(rest)
			if err != nil {
				return nil, fmt.Errorf("golden %s: %w", name, err)
			}
			g.stdout, g.raw = append(g.stdout, events...), append(g.raw, json.RawMessage(rest))
		case "> ":
			g.stdin = append(g.stdin, rest)
		case "! ":
			g.stderr = append(g.stderr, rest)
		case "# ":
			if g.exit, err = strconv.Atoi(strings.TrimPrefix(rest, "exit ")); err != nil {
				return nil, fmt.Errorf("golden %s: %w", name, err)
			}
		}
	}
	return g, nil
}

var taskID = regexp.MustCompile(`"(task|run)_id":"([^"<]+)"`)

// withTaskIDs puts placeholders in place of the ids of tasks, which the
// captured files hold as they were.
func withTaskIDs(text string) string {
	names := map[string]string{}
	for _, m := range taskID.FindAllStringSubmatch(text, -1) {
		if names[m[2]] == "" {
			names[m[2]] = fmt.Sprintf("<%s-%d>", m[1], len(names)+1)
			text = strings.ReplaceAll(text, m[2], names[m[2]])
		}
	}
	return text
}

// cmdGolden is the script command `golden NAME [PLACEHOLDER=VALUE…]`.
func cmdGolden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: golden NAME [PLACEHOLDER=VALUE...]")
	}
	g, err := readGolden(args[0])
	ts.Check(err)
	fill := newFiller(args[1:])
	scenario := filepath.Join(ts.Getenv("WORK"), "golden-"+args[0]+".json")
	ts.Check(os.WriteFile(scenario, g.scenario(fill), 0o666))
	for _, kv := range g.env {
		key, value, _ := strings.Cut(kv, "=")
		ts.Setenv(key, strings.ReplaceAll(value, "<path>", ts.MkAbs("log")))
	}
	ts.Setenv("CLAUDELESS_SCENARIO", scenario)
	argv := []string{}
	for _, a := range g.args {
		a = strings.ReplaceAll(a, `"command":"node","args":["<path>"]`, `"command":"mcpsrv"`)
		a = strings.ReplaceAll(a, `"MCPLOG":"<path>"`, `"MCPLOG":"`+ts.MkAbs("mcp.log")+`"`)
		argv = append(argv, fill.ids(a))
	}
	if len(g.stdin) > 0 {
		ts.Fatalf("golden %s is a dialogue; only runs without stdin are played back", args[0])
	}
	status := runStatus(ts, "claude", argv)
	events, err := parseEvents(ts.ReadFile("stdout"))
	ts.Check(err)
	problems := append(compareRuns(g.stdout, events, fill.bound), compareOrder(g.raw, ts.ReadFile("stdout"))...)
	if status != g.exit {
		problems = append(problems, fmt.Sprintf("exit %d, want %d", status, g.exit))
	}
	if got, want := strings.TrimSpace(ts.ReadFile("stderr")), fill.ids(strings.Join(g.stderr, "\n")); got != want {
		problems = append(problems, fmt.Sprintf("stderr is %q, want %q", got, want))
	}
	if len(problems) > 0 {
		ts.Fatalf("not the run of golden %s:\n  %s", args[0], strings.Join(problems, "\n  "))
	}
}

// placeholderFiller puts values in place of placeholders: ids by their name, paths and
// texts of tool inputs one after the other.
type placeholderFiller struct {
	queue map[string][]string
	bound map[string]string
}

func newFiller(args []string) *placeholderFiller {
	f := &placeholderFiller{queue: map[string][]string{}, bound: map[string]string{}}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		if strings.Contains(name, "-") {
			f.bound[name] = value
			continue
		}
		f.queue[name] = append(f.queue[name], value)
	}
	return f
}

func (f *placeholderFiller) ids(s string) string {
	for name, value := range f.bound {
		s = strings.ReplaceAll(s, name, value)
	}
	return s
}

// input replaces the placeholders inside the JSON of a tool input; the last
// value of a kind repeats. The order of the keys stays.
func (f *placeholderFiller) input(raw json.RawMessage) json.RawMessage {
	return inputHole.ReplaceAllFunc(raw, func(name []byte) []byte {
		values := f.queue[string(name)]
		if len(values) == 0 {
			return name
		}
		if len(values) > 1 {
			f.queue[string(name)] = values[1:]
		}
		b, err := json.Marshal(values[0])
		if err != nil {
			panic(err)
		}
		return b[1 : len(b)-1]
	})
}

// scenario is the scripted model with the replies of the captured model: one step per assistant message, one rule for
// each repeated request.
func (g *golden) scenario(fill *placeholderFiller) []byte {
	rules := []map[string]any{}
	var steps []map[string]any
	add := func() {
		if len(steps) > 0 {
			rules = append(rules, map[string]any{"pattern": map[string]any{"type": "any"}, "response": map[string]any{"steps": steps}})
		}
		steps = nil
	}
	last := ""
	for i, e := range g.stdout {
		if at(e, "local_command_run") != nil {
			continue // the CLI's own words
		}
		if at(e, "message.model") == "<synthetic>" {
			rules = append(rules, map[string]any{"pattern": map[string]any{"type": "any"}, "failure": failureOf(e)})
			continue
		}
		// Injected text and the end of background work: the model is asked again.
		if kindOf(e) == "user[text]" && at(e, "parent_tool_use_id") == nil || at(e, "type") == "result" {
			add()
		}
		if at(e, "type") != "assistant" {
			continue
		}
		if id := str(at(e, "message.id")); id != last {
			steps, last = append(steps, map[string]any{}), id
		}
		g.block(steps[len(steps)-1], i, fill)
	}
	add()
	if len(rules) == 0 && g.stdout != nil && at(g.stdout[len(g.stdout)-1], "local_command") == nil {
		steps = g.stepsOfResult(fill)
		add()
	}
	for i, rule := range rules {
		rule["source"] = "any" // also texts that the CLI writes
		if i < len(rules)-1 {
			rule["max_matches"] = 1
		}
	}
	b, err := json.MarshalIndent(map[string]any{"responses": rules}, "", "  ")
	if err != nil {
		panic(err)
	}
	return b
}

// block adds the content block of event i to a step.
func (g *golden) block(step map[string]any, i int, fill *placeholderFiller) {
	block := at(g.stdout[i], "message.content.0")
	if at(block, "type") == "tool_use" {
		var raw struct {
			Message struct {
				Content []struct{ Input json.RawMessage }
			}
		}
		if err := json.Unmarshal(g.raw[i], &raw); err != nil {
			panic(err)
		}
		calls, _ := step["tool_calls"].([]any)
		call := map[string]any{"tool": at(block, "name"), "input": fill.input(raw.Message.Content[0].Input)}
		if steps := g.agentSteps(str(at(block, "id"))); steps != nil {
			call["subagent"] = map[string]any{"steps": steps}
		}
		step["tool_calls"] = append(calls, call)
	} else {
		kind := str(at(block, "type"))
		step[kind] = at(block, kind)
	}
	if m := scriptedUsage.FindStringSubmatch(strings.Join(g.args, " ")); m != nil {
		step["usage"] = json.RawMessage(m[1])
	}
}

// agentSteps are the replies of a call's agent; the last text is in the call's result.
func (g *golden) agentSteps(id string) []map[string]any {
	for _, e := range g.stdout {
		if at(e, "message.content.0.tool_use_id") == id && at(e, "tool_use_result.agentId") != nil {
			return []map[string]any{{"text": at(e, "tool_use_result.content.0.text")}}
		}
	}
	return nil
}

// stepsOfResult guesses the model's steps where only the result was captured:
// the calls that were denied, then the text.
func (g *golden) stepsOfResult(fill *placeholderFiller) []map[string]any {
	var steps []map[string]any
	for i := 0; ; i++ {
		denial := at(g.stdout[0], fmt.Sprintf("permission_denials.%d", i))
		if denial == nil {
			break
		}
		input := fill.input(json.RawMessage(compact(at(denial, "tool_input"))))
		steps = append(steps, map[string]any{"tool_calls": []any{map[string]any{"tool": at(denial, "tool_name"), "input": input}}})
	}
	return append(steps, map[string]any{"text": str(at(g.stdout[0], "result"))})
}

func failureOf(e any) map[string]any {
	status, _ := at(e, "api_error_status").(float64)
	switch status {
	case 0:
		return map[string]any{"type": "network_unreachable"}
	case 529:
		return map[string]any{"type": "overloaded"}
	}
	text := strings.TrimPrefix(str(at(e, "message.content.0.text")), fmt.Sprintf("API Error: %v ", status))
	return map[string]any{"type": "api_error", "status": status, "error_type": at(e, "api_error_type"), "message": text}
}

// compareRuns holds the events of a run to those of a golden, key by key.
// Results of parallel calls may come in any order.
func compareRuns(want, got []any, bound map[string]string) []string {
	want, got = joinDeltas(want), joinDeltas(got)
	byCall(want)
	byCall(got)
	m := newMatcher()
	for name, value := range bound {
		m.bound[name], m.taken[value] = value, name
	}
	for i := range min(len(want), len(got)) {
		m.match(fmt.Sprintf("event %d, %s", i, kindOf(want[i])), want[i], got[i])
	}
	if len(want) != len(got) {
		m.problems = append(m.problems, fmt.Sprintf("events %v, want %v", kindsOf(got), kindsOf(want)))
	}
	return m.problems
}

// compareOrder checks that the common keys of each kind of event are in the captured order. Results of turns that did
// not reach the model, and the notice with isMeta, have a different order and are not checked.
func compareOrder(want []json.RawMessage, stdout string) (problems []string) {
	seen := map[string][]string{}
	for _, raw := range want {
		if kind, keys := keysOf(raw); kind != "" {
			seen[kind] = keys
		}
	}
	for line := range strings.Lines(stdout) {
		kind, got := keysOf([]byte(line))
		both := func(in []string) func(string) bool {
			return func(key string) bool { return !slices.Contains(in, key) }
		}
		want := slices.DeleteFunc(slices.Clone(seen[kind]), both(got))
		if got = slices.DeleteFunc(got, both(want)); !slices.Equal(got, want) {
			problems = append(problems, fmt.Sprintf("%s has its keys as %v, want %v", kind, got, want))
		}
	}
	return problems
}

// keysOf names an event and its keys in their order; "" = not to be compared.
func keysOf(raw []byte) (kind string, keys []string) {
	var event map[string]any
	if json.Unmarshal(raw, &event) != nil || event["isMeta"] != nil || event["type"] == "result" && event["terminal_reason"] == nil {
		return "", nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := d.Token()
		switch {
		case err != nil:
			return kindOf(event), keys
		case token == json.Delim('{'), token == json.Delim('['):
			depth++
		case token == json.Delim('}'), token == json.Delim(']'):
			depth--
		case depth == 1:
			keys = append(keys, token.(string))
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return "", nil
			}
		}
	}
}

// joinDeltas makes one event of the pieces of a content block: how a model cuts
// its answer is its own affair.
func joinDeltas(events []any) []any {
	var all []any
	for _, e := range events {
		if kindOf(e) == "stream_event/content_block_delta" && len(all) > 0 && kindOf(all[len(all)-1]) == kindOf(e) {
			into, from := at(all[len(all)-1], "event.delta").(map[string]any), at(e, "event.delta").(map[string]any)
			if into["type"] == from["type"] {
				for _, key := range []string{"text", "partial_json", "thinking"} {
					if piece, ok := from[key].(string); ok {
						into[key] = str(into[key]) + piece
					}
				}
				continue
			}
		}
		all = append(all, e)
	}
	return all
}

// byCall sorts neighbouring tool results by the order of their calls.
func byCall(events []any) {
	rank := map[string]int{}
	for _, e := range events {
		if kindOf(e) == "assistant[tool_use]" {
			rank[str(at(e, "message.content.0.id"))] = len(rank)
		}
	}
	for i := 0; i < len(events); i++ {
		j := i
		for j < len(events) && kindOf(events[j]) == "user[tool_result]" {
			j++
		}
		slices.SortStableFunc(events[i:j], func(a, b any) int {
			return rank[str(at(a, "message.content.0.tool_use_id"))] - rank[str(at(b, "message.content.0.tool_use_id"))]
		})
		i = max(i, j-1)
	}
}

func kindsOf(events []any) []string {
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, kindOf(e))
	}
	return kinds
}

// matcher compares a value with one that contains placeholders. A numbered placeholder always represents the same
// value. Values that differ in every run are replaced as in package parity.
type matcher struct {
	bound    map[string]string // placeholder → value
	taken    map[string]string // value → placeholder
	problems []string
	table    *parity.Normaliser
}

func newMatcher() *matcher {
	return &matcher{bound: map[string]string{}, taken: map[string]string{}, table: parity.New(parity.Options{})}
}

// differs reports whether two numbers at a place count as different.
func differs(path string, want, got float64) bool {
	key := lastKey(path)
	emptied := want == 0 && strings.Contains(strings.ToLower(key), "tokens") // by who made the captures
	return want != got && !emptied && !parity.IsReplacedKey(key)
}

// replaced reports whether the table takes a value in a text for one that differs from
// run to run.
func (m *matcher) replaced(path, text, value string) bool {
	return parity.IsReplacedKey(lastKey(path)) || !strings.Contains(m.table.Text(text), value)
}

func lastKey(path string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	key, _, _ = strings.Cut(key, "[")
	return key
}

var (
	placeholder   = regexp.MustCompile(`<(path|text|time|base64|signature|(?:uuid|msg|toolu|req|task|run)-\d+)>|blob-\d+-[a-z0-9]+`)
	inputHole     = regexp.MustCompile(`<(?:path|text)>`)
	scriptedUsage = regexp.MustCompile(`USAGE:(\{[^}]*\})`)
	moreItems     = regexp.MustCompile(`^<\d+ more>$`)
)

func (m *matcher) match(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			m.wrong(path, want, got)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if value, there := g[key]; there {
				m.match(path+"."+key, w[key], value)
			} else {
				m.problems = append(m.problems, path+"."+key+" is missing, want "+brief(w[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, there := w[key]; !there {
				m.problems = append(m.problems, path+"."+key+" is too much: "+brief(g[key]))
			}
		}
	case []any:
		g, ok := got.([]any)
		if n := len(w); n > 0 && ok && moreItems.MatchString(str(w[n-1])) && len(g) >= n-1 {
			w, g = w[:n-1], g[:n-1]
		}
		if !ok || len(w) != len(g) {
			m.wrong(path, want, got)
			return
		}
		for i := range w {
			m.match(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
		}
	case float64:
		if g, ok := got.(float64); !ok || differs(path, w, g) {
			m.wrong(path, want, got)
		}
	case string:
		g, ok := got.(string)
		if !ok || !m.text(path, w, g) {
			m.wrong(path, want, got)
		}
	default:
		if want != got {
			m.wrong(path, want, got)
		}
	}
}

func (m *matcher) wrong(path string, want, got any) {
	m.problems = append(m.problems, fmt.Sprintf("%s is %s, want %s", path, brief(got), brief(want)))
}

// text matches a string and binds its numbered placeholders.
func (m *matcher) text(path, want, got string) bool {
	if want == got {
		return true
	}
	var names []string
	var pattern strings.Builder
	pattern.WriteString("(?s)^")
	rest := want
	for loc := placeholder.FindStringIndex(rest); loc != nil; loc = placeholder.FindStringIndex(rest) {
		name := rest[loc[0]:loc[1]]
		pattern.WriteString(regexp.QuoteMeta(rest[:loc[0]]) + "(" + formOf(name) + ")")
		names = append(names, name)
		rest = rest[loc[1]:]
	}
	groups := regexp.MustCompile(pattern.String() + regexp.QuoteMeta(rest) + "$").FindStringSubmatch(got)
	if groups == nil {
		return false
	}
	for i, name := range names {
		if !strings.Contains(name, "-") || !strings.HasPrefix(name, "<") {
			continue
		}
		value := groups[i+1]
		if !m.replaced(path, got, value) {
			m.problems = append(m.problems, fmt.Sprintf("%s: %s differs from run to run, but no table of parity says so", path, value))
		}
		if m.bound[name] == "" && m.taken[value] == "" {
			m.bound[name], m.taken[value] = value, name
		}
		if m.bound[name] != value || m.taken[value] != name {
			return false
		}
	}
	return true
}

// formOf returns the pattern of the values that a placeholder represents.
func formOf(name string) string {
	switch {
	case strings.HasPrefix(name, "<uuid"):
		return `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	case strings.HasPrefix(name, "<task"):
		return `a[0-9a-f]{16}|b[0-9a-z]{8}`
	case strings.HasPrefix(name, "<run"):
		return `[0-9a-z]{9}-[0-9a-f]{8}`
	case strings.HasPrefix(name, "<msg"):
		return `(?:msg_)?[0-9A-Za-z_-]+`
	case strings.HasPrefix(name, "<toolu"):
		return `toolu_[0-9A-Za-z_]+`
	case strings.HasPrefix(name, "<req"):
		return `req_[0-9A-Za-z_]+`
	case name == "<time>":
		return `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
	case name == "<base64>", name == "<signature>":
		return `[A-Za-z0-9+/=_-]+`
	case strings.HasPrefix(name, "blob-"):
		return `blob-\d+-[a-z0-9]+`
	}
	return `.+?`
}

// shellWords splits a command line at blanks; single quotes keep them.
func shellWords(s string) []string {
	var words []string
	word, quoted, open := "", false, false
	for _, r := range s {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case r == ' ' && !quoted:
			if open || word != "" {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word += string(r)
		}
	}
	return append(words, word)
}
