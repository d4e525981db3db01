// Package permission decides, from the permission mode and the rules, whether a tool call may run, and explains why.
//
// [Policy.Decide] has no side effects: it asks no user, runs nothing and writes no file. It applies deny rules, ask
// rules, the mode, allow rules and the built-in exceptions in this order, and otherwise asks (spec: cli-contract 6.1).
package permission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Policy]. With the zero value, the policy asks about every call that the CLI does not always allow.
type Options struct {
	Mode           protocol.PermissionMode // empty means default
	CWD            string                  // working directory of the session, absolute
	AdditionalDirs []WorkingDirectory      // further working directories, absolute or relative to CWD
	Home           string                  // home directory, for ~/ in path patterns; empty means that such patterns match nothing
	Rules          []Rule
	AutoApprove    func(tool string) bool // reports whether the scenario allows a tool in every mode, whatever the rules say; nil means that it allows none
	// Tool finds a tool's definition by canonical name; nil means that every name is known. The executor reports calls of unknown tools.
	Tool          func(name string) (protocol.Tool, bool)
	FileSystem    FileSystem    // resolves paths; nil means paths are compared as written, and globs are not expanded
	Dir           func() string // returns the directory to which paths in calls are relative, and which a shell may have changed; nil means CWD
	AsksPerson    bool          // a person at a terminal, but no SDK host, decides about calls that the classifier of auto mode would check
	NoPrompts     bool          // makes the policy deny calls instead of asking (--permission-prompts none)
	BypassAllowed bool          // lets SetMode switch to bypassPermissions; a Mode of bypassPermissions implies it
	// AskSkill reports whether loading a skill needs permission because the skill brings permission rules or hooks. It also returns the
	// reason that denials name. Nil means that no skill needs permission.
	AskSkill               func(name string) (asks bool, reasonType, reason string)
	PlanDir                string // directory of plans, whose files may be written in plan mode; empty means none
	StateDirs              StateDirs
	NoBypass, NoAuto       bool                // the settings forbid the modes bypassPermissions and auto
	NoClassifierInPlanMode bool                // true if the settings do not let a classifier decide in plan mode
	OnDirectories          func(dirs []string) // is called with all working directories, CWD first, after an update of them; nil means none
}

// StateDirs are directories of claude's own files that may be read without permission. Below Memory (of the project) and AgentMemory,
// Markdown files may be written, too. Commands may write only the latter if a part of the path, such as .claude, is sensitive.
type StateDirs struct{ Memory, AgentMemory, Readable []string }

// Policy contains the session's mode, rules and directories. It is safe for concurrent use.
type Policy struct {
	opts     Options
	warnings []string

	mu sync.Mutex // guards the following fields
	modeAndRules
	modeBeforePlan protocol.PermissionMode // the mode before plan mode; empty if no other mode preceded it
}

// New returns a policy, or an error for an unknown mode. [Policy.Warnings] lists invalid rules,
// which it ignores, and rules without an effect.
func New(o Options) (*Policy, error) {
	mode := cmp.Or(o.Mode, protocol.ModeDefault)
	mode, err := ParseMode(string(mode))
	if err != nil {
		return nil, err
	}
	o.AdditionalDirs = slices.Clone(o.AdditionalDirs)
	o.BypassAllowed = o.BypassAllowed || mode == protocol.ModeBypass
	at := &pathResolver{startDir: o.CWD, home: o.Home, fileSystem: o.FileSystem, currentDir: o.Dir, workingDirSources: map[string]string{}, stateDirs: o.StateDirs}
	at.workingDirs = append(at.workingDirs, at.absolutePathFromStartDir(o.CWD))
	for _, d := range o.AdditionalDirs {
		if at.absolutePathFromStartDir(d.Path) != at.workingDirs[0] {
			at.addWorkingDirectoryIfNew(d)
		}
	}
	p := &Policy{opts: o, modeAndRules: modeAndRules{mode: mode, resolver: at, rules: &ruleset{resolver: at}, noClassifierInPlanMode: o.NoClassifierInPlanMode}}
	for _, r := range o.Rules {
		parsed, err := parseRule(r)
		if err != nil {
			p.warnings = append(p.warnings, err.Error())
			continue
		}
		if parsed.isIneffectivePathRuleForWriteTools() {
			p.warnings = append(p.warnings, fmt.Sprintf("permission rule %q (%s): it has no effect, because Edit rules decide about writing files; use Edit(%s)",
				r.Text, r.Source, parsed.content))
		}
		p.rules.rules = append(p.rules.rules, parsed)
	}
	p.opts.Rules = nil
	return p, nil
}

