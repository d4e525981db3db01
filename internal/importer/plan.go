package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/importer/hide"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// matchStrategy is how a call is played.
type matchStrategy int

const (
	canned   matchStrategy = iota // with the result that was recorded
	serverly                      // by the fixture of its MCP server
	agently                       // by the script of its sub-agent
	refused                       // denied again
	live                          // it only reads, and what it reads is in the kit
	bare                          // it has no result
)

// plans decides how calls are played. What changes things is never live.
type plans struct {
	ran, denied map[string]bool    // by tool
	answers     map[string]string  // text of the result by MCP tool and arguments
	unlike      map[string]bool    // same call, other result
	files       map[string]*string // content by path below the kit's files; nil = they disagree
	reads       bool
	cwds        []string
}

func newPlans(o Options, sessions []*session.Session) *plans {
	p := &plans{
		ran: map[string]bool{}, denied: map[string]bool{}, answers: map[string]string{}, unlike: map[string]bool{},
		files: map[string]*string{}, reads: o.Reads, cwds: []string{hide.CWD},
	}
	for _, s := range sessions {
		if s.CWD != "" {
			p.cwds = append(p.cwds, s.CWD)
		}
		for _, c := range s.Calls() {
			p.note(c)
		}
	}
	return p
}

func (p *plans) note(c *session.Call) {
	if c.Result == nil {
		return
	}
	if c.Result.Denied {
		p.denied[c.Tool] = true
		return
	}
	p.ran[c.Tool] = true
	if _, _, mcp := session.Server(c.Tool); mcp {
		key := c.Tool + "\x00" + compact(c.Input)
		if text, seen := p.answers[key]; seen && text != c.Result.Text {
			p.unlike[key] = true
		}
		p.answers[key] = c.Result.Text
	}
	if f := c.Result.File; p.reads && f != nil && c.Tool == "Read" && f.Whole && !c.Result.IsError {
		if rel, ok := p.below(f.Path); ok {
			if old, seen := p.files[rel]; seen && (old == nil || *old != f.Content) {
				p.files[rel] = nil // it changed meanwhile
			} else {
				p.files[rel] = &f.Content
			}
		}
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// below is a path relative to the working directory of a session.
func (p *plans) below(name string) (rel string, ok bool) {
	for _, dir := range p.cwds {
		if rest, found := strings.CutPrefix(name, dir+"/"); found {
			rest = path.Clean(rest)
			return rest, rest != "." && rest != ".." && !strings.HasPrefix(rest, "../") && !strings.ContainsAny(rest, hide.Home+hide.CWD)
		}
	}
	return "", false
}

func (p *plans) way(c *session.Call) matchStrategy {
	r := c.Result
	switch {
	case r == nil && c.Agent == nil:
		return bare
	case r != nil && r.Denied && !p.ran[c.Tool]:
		return refused
	case r != nil && r.Denied:
		return canned // the tool is allowed for other calls
	case c.Agent != nil && (r == nil || !r.IsError):
		return agently
	}
	if _, _, mcp := session.Server(c.Tool); mcp && !r.IsError && p.servable(c) {
		return serverly
	}
	if _, _, ok := p.reading(c); ok {
		return live
	}
	return canned
}

// reading is a call that reads one file of the kit, and nothing else: which key
// of its input names the file, and what stands there when it is played.
func (p *plans) reading(c *session.Call) (key, value string, ok bool) {
	r := c.Result
	if !p.reads || r == nil || r.IsError || r.Denied || r.Other != 0 {
		return "", "", false
	}
	var in struct {
		FilePath string `json:"file_path"`
		Path     string
		Command  string

		Offset, Limit, Pages json.RawMessage
	}
	if json.Unmarshal(c.Input, &in) != nil {
		return "", "", false
	}
	switch c.Tool {
	case "Read":
		if r.File == nil || !r.File.Whole || in.Offset != nil || in.Limit != nil || in.Pages != nil {
			return "", "", false
		}
		name, content := p.inKit(r.File.Path)
		return "file_path", name, content != nil
	case "Grep":
		name, content := p.inKit(in.Path)
		return "path", name, content != nil && !strings.Contains(r.Text, path.Base(in.Path)) && linesOf(r.Text, *content)
	case "Bash":
		show, file, ok := showing(in.Command)
		if !ok {
			return "", "", false
		}
		name, content := p.inKit(file)
		for i := 0; content == nil && i < len(p.cwds) && !path.IsAbs(file); i++ {
			name, content = p.inKit(p.cwds[i] + "/" + file)
		}
		return "command", show.words + name, content != nil && strings.TrimSpace(r.Text) == strings.TrimSpace(show.of(*content))
	}
	return "", "", false
}

// shownPrompt is what a command line shows of a file.
type shownPrompt struct {
	words string // of the command line before the file
	first int    // lines from the beginning; negative = from the end; 0 = all
}

// showing reads a command line that shows one file, or some lines of it, and does
// nothing else.
func showing(line string) (s shownPrompt, file string, ok bool) {
	words := strings.Split(line, " ")
	last := len(words) - 1
	if last < 1 || strings.ContainsAny(line, "\t\n;&|<>$`\\\"'*?[{(~#!") || strings.HasPrefix(words[last], "-") {
		return s, "", false
	}
	s.words, file = strings.Join(words[:last], " ")+" ", words[last]
	count := strings.Join(words[1:last], "")
	switch words[0] {
	case "cat":
		return s, file, count == ""
	case "head", "tail":
		s.first = 10
	default:
		return s, "", false
	}
	if count != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(count, "-"), "n"))
		if err != nil || n < 1 || count[0] != '-' {
			return s, "", false
		}
		s.first = n
	}
	if words[0] == "tail" {
		s.first = -s.first
	}
	return s, file, true
}

