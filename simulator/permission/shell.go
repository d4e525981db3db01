package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/shellcmd"
)

// textKind tells what a pattern is matched with: a whole command line, where a
// star must not swallow a second command, or one simple command of it.
type textKind int

const (
	wholeText textKind = iota
	onePart
)

// matchCommand matches one content of a Bash rule: "npm run *" and "npm:*" are
// prefixes, other stars stand for any text, all else is the exact text.
func matchCommand(content, text string, kind textKind) bool {
	content, text = strings.TrimSpace(content), strings.TrimSpace(text)
	if content == text {
		return true
	}
	if kind == wholeText {
		return false
	}
	if prefix, found := strings.CutSuffix(content, ":*"); found {
		return text == prefix || strings.HasPrefix(text, prefix+" ")
	}
	if !strings.Contains(content, "*") {
		return false
	}
	if prefix, found := strings.CutSuffix(content, " *"); found && !strings.Contains(prefix, "*") {
		return text == prefix || strings.HasPrefix(text, prefix+" ")
	}
	expr := strings.ReplaceAll(regexp.QuoteMeta(content), `\*`, `.*`)
	matched, err := regexp.MatchString(`(?s)^`+expr+`$`, text)
	return err == nil && matched
}

// forbids tells whether a deny or ask rule is about any part of the command,
// with or without the variables set in front of it.
func (r *rule) forbids(c *call) bool {
	if r.matches(c) {
		return true
	}
	if c.kind != kindShell || !r.covers(c) {
		return false
	}
	if c.parseErr != nil {
		return matchCommand(r.content, c.command, onePart)
	}
	return slices.ContainsFunc(c.script.Commands, func(part shellcmd.Command) bool {
		return matchCommand(r.content, part.Text, onePart) ||
			matchCommand(r.content, strings.Join(part.Args, " "), onePart)
	})
}

// part is the verdict on one simple command.
type part struct {
	allowed bool
	reason  string // "rule", "mode", "subcommandResults"; when not allowed: "" or "workingDir"
	name    string
	path    string // the path that is in question; empty = none
}

// shell decides a Bash call that no whole-tool rule decided: every part must
// be allowed.
func (p *Policy) shell(c *call) Verdict {
	if c.parseErr != nil {
		return c.ask(c.unknownCommand(), "", "")
	}
	parts := make([]part, 0, len(c.script.Commands))
	moved := false // after cd, relative paths mean something else
	for _, cmd := range c.script.Commands {
		parts = append(parts, p.part(c, cmd, moved))
		moved = moved || cmd.Name() == "cd" || cmd.Name() == "pushd" || cmd.Name() == "popd"
	}
	bad := slices.IndexFunc(parts, func(x part) bool { return !x.allowed })
	if bad < 0 && !c.script.Opaque && !writes(c.script.Redirects) && len(parts) > 0 {
		if len(parts) == 1 {
			return c.allow(parts[0].reason)
		}
		return c.allow("subcommandResults")
	}
	if bad < 0 {
		return c.ask(c.unknownCommand(), "", "")
	}
	return c.refusePart(parts[bad], len(parts))
}

// part decides one simple command: by rule, as read-only, or as a file command
// that the mode allows inside the working directories.
func (p *Policy) part(c *call, cmd shellcmd.Command, moved bool) part {
	out := part{name: cmd.Name()}
	paths, static := commandPaths(cmd)
	for _, path := range paths {
		if abs := p.abs(path); !p.inside(abs) && !strings.HasPrefix(abs, "/dev/") {
			out.path = abs
			break
		}
	}
	fileCommand := isFileCommand(cmd.Name())
	switch {
	case !writes(cmd.Redirects) && p.allowedByRule(c, cmd):
		out.allowed, out.reason = true, "rule"
	case out.path != "":
		out.reason = "workingDir"
	case cmd.ReadOnly():
		out.allowed, out.reason = true, "subcommandResults"
	case p.editsAllowed() && static && !moved && (fileCommand || onlyRedirects(cmd) || p.allowedByRule(c, cmd)):
		out.allowed, out.reason = true, "mode"
	case len(paths) > 0 && (fileCommand || writes(cmd.Redirects)):
		out.path = p.abs(paths[0])
	}
	return out
}

// onlyRedirects tells whether the command writes by its redirections alone.
func onlyRedirects(cmd shellcmd.Command) bool {
	written := writes(cmd.Redirects)
	cmd.Redirects = nil
	return written && (len(cmd.Args) == 0 || cmd.ReadOnly())
}

func (p *Policy) allowedByRule(c *call, cmd shellcmd.Command) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.Behavior == BehaviorAllow && r.covers(c) && matchCommand(r.content, cmd.Text, onePart)
	})
}

// isFileCommand names the commands that acceptEdits allows.
func isFileCommand(name string) bool {
	switch name {
	case "touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed":
		return true
	}
	return false
}

// commandPaths returns the paths that a command reads or writes, as written;
// static is false when some are only known when it runs.
func commandPaths(cmd shellcmd.Command) (paths []string, static bool) {
	static = true
	for _, r := range cmd.Redirects {
		if r.Writes {
			paths = append(paths, r.Target)
			static = static && !strings.ContainsAny(r.Target, "$`*?[~")
		}
	}
	first := 1 // index of the first argument that is a path
	switch cmd.Name() {
	case "cd", "ls", "find", "cat", "head", "tail", "wc", "stat", "file", "diff", "sort", "uniq", "du", "tree",
		"touch", "mkdir", "rm", "rmdir", "mv", "cp":
	case "grep", "rg", "sed":
		first = 2
	default:
		return paths, static
	}
	operand := 0
	for i, arg := range cmd.Args[1:] {
		if cmd.Dynamic[i+1] {
			static = static && !isFileCommand(cmd.Name())
			continue
		}
		if strings.HasPrefix(arg, "-") {
			if cmd.Name() == "find" && operand > 0 {
				break
			}
			continue
		}
		if operand++; operand >= first && looksLikePath(arg, cmd.Name()) {
			paths = append(paths, arg)
		}
	}
	return paths, static
}

// looksLikePath keeps values of options (`head -n 5`) out of the paths of
// commands that only read.
func looksLikePath(arg, command string) bool {
	return isFileCommand(command) || filepath.IsAbs(arg) || strings.HasPrefix(arg, "~") || strings.HasPrefix(arg, "..")
}

func writes(rs []shellcmd.Redirect) bool {
	return slices.ContainsFunc(rs, func(r shellcmd.Redirect) bool { return r.Writes })
}