// Warnings returns a message for each rule that was ignored or has no effect, with the reason, in order.
func (p *Policy) Warnings() []string { return slices.Clone(p.warnings) }

// Rules returns the current rules, in order, including those that were added during the session.
func (p *Policy) Rules() []Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Rule, len(p.rules.rules))
	for i, r := range p.rules.rules {
		out[i] = r.Rule
	}
	return out
}

// WorkingDirectories returns the working directories, absolute, CWD first.
func (p *Policy) WorkingDirectories() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.resolver.workingDirs)
}

// AdditionalDirectories returns the working directories other than CWD.
func (p *Policy) AdditionalDirectories() []WorkingDirectory {
	p.mu.Lock()
	defer p.mu.Unlock()
	added := []WorkingDirectory{}
	for _, dir := range p.resolver.workingDirs[1:] {
		added = append(added, WorkingDirectory{dir, p.resolver.workingDirSources[dir]})
	}
	return added
}

// A Prompter asks the host or a permission tool for a decision. An error means that no decision was made; a denial is not an error.
type Prompter interface {
	Ask(ctx context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error)
}

// ModeError explains why a mode cannot be set. A host receives its text and code (spec: cli-contract 4.3).
type ModeError struct {
	Code    string // such as "invalid_mode", "bypass_not_launched"
	Message string
}

func (e *ModeError) Error() string { return e.Message }

// ParseMode reads a mode in the spelling of the CLI (acceptEdits) or in kebab-case (accept-edits). "manual" and, in
// older scenarios, "delegate" mean default.
func ParseMode(s string) (protocol.PermissionMode, error) {
	mode, ok := map[string]protocol.PermissionMode{
		"default": protocol.ModeDefault, "manual": protocol.ModeDefault, "delegate": protocol.ModeDefault, "acceptedits": protocol.ModeAcceptEdits,
		"auto": protocol.ModeAuto, "bypasspermissions": protocol.ModeBypass, "dontask": protocol.ModeDontAsk, "plan": protocol.ModePlan,
	}[strings.ToLower(strings.ReplaceAll(s, "-", ""))]
	if !ok {
		return "", fmt.Errorf("unknown permission mode %q", s)
	}
	return mode, nil
}

// Mode returns the current mode.
func (p *Policy) Mode() protocol.PermissionMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// ModeOf returns the current mode for the calls of an agent; nil means the main conversation.
func (p *Policy) ModeOf(agent *protocol.AgentRef) protocol.PermissionMode {
	if agent != nil && agent.Mode != "" {
		return protocol.PermissionMode(agent.Mode)
	}
	return p.Mode()
}

// SetMode switches to a mode. If the mode is not allowed or unknown, it returns a [*ModeError] and changes nothing.
func (p *Policy) SetMode(m protocol.PermissionMode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setMode(m)
}

func (p *Policy) setMode(m protocol.PermissionMode) error {
	switch known, err := ParseMode(string(m)); {
	case err != nil || known != m:
		return &ModeError{Code: "invalid_mode", Message: "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"}
	case m == protocol.ModeBypass && p.opts.NoBypass:
		return &ModeError{Code: "bypass_disabled", Message: "Cannot set permission mode to bypassPermissions because it is disabled by settings or configuration"}
	case m == protocol.ModeBypass && !p.opts.BypassAllowed:
		return &ModeError{Code: "bypass_not_launched", Message: "Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions"}
	case m == protocol.ModeAuto && p.opts.NoAuto:
		return &ModeError{Code: "auto_mode_settings", Message: "Cannot set permission mode to auto: auto mode disabled by settings"}
	}
	if m == protocol.ModePlan && p.mode != m {
		p.modeBeforePlan, p.noClassifierInPlanMode = p.mode, p.opts.NoClassifierInPlanMode || p.mode == protocol.ModeBypass
	}
	p.mode = m
	return nil
}

// UsesClassifier reports whether a classifier decides about calls in the current mode. This is so in auto mode and,
// unless disabled, in plan mode.
func (p *Policy) UsesClassifier() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usesClassifierInMode()
}

// ModeAfterPlan returns the mode to which the session returns when plan mode ends.
func (p *Policy) ModeAfterPlan() protocol.PermissionMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.modeBeforePlan, protocol.ModeDefault)
}
