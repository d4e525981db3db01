package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
)

type slashCommand struct {
	name        string // name with the slash
	description string
}

func slashCommands(plan *launch.Plan) []slashCommand {
	init := plan.Profile.Init()
	plan.Catalog.FillInit(&init)
	var all []slashCommand
	for _, name := range append(init.SlashCommands, claudecode.TerminalOnlyCommands()...) {
		if strings.HasPrefix(name, "_") {
			continue // not for people
		}
		c := slashCommand{name: "/" + name}
		if custom, ok := plan.Catalog.Command(name); ok {
			c.description = custom.Description
		} else if b, ok := claudecode.BuiltinCommandNamed(name); ok {
			c.description = b.Description
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b slashCommand) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b slashCommand) bool { return a.name == b.name })
}

func unsupportedCommand(word string) (message string, unsupported bool) {
	name, ok := strings.CutPrefix(word, "/")
	if !ok || name == "exit" || name == "quit" || !slices.Contains(claudecode.TerminalOnlyCommands(), name) {
		return "", false
	}
	return word + " is not simulated by claudeless", true
}

// isUnknownCommand reports whether a word resembles a slash command but is not one. The model never sees such a prompt.
func (m *menu) isUnknownCommand(word string) bool {
	name, ok := strings.CutPrefix(word, "/")
	if !ok || name == "" || strings.HasPrefix(name, "mcp__") || strings.ContainsAny(name, "/.") {
		return false
	}
	_, builtin := claudecode.BuiltinCommandNamed(name)
	return !builtin && !slices.ContainsFunc(m.commands, func(c slashCommand) bool { return c.name == word })
}

type menu struct {
	commands []slashCommand
	closed   bool // the user pressed Esc; the menu stays closed until the draft changes
	draft    string
	matches  []slashCommand
	selected int
}

func (m *menu) description(name string) string {
	for _, c := range m.commands {
		if c.name == name {
			return c.description
		}
	}
	return ""
}

func (m *menu) update(draft string) {
	if draft == m.draft {
		return
	}
	m.draft, m.closed, m.selected, m.matches = draft, false, 0, nil
	word, ok := strings.CutPrefix(draft, "/")
	if !ok || strings.ContainsAny(word, " \n") {
		return
	}
	for _, c := range m.commands {
		if strings.Contains(c.name[1:], strings.ToLower(word)) {
			m.matches = append(m.matches, c)
		}
	}
	if word == "" {
		return
	}
	later := func(c slashCommand) int { // commands that begin with the word come first, the shortest at the top
		if strings.HasPrefix(c.name, m.draft) {
			return len(c.name)
		}
		return maxDraftCharacters
	}
	slices.SortStableFunc(m.matches, func(a, b slashCommand) int { return cmp.Compare(later(a), later(b)) })
}

func (m *menu) isOpen() bool {
	return !m.closed && strings.HasPrefix(m.draft, "/") && !strings.ContainsAny(m.draft, " \n")
}

// press handles a key in the open menu. It returns the new draft (empty if unchanged) and whether it used the key.
func (m *menu) press(k keyName) (completed string, handled bool) {
	if !m.isOpen() || len(m.matches) == 0 && k != keyEscape {
		return "", false
	}
	switch k {
	case keyUp:
		m.selected = (m.selected + len(m.matches) - 1) % len(m.matches)
	case keyDown:
		m.selected = (m.selected + 1) % len(m.matches)
	case keyEscape:
		m.closed = true
	case keyTab:
		return m.matches[m.selected].name + " ", true
	case keyEnter:
		return m.matches[m.selected].name, false // the command is sent at once
	default:
		return "", false
	}
	return "", true
}

func (m *menu) rows(l *labels, cols int) []string {
	const most = 5
	if len(m.matches) == 0 {
		return []string{truncate(fmt.Sprintf("  No commands match %q", m.draft), cols)}
	}
	from := min(max(0, m.selected-most/2), max(0, len(m.matches)-most))
	var rows []string
	for i, c := range m.matches[from:min(from+most, len(m.matches))] {
		pointer := "  "
		if from+i == m.selected {
			pointer = promptGlyph + " "
		}
		row := fmt.Sprintf("%-28s%s", c.name, c.description)
		if full := l.pages.optionLabel("menu/slash", c.name+" "); full != "" {
			row = full
		}
		rows = append(rows, truncate(strings.TrimRight("  "+pointer+row, " "), cols))
	}
	return rows
}
