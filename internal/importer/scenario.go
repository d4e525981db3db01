package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/tomltext"

	"github.com/claudeless/claudeless/internal/importer/session"
)

// scenarioWriter writes sessions as a scenario.
type scenarioWriter struct {
	options  *Options
	kit      *Kit
	file     *KitFile // the scenario
	patterns *patterns
	plans    *plans
	notes    []string
	toml     tomltext.Writer
	prompt   int // number of the prompt over all sessions
	kept     int // number of its results stored in files
	first    map[string]bool
	inputs   int
	sections int
	results  []string // results of the current prompt, for references
	expected expectedCalls
}

func (w *scenarioWriter) write(sessions []*session.Session) {
	w.first = map[string]bool{}
	w.file = w.kit.Create("scenario.toml")
	title := w.head(sessions)
	w.toml.WriteString("name", cmp.Or(w.options.Name, DefaultName(w.options.Files)))
	if mode := sessions[0].Mode; mode != "" && mode != "bypassPermissions" && mode != "default" {
		w.toml.WriteString("permission_mode", mode)
	}
	w.section(title)
	for _, s := range sessions {
		w.session(s)
	}
	if w.tools(); len(w.toml.Bytes()) > 0 {
		w.section("tools that ran, and what was denied")
	}
	if w.toml.WriteRaw(w.expected.toml()); len(w.toml.Bytes()) > 0 {
		w.section("calls that were recorded")
	}
	for _, rel := range slices.Sorted(maps.Keys(w.plans.files)) {
		if content := w.plans.files[rel]; content != nil {
			w.kit.File("files/"+rel, []byte(plain(*content)))
		}
	}
	w.toml.WriteRaw(w.kit.Stamps())
	w.section("files beside this one as they were written")
	w.file.Close()
}

// section writes the collected text under a title.
func (w *scenarioWriter) section(title string) {
	text := Stamped(title, string(w.toml.Bytes()))
	if w.sections++; w.sections > 1 {
		text = "\n" + text
	}
	w.file.Write([]byte(text))
	w.toml.Reset()
}

// origin describes where a session comes from.
func (w *scenarioWriter) origin(s *session.Session) string {
	var from []string
	for _, f := range s.Files {
		base := filepath.Base(f)
		if strings.HasPrefix(base, "agent-") {
			continue
		}
		if !w.options.Raw && len(s.ID) > 8 && strings.Contains(base, s.ID) {
			base = strings.ReplaceAll(base, s.ID, "session")
		}
		from = append(from, base)
	}
	what := "claude"
	if s.Version != "" {
		what += " " + s.Version
	}
	if s.Date != "" {
		what += ", " + s.Date
	}
	return oneComment(fmt.Sprintf("from %s (%s), %d prompts, %d tool calls; claudeless import",
		strings.Join(from, " and "), what, len(s.Prompts), len(s.Calls())))
}

// head returns the title of the file, derived from the first session; the others are listed below it.
func (w *scenarioWriter) head(sessions []*session.Session) (title string) {
	for i, s := range sessions {
		if i > 0 {
			w.toml.WriteRaw("# " + w.origin(s) + "\n")
		}
		for _, at := range s.Compacted {
			w.toml.WriteRaw(comment(fmt.Sprintf("line %d: the older messages were compacted here", at.Line)))
		}
	}
	return w.origin(sessions[0])
}

// comment returns a TOML comment line.
func comment(text string) string { return "# " + oneComment(text) + "\n" }

