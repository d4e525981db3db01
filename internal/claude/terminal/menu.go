package terminal

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
)

type slashCommand struct {
	name        string // name with the slash
	description string
	isListed    bool // the menu of all commands contains it
	group       int  // position of its group in that menu: commands, custom commands, skills
}

func slashCommands(plan *launch.Plan) []slashCommand {
	init := plan.Profile.InitEventTemplate()
	plan.Catalog.FillInit(&init)
	var all []slashCommand
	for _, name := range append(init.SlashCommands, claudecode.TerminalOnlyCommands()...) {
		if strings.HasPrefix(name, "_") {
			continue // internal commands are not offered to users
		}
		c := slashCommand{name: "/" + name, isListed: true}
		if custom, ok := plan.Catalog.Command(name); ok {
			c.description, c.group = custom.Description, 1
		} else {
			b := claudecode.MenuCommandNamed(name)
			isSkillOfOtherAccounts := b.Skill && !slices.Contains(init.SlashCommands, name)
			if isSkillOfOtherAccounts || b.FullscreenOnly && plan.Settings.Merged()["tui"] == "default" {
				continue
			}
			c.description, c.isListed, c.group = b.Description, !b.HiddenInMenu, map[bool]int{true: 2}[b.PromptInMenu]
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b slashCommand) int { return cmp.Or(a.group-b.group, strings.Compare(a.name, b.name)) })
	return slices.CompactFunc(all, func(a, b slashCommand) bool { return a.name == b.name })
}

func unsupportedCommand(word string) (message string, unsupported bool) {
	if name, ok := strings.CutPrefix(word, "/"); !ok || name == "exit" || name == "quit" || !slices.Contains(claudecode.TerminalOnlyCommands(), name) {
		return "", false
	}
	return word + " is not simulated by claudeless", true
}

func (m *commandMenu) isUnknownCommand(word string) bool {
	name, ok := strings.CutPrefix(word, "/")
	if !ok || name == "" || strings.HasPrefix(name, "mcp__") || strings.ContainsAny(name, "/.") {
		return false
	}
	_, builtin := claudecode.PrintModeCommandNamed(name)
	return !builtin && !slices.ContainsFunc(m.commands, func(c slashCommand) bool { return c.name == word })
}

type commandMenu struct {
	commands []slashCommand
	closed   bool // the user pressed Esc; the menu stays closed until the draft changes
	draft    string
	matches  []slashCommand
	selected int
}

func (m *commandMenu) description(name string) string {
	at := slices.IndexFunc(m.commands, func(c slashCommand) bool { return c.name == name })
	if at < 0 {
		return ""
	}
	return m.commands[at].description
}

