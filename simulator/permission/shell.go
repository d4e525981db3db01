package permission

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// shell decides a Bash call that no whole-tool rule decided. It asks about commands that cannot be analysed, then
// about changes of the directory, then about paths; the rest is decided part by part.
func (c line) shell() Verdict {
	q := obstacleQuestion(c.script.Obstacle, c.harmless())
	if c.parseErr != nil && (q == nil || !c.script.Obstacle.InText()) {
		q = unclear("Parse error").withCode(missTooComplex)
	}
	if q != nil {
		return c.put(*q)
	}
	if q := c.moves(); q != nil {
		return c.put(*q)
	}
	if q := c.redirections(); q != nil {
		return c.put(*q)
	}
	parts := make([]commandVerdict, 0, len(c.script.Commands))
	for i := range c.script.Commands {
		parts = append(parts, c.part(i))
	}
	return c.join(parts)
}

// ownQuestion returns the question about the command line without the rule; nil = only that it is not allowed. For a
// command line that is nothing else, a rule that names the command decides its text (observed with 2.1.330).
func (c line) ownQuestion(r *rule) *Verdict {
	if r.content != "" && len(c.script.Commands) == 1 && c.script.Obstacle.Kind == shellcmd.NoObstacle {
		return nil
	}
	v := c.shell()
	if v.Behavior != Ask || v.Message == needsApproval || v.ReasonType == "rule" {
		return nil
	}
	if v.ReasonType == "subcommandResults" && !c.script.Pipeline {
		for i := range c.script.Commands {
			if c.part(i).about != nil {
				return &v
			}
		}
		return nil
	}
	return &v
}

// askedFor returns the source of an ask rule that names the command; false = none does.
func (c line) askedFor(cmd shellcmd.Command) (source string, asked bool) {
	for _, r := range c.judge.rules.all {
		if r.Behavior == BehaviorAsk && r.content != "" && r.covers(c.call) && r.forbidsPart(cmd) {
			return r.Source, true
		}
	}
	return "", false
}

// harmless reports whether each command alone would be allowed.
func (c line) harmless() bool {
	for i := range c.script.Commands {
		if !c.part(i).allowed {
			return false
		}
	}
	return true
}

// commandVerdict is the verdict on one simple command.
type commandVerdict struct {
	cmd     shellcmd.Command
	allowed bool
	byMode  bool      // nothing but the mode allows it
	byRule  bool      // an allow rule that names this very command
	moved   bool      // it changes files in the directory that a cd in the same line selects
	about   *approval // what is asked when it is not allowed; nil = for approval, no more
}

// commandVerdict decides the simple command at i: by its form, by its paths, by rule, as
// read-only, or as a file command that the mode allows.
func (c line) part(i int) commandVerdict {
	cmd := c.script.Commands[i]
	out := commandVerdict{cmd: cmd}
	if source, asked := c.askedFor(cmd); asked {
		out.about = &approval{message: c.requested(), reasonType: "rule", code: ruleCode(source)}
		return out
	}
	inner := cmd.Unwrapped()
	if q := formQuestion(inner); q != nil {
		out.about = q
		return out
	}
	if q := c.approvalForMovedWrite(inner); q != nil {
		out.about, out.moved = q, true
		return out
	}
	outside, inside := c.paths(cmd)
	if outside != nil {
		out.about = outside
		return out
	}
	switch exact, match := c.allowedByRule(cmd); {
	case match:
		out.allowed, out.byRule = true, exact
	case cmd.ReadOnly():
		out.allowed = !readsGiven(cmd) || c.script.InputListsFiles(i) || !c.judge.rules.deniesPaths()
	case c.judge.editsAllowed() && (editing(cmd) || onlyRedirects(cmd)):
		out.allowed, out.byMode = true, true
	case onlyRedirects(cmd) && c.redirections() == nil:
		out.allowed = true
	case c.judge.editsAllowed() && cmd.Name() == "sed":
		out.about = sedQuestion()
	default:
		out.about = inside
	}
	return out
}

// readsGiven reports whether the command shows files whose names come from another command.
func readsGiven(cmd shellcmd.Command) bool {
	if cmd.Unwrapped().Name() != "xargs" {
		return false
	}
	return !slices.Contains([]string{"", "xargs", "echo", "printf"}, cmd.Innermost().Name())
}

// editing reports whether acceptEdits allows the command as it is written.
func editing(cmd shellcmd.Command) bool {
	if len(cmd.Assigns) > 0 || cmd.Timed || len(cmd.Words) > 0 && cmd.Words[0].Source != cmd.Args[0] || !isFileCommand(cmd.Name()) || slices.ContainsFunc(cmd.Words, func(w shellcmd.Word) bool { return w.Dynamic }) {
		return false
	}
	switch cmd.Name() {
	case "touch":
		return !slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "-") })
	case "sed":
		return plainSubstitution(cmd.Args[1:])
	}
	return true
}

var substitution = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^s/[^/]*/[^/]*/[gIm0-9]*$`) })

var sedOptions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(-[Er]*i?|--in-place|--regexp-extended|--posix)$`) })

// plainSubstitution allows `sed s/a/b/ FILE…`, in place or not.
func plainSubstitution(args []string) bool {
	for len(args) > 0 && sedOptions().MatchString(args[0]) {
		args = args[1:]
	}
	return len(args) > 0 && substitution().MatchString(args[0]) &&
		!slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
}

