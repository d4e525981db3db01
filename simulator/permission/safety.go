package permission

import (
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// sensitive asks about a file that configures what runs automatically: a mode or a
// rule that allows edits does not reach it. Nil = the file is not one of these.
func (c *call) sensitive(abs string) *approval {
	ask := func(message string) *approval {
		return &approval{message: message, reasonType: "safetyCheck", reason: message, blocked: abs, safety: protocol.SafetySensitive}
	}
	if strings.HasSuffix(abs, "...") || strings.Contains(abs, ".../") {
		q := ask("Claude requested permissions to write to " + abs + ", which contains a suspicious Windows path pattern that requires manual approval.")
		q.safety = protocol.SafetyDangerous
		return q
	}
	parts := strings.Split(strings.ToLower(abs), "/")
	for i, part := range parts {
		below := parts[i+1:]
		switch {
		case part == ".claude":
			if len(below) > 0 && below[0] == "worktrees" {
				continue
			}
			if ownSettings(below) {
				q := ask("Claude requested permissions to write to " + abs + ", but you haven't granted it yet.")
				if len(below) == 1 && strings.HasPrefix(below[0], "settings.") {
					q.breaker = "claudeSettingsFile"
				}
				return q
			}
			return ask("Claude requested permissions to edit " + abs + " which is a sensitive file.")
		case sensitiveDirectory(part), part == ".config" && len(below) > 0 && below[0] == "git", len(below) == 0 && sensitiveName(part):
			return ask("Claude requested permissions to edit " + abs + " which is a sensitive file.")
		}
	}
	return nil
}

// ownSettings reports whether the CLI itself reads this part of .claude.
func ownSettings(below []string) bool {
	if len(below) == 0 {
		return true
	}
	switch below[0] {
	case "settings.json", "settings.local.json":
		return len(below) == 1
	case "commands", "agents", "skills":
		return true
	}
	return false
}

func sensitiveDirectory(name string) bool {
	return slices.Contains([]string{".git", ".vscode", ".idea", ".husky", ".devcontainer", ".cargo", ".yarn"}, name)
}

func sensitiveName(name string) bool {
	switch name {
	case ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".profile", ".ripgreprc", ".mcp.json", ".claude.json",
		".envrc", ".npmrc", ".yarnrc", ".bazelrc", ".pre-commit-config.yaml", "pyrightconfig.json":
		return true
	}
	return false
}

// safety asks about files that no allow rule can open: those that configure what runs automatically. It analyses
// every form of command line.
func (c *call) safety() *approval {
	switch c.kind {
	case claudecode.ClassWrite:
		q := c.sensitive(c.path)
		if q != nil {
			q.blocked, q.suggestions = "", c.suggestions()
		}
		return q
	case claudecode.ClassShell:
		for _, one := range newLine(c).all() {
			if q := one.sensitiveChange(); q != nil {
				return q
			}
		}
	default:
	}
	return nil
}

// sensitiveChange asks about the first sensitive file that the command line
// changes.
func (c line) sensitiveChange() *approval {
	redirects := slices.Clone(c.script.Redirects)
	for _, cmd := range c.script.Commands {
		inner := cmd.Innermost()
		if name := inner.Name(); (isFileCommand(name) || name == "tee") && !cmd.ReadOnly() {
			for _, path := range pathsOf(c.lookup.operands(inner)) {
				if q := c.sensitive(c.judge.at.reached(path)); q != nil {
					q.suggestions = append([]protocol.PermissionUpdate{c.addDirectory(c.judge.at.reached(path))}, c.editSuggestion()...)
					return q
				}
			}
		}
		redirects = append(redirects, cmd.Redirects...)
	}
	for _, r := range redirects {
		if !r.Writes {
			continue
		}
		for _, path := range c.lookup.operand(r.Target, r.Word).paths {
			if q := c.sensitive(c.judge.at.reached(path)); q != nil {
				q.suggestions = []protocol.PermissionUpdate{c.addDirectory(c.judge.at.reached(path))}
				return q
			}
		}
	}
	return nil
}
