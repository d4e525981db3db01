package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/importer/session"
)

type replayMethod int

const (
	replayCallWithRecordedResult replayMethod = iota // not executed; its result is the recorded one
	replayCallByMCPFixture                           // answered by the fixture of its MCP server
	replayCallBySubAgentScript                       // answered by the script of its sub-agent
	replayCallAsDenied                               // denied, as recorded
	replayCallByRunningTool                          // executed, because the call only reads a file of the file set
	replayCallWithoutResult                          // without a result
)

// callReplayPlanner decide how the scenario answers recorded calls. Calls that change something are never executed.
type callReplayPlanner struct {
	ran, denied    map[string]bool    // names of tools whose calls ran, and of tools whose calls were denied
	fixtureAnswers map[string]string  // result text by MCP tool and arguments
	differing      map[string]bool    // calls that were recorded with different results
	files          map[string]*string // content by path in the file set; nil means that the file changed during the session
	keepFiles      bool
	cwds           []string
}

func newCallReplayPlanner(o Options, sessions []*session.Session) *callReplayPlanner {
	p := &callReplayPlanner{
		ran: map[string]bool{}, denied: map[string]bool{}, fixtureAnswers: map[string]string{}, differing: map[string]bool{},
		files: map[string]*string{}, keepFiles: o.KeepFiles, cwds: []string{CWDPlaceholder},
	}
	for _, s := range sessions {
		if s.CWD != "" {
			p.cwds = append(p.cwds, s.CWD)
		}
		for _, c := range s.Calls() {
			p.noteOutcomeOfRecordedCall(c)
		}
	}
	return p
}

func (p *callReplayPlanner) noteOutcomeOfRecordedCall(recordedCall *session.Call) {
	if recordedCall.Result == nil {
		return
	}
	if recordedCall.Result.Denied {
		p.denied[recordedCall.Tool] = true
		return
	}
	p.ran[recordedCall.Tool] = true
	if _, _, mcp := session.SplitMCPToolName(recordedCall.Tool); mcp {
		key := recordedCall.Tool + "\x00" + string(plainjson.Compact(recordedCall.Input))
		if text, seen := p.fixtureAnswers[key]; seen && text != recordedCall.Result.Text {
			p.differing[key] = true
		}
		p.fixtureAnswers[key] = recordedCall.Result.Text
	}
	if f := recordedCall.Result.File; p.keepFiles && f != nil && recordedCall.Tool == "Read" && f.IsComplete && !recordedCall.Result.IsError {
		if rel, ok := p.relativePath(f.Path); ok {
			if old, seen := p.files[rel]; seen && (old == nil || *old != f.Content) {
				p.files[rel] = nil // the file changed during the session
			} else {
				p.files[rel] = &f.Content
			}
		}
	}
}

// relativePath returns the path of a file relative to the working directory of a session.
func (p *callReplayPlanner) relativePath(name string) (rel string, ok bool) {
	for _, dir := range p.cwds {
		if rest, found := strings.CutPrefix(name, dir+"/"); found {
			rest = path.Clean(rest)
			return rest, rest != "." && rest != ".." && !strings.HasPrefix(rest, "../") && !strings.ContainsAny(rest, HomePlaceholder+CWDPlaceholder)
		}
	}
	return "", false
}

func (p *callReplayPlanner) replayMethodOf(c *session.Call) replayMethod {
	r := c.Result
	switch {
	case r == nil && c.Agent == nil:
		return replayCallWithoutResult
	case r != nil && r.Denied && !p.ran[c.Tool]:
		return replayCallAsDenied
	case r != nil && r.Denied:
		return replayCallWithRecordedResult // other calls of the tool were allowed, so the scenario must not deny all of them
	case c.Agent != nil && (r == nil || !r.IsError):
		return replayCallBySubAgentScript
	}
	if _, _, mcp := session.SplitMCPToolName(c.Tool); mcp && !r.IsError && p.canUseFixture(c) {
		return replayCallByMCPFixture
	}
	if _, _, ok := p.inputReadingImportedFile(c); ok {
		return replayCallByRunningTool
	}
	return replayCallWithRecordedResult
}

