package debug

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
)

// BreakpointBehavior specifies when a breakpoint stops calls.
type BreakpointBehavior string

// The behaviours. Before a call runs, only BehaviorStop and BehaviorStopBeforeAndAfterAnyOutcome stop it. After it has run,
// BehaviorStop stops a successful call, BehaviorStopAfterFailedCall a failed call, and BehaviorStopBeforeAndAfterAnyOutcome every
// call. BehaviorNeverStop never stops. BehaviorUseHubDefault means the hub's default.
const (
	BehaviorStop                         BreakpointBehavior = "stop"
	BehaviorNeverStop                    BreakpointBehavior = "go"
	BehaviorUseHubDefault                BreakpointBehavior = "yield"
	BehaviorStopAfterFailedCall          BreakpointBehavior = "exception"
	BehaviorStopBeforeAndAfterAnyOutcome BreakpointBehavior = "stop_exception"
)

// stopSettingKind is one of the settings that hold a behaviour. Each setting allows only some behaviours.
type stopSettingKind int

const (
	behaviorSettingHubDefault stopSettingKind = iota
	behaviorSettingBeforeCall
	behaviorSettingAfterCall
)

func parseStopBehavior(word string, s stopSettingKind) (BreakpointBehavior, error) {
	b := BreakpointBehavior(word)
	switch strings.ToLower(word) {
	case "continue", "go":
		b = BehaviorNeverStop
	case "breakpoints", "stop_at_breakpoints", "stop":
		b = BehaviorStop
	case "exceptions", "stop_at_exceptions", "exception":
		b = BehaviorStopAfterFailedCall
	case "both", "breakpoints_and_exceptions", "stop_exceptions", "stop_exception":
		b = BehaviorStopBeforeAndAfterAnyOutcome
	case "defer", "default", "yield":
		b = BehaviorUseHubDefault
	}
	allowed := [...][]BreakpointBehavior{
		behaviorSettingHubDefault: {BehaviorStop, BehaviorNeverStop, BehaviorStopAfterFailedCall, BehaviorStopBeforeAndAfterAnyOutcome},
		behaviorSettingBeforeCall: {BehaviorStop, BehaviorNeverStop, BehaviorUseHubDefault},
		behaviorSettingAfterCall:  {BehaviorStop, BehaviorNeverStop, BehaviorStopAfterFailedCall, BehaviorStopBeforeAndAfterAnyOutcome, BehaviorUseHubDefault},
	}[s]
	if !slices.Contains(allowed, b) {
		words := make([]string, len(allowed))
		for i, a := range allowed {
			words[i] = string(a)
		}
		return "", NewError(CodeInvalidBehavior, "behavior must be one of "+strings.Join(words, ", "), "behavior", word)
	}
	return b, nil
}

// Breakpoint stops calls of the tools that match its name.
type Breakpoint struct {
	Name           string // a canonical tool name, "server/tool", or a glob that matches either; the user's spelling is kept
	Before, After  BreakpointBehavior
	When           string // condition; empty means always
	Replacement    string // tool that runs if the call is not stopped; empty means the called tool
	ConditionError string // the error of the condition's last evaluation; a condition that fails counts as false
}

type compiledBreakpoint struct {
	Breakpoint
	glob *match.Pattern // nil means that Name is not a pattern
	when *eval.Program  // nil means always
}

type breakpointSet struct {
	*hubState
	functions       *functionRegistry
	breakpoints     []*compiledBreakpoint
	rules           []*compiledRule // checked before all breakpoints
	defaultBehavior BreakpointBehavior
}

// BreakpointSettings lists the settings that SetBreakpoint changes. A nil field keeps its value. A new breakpoint starts
// with yield for Before and After, and without a condition.
type BreakpointSettings struct {
	Name                string
	Before, After, When *string
}

// SetBreakpoint adds or changes the breakpoint with this name. If a value is invalid, it changes nothing.
func (p *breakpointSet) SetBreakpoint(c BreakpointSettings) error {
	_, err := p.addOrChangeBreakpoint(c, false)
	return err
}

// UpdateBreakpoint changes an existing breakpoint and returns its new state. An unknown name is an error.
func (p *breakpointSet) UpdateBreakpoint(c BreakpointSettings) (Breakpoint, error) {
	return p.addOrChangeBreakpoint(c, true)
}

