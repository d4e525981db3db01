package importer

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/claudeless/claudeless/internal/importer/hide"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// way is how a call is played.
type way int

const (
	canned   way = iota // with the result that was recorded
	serverly            // by the fixture of its MCP server
	agently             // by the script of its sub-agent
	refused             // denied again
	live                // it only reads, and what it reads is in the kit
	bare                // it has no result
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

func (p *plans) way(c *session.Call) way {
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
	if p.reads && c.Tool == "Read" && r.File != nil && r.File.Whole && r.Other == 0 {
		if rel, ok := p.below(r.File.Path); ok && p.files[rel] != nil && onlyPath(c.Input) {
			return live
		}
	}
	return canned
}

func onlyPath(input json.RawMessage) bool {
	var in struct{ Offset, Limit, Pages json.RawMessage }
	return json.Unmarshal(input, &in) == nil && in.Offset == nil && in.Limit == nil && in.Pages == nil
}

// servable says that a fixture can give the result: it is always the same and
// holds nothing that is a template here.
func (p *plans) servable(c *session.Call) bool {
	key := c.Tool + "\x00" + compact(c.Input)
	marked := strings.ContainsAny(string(c.Input)+c.Result.Text+string(c.Result.Raw), hide.Home+hide.CWD)
	return !p.unlike[key] && !marked && (c.Result.Other == 0 || c.Result.Raw != nil)
}

// harmless are built-in tools that change nothing.
func harmless(tool string) bool {
	switch tool {
	case "Read", "Grep", "Glob", "LS", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ToolSearch", "AskUserQuestion",
		"ExitPlanMode", "EnterPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool", "Skill", "TaskOutput":
		return true
	}
	return false
}