// oneComment returns a text that fits on one comment line.
func oneComment(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func (w *scenarioWriter) session(s *session.Session) {
	for i, p := range s.Prompts {
		typed := ""
		if w.prompt < len(w.patterns.prompts) {
			typed = w.patterns.prompts[w.prompt]
		}
		w.prompt++
		w.kept = 0
		title := oneComment(fmt.Sprintf("%d: prompt of %d characters, line %d%s", i+1, len([]rune(typed)), p.At.Line, countOthers(p.Other)))
		match := w.patterns.choose(typed, p.Text)
		switch {
		case p.Unrecorded:
			match = pattern{kind: "not"}
			w.toml.WriteRaw(comment("review: the log does not hold the prompt; this answers any prompt"))
			w.notes = append(w.notes, p.At.String()+": a stream-json log does not hold the prompt, so its rule answers any prompt; write its pattern in the scenario")
		case p.Notice:
			match = pattern{"contains", "text", "<task-notification>"}
		}
		prefix := "responses.turns"
		key := "expect"
		if i == 0 {
			prefix, key = "responses", "pattern"
		}
		w.hooks(p.Hooks)
		w.toml.WriteRaw("[[" + prefix + "]]\n" + key + " = " + match.toml() + "\n")
		if i == 0 && w.first[match.toml()] {
			w.notes = append(w.notes, p.At.String()+": another session begins with such a prompt; its rule comes first")
		}
		if i == 0 && len(w.first) > 0 || i == 0 && w.prompt < len(w.patterns.prompts) && len(s.Prompts) < len(w.patterns.prompts) {
			w.toml.WriteRaw("max_matches = 1\n")
		}
		if i == 0 {
			w.first[match.toml()] = true
		}
		w.results = nil
		w.expected.messages(w.plans, p.Messages)
		w.messages(prefix+".response.steps", p.Messages)
		w.section(title)
		if w.options.Check == nil {
			p.Messages = nil // free the memory of a long session
		}
	}
}

// hooks lists the hooks that ran in a comment: a scenario has no hooks, but the settings may.
func (w *scenarioWriter) hooks(ran []session.Hook) {
	var names []string
	times := map[string]int{}
	for _, h := range ran {
		name := h.Name
		if h.Outcome != "" {
			name += " (" + h.Outcome + ")"
		}
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := times[name]; n > 1 {
			names[i] += fmt.Sprintf(" %d times", n)
		}
	}
	if len(names) > 0 {
		w.toml.WriteRaw(comment("hooks ran: " + strings.Join(names, ", ")))
	}
}

func countOthers(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", with %d images or documents that were left out", n)
}

func (w *scenarioWriter) messages(prefix string, messages []*session.Message) {
	for _, m := range messages {
		w.toml.WriteRaw("[[" + prefix + "]]\n")
		if m.Failure != nil {
			w.failure(prefix, m.Failure)
			continue
		}
		if stop := m.StopReason; stop != "" && stop != "end_turn" && stop != "tool_use" {
			w.toml.WriteString("stop_reason", stop)
		}
		blocks := m.Blocks
		if !w.options.Thinking {
			blocks = slices.DeleteFunc(slices.Clone(blocks), func(b session.Block) bool { return b.Thinking })
		}
		if isSimple(blocks) {
			w.writeSimple(prefix, blocks)
			w.remember(prefix, blocks)
			continue
		}
		for _, b := range blocks {
			w.toml.WriteRaw("[[" + prefix + ".blocks]]\n")
			switch {
			case b.Call != nil:
				w.toml.WriteRaw("type = \"tool_use\"\n")
				w.call(prefix+".blocks", b.Call)
			case b.Thinking:
				w.toml.WriteRaw("type = \"thinking\"\n")
				w.toml.WriteRaw("thinking = " + text(b.Text) + "\n")
			default:
				w.toml.WriteRaw("type = \"text\"\n")
				w.toml.WriteRaw("text = " + w.withReferences(prefix, b.Text) + "\n")
			}
		}
		w.remember(prefix, blocks)
	}
}

// isSimple reports whether the blocks are in the order in which a step writes them.
func isSimple(blocks []session.Block) bool {
	stage := 0
	for _, b := range blocks {
		at := 2
		switch {
		case b.Call != nil:
			at = 3
		case b.Thinking:
			at = 1
		}
		if at < stage || at == stage && at < 3 || at < 3 && b.Text == "" {
			return false
		}
		stage = at
	}
	return true
}

func (w *scenarioWriter) writeSimple(prefix string, blocks []session.Block) {
	for _, b := range blocks {
		switch {
		case b.Call != nil:
			w.toml.WriteRaw("[[" + prefix + ".tool_calls]]\n")
			w.call(prefix+".tool_calls", b.Call)
		case b.Thinking:
			w.toml.WriteRaw("thinking = " + text(b.Text) + "\n")
		default:
			w.toml.WriteRaw("text = " + w.withReferences(prefix, b.Text) + "\n")
		}
	}
}