func (p *breakpointSet) addOrChangeBreakpoint(c BreakpointSettings, mustExist bool) (changed Breakpoint, err error) {
	if c.Name == "" {
		return changed, NewError(CodeMissingParameter, "function_name required", "parameter", "function_name")
	}
	n := compiledBreakpoint{Breakpoint: Breakpoint{Name: c.Name, Before: BehaviorUseHubDefault, After: BehaviorUseHubDefault}}
	if n.glob, err = parseGlobOrNilForPlainName(c.Name); err != nil && !mustExist {
		return changed, err
	}
	if c.Before != nil {
		if n.Before, err = parseStopBehavior(*c.Before, behaviorSettingBeforeCall); err != nil {
			return changed, err
		}
	}
	if c.After != nil {
		if n.After, err = parseStopBehavior(*c.After, behaviorSettingAfterCall); err != nil {
			return changed, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.findBreakpoint(c.Name)
	if mustExist && old == nil {
		return changed, NewError(CodeBreakpointNotFound, "", "function_name", c.Name)
	}
	if c.When != nil && strings.TrimSpace(*c.When) != "" {
		if n.when, err = eval.CompileBool(*c.When, eval.ToolCallEnv()); err != nil {
			return changed, newInvalidExpressionError(err)
		}
		n.When = *c.When
	}
	switch {
	case old == nil && len(p.breakpoints) >= maxBreakpoints:
		return changed, NewError(CodeLimit, "too many breakpoints")
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
	p.publishLocked(Event{Kind: EventConfigurationChanged, Topic: TopicBreakpoints})
	return old.Breakpoint, nil
}

// parseGlobOrNilForPlainName parses a name as a pattern; nil means that the name is not a pattern.
func parseGlobOrNilForPlainName(name string) (glob *match.Pattern, err error) {
	if !strings.ContainsAny(name, "*?[") {
		return glob, nil
	}
	compiled, err := match.Glob(name)
	if err != nil {
		return nil, NewError(CodeInvalidPattern, err.Error(), "function_name", name)
	}
	return &compiled, nil
}

func newInvalidExpressionError(evalError error) error {
	e := NewError(CodeInvalidCondition, evalError.Error())
	if at, ok := errors.AsType[*eval.Error](evalError); ok {
		if len(at.Known) > 0 {
			e.Message += "; known names here: " + strings.Join(at.Known, ", ")
		}
		e.Detail = map[string]any{"column": at.Offset + 1}
	}
	return e
}

// RemoveBreakpoint removes a breakpoint with all its settings. An unknown name is not an error.
func (p *breakpointSet) RemoveBreakpoint(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.breakpoints)
	p.breakpoints = slices.DeleteFunc(p.breakpoints, func(b *compiledBreakpoint) bool { return b.Name == name })
	if len(p.breakpoints) != n {
		p.publishLocked(Event{Kind: EventConfigurationChanged, Topic: TopicBreakpoints})
	}
}

// SetReplacementToolOfBreakpoint makes replacementTool run for calls that match the breakpoint but are not stopped.
// replacementTool and the tool named breakpointName must be registered with the same schema. If replacementTool is
// empty or equals breakpointName, the replacement is removed.
func (p *breakpointSet) SetReplacementToolOfBreakpoint(breakpointName, replacementTool string) error {
	if breakpointName == "" {
		return NewError(CodeMissingParameter, "function_name required", "parameter", "function_name")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if replacementTool == breakpointName {
		replacementTool = ""
	}
	if replacementTool != "" {
		if a, b := p.functions.functions[p.functions.canonicalNameOfToolSpelling(breakpointName)].Signature, p.functions.functions[p.functions.canonicalNameOfToolSpelling(replacementTool)].Signature; a == "" || a != b {
			return NewError(CodeReplacementSchemaMismatch, "the replacement tool must have the same schema",
				"function_name", breakpointName, "replacement_function", replacementTool)
		}
	}
	b := p.findBreakpoint(breakpointName)
	if b == nil {
		return NewError(CodeBreakpointNotFound, "", "function_name", breakpointName)
	}
	b.Replacement = replacementTool
	p.publishLocked(Event{Kind: EventConfigurationChanged, Topic: TopicBreakpoints})
	return nil
}

// Breakpoints lists all breakpoints in the order in which they were added.
func (p *breakpointSet) Breakpoints() []Breakpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Breakpoint, 0, len(p.breakpoints))
	for _, b := range p.breakpoints {
		all = append(all, b.Breakpoint)
	}
	return all
}

// SettingsByBreakpointName holds all breakpoints, one map for each kind of setting.
type SettingsByBreakpointName struct {
	Names                            []string
	Before, After                    map[string]BreakpointBehavior
	Replacements, Conditions, Errors map[string]string
}

// SettingsByBreakpointName returns the settings of all breakpoints, keyed by name.
func (p *breakpointSet) SettingsByBreakpointName() SettingsByBreakpointName {
	l := SettingsByBreakpointName{
		[]string{}, map[string]BreakpointBehavior{}, map[string]BreakpointBehavior{}, map[string]string{}, map[string]string{}, map[string]string{},
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

// DefaultBehavior returns the behaviour that BehaviorUseHubDefault selects; initially BehaviorStop.
func (p *breakpointSet) DefaultBehavior() BreakpointBehavior {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.defaultBehavior
}

// SetDefaultBreakpointBehavior changes the behaviour that BehaviorUseHubDefault selects and returns it.
func (p *breakpointSet) SetDefaultBreakpointBehavior(word string) (BreakpointBehavior, error) {
	b, err := parseStopBehavior(word, behaviorSettingHubDefault)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.defaultBehavior = b
	p.publishLocked(Event{Kind: EventConfigurationChanged, Topic: TopicBehavior})
	return b, nil
}

func (p *breakpointSet) findBreakpoint(name string) *compiledBreakpoint {
	for _, b := range p.breakpoints {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// breakpointsForToolLocked lists the breakpoints that match a tool: first those with its canonical name, then those with
// "server/tool", then patterns. p.mu must be held.
func (p *breakpointSet) breakpointsForToolLocked(tool string) []*compiledBreakpoint {
	if len(p.breakpoints) == 0 {
		return nil
	}
	alias := p.functions.functions[tool].Alias
	var exact, aliased, globs []*compiledBreakpoint
	for _, b := range p.breakpoints {
		switch {
		case !p.nameOrGlobMatchesTool(b.Name, b.glob, tool, alias):
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

// nameOrGlobMatchesTool reports whether a name or a pattern matches a tool; p.mu must be held.
func (p *breakpointSet) nameOrGlobMatchesTool(name string, glob *match.Pattern, tool, alias string) bool {
	if glob == nil {
		return name == tool || p.functions.canonicalNameOfToolSpelling(name) == tool
	}
	return name == tool || globMatchesToolName(glob, tool) || alias != "" && globMatchesToolName(glob, alias)
}

func globMatchesToolName(nonNilGlob *match.Pattern, toolNameOrAlias string) bool {
	_, ok := nonNilGlob.Match(toolNameOrAlias)
	return ok
}

// stopsCallInPhase reports whether b stops a call in a phase. hubDefault applies if b has BehaviorUseHubDefault for the phase.
func (b *compiledBreakpoint) stopsCallInPhase(phase CallPhase, hasCallFailed bool, hubDefault BreakpointBehavior) bool {
	own := b.Before
	if phase == PhaseAfterCall {
		own = b.After
	}
	if own == BehaviorUseHubDefault {
		own = hubDefault
	}
	if phase == PhaseAfterCall && hasCallFailed {
		return own == BehaviorStopAfterFailedCall || own == BehaviorStopBeforeAndAfterAnyOutcome
	}
	return own == BehaviorStop || own == BehaviorStopBeforeAndAfterAnyOutcome
}

// PauseRule is a breakpoint that stops every matching call in one phase (before or after it runs), even if a named breakpoint lets
// the call go on. Rules are for front ends that decide automatically, such as a scenario. They are checked before the named breakpoints, in
// the order in which they were added.
type PauseRule struct {
	Name           string   // name of the breakpoint in the pauses that the rule causes
	Tools          []string // names as in Breakpoint.Name; at least one must match the tool
	Phase          CallPhase
	When           string // condition; empty means always
	MaxPauses      int    // number of pauses that are left; negative means no limit
	ConditionError string // the error of the condition's last evaluation; a condition that fails counts as false
}

type compiledRule struct {
	PauseRule
	globs []*match.Pattern // patterns of Tools, by index; nil for a name that is not a pattern
	when  *eval.Program    // nil means always
}

// AddRule adds a rule. Rules cannot be removed.
func (p *breakpointSet) AddRule(r PauseRule) error {
	n := &compiledRule{PauseRule: r}
	for _, name := range r.Tools {
		glob, err := parseGlobOrNilForPlainName(name)
		if err != nil {
			return err
		}
		n.globs = append(n.globs, glob)
	}
	if strings.TrimSpace(r.When) != "" {
		var err error
		if n.when, err = eval.CompileBool(r.When, eval.ToolCallEnv()); err != nil {
			return newInvalidExpressionError(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rules) >= maxBreakpoints {
		return NewError(CodeLimit, "too many rules")
	}
	p.rules = append(p.rules, n)
	return nil
}

// PauseRules lists the rules in their current state.
func (p *breakpointSet) PauseRules() []PauseRule {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]PauseRule, 0, len(p.rules))
	for _, r := range p.rules {
		all = append(all, r.PauseRule)
	}
	return all
}

// HasRuleWithPauseLimit reports whether a rule with a limited number of pauses matches a tool.
func (p *breakpointSet) HasRuleWithPauseLimit(toolName string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.rules, func(r *compiledRule) bool { return r.MaxPauses >= 0 && p.ruleMatchesTool(r, toolName) })
}

// takePauseOfFirstStoppingRule returns the first rule that stops a call in a phase; nil means none. It uses up one of the
// rule's pauses. Conditions run without the lock held.
func (p *breakpointSet) takePauseOfFirstStoppingRule(ctx context.Context, k *runningCall, phase CallPhase, callOutcome *CallOutcome) (ruleOrNil *compiledRule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tool := k.data.MethodName
	for _, n := range p.rules {
		if n.Phase != phase || n.MaxPauses == 0 || !p.ruleMatchesTool(n, tool) {
			continue
		}
		if n.when != nil {
			p.mu.Unlock()
			ok, err := p.evaluateCondition(ctx, n.when, k, phase, callOutcome)
			p.mu.Lock()
			if err != nil {
				n.ConditionError = err.Error()
			}
			if !ok || n.MaxPauses == 0 { // another call took the last pause
				continue
			}
		}
		if n.MaxPauses > 0 {
			n.MaxPauses--
		}
		return n
	}
	return nil
}

// ruleMatchesTool reports whether a rule matches a tool; p.mu must be held.
func (p *breakpointSet) ruleMatchesTool(r *compiledRule, tool string) bool {
	for i, name := range r.Tools {
		if p.nameOrGlobMatchesTool(name, r.globs[i], tool, p.functions.functions[tool].Alias) {
			return true
		}
	}
	return false
}

// matchBreakpointOrTakeRulePause returns the first breakpoint that applies to a call; nil means none. A rule that stops the call comes first: it
// is returned as a breakpoint with only a name, and one of its pauses is used up. stopped reports whether the call is stopped. p.mu must
// not be held.
func (p *breakpointSet) matchBreakpointOrTakeRulePause(ctx context.Context, call *runningCall, phase CallPhase, callOutcome *CallOutcome) (hit *compiledBreakpoint, stopped bool) {
	if n := p.takePauseOfFirstStoppingRule(ctx, call, phase, callOutcome); n != nil {
		return &compiledBreakpoint{Breakpoint: Breakpoint{Name: n.Name}}, true
	}
	p.mu.Lock()
	hits := p.breakpointsForToolLocked(call.data.MethodName)
	for i, b := range hits {
		b := *b
		hits[i] = &b
	}
	fallback := p.defaultBehavior
	p.mu.Unlock()
	failed := callOutcome != nil && callOutcome.Failed
	for _, b := range hits {
		if b.when != nil {
			ok, err := p.evaluateCondition(ctx, b.when, call, phase, callOutcome)
			p.mu.Lock()
			if own := p.findBreakpoint(b.Name); own != nil && err != nil { // b is a copy
				own.ConditionError = err.Error()
			}
			p.mu.Unlock()
			if !ok {
				continue
			}
		}
		return b, b.stopsCallInPhase(phase, failed, fallback)
	}
	return nil, false
}
