// Package permission decides whether a tool call may run: modes and rules in,
// a verdict with everything the stream shows of it out.
//
// Its one invariant: [Policy.Decide] asks nobody, runs nothing and touches no
// file; the order is deny rule, ask rule, mode, allow rule, built-in
// auto-allow, ask (spec: cli-contract 6.1). It must not know hooks, the
// control protocol or where rules were stored.
package permission

import (
	"context"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Behaviors of a [Rule] and of a permission update.
const (
	BehaviorAllow = "allow"
	BehaviorDeny  = "deny"
	BehaviorAsk   = "ask"
)

// Rule is one permission rule as a user writes it.
type Rule struct {
	Behavior string // BehaviorAllow, BehaviorDeny or BehaviorAsk
	Source   string // "cliArg", "userSettings", "projectSettings", "localSettings", "flagSettings", "session", …
	Text     string // "Bash(npm run *)"
	// Root is the directory that path patterns starting with one slash are
	// relative to; empty = Options.CWD.
	Root string
}

// Directory is a working directory and where it came from.
type Directory struct {
	Path   string `json:"path"`
	Source string `json:"source"` // "cliArg", "localSettings" for all settings, "session", …
}

// Options configures a [Policy]. The zero value asks for everything that the
// CLI does not allow by itself.
type Options struct {
	Mode           protocol.PermissionMode // empty = default
	CWD            string                  // absolute
	AdditionalDirs []Directory             // further working directories, absolute or relative to CWD
	Home           string                  // what ~/ in path patterns means; empty = such patterns match nothing
	Rules          []Rule
	// AutoApprove names tools that a scenario lets run whatever modes and rules
	// say; nil = none.
	AutoApprove func(tool string) bool
	// Tool finds a tool's definition by canonical name. A tool it does not know
	// is let through without a decision, so that the executor can say so. Nil =
	// every name is known.
	Tool func(name string) (protocol.Tool, bool)
	// Resolve follows the symbolic links of an absolute path as far as it
	// exists; nil = paths are compared as written.
	Resolve func(path string) string
	// Dir is the directory that relative paths of calls start from, which a
	// shell may have changed; nil = CWD.
	Dir func() string
	// IsDir tells whether an absolute path is a directory; nil = none is.
	IsDir func(path string) bool
	// HasAsker says that somebody can be asked (--permission-prompt-tool).
	HasAsker bool
	// NoPrompts turns every question into a denial (--permission-prompts none).
	NoPrompts bool
	// BypassAllowed lets SetMode switch to bypassPermissions. It is implied when
	// the session starts in that mode.
	BypassAllowed bool
	// AskSkill tells whether loading a skill needs permission, because it brings
	// some; nil = none does.
	AskSkill func(name string) bool
	// NoBypass and NoAuto say that the settings forbid these modes.
	NoBypass, NoAuto bool
	// OnDirectories hears of the working directories, CWD first, when an update
	// changed them; nil = nobody does.
	OnDirectories func(dirs []string)
}

// Policy holds the session's mode, rules and directories. Safe for concurrent
// use.
type Policy struct {
	opts     Options
	warnings []string

	mu    sync.Mutex
	mode  protocol.PermissionMode
	rules []rule
	dirs  []string          // working directories, absolute and clean; the first is CWD
	roots map[string]string // source by directory
}

// New returns a policy. Rules that do not parse are left out and reported by
// [Policy.Warnings]; the error is an unknown mode.
func New(o Options) (*Policy, error) {
	mode := o.Mode
	if mode == "" {
		mode = protocol.ModeDefault
	}
	mode, err := ParseMode(string(mode))
	if err != nil {
		return nil, err
	}
	o.AdditionalDirs = slices.Clone(o.AdditionalDirs)
	o.BypassAllowed = o.BypassAllowed || mode == protocol.ModeBypass
	p := &Policy{opts: o, mode: mode, roots: map[string]string{}}
	p.dirs = append(p.dirs, p.abs(o.CWD))
	for _, d := range o.AdditionalDirs {
		p.addDirectory(d)
	}
	for _, r := range o.Rules {
		parsed, err := parseRule(r)
		if err != nil {
			p.warnings = append(p.warnings, err.Error())
			continue
		}
		p.rules = append(p.rules, parsed)
	}
	p.opts.Rules = nil
	return p, nil
}

// Warnings tells which rules were left out and why, in their order.
func (p *Policy) Warnings() []string { return slices.Clone(p.warnings) }

// Rules returns the rules in force, in order, those of this session included.
func (p *Policy) Rules() []Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Rule, len(p.rules))
	for i, r := range p.rules {
		out[i] = r.Rule
	}
	return out
}

// Directories returns the working directories, absolute, CWD first.
func (p *Policy) Directories() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.dirs)
}

// Added returns the working directories beside CWD.
func (p *Policy) Added() []Directory {
	p.mu.Lock()
	defer p.mu.Unlock()
	added := []Directory{}
	for _, dir := range p.dirs[1:] {
		added = append(added, Directory{dir, p.roots[dir]})
	}
	return added
}

// Asker asks someone outside for a verdict. An error means that this program
// failed, not that the answer was no.
type Asker interface {
	Ask(ctx context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error)
}