func (w *scenarioWriter) call(prefix string, c *session.Call) {
	tool := c.Tool
	how := w.plans.method(c)
	switch {
	case how == canned && c.Harmless():
		w.toml.WriteRaw(comment(fmt.Sprintf("review: canned result of line %d; the call only reads", c.At.Line)))
	case how == canned:
		w.toml.WriteRaw(comment("review: changes things, so it is canned"))
	case how == deniedAgain:
		w.toml.WriteRaw(comment("it was denied; see tool_execution below"))
	}
	w.toml.WriteRaw("tool = " + tomltext.Quote(tool) + "\n")
	input := c.Input
	if how == live {
		key, value, _ := w.plans.readFile(c)
		input = withValue(input, key, value)
	}
	w.toml.WriteRaw("input = " + w.input(input) + "\n")
	if how == canned {
		w.toml.WriteRaw("result = " + w.result(c.Result.Text) + "\n")
		if c.Result.IsError {
			w.toml.WriteRaw("is_error = true\n")
		}
		if c.Result.Other > 0 {
			w.notes = append(w.notes, c.Result.At.String()+": a result has images or documents, which were left out")
		}
	}
	if how == bySubAgent {
		w.toml.WriteRaw("[" + prefix + ".subagent]\n")
		w.toml.WriteString("type", c.Agent.Type)
		if c.Agent.Background {
			w.toml.WriteRaw("background = true\n")
		}
		w.messages(prefix+".subagent.steps", c.Agent.Messages)
	}
}

// shortResult is the longest result that is written into the scenario.
const shortResult = 4 << 10

// result returns the result of a canned call. A long one is stored in a separate file named after its prompt, if
// there is an output directory.
func (w *scenarioWriter) result(s string) string {
	s = w.cut(s)
	if len(s) <= shortResult || w.options.Out == "" {
		return text(s)
	}
	w.kept++
	name := fmt.Sprintf("results/%d-%d.txt", w.prompt, w.kept)
	w.kit.File(name, []byte(plain(s)))
	return `{ "$file" = ` + tomltext.Quote(name) + " }"
}

// longResult is the length at which a result is truncated.
const longResult = 200 << 10

func (w *scenarioWriter) cut(s string) string {
	if w.options.Big || len(s) <= longResult {
		return s
	}
	return Cut(s, longResult)
}

// withValue returns an input with another value for a key.
func withValue(input json.RawMessage, key, value string) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(input, &o) != nil {
		return input
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		return input
	}
	o[key] = quoted
	out, err := json.Marshal(o)
	if err != nil {
		return input
	}
	return out
}

// input returns the input of a call. Values that TOML cannot express are stored in a separate file.
func (w *scenarioWriter) input(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	if s, ok := inline(raw); ok {
		return s
	}
	if w.options.Out == "" && w.options.Check == nil {
		w.notes = append(w.notes, "an input holds null or a number that TOML does not have; -o DIR keeps it in a file")
	}
	w.inputs++
	name := "inputs/" + strconv.Itoa(w.inputs) + ".json"
	w.kit.File(name, []byte(plain(string(raw))+"\n"))
	return `{ "$file" = ` + tomltext.Quote(name) + " }"
}

// failure writes an API error as a step.
func (w *scenarioWriter) failure(prefix string, f *session.Failure) {
	w.toml.WriteRaw("[" + prefix + ".failure]\n")
	status, message := f.API()
	switch status {
	case 0:
		w.toml.WriteRaw(comment("review: " + plain(f.Text)))
		w.toml.WriteRaw("type = \"network_unreachable\"\n")
	case http.StatusUnauthorized:
		w.toml.WriteRaw("type = \"auth_error\"\n")
	default:
		w.toml.WriteRaw("type = \"api_error\"\nstatus = " + strconv.Itoa(status) + "\n")
		if message != "" {
			w.toml.WriteRaw("message = " + oneLine(plain(message)) + "\n")
		}
	}
}

// tools writes which tools are allowed and denied.
func (w *scenarioWriter) tools() {
	names := slices.Sorted(maps.Keys(w.plans.ran))
	if len(names)+len(w.plans.denied) == 0 {
		return
	}
	if slices.ContainsFunc(names, session.IsUnlisted) {
		w.toml.WriteRaw("\n" + comment("tools that a session does not list unless it is asked to") + "[compat]\nhidden_tools = true\n")
	}
	for _, name := range names {
		w.toml.WriteRaw("\n[tool_execution.tools." + key(name) + "]\nauto_approve = true\n")
	}
	for _, name := range slices.Sorted(maps.Keys(w.plans.denied)) {
		if !w.plans.ran[name] {
			w.toml.WriteRaw("\n" + comment("denied whatever the mode") + "[tool_execution.tools." + key(name) + "]\nerror = " +
				oneLine(Refusal(name)) + "\n")
			w.toml.WriteRaw("\n[[expect]]\ntool = " + oneLine(name) + "\n")
		}
	}
}