// inputReadingImportedFile recognizes a call that only reads one imported file, so that it can be executed. pathInputKey is the member of
// the input that names the file, such as file_path; replayedInputValue is its value in the directory where the scenario is played.
func (p *callReplayPlanner) inputReadingImportedFile(recordedCall *session.Call) (pathInputKey, replayedInputValue string, ok bool) {
	r := recordedCall.Result
	if !p.keepFiles || r == nil || r.IsError || r.Denied || r.OtherParts != 0 {
		return "", "", false
	}
	var in struct {
		FilePath      string `json:"file_path"`
		Path, Command string

		Offset, Limit, Pages json.RawMessage
	}
	if json.Unmarshal(recordedCall.Input, &in) != nil {
		return "", "", false
	}
	switch recordedCall.Tool {
	case "Read":
		if r.File == nil || !r.File.IsComplete || in.Offset != nil || in.Limit != nil || in.Pages != nil {
			return "", "", false
		}
		name, content := p.replayPathAndContent(r.File.Path)
		return "file_path", name, content != nil
	case "Grep":
		name, content := p.replayPathAndContent(in.Path)
		return "path", name, content != nil && !strings.Contains(r.Text, path.Base(in.Path)) && containsGrepResultLines(r.Text, *content)
	case "Bash":
		show, file, ok := parseFilePrintingCommand(in.Command)
		if !ok {
			return "", "", false
		}
		name, content := p.replayPathAndContent(file)
		for i := 0; content == nil && i < len(p.cwds) && !path.IsAbs(file); i++ {
			name, content = p.replayPathAndContent(p.cwds[i] + "/" + file)
		}
		return "command", show.headOrTail + name, content != nil && strings.TrimSpace(r.Text) == strings.TrimSpace(show.partPrintedByCommand(*content))
	}
	return "", "", false
}

// filePrintingCommand is a shell command that prints a part of a file.
type filePrintingCommand struct {
	headOrTail string // command line without the file name
	lineCount  int    // how many lines are printed: the first ones, or the last ones if negative; 0 means all
}

func parseFilePrintingCommand(commandLine string) (s filePrintingCommand, file string, ok bool) {
	words := strings.Split(commandLine, " ")
	last := len(words) - 1
	if last < 1 || strings.ContainsAny(commandLine, "\t\n;&|<>$`\\\"'*?[{(~#!") || strings.HasPrefix(words[last], "-") {
		return s, "", false
	}
	s.headOrTail, file = strings.Join(words[:last], " ")+" ", words[last]
	count := strings.Join(words[1:last], "")
	switch words[0] {
	case "cat":
		return s, file, count == ""
	case "head", "tail":
		s.lineCount = 10
	default:
		return s, "", false
	}
	if count != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(count, "-"), "n"))
		if err != nil || n < 1 || count[0] != '-' {
			return s, "", false
		}
		s.lineCount = n
	}
	if words[0] == "tail" {
		s.lineCount = -s.lineCount
	}
	return s, file, true
}

func (s filePrintingCommand) partPrintedByCommand(fileContent string) string {
	lines := slices.Collect(strings.Lines(fileContent))
	switch {
	case s.lineCount > 0:
		lines = lines[:min(s.lineCount, len(lines))]
	case s.lineCount < 0:
		lines = lines[max(0, len(lines)+s.lineCount):]
	}
	return strings.Join(lines, "")
}

// replayPathAndContent returns the path that a file has when the scenario is played, and its content. A nil
// content means that the file set does not contain the file.
func (p *callReplayPlanner) replayPathAndContent(recordedPath string) (replayPath string, content *string) {
	rel, ok := p.relativePath(recordedPath)
	if !ok {
		return "", nil
	}
	return CWDPlaceholder + "/files/" + rel, p.files[rel]
}

var lineNumberPrefixOfGrepResultPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+[:-]`) })

// containsGrepResultLines reports whether an imported file contains all lines of grepResult. The lines of
// grepResult may begin with line numbers.
func containsGrepResultLines(grepResult, fileContent string) bool {
	for line := range strings.Lines(grepResult) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.Contains(fileContent, line) && !strings.Contains(fileContent, lineNumberPrefixOfGrepResultPattern().ReplaceAllString(line, "")) {
			return false
		}
	}
	return true
}

// canUseFixture reports whether a fixture can return the recorded result of a call. The result must be complete and the
// same for all calls with this input. Neither the result nor the input may contain a placeholder.
func (p *callReplayPlanner) canUseFixture(c *session.Call) bool {
	key := c.Tool + "\x00" + string(plainjson.Compact(c.Input))
	marked := strings.ContainsAny(string(c.Input)+c.Result.Text+string(c.Result.Raw), HomePlaceholder+CWDPlaceholder)
	return !p.differing[key] && !marked && (c.Result.OtherParts == 0 || c.Result.Raw != nil)
}

// expectedCalls collects the recorded calls that a run must repeat, for [[expect]] tables.
type expectedCalls struct {
	list []expectedCall
}

type expectedCall struct {
	tool        string
	input       map[string]any // the members of fullInput that are the same in every run: short values without a directory
	fullInput   map[string]any
	fromFixture bool
}

// addCallsOfMessages adds the calls in messages, including those of sub-agents. Denied calls have their own expectations.
func (e *expectedCalls) addCallsOfMessages(p *callReplayPlanner, messages []*session.Message) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Call != nil {
				e.addRecordedCallUnlessDenied(p, b.Call)
			}
		}
	}
}

func (e *expectedCalls) addRecordedCallUnlessDenied(plans *callReplayPlanner, recordedCall *session.Call) {
	how := plans.replayMethodOf(recordedCall)
	if how == replayCallBySubAgentScript {
		e.addCallsOfMessages(plans, recordedCall.Agent.Messages)
	}
	if how == replayCallAsDenied || how == replayCallWithoutResult {
		return
	}
	x := expectedCall{tool: recordedCall.Tool, input: map[string]any{}, fromFixture: how == replayCallByMCPFixture}
	_ = json.Unmarshal(recordedCall.Input, &x.fullInput) // an input that is not an object has no members
	changed := ""
	if how == replayCallByRunningTool {
		changed, _, _ = plans.inputReadingImportedFile(recordedCall)
	}
	for name, value := range x.fullInput {
		if name != changed && isShortPlainStringOrBool(value) {
			x.input[name] = value
		}
	}
	e.list = append(e.list, x)
}

func isShortPlainStringOrBool(value any) bool {
	const longest = 120
	switch v := value.(type) {
	case string:
		return len(v) <= longest && !strings.ContainsAny(v, "\n\r{}"+HomePlaceholder+CWDPlaceholder)
	case bool:
		return true
	}
	return false
}

func (e *expectedCalls) toml() string {
	var out strings.Builder
	written := map[string]bool{}
	for i := range e.list {
		x := &e.list[i]
		text := x.toml()
		if written[text] {
			continue
		}
		written[text] = true
		out.WriteString("\n[[expect]]\n" + text)
		if n := e.countExpectedCallsMatching(x); n > 1 {
			fmt.Fprintf(&out, "times = %d\n", n)
		}
	}
	return out.String()
}

func (x *expectedCall) toml() string {
	if x.fromFixture {
		server, tool, _ := session.SplitMCPToolName(x.tool)
		return "mcp = { server = " + oneLineTOMLString(globCharactersToWildcards(server)) + ", tool = " + oneLineTOMLString(globCharactersToWildcards(tool)) + " }\n"
	}
	text := "tool = " + oneLineTOMLString(globCharactersToWildcards(x.tool)) + "\n"
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(x.input)) {
		value := fmt.Sprint(x.input[name])
		if s, ok := x.input[name].(string); ok {
			value = oneLineTOMLString(s)
		}
		pairs = append(pairs, tomlKey(name)+" = "+value)
	}
	if len(pairs) > 0 {
		text += "input = { " + strings.Join(pairs, ", ") + " }\n"
	}
	return text
}

func globCharactersToWildcards(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*?[]{}!\`, r) {
			return '?'
		}
		return r
	}, name)
}

func (e *expectedCalls) countExpectedCallsMatching(x *expectedCall) int {
	n := 0
	for i := range e.list {
		other := &e.list[i]
		same := other.tool == x.tool && (!x.fromFixture || other.fromFixture)
		for name, value := range x.input {
			// Only strings and booleans are compared.
			same = same && (x.fromFixture || isShortPlainStringOrBool(other.fullInput[name]) && other.fullInput[name] == value)
		}
		if same {
			n++
		}
	}
	return n
}
