package debug

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
)

// Behavior says when a breakpoint stops calls.
type Behavior string

// The behaviours. Yield stands for the hub's own behaviour; Exception and
// StopException tell how calls that failed are treated afterwards.
const (
	Stop          Behavior = "stop"
	Go            Behavior = "go"
	Yield         Behavior = "yield"
	Exception     Behavior = "exception"
	StopException Behavior = "stop_exception"
)

// scope is what a behaviour is for; each allows other words.
type scope int

const (
	scopeDefault scope = iota
	scopeBefore
	scopeAfter
)

// parseBehavior reads a behaviour in any of its spellings.
func parseBehavior(word string, s scope) (Behavior, error) {
	b := Behavior(word)
	switch strings.ToLower(word) {
	case "continue", "go":
		b = Go
	case "breakpoints", "stop_at_breakpoints", "stop":
		b = Stop
	case "exceptions", "stop_at_exceptions", "exception":
		b = Exception
	case "both", "breakpoints_and_exceptions", "stop_exceptions", "stop_exception":
		b = StopException
	case "defer", "default", "yield":
		b = Yield
	}
	allowed := [...][]Behavior{
		scopeDefault: {Stop, Go, Exception, StopException},
		scopeBefore:  {Stop, Go, Yield},
		scopeAfter:   {Stop, Go, Exception, StopException, Yield},
	}[s]
	if !slices.Contains(allowed, b) {
		words := make([]string, len(allowed))
		for i, a := range allowed {
			words[i] = string(a)
		}
		return "", Refuse(CodeInvalidBehavior, "behavior must be one of "+strings.Join(words, ", "), "behavior", word)
	}
	return b, nil
}

// Breakpoint stops the calls of tools by their name.
type Breakpoint struct {
	// Name is a canonical tool name, "server/tool", or a glob over either. It
	// is kept as it was given.
	Name        string
	Before      Behavior
	After       Behavior
	When        string // condition; empty = always
	Replacement string // tool that runs instead when the call is not stopped; empty = none
	// ConditionError is what went wrong when the condition last failed to run;
	// such a condition does not hold.
	ConditionError string
}

type breakpoint struct {
	Breakpoint
	glob *match.Text   // nil = Name is no pattern
	when *eval.Program // nil = always
}

// points are the breakpoints and rules that calls may hit.
type points struct {
	*core
	tools       *registry
	breakpoints []*breakpoint
	rules       []*rule // before all breakpoints
	behavior    Behavior
}

// BreakpointChange is what SetBreakpoint changes; nil fields stay as they are,
// or as in a new breakpoint: yield, yield, no condition.
type BreakpointChange struct {
	Name                string
	Before, After, When *string
}

// SetBreakpoint makes a breakpoint or changes one. Everything is checked
// before anything is changed.
func (p *points) SetBreakpoint(c BreakpointChange) error {
	_, err := p.set(c, false)
	return err
}

// ChangeBreakpoint is SetBreakpoint for one that must exist; it returns the
// breakpoint as it is now.
func (p *points) ChangeBreakpoint(c BreakpointChange) (Breakpoint, error) { return p.set(c, true) }

