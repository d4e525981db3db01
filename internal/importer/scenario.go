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

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/internal/importer/session"
)

type scenarioWriter struct {
	options          *Options
	files            *FileSetWriter
	file             *OutputFile // the scenario
	patterns         *patternChooser
	plans            *callReplayPlanner
	notes            []string
	toml             tomltext.Writer
	promptNumber     int // number of the prompt over all sessions
	resultFiles      int // number of the prompt's results stored in files
	seenAnswers      map[string]bool
	inputs, sections int
	results          []string // results of the current prompt, for references
	expected         expectedCalls
}

func (w *scenarioWriter) writeScenarioAndFiles(sessions []*session.Session) {
	w.seenAnswers = map[string]bool{}
	w.file = w.files.Create("scenario.toml")
	title := w.writeCommentsAndReturnTitle(sessions)
	w.toml.WriteStringUnlessEmpty("name", cmp.Or(w.options.Name, DefaultScenarioName(w.options.Files)))
	if mode := sessions[0].Mode; mode != "" && mode != "bypassPermissions" && mode != "default" {
		w.toml.WriteStringUnlessEmpty("permission_mode", mode)
	}
	w.writeBufferedTOMLAsSection(title)
	for _, s := range sessions {
		w.writeSession(s)
	}
	if w.writeToolExecution(); len(w.toml.Bytes()) > 0 {
		w.writeBufferedTOMLAsSection("tools that ran, and calls that were denied")
	}
	if w.toml.WriteRaw(w.expected.toml()); len(w.toml.Bytes()) > 0 {
		w.writeBufferedTOMLAsSection("calls that were recorded")
	}
	for _, rel := range slices.Sorted(maps.Keys(w.plans.files)) {
		if content := w.plans.files[rel]; content != nil {
			w.files.AddFileWithContent("files/"+rel, []byte(replaceDirPlaceholdersByNames(*content)))
		}
	}
	w.toml.WriteRaw(w.files.FileDigestCommentLines())
	w.writeBufferedTOMLAsSection("files next to this one, as they were written")
	w.file.Close()
}

func (w *scenarioWriter) writeBufferedTOMLAsSection(title string) {
	text := FormatSectionWithBodyDigest(title, string(w.toml.Bytes()))
	if w.sections++; w.sections > 1 {
		text = "\n" + text
	}
	w.file.Write([]byte(text))
	w.toml.Reset()
}

func (w *scenarioWriter) originDescription(s *session.Session) string {
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
	return controlsToSpaces(fmt.Sprintf("from %s (%s), prompts: %d, tool calls: %d; claudeless import",
		strings.Join(from, " and "), what, len(s.Prompts), len(s.Calls())))
}

// writeCommentsAndReturnTitle writes comment lines about compactions and all sessions except the first, which title describes.
func (w *scenarioWriter) writeCommentsAndReturnTitle(sessions []*session.Session) (title string) {
	for i, s := range sessions {
		if i > 0 {
			w.toml.WriteRaw("# " + w.originDescription(s) + "\n")
		}
		for _, at := range s.Compacted {
			w.toml.WriteRaw(asCommentLine(fmt.Sprintf("line %d: the older messages were compacted here", at.Line)))
		}
	}
	return w.originDescription(sessions[0])
}

func asCommentLine(text string) string { return "# " + controlsToSpaces(text) + "\n" }

func controlsToSpaces(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func (w *scenarioWriter) writeSession(s *session.Session) {
	for i, p := range s.Prompts {
		typed := ""
		if w.promptNumber < len(w.patterns.prompts) {
			typed = w.patterns.prompts[w.promptNumber]
		}
		w.promptNumber++
		w.resultFiles = 0
		title := controlsToSpaces(fmt.Sprintf("%d: prompt of %d characters, line %d%s", i+1, len([]rune(typed)), p.At.Line, omittedMediaText(p.OtherParts)))
		match := w.patterns.choosePatternOfPrompt(typed, p.Text)
		switch {
		case p.TextMissing:
			match = promptPattern{patternType: "not"}
			w.toml.WriteRaw(asCommentLine("review: the log does not contain the prompt; this rule answers any prompt"))
			w.notes = append(w.notes, p.At.String()+": a stream-json log does not contain the prompt, so the rule answers any prompt; write the pattern of the rule in the scenario")
		case p.IsNotice:
			match = promptPattern{"contains", "text", "<task-notification>"}
		}
		prefix := "responses.turns"
		key := "expect"
		if i == 0 {
			prefix, key = "responses", "pattern"
		}
		w.writeHookComment(p.Hooks)
		w.toml.WriteRaw("[[" + prefix + "]]\n" + key + " = " + match.toml() + "\n")
		if i == 0 && w.seenAnswers[match.toml()] {
			w.notes = append(w.notes, p.At.String()+": another session begins with such a prompt; its rule comes first")
		}
		if i == 0 && len(w.seenAnswers) > 0 || i == 0 && w.promptNumber < len(w.patterns.prompts) && len(s.Prompts) < len(w.patterns.prompts) {
			w.toml.WriteRaw("max_matches = 1\n")
		}
		if i == 0 {
			w.seenAnswers[match.toml()] = true
		}
		w.results = nil
		w.expected.addCallsOfMessages(w.plans, p.Messages)
		w.writeMessages(prefix+".response.steps", p.Messages)
		w.writeBufferedTOMLAsSection(title)
		if w.options.Check == nil {
			p.Messages = nil // free the memory of a long session
		}
	}
}

// writeHookComment writes a comment that lists the hooks that ran: a scenario has no hooks, but the settings may have some.
func (w *scenarioWriter) writeHookComment(ran []session.HookRun) {
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
		w.toml.WriteRaw(asCommentLine("hooks ran: " + strings.Join(names, ", ")))
	}
}