func (m *commandMenu) updateForDraft(draft string) {
	if draft == m.draft {
		return
	}
	m.draft, m.closed, m.selected, m.matches = draft, false, 0, nil
	word, ok := strings.CutPrefix(draft, "/")
	if !ok || strings.ContainsAny(word, " \n") {
		return
	}
	for _, c := range m.commands {
		if (c.isListed || word != "") && strings.Contains(c.name[1:], strings.ToLower(word)) {
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

func (m *commandMenu) isOpen() bool {
	return !m.closed && strings.HasPrefix(m.draft, "/") && !strings.ContainsAny(m.draft, " \n")
}

// handleKey handles a key in the open menu. It returns the new draft (empty if unchanged) and whether it used the key.
func (m *commandMenu) handleKey(k keyName) (completed string, handled bool) {
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
		return m.matches[m.selected].name, false // Enter completes the command and sends it at once
	default:
		return "", false
	}
	return "", true
}

// rows returns the commands around the selected one. A description fills at most two rows. The inline renderer shows more commands, each
// in one row unless it is selected, and the number of hidden commands. inlineScreenRows is 0 for the other renderer.
func (m *commandMenu) rows(l *screenLabels, cols, inlineScreenRows int) []string {
	const fewest, nameColumns, rightMargin = 5, 28, 2
	most := max(fewest, inlineScreenRows/2-1)
	if len(m.matches) == 0 {
		return []string{truncateRow(fmt.Sprintf("  No commands match %q", m.draft), cols)}
	}
	width := min(nameColumns, cols*2/5)
	shown := make([][]string, len(m.matches))
	for i, c := range m.matches {
		text := c.description
		if full := l.pages.capturedOptionLabel("menu/slash", c.name+" "); full != "" {
			text = strings.TrimSpace(full[len(c.name):])
		}
		name := fmt.Sprintf("  %s%-*s", pointerGlyphs(i == m.selected), width, c.name)
		rows := wrapWithFirstPrefix(name, text, cols-rightMargin)
		switch {
		case len(rows) > 1 && inlineScreenRows > 0 && i != m.selected:
			rows = []string{truncateRow(name+text, cols-rightMargin)}
		case len(rows) > 2:
			rows = append(rows[:1], truncateRow(rows[1]+" "+strings.TrimSpace(rows[2]), cols-rightMargin))
		}
		rows[0], shown[i] = strings.TrimRight(rows[0], " "), rows
	}
	height := func(from, to int) int { return len(slices.Concat(shown[from:to]...)) }
	from := min(max(0, m.selected-most/2), max(0, len(m.matches)-most))
	for from < m.selected && height(from, m.selected+1) > most {
		from++
	}
	to := m.selected + 1
	for to < len(shown) && height(from, to+1) <= most {
		to++
	}
	visible := slices.Concat(shown[from:to]...)
	if inlineScreenRows == 0 {
		return visible
	}
	return append(visible, rowsAboutHiddenCommands(from, len(shown)-to)...)
}

// rowsAboutHiddenCommands returns a row with the number of commands above and below the visible ones, or nothing if all are visible.
func rowsAboutHiddenCommands(above, below int) []string {
	var texts []string
	if above > 0 {
		texts = append(texts, fmt.Sprintf("↑ %d more", above))
	}
	if below > 0 {
		texts = append(texts, fmt.Sprintf("↓ %d more", below))
	}
	if texts == nil {
		return nil
	}
	return []string{"    " + strings.Join(texts, "  ")}
}

type fileMentionMenu struct {
	dir             string // directory of the session
	mentionAtCursor string // the mention before the cursor; empty means none
	closed          bool   // the user pressed Esc; the list stays closed until the word changes
	paths           []string
	selected        int // index in paths; -1 means none
}

func (l *fileMentionMenu) updateFromMentionAtCursor(c *composer) {
	word := regexp.MustCompile(`(?:^|\s)(@\S*)$`).FindStringSubmatch(string(c.draft[:c.cursor]))
	if word == nil || c.isShellCommand() {
		l.mentionAtCursor = ""
		return
	}
	if word[1] != l.mentionAtCursor {
		*l = fileMentionMenu{dir: l.dir, mentionAtCursor: word[1], paths: matchingPaths(l.dir, word[1][1:]), selected: -1}
	}
}

func (l *fileMentionMenu) isOpen() bool {
	return l.mentionAtCursor != "" && !l.closed && len(l.paths) > 0
}

// handleKey handles a key while the list is open. path replaces the mention; empty means none. Tab takes the first path if
// none is selected; Enter takes only a selected path.
func (l *fileMentionMenu) handleKey(k keyName) (path string, handled bool) {
	switch {
	case !l.isOpen():
		return "", false
	case k == keyUp:
		l.selected = (max(l.selected, 0) + len(l.paths) - 1) % len(l.paths)
	case k == keyDown:
		l.selected = (l.selected + 1) % len(l.paths)
	case k == keyEscape:
		l.closed = true
	case k == keyTab, k == keyEnter && l.selected >= 0:
		return l.paths[max(l.selected, 0)], true
	default:
		return "", false
	}
	return "", true
}

func (l *fileMentionMenu) insertPath(c *composer, path string) {
	c.removeRunes(c.cursor-len([]rune(l.mentionAtCursor)), c.cursor)
	if path = "@" + path; !strings.HasSuffix(path, "/") {
		path += " "
	}
	c.insert(path)
	l.mentionAtCursor, l.closed = strings.TrimSpace(path), true
}

func (l *fileMentionMenu) rows(cols int) (rows []string) {
	for i, path := range l.paths {
		rows = append(rows, truncateRow("  "+pointerGlyphs(i == l.selected)+"+ "+path, cols))
	}
	return rows
}

// matchingPaths returns up to five files and directories below dir whose path contains the characters
// of text in this order, best matches first. An empty text matches the direct content of dir.
func matchingPaths(dir, text string) []string {
	const most, mostVisited = 5, 20_000
	var all []string
	visited := 0
	root := os.DirFS(dir)
	_ = fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error { // unreadable directories are skipped
		if visited++; err != nil || path == "." {
			return nil
		}
		skipped := path == ".git" || e.Name() == "node_modules"
		if visited > mostVisited {
			return fs.SkipAll
		}
		if e.IsDir() {
			path += "/"
		}
		if !skipped && matchesInOrder(path, text) {
			all = append(all, path)
		}
		if e.IsDir() && (skipped || text == "") {
			return fs.SkipDir
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(sortRankOfMentionMatch(a, text), sortRankOfMentionMatch(b, text)), strings.Compare(a, b))
	})
	return all[:min(len(all), most)]
}

func matchesInOrder(path, text string) bool {
	path = strings.ToLower(path)
	for _, r := range strings.ToLower(text) {
		_, rest, ok := strings.Cut(path, string(r))
		if !ok {
			return false
		}
		path = rest
	}
	return true
}

// sortRankOfMentionMatch ranks matches: first paths that begin with the text, by depth; then paths that contain it; then others.
func sortRankOfMentionMatch(path, mentionText string) int {
	path, mentionText = strings.ToLower(path), strings.ToLower(mentionText)
	switch {
	case strings.HasPrefix(path, mentionText):
		return strings.Count(strings.TrimSuffix(path, "/"), "/")
	case strings.Contains(path, mentionText):
		return 1 << 10
	}
	return 1 << 20
}

type searchList struct {
	allOptions          []dialogOption
	typedText           string    // empty means that all options are shown
	isTyping            bool      // typed keys edit the text until Enter or Esc; always false if isFieldBelowOptions is true
	isFieldBelowOptions bool      // the field with the text is below the options, and the last option is selected at first
	head                string    // row between the field and the options; not shown while the user types
	foot                [2]string // the last row, and the last row while the user types
	hintText, emptyText string    // hintText is shown in the empty field, emptyText instead of the options if there are none
	screenRows          int       // rows of the screen
}

// editSearchTextAndFilter handles a key that edits text or ends the editing. It returns false if the list does not use the key.
func (l *searchList) editSearchTextAndFilter(d *dialog, k key) bool {
	switch runes := []rune(l.typedText); {
	case k.name == keyText || k.name == keyPaste:
		l.typedText, l.isTyping = l.typedText+withoutControlCharacters(k.text), !l.isFieldBelowOptions
	case k.name == keyBackspace && len(runes) > 0:
		l.typedText = string(runes[:len(runes)-1])
	case l.isTyping && k.name == keyEscape:
		l.typedText, l.isTyping = "", false
	case l.isTyping && k.name == keyEnter:
		l.isTyping = false
		return true
	default:
		return len(d.options) == 0 && !slices.Contains([]keyName{keyEscape, keyCtrlC, keyCtrlD}, k.name)
	}
	d.options, d.selected = nil, 0
	for _, o := range l.allOptions {
		if strings.Contains(strings.ToLower(o.label), strings.ToLower(l.typedText)) {
			d.options = append(d.options, o)
		}
	}
	if l.isFieldBelowOptions {
		d.selected = max(0, len(d.options)-1)
	}
	return true
}

func (l *searchList) visibleRange(d *dialog) (from, to int) {
	if l == nil {
		return 0, len(d.options)
	}
	most := max(1, l.screenRows-12)
	if !l.isFieldBelowOptions {
		most = max(1, most/3) // each session takes three rows
	}
	from = min(max(0, d.selected-most/2), max(0, len(d.options)-most))
	return from, min(from+most, len(d.options))
}

func (l *searchList) searchBoxRows(cols int) []string {
	text := cmp.Or(l.typedText, l.hintText)
	inner := max(1, cols-6)
	rows := []string{
		"  ╭" + strings.Repeat(ruleGlyph, inner) + "╮",
		"  │" + truncateRow(fmt.Sprintf(" ⌕ %s%*s", text, max(0, inner-3-textWidth(text)), ""), inner) + "│",
		"  ╰" + strings.Repeat(ruleGlyph, inner) + "╯",
	}
	if !l.isTyping && !l.isFieldBelowOptions {
		rows = append(rows, l.head)
	}
	return append(rows, "")
}