// of is what is shown of a content.
func (s shownPrompt) of(content string) string {
	lines := slices.Collect(strings.Lines(content))
	switch {
	case s.first > 0:
		lines = lines[:min(s.first, len(lines))]
	case s.first < 0:
		lines = lines[max(0, len(lines)+s.first):]
	}
	return strings.Join(lines, "")
}

// inKit is the name of a file where the kit is played, and what it holds; nil =
// the kit does not have it.
func (p *plans) inKit(file string) (name string, content *string) {
	rel, ok := p.below(file)
	if !ok {
		return "", nil
	}
	return hide.CWD + "/files/" + rel, p.files[rel]
}

var lineNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+[:-]`) })

// linesOf says that lines which were found are in a file as the kit has it: it
// may have been another before or afterwards.
func linesOf(found, content string) bool {
	for line := range strings.Lines(found) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.Contains(content, line) && !strings.Contains(content, lineNumber().ReplaceAllString(line, "")) {
			return false
		}
	}
	return true
}

// servable says that a fixture can give the result: it is always the same and
// holds nothing that is a template here.
func (p *plans) servable(c *session.Call) bool {
	key := c.Tool + "\x00" + compact(c.Input)
	marked := strings.ContainsAny(string(c.Input)+c.Result.Text+string(c.Result.Raw), hide.Home+hide.CWD)
	return !p.unlike[key] && !marked && (c.Result.Other == 0 || c.Result.Raw != nil)
}

// expectedCalls gathers the recorded calls, which become [[expect]] tables: a run in
// which one of them does not happen is no repetition of the session. The zero value is
// ready.
type expectedCalls struct {
	list []expectedCall
}

// expectedCall is one recorded call.
type expectedCall struct {
	tool  string
	input map[string]any // the short values that are the same wherever the scenario is played
	whole map[string]any // the whole input
	mcp   bool           // a fixture answers it
}

// messages adds the calls of messages, those of sub-agents among them. Calls that were
// denied have an expectation of their own.
func (e *expectedCalls) messages(p *plans, messages []*session.Message) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Call != nil {
				e.call(p, b.Call)
			}
		}
	}
}

func (e *expectedCalls) call(p *plans, c *session.Call) {
	how := p.way(c)
	if how == agently {
		e.messages(p, c.Agent.Messages)
	}
	if how == refused || how == bare {
		return
	}
	x := expectedCall{tool: c.Tool, input: map[string]any{}, mcp: how == serverly}
	_ = json.Unmarshal(c.Input, &x.whole) // an input that is no object has no values to name
	changed := ""
	if how == live {
		changed, _, _ = p.reading(c)
	}
	for name, value := range x.whole {
		if name != changed && steady(value) {
			x.input[name] = value
		}
	}
	e.list = append(e.list, x)
}

// steady tells whether a value is short, and the same in every directory.
func steady(value any) bool {
	const longest = 120
	switch v := value.(type) {
	case string:
		return len(v) <= longest && !strings.ContainsAny(v, "\n\r{}"+hide.Home+hide.CWD)
	case bool:
		return true
	}
	return false
}

// toml writes an expectation for each call, equal ones together.
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
		if n := e.count(x); n > 1 {
			fmt.Fprintf(&out, "times = %d\n", n)
		}
	}
	return out.String()
}

// toml is the expectation of one call, without how often it happens.
func (x *expectedCall) toml() string {
	if x.mcp {
		server, tool, _ := session.Server(x.tool)
		return "mcp = { server = " + oneLine(glob(server)) + ", tool = " + oneLine(glob(tool)) + " }\n"
	}
	text := "tool = " + oneLine(glob(x.tool)) + "\n"
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(x.input)) {
		value := fmt.Sprint(x.input[name])
		if s, ok := x.input[name].(string); ok {
			value = oneLine(s)
		}
		pairs = append(pairs, key(name)+" = "+value)
	}
	if len(pairs) > 0 {
		text += "input = { " + strings.Join(pairs, ", ") + " }\n"
	}
	return text
}

// glob is a pattern for a name: what has a meaning in patterns stands for any character.
func glob(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*?[]{}!\`, r) {
			return '?'
		}
		return r
	}, name)
}

// count is how many of the calls the expectation of x speaks of.
func (e *expectedCalls) count(x *expectedCall) int {
	n := 0
	for i := range e.list {
		other := &e.list[i]
		same := other.tool == x.tool && (!x.mcp || other.mcp)
		for name, value := range x.input {
			// Values of other types are not of a comparable type.
			same = same && (x.mcp || steady(other.whole[name]) && other.whole[name] == value)
		}
		if same {
			n++
		}
	}
	return n
}