func omittedMediaText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", with %d images or documents that were left out", n)
}

func (w *scenarioWriter) writeMessages(tablePath string, messages []*session.Message) {
	for _, m := range messages {
		w.toml.WriteRaw("[[" + tablePath + "]]\n")
		if m.Failure != nil {
			w.writeFailure(tablePath, m.Failure)
			continue
		}
		if stop := m.StopReason; stop != "" && stop != "end_turn" && stop != "tool_use" {
			w.toml.WriteStringUnlessEmpty("stop_reason", stop)
		}
		blocks := m.Blocks
		if !w.options.KeepThinking {
			blocks = slices.DeleteFunc(slices.Clone(blocks), func(b session.Block) bool { return b.Thinking })
		}
		inOrder := areInOrderThinkingTextCalls(blocks)
		for _, b := range blocks {
			w.writeBlock(tablePath, b, inOrder)
		}
		w.rememberToolResults(tablePath, blocks)
	}
}

func areInOrderThinkingTextCalls(blocks []session.Block) bool {
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

// writeBlock writes a block of a step. If the blocks of the step are inOrder (thinking, text, calls), the block is a
// key of the step, otherwise it is an element of the key `blocks`.
func (w *scenarioWriter) writeBlock(tablePath string, b session.Block, inOrder bool) {
	kind, table := "text", tablePath+".tool_calls"
	switch {
	case b.Call != nil:
		kind = "tool_use"
	case b.Thinking:
		kind = "thinking"
	}
	if !inOrder {
		table = tablePath + ".blocks"
	}
	if !inOrder || b.Call != nil {
		w.toml.WriteRaw("[[" + table + "]]\n")
	}
	if !inOrder {
		w.toml.WriteStringUnlessEmpty("type", kind)
	}
	switch {
	case b.Call != nil:
		w.writeCall(table, b.Call)
	case b.Thinking:
		w.toml.WriteRaw("thinking = " + quoteAsTOMLTemplate(b.Text) + "\n")
	default:
		w.toml.WriteRaw("text = " + w.quoteTextWithToolResultReference(tablePath, b.Text) + "\n")
	}
}

func (w *scenarioWriter) writeCall(tablePath string, c *session.Call) {
	tool := c.Tool
	how := w.plans.replayMethodOf(c)
	switch {
	case how == replayCallWithRecordedResult && c.IsBuiltInCallWithoutChanges():
		w.toml.WriteRaw(asCommentLine(fmt.Sprintf("review: the result is fixed text, from line %d; the call is read-only", c.At.Line)))
	case how == replayCallWithRecordedResult:
		w.toml.WriteRaw(asCommentLine("review: the call changes something, so its result is fixed text"))
	case how == replayCallAsDenied:
		w.toml.WriteRaw(asCommentLine("the call was denied; see tool_execution below"))
	}
	w.toml.WriteRaw("tool = " + tomltext.BasicString(tool) + "\n")
	input := c.Input
	if how == replayCallByRunningTool {
		key, value, _ := w.plans.inputReadingImportedFile(c)
		input = withInputValue(input, key, value)
	}
	w.toml.WriteRaw("input = " + w.inputAsInlineOrFileTOML(input) + "\n")
	if how == replayCallWithRecordedResult {
		w.toml.WriteRaw("result = " + w.resultAsInlineOrFileTOML(c.Result.Text) + "\n")
		if c.Result.IsError {
			w.toml.WriteRaw("is_error = true\n")
		}
		if c.Result.OtherParts > 0 {
			w.notes = append(w.notes, c.Result.At.String()+": a result has images or documents, which were left out")
		}
	}
	if how == replayCallBySubAgentScript {
		w.toml.WriteRaw("[" + tablePath + ".subagent]\n")
		w.toml.WriteStringUnlessEmpty("type", c.Agent.Type)
		w.toml.WriteRaw(fmt.Sprintf("background = %t\n", c.Agent.Background))
		w.writeMessages(tablePath+".subagent.steps", c.Agent.Messages)
	}
}

const maxInlineResultBytes = 4 << 10

// resultAsInlineOrFileTOML returns the result of a canned call in TOML. If there is an output directory, a long
// result is written to a separate file, such as results/3-1.txt for the first long result of prompt 3.
func (w *scenarioWriter) resultAsInlineOrFileTOML(toolResultText string) string {
	toolResultText = w.truncateBigToolResult(toolResultText)
	if len(toolResultText) <= maxInlineResultBytes || w.options.Out == "" {
		return quoteAsTOMLTemplate(toolResultText)
	}
	w.resultFiles++
	name := fmt.Sprintf("results/%d-%d.txt", w.promptNumber, w.resultFiles)
	w.files.AddFileWithContent(name, []byte(replaceDirPlaceholdersByNames(toolResultText)))
	return `{ "$file" = ` + tomltext.BasicString(name) + " }"
}

const maxImportedToolResultBytes = 200 << 10

func (w *scenarioWriter) truncateBigToolResult(toolResultText string) string {
	if w.options.KeepBigResults || len(toolResultText) <= maxImportedToolResultBytes {
		return toolResultText
	}
	return TruncateLongWithNote(toolResultText, maxImportedToolResultBytes)
}

func withInputValue(input json.RawMessage, key, value string) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(input, &o) != nil {
		return input
	}
	o[key] = json.RawMessage(plainjson.MarshalString(value))
	if out, err := json.Marshal(o); err == nil {
		return out
	}
	return input
}

