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

// goldenVersion is the version of the real CLI that made the captured runs.
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

// withTaskIDs replaces the ids of tasks, which the captured files contain, by placeholders.
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
	fill := newPlaceholderFiller(args[1:])
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
	problems := append(compareRuns(g.stdout, events, fill.values), compareOrder(g.raw, ts.ReadFile("stdout"))...)
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

// placeholderFiller replaces placeholders by values: ids by their name, paths and texts of tool inputs one after the
// other.
type placeholderFiller struct {
	queue  map[string][]string
	values map[string]string
}

func newPlaceholderFiller(args []string) *placeholderFiller {
	f := &placeholderFiller{queue: map[string][]string{}, values: map[string]string{}}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		if strings.Contains(name, "-") {
			f.values[name] = value
			continue
		}
		f.queue[name] = append(f.queue[name], value)
	}
	return f
}

func (f *placeholderFiller) ids(s string) string {
	for name, value := range f.values {
		s = strings.ReplaceAll(s, name, value)
	}
	return s
}

// input replaces the placeholders inside the JSON of a tool input. If there are fewer values than placeholders, the
// last value of a kind repeats. The order of the keys is kept.
func (f *placeholderFiller) input(raw json.RawMessage) json.RawMessage {
	return inputPlaceholder.ReplaceAllFunc(raw, func(name []byte) []byte {
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
		if valueAt(e, "local_command_run") != nil {
			continue // texts of the CLI itself
		}
		if valueAt(e, "message.model") == "<synthetic>" {
			rules = append(rules, map[string]any{"pattern": map[string]any{"type": "any"}, "failure": failureOf(e)})
			continue
		}
		// After injected text and at the end of background work, another request is sent to the model.
		if kindOf(e) == "user[text]" && valueAt(e, "parent_tool_use_id") == nil || valueAt(e, "type") == "result" {
			add()
		}
		if valueAt(e, "type") != "assistant" {
			continue
		}
		if id := str(valueAt(e, "message.id")); id != last {
			steps, last = append(steps, map[string]any{}), id
		}
		g.block(steps[len(steps)-1], i, fill)
	}
	add()
	if len(rules) == 0 && g.stdout != nil && valueAt(g.stdout[len(g.stdout)-1], "local_command") == nil {
		steps = g.stepsOfResult(fill)
		add()
	}
	for i, rule := range rules {
		rule["source"] = "any" // the rule also matches texts that the CLI itself sends
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
	block := valueAt(g.stdout[i], "message.content.0")
	if valueAt(block, "type") == "tool_use" {
		var raw struct {
			Message struct {
				Content []struct{ Input json.RawMessage }
			}
		}
		if err := json.Unmarshal(g.raw[i], &raw); err != nil {
			panic(err)
		}
		calls, _ := step["tool_calls"].([]any)
		call := map[string]any{"tool": valueAt(block, "name"), "input": fill.input(raw.Message.Content[0].Input)}
		if steps := g.agentSteps(str(valueAt(block, "id"))); steps != nil {
			call["subagent"] = map[string]any{"steps": steps}
		}
		step["tool_calls"] = append(calls, call)
	} else {
		kind := str(valueAt(block, "type"))
		step[kind] = valueAt(block, kind)
	}
	if m := scriptedUsage.FindStringSubmatch(strings.Join(g.args, " ")); m != nil {
		step["usage"] = json.RawMessage(m[1])
	}
}

// agentSteps returns the replies of a call's agent. The last text is in the call's result.
func (g *golden) agentSteps(id string) []map[string]any {
	for _, e := range g.stdout {
		if valueAt(e, "message.content.0.tool_use_id") == id && valueAt(e, "tool_use_result.agentId") != nil {
			return []map[string]any{{"text": valueAt(e, "tool_use_result.content.0.text")}}
		}
	}
	return nil
}

// stepsOfResult guesses the model's steps if only the result was captured: the calls that were denied, then the text.
func (g *golden) stepsOfResult(fill *placeholderFiller) []map[string]any {
	var steps []map[string]any
	for i := 0; ; i++ {
		denial := valueAt(g.stdout[0], fmt.Sprintf("permission_denials.%d", i))
		if denial == nil {
			break
		}
		input := fill.input(json.RawMessage(compactJSON(valueAt(denial, "tool_input"))))
		steps = append(steps, map[string]any{"tool_calls": []any{map[string]any{"tool": valueAt(denial, "tool_name"), "input": input}}})
	}
	return append(steps, map[string]any{"text": str(valueAt(g.stdout[0], "result"))})
}

func failureOf(e any) map[string]any {
	status, _ := valueAt(e, "api_error_status").(float64)
	switch status {
	case 0:
		return map[string]any{"type": "network_unreachable"}
	case 529:
		return map[string]any{"type": "overloaded"}
	}
	text := strings.TrimPrefix(str(valueAt(e, "message.content.0.text")), fmt.Sprintf("API Error: %v ", status))
	return map[string]any{"type": "api_error", "status": status, "error_type": valueAt(e, "api_error_type"), "message": text}
}

// compareRuns compares the events of a run with those of a golden, key by key. Results of parallel calls may arrive in
// any order.
func compareRuns(want, got []any, bound map[string]string) []string {
	want, got = joinDeltas(want), joinDeltas(got)
	sortByCall(want)
	sortByCall(got)
	m := newMatcher()
	for name, value := range bound {
		m.values[name], m.placeholders[value] = value, name
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
// not reach the model, and the notification with isMeta, have a different order and are not checked.
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

// keysOf returns the name of an event and its keys in their order; "" means that the event is not compared.
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

// joinDeltas joins the pieces of a content block to one event, because the pieces differ from run to run.
func joinDeltas(events []any) []any {
	var all []any
	for _, e := range events {
		if kindOf(e) == "stream_event/content_block_delta" && len(all) > 0 && kindOf(all[len(all)-1]) == kindOf(e) {
			into, from := valueAt(all[len(all)-1], "event.delta").(map[string]any), valueAt(e, "event.delta").(map[string]any)
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

// sortByCall sorts neighbouring tool results by the order of their calls.
func sortByCall(events []any) {
	rank := map[string]int{}
	for _, e := range events {
		if kindOf(e) == "assistant[tool_use]" {
			rank[str(valueAt(e, "message.content.0.id"))] = len(rank)
		}
	}
	for i := 0; i < len(events); i++ {
		j := i
		for j < len(events) && kindOf(events[j]) == "user[tool_result]" {
			j++
		}
		slices.SortStableFunc(events[i:j], func(a, b any) int {
			return rank[str(valueAt(a, "message.content.0.tool_use_id"))] - rank[str(valueAt(b, "message.content.0.tool_use_id"))]
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
	values       map[string]string // placeholder → value
	placeholders map[string]string // value → placeholder
	problems     []string
	normaliser   *parity.Normaliser
}

func newMatcher() *matcher {
	return &matcher{values: map[string]string{}, placeholders: map[string]string{}, normaliser: parity.NewNormaliser(nil)}
}

// numbersDiffer reports whether two numbers at a path count as different.
func numbersDiffer(path string, want, got float64) bool {
	key := lastKey(path)
	emptied := want == 0 && strings.Contains(strings.ToLower(key), "tokens") // a 0 in a capture may replace the number that the real CLI printed
	return want != got && !emptied && !isReplacedKey(key)
}

// isReplaced reports whether the normaliser replaces a value in a text because it differs from run to run.
func (m *matcher) isReplaced(path, text, value string) bool {
	return isReplacedKey(lastKey(path)) || !strings.Contains(m.normaliser.Text(text), value)
}

func lastKey(path string) string {
	key := path[strings.LastIndexByte(path, '.')+1:]
	key, _, _ = strings.Cut(key, "[")
	return key
}

var (
	placeholder      = regexp.MustCompile(`<(path|text|time|base64|signature|(?:uuid|msg|toolu|req|task|run)-\d+)>|blob-\d+-[a-z0-9]+`)
	inputPlaceholder = regexp.MustCompile(`<(?:path|text)>`)
	scriptedUsage    = regexp.MustCompile(`USAGE:(\{[^}]*\})`)
	moreItems        = regexp.MustCompile(`^<\d+ more>$`)
)

func (m *matcher) match(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			m.addProblem(path, want, got)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if value, there := g[key]; there {
				m.match(path+"."+key, w[key], value)
			} else {
				m.problems = append(m.problems, path+"."+key+" is missing, want "+shortJSON(w[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, there := w[key]; !there {
				m.problems = append(m.problems, path+"."+key+" is too much: "+shortJSON(g[key]))
			}
		}
	case []any:
		g, ok := got.([]any)
		if n := len(w); n > 0 && ok && moreItems.MatchString(str(w[n-1])) && len(g) >= n-1 {
			w, g = w[:n-1], g[:n-1]
		}
		if !ok || len(w) != len(g) {
			m.addProblem(path, want, got)
			return
		}
		for i := range w {
			m.match(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
		}
	case float64:
		if g, ok := got.(float64); !ok || numbersDiffer(path, w, g) {
			m.addProblem(path, want, got)
		}
	case string:
		g, ok := got.(string)
		if !ok || !m.text(path, w, g) {
			m.addProblem(path, want, got)
		}
	default:
		if want != got {
			m.addProblem(path, want, got)
		}
	}
}

func (m *matcher) addProblem(path string, want, got any) {
	m.problems = append(m.problems, fmt.Sprintf("%s is %s, want %s", path, shortJSON(got), shortJSON(want)))
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
		if !m.isReplaced(path, got, value) {
			m.problems = append(m.problems, fmt.Sprintf("%s: %s differs from run to run, but no table of parity says so", path, value))
		}
		if m.values[name] == "" && m.placeholders[value] == "" {
			m.values[name], m.placeholders[value] = value, name
		}
		if m.values[name] != value || m.placeholders[value] != name {
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

// shellWords splits a command line at blanks; blanks in single quotes do not split.
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

func isReplacedKey(key string) bool {
	_, ok := parity.PlaceholderForValuesOfJSONKey(key)
	return ok
}