func (p *points) set(c BreakpointChange, exists bool) (none Breakpoint, err error) {
	if c.Name == "" {
		return none, Refuse(CodeMissingParameter, "function_name required", "parameter", "function_name")
	}
	n := breakpoint{Breakpoint: Breakpoint{Name: c.Name, Before: Yield, After: Yield}}
	if n.glob, err = parseGlob(c.Name); err != nil && !exists {
		return none, err
	}
	if c.Before != nil {
		if n.Before, err = parseBehavior(*c.Before, scopeBefore); err != nil {
			return none, err
		}
	}
	if c.After != nil {
		if n.After, err = parseBehavior(*c.After, scopeAfter); err != nil {
			return none, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.breakpoint(c.Name)
	if exists && old == nil {
		return none, Refuse(CodeBreakpointNotFound, "", "function_name", c.Name)
	}
	if c.When != nil && strings.TrimSpace(*c.When) != "" {
		if n.when, err = eval.CompileBool(*c.When, eval.Breakpoint()); err != nil {
			return none, badCondition(err)
		}
		n.When = *c.When
	}
	switch {
	case old == nil && len(p.breakpoints) >= maxBreakpoints:
		return none, Refuse(CodeLimit, "too many breakpoints")
	case old == nil:
		old = &n
		p.breakpoints = append(p.breakpoints, old)
	default:
		if c.Before != nil {
			old.Before = n.Before
		}
		if c.After != nil {
			old.After = n.After
		}
		if c.When != nil {
			old.When, old.when, old.ConditionError = n.When, n.when, ""
		}
	}
	p.publish(Event{Kind: EventChanged, Topic: TopicBreakpoints})
	return old.Breakpoint, nil
}

// parseGlob reads a name that is a pattern; nil = it is none.
func parseGlob(name string) (none *match.Text, err error) {
	if !strings.ContainsAny(name, "*?[") {
		return none, nil
	}
	glob, err := match.Glob(name)
	if err != nil {
		return nil, Refuse(CodeInvalidPattern, err.Error(), "function_name", name)
	}
	return &glob, nil
}

func badCondition(err error) error {
	e := Refuse(CodeInvalidCondition, err.Error())
	if at, ok := errors.AsType[*eval.Error](err); ok {
		if len(at.Known) > 0 {
			e.Message += "; known names here: " + strings.Join(at.Known, ", ")
		}
		e.Detail = map[string]any{"column": at.Offset + 1}
	}
	return e
}

// RemoveBreakpoint removes a breakpoint with all its settings. Removing what
// is not there is fine.
func (p *points) RemoveBreakpoint(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.breakpoints)
	p.breakpoints = slices.DeleteFunc(p.breakpoints, func(b *breakpoint) bool { return b.Name == name })
	if len(p.breakpoints) != n {
		p.publish(Event{Kind: EventChanged, Topic: TopicBreakpoints})
	}
}

// SetReplacement makes another tool run in place of a breakpoint's calls that
// are not stopped. Both tools must be registered with the same schema. Empty,
// or the breakpoint's own name, clears it.
func (p *points) SetReplacement(name, tool string) error {
	if name == "" {
		return Refuse(CodeMissingParameter, "function_name required", "parameter", "function_name")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if tool == name {
		tool = ""
	}
	if tool != "" {
		a, b := p.tools.functions[p.tools.canonical(name)].Signature, p.tools.functions[p.tools.canonical(tool)].Signature
		if a == "" || a != b {
			return Refuse(CodeSignatureMismatch, "a replacement needs the same schema",
				"function_name", name, "replacement_function", tool)
		}
	}
	b := p.breakpoint(name)
	if b == nil {
		return Refuse(CodeBreakpointNotFound, "", "function_name", name)
	}
	b.Replacement = tool
	p.publish(Event{Kind: EventChanged, Topic: TopicBreakpoints})
	return nil
}

// Breakpoints lists all breakpoints in the order of their making.
func (p *points) Breakpoints() []Breakpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Breakpoint, 0, len(p.breakpoints))
	for _, b := range p.breakpoints {
		all = append(all, b.Breakpoint)
	}
	return all
}

// BreakpointLists are all breakpoints, by what is set of them.
type BreakpointLists struct {
	Names                            []string
	Before, After                    map[string]Behavior
	Replacements, Conditions, Errors map[string]string
}

// BreakpointLists are [Hub.Breakpoints] by name.
func (p *points) BreakpointLists() BreakpointLists {
	l := BreakpointLists{
		[]string{}, map[string]Behavior{}, map[string]Behavior{}, map[string]string{}, map[string]string{}, map[string]string{},
	}
	for _, b := range p.Breakpoints() {
		l.Names = append(l.Names, b.Name)
		l.Before[b.Name], l.After[b.Name] = b.Before, b.After
		if b.Replacement != "" {
			l.Replacements[b.Name] = b.Replacement
		}
		if b.When != "" {
			l.Conditions[b.Name] = b.When
		}
		if b.ConditionError != "" {
			l.Errors[b.Name] = b.ConditionError
		}
	}
	return l
}

// Default is the behaviour that Yield stands for; at first it is Stop.
func (p *points) Default() Behavior {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behavior
}

// SetDefault changes the behaviour that Yield stands for and returns it.
func (p *points) SetDefault(word string) (Behavior, error) {
	b, err := parseBehavior(word, scopeDefault)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behavior = b
	p.publish(Event{Kind: EventChanged, Topic: TopicBehavior})
	return b, nil
}