// inputAsInlineOrFileTOML returns the input of a call in TOML. An input with a value that TOML cannot express is written
// to a separate file.
func (w *scenarioWriter) inputAsInlineOrFileTOML(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	if s, ok := jsonAsInlineTOML(raw); ok {
		return s
	}
	if w.options.Out == "" && w.options.Check == nil {
		w.notes = append(w.notes, "an input contains null, or a number that TOML cannot express; use -o DIR to write the input to a file")
	}
	w.inputs++
	name := "inputs/" + strconv.Itoa(w.inputs) + ".json"
	w.files.AddFileWithContent(name, []byte(replaceDirPlaceholdersByNames(string(raw))+"\n"))
	return `{ "$file" = ` + tomltext.BasicString(name) + " }"
}

func (w *scenarioWriter) writeFailure(tablePath string, f *session.Failure) {
	w.toml.WriteRaw("[" + tablePath + ".failure]\n")
	status, message := f.APIError()
	switch status {
	case 0:
		w.toml.WriteRaw(asCommentLine("review: " + replaceDirPlaceholdersByNames(f.Text)))
		w.toml.WriteRaw("type = \"network_unreachable\"\n")
	case http.StatusUnauthorized:
		w.toml.WriteRaw("type = \"auth_error\"\n")
	default:
		w.toml.WriteRaw("type = \"api_error\"\nstatus = " + strconv.Itoa(status) + "\n")
		if message != "" {
			w.toml.WriteRaw("message = " + oneLineTOMLString(replaceDirPlaceholdersByNames(message)) + "\n")
		}
	}
}

func (w *scenarioWriter) writeToolExecution() {
	names := slices.Sorted(maps.Keys(w.plans.ran))
	if len(names)+len(w.plans.denied) == 0 {
		return
	}
	if slices.ContainsFunc(names, session.IsBuiltInToolUnlistedByDefault) {
		w.toml.WriteRaw("\n" + asCommentLine("allow built-in tools that sessions do not list by default") + "[compat]\nhidden_tools = true\n")
	}
	for _, name := range names {
		w.toml.WriteRaw("\n[tool_execution.tools." + tomlKey(name) + "]\nauto_approve = true\n")
	}
	for _, name := range slices.Sorted(maps.Keys(w.plans.denied)) {
		if !w.plans.ran[name] {
			w.toml.WriteRaw("\n" + asCommentLine("denied in every permission mode") + "[tool_execution.tools." + tomlKey(name) + "]\nerror = " +
				oneLineTOMLString(ScriptedErrorTextOfDeniedTool(name)) + "\n")
			w.toml.WriteRaw("\n[[expect]]\ntool = " + oneLineTOMLString(name) + "\n")
		}
	}
}