// join combines the verdicts on the parts into one.
func (c line) join(parts []commandVerdict) Verdict {
	var refused []commandVerdict
	for _, x := range parts {
		if !x.allowed {
			refused = append(refused, x)
		}
	}
	switch {
	case len(refused) == 0 && c.script.Opaque:
		return c.put(*other(needsApproval))
	case len(refused) == 0 && len(parts) == 1 && parts[0].byRule:
		return c.allowByRule()
	case len(refused) == 0 && len(parts) == 1 && parts[0].byMode && c.judge.mode == protocol.ModeAuto:
		return c.allow("mode")
	case len(refused) == 0:
		return c.allow("subcommandResults")
	case len(refused) == 1 && refused[0].about != nil && !c.script.Pipeline:
		return c.put(*refused[0].about)
	case len(parts) == 1:
		q := *unclear(needsApproval)
		q.suggestions = append(q.suggestions, prefixRule(c.command))
		return c.put(q)
	}
	q := several(refused)
	if strings.Contains(c.command, "\\\n") {
		q.code = missTooComplex // of a line that goes on in the next one (observed with 2.1.330)
	}
	return c.put(q)
}

// several asks about the parts of a longer command line.
func several(refused []commandVerdict) approval {
	texts, moved := make([]string, len(refused)), false
	var out []protocol.PermissionUpdate
	rules := protocol.PermissionUpdate{}
	for i, x := range refused {
		texts[i] = x.cmd.Text
		moved = moved || x.moved
		if x.about != nil && len(refused) == 1 {
			out = append(out, x.about.suggestions...)
			continue
		}
		rule := prefixRule(x.cmd.Text)
		if reads := x.about.reads(); reads != nil {
			rule.Rules = reads
		}
		rule.Rules = append(rules.Rules, rule.Rules...)
		rules = rule
	}
	if moved {
		out = nil
	} else if len(rules.Rules) > 0 {
		out = append(out, rules)
	}
	what := "The following part requires approval: "
	if len(refused) > 1 {
		what = "The following parts require approval: "
	}
	return approval{
		message:    "This Bash command contains multiple operations. " + what + strings.Join(texts, ", "),
		reasonType: "subcommandResults", suggestions: out, code: codeOf(refused),
	}
}

// codeOf returns the reason code of a command line of several parts. Paths have none of their own.
func codeOf(refused []commandVerdict) string {
	var codes []string
	for _, x := range refused {
		code := missNoRule
		if x.about != nil {
			code = x.about.code
		}
		if code != "" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	switch len(codes) {
	case 0:
		return "subcommandResults"
	case 1:
		return codes[0]
	}
	slices.Sort(codes)
	return "subcommands:" + strings.Join(codes, "+")
}

// onlyRedirects reports whether the command writes only through redirections.
func onlyRedirects(cmd shellcmd.Command) bool {
	written := writes(cmd.Redirects)
	cmd.Redirects = nil
	return written && !cmd.Redirected && len(cmd.Args) > 0 && cmd.Args[0] != "[" && cmd.ReadOnly()
}

// transparent matches programs that only run another, with the options with which a rule that allows the other counts
// (observed with 2.1.330).
var transparent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ ?(nohup |nice (-n -?\d+ |-\d+ )?|stdbuf (-[ioe](L|\d+) )+|(command|builtin) (-\S+ )*|` +
		`timeout ((--foreground|--preserve-status|--verbose|-v|--(signal|kill-after)[= ]\S+|-[sk] ?\S+) )*\d+(\.\d+)?[smhd]? )*$`)
})

// allowedByRule reports whether an allow rule is about the command, and whether it names it completely.
func (c line) allowedByRule(cmd shellcmd.Command) (exact, match bool) {
	type spelling struct {
		text   string
		spaced bool // no text of a rule that is not a pattern
	}
	texts := []spelling{{cmd.Text, slices.ContainsFunc(cmd.Words, func(w shellcmd.Word) bool { return w.Spaced })}}
	from := func(i int) {
		text, spaced := cmd.SourceFrom(i)
		texts = append(texts, spelling{text, spaced})
	}
	own := len(cmd.Args) - len(cmd.Wrapped().Args)
	switch {
	case cmd.Redirected || cmd.Interleaved:
	case len(cmd.Args) > 1 && cmd.Args[0] == "xargs":
		from(1)
		texts[1].spaced = true
	case len(cmd.Args) > 0 && cmd.AssignsHarmless() && transparent().MatchString(strings.Join(cmd.Args[:own], " ")+" "):
		from(own)
	}
	hereString := slices.ContainsFunc(cmd.Redirects, func(r shellcmd.Redirect) bool { return r.Op == "<<<" })
	for _, r := range c.judge.rules.all {
		if r.Behavior != BehaviorAllow || !r.covers(c.call) {
			continue
		}
		for _, text := range texts {
			if (text.spaced || hereString) && !strings.Contains(r.content, "*") {
				continue
			}
			exact = exact || r.content == text.text
			match = match || matchCommand(r.content, text.text, onePart)
		}
	}
	return exact, match
}

// The reason codes of shell commands (observed with 2.1.330).
const (
	unknownReason   = "unknown"
	missNoRule      = "bashMiss:no-rule-match"
	missTooComplex  = "bashMiss:too-complex"
	missSemantics   = "bashMiss:semantics"
	missOperators   = "bashMiss:shell-operators"
	missManyMoves   = "bashMiss:multi-cd"
	missMovedGit    = "bashMiss:cd-git-compound"
	missMovedOutput = "bashMiss:cd-compound-redirect"
	missMovedWrite  = "bashMiss:cd-compound-write"
	missFlags       = "bashMiss:flag-validation"
)