func (p *points) breakpoint(name string) *breakpoint {
	for _, b := range p.breakpoints {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// hits lists the breakpoints on a tool, the most exact first: by its name, as
// "server/tool", by pattern. p.mu is held.
func (p *points) hits(tool string) []*breakpoint {
	if len(p.breakpoints) == 0 {
		return nil
	}
	alias := p.tools.functions[tool].Alias
	var exact, aliased, globs []*breakpoint
	for _, b := range p.breakpoints {
		switch {
		case !p.fits(b.Name, b.glob, tool, alias):
		case b.Name == tool:
			exact = append(exact, b)
		case b.glob == nil:
			aliased = append(aliased, b)
		default:
			globs = append(globs, b)
		}
	}
	return slices.Concat(exact, aliased, globs)
}

// fits tells whether a name, or the pattern it is, means a tool; p.mu is held.
func (p *points) fits(name string, glob *match.Text, tool, alias string) bool {
	if glob == nil {
		return name == tool || p.tools.canonical(name) == tool
	}
	return name == tool || matches(glob, tool) || alias != "" && matches(glob, alias)
}

func matches(glob *match.Text, name string) bool {
	_, ok := glob.Match(name)
	return ok
}

// stops reports whether b stops a call in a phase, given how it went.
func (b *breakpoint) stops(phase Phase, failed bool, fallback Behavior) bool {
	own := b.Before
	if phase == After {
		own = b.After
	}
	if own == Yield {
		own = fallback
	}
	if phase == After && failed {
		return own == Exception || own == StopException
	}
	return own == Stop || own == StopException
}

// Rule is a breakpoint on one phase of calls for a front that decides by a
// script. Rules are looked at in the order of their making, before all
// breakpoints that have names, and the first that holds stops the call whatever
// the behaviours are.
type Rule struct {
	Name  string   // shown as the breakpoint of its pauses
	Tools []string // names as in Breakpoint.Name; one of them must mean the tool
	Phase Phase
	When  string // condition; empty = always
	Most  int    // pauses it makes; negative = no limit
	// ConditionError is what went wrong when the condition last failed to run;
	// such a condition does not hold.
	ConditionError string
}

type rule struct {
	Rule
	globs []*match.Text // of Tools; nil = that one is no pattern
	when  *eval.Program // nil = always
	// counted rules had a limit when they were made.
	counted bool
}

// AddRule adds a rule, which stays as long as the hub.
func (p *points) AddRule(r Rule) error {
	n := &rule{Rule: r, counted: r.Most >= 0}
	for _, name := range r.Tools {
		glob, err := parseGlob(name)
		if err != nil {
			return err
		}
		n.globs = append(n.globs, glob)
	}
	if strings.TrimSpace(r.When) != "" {
		var err error
		if n.when, err = eval.CompileBool(r.When, eval.Breakpoint()); err != nil {
			return badCondition(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rules) >= maxBreakpoints {
		return Refuse(CodeLimit, "too many rules")
	}
	p.rules = append(p.rules, n)
	return nil
}

// Rules lists the rules as they are now: Most is how many pauses are left.
func (p *points) Rules() []Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Rule, 0, len(p.rules))
	for _, r := range p.rules {
		all = append(all, r.Rule)
	}
	return all
}

// Counts tells whether a rule that ends after some pauses is about a tool.
func (p *points) Counts(tool string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.counted && p.means(r, tool) })
}

// rule finds the first rule that stops a call in a phase and takes one of its
// pauses; nil = none. Conditions run without the lock held.
func (p *points) rule(ctx context.Context, k *call, phase Phase, r *Outcome) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	tool := k.data.MethodName
	for _, n := range p.rules {
		if n.Phase != phase || n.Most == 0 || !p.means(n, tool) {
			continue
		}
		if n.when != nil {
			p.mu.Unlock()
			ok, err := p.holds(ctx, n.when, k, phase, r)
			p.mu.Lock()
			if err != nil {
				n.ConditionError = err.Error()
			}
			if !ok || n.Most == 0 { // another call was quicker
				continue
			}
		}
		if n.Most > 0 {
			n.Most--
		}
		return n
	}
	return nil
}

// means tells whether a rule is about a tool; p.mu is held.
func (p *points) means(r *rule, tool string) bool {
	for i, name := range r.Tools {
		if p.fits(name, r.globs[i], tool, p.tools.functions[tool].Alias) {
			return true
		}
	}
	return false
}

// examine finds the first rule or else breakpoint whose condition holds for a
// call in a phase, and whether it stops the call; nil = none. Conditions run
// without the lock held.
func (p *points) examine(ctx context.Context, k *call, phase Phase, r *Outcome) (hit *breakpoint, stopped bool) {
	if n := p.rule(ctx, k, phase, r); n != nil {
		return &breakpoint{Breakpoint: Breakpoint{Name: n.Name}}, true
	}
	p.mu.Lock()
	hits := p.hits(k.data.MethodName)
	for i, b := range hits {
		b := *b
		hits[i] = &b
	}
	fallback := p.behavior
	p.mu.Unlock()
	failed := r != nil && r.Failed
	for _, b := range hits {
		if b.when != nil {
			ok, err := p.holds(ctx, b.when, k, phase, r)
			if err != nil {
				p.conditionFailed(b.Name, err)
			}
			if !ok {
				continue
			}
		}
		return b, b.stops(phase, failed, fallback)
	}
	return nil, false
}

// conditionFailed makes a breakpoint show why its condition could not be run.
func (p *points) conditionFailed(name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.breakpoint(name); b != nil {
		b.ConditionError = err.Error()
	}
}
