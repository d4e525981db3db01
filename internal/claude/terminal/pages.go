// Package terminal plays a session on a terminal: it reads keys, draws the screen of an interactive claude in a plain
// layout, and asks its questions in dialogs.
//
// [AskStartupQuestions] asks the questions that precede a session, such as the trust of a folder. [Open] then builds the
// session, and [Terminal.Run] plays it. The screen is a consumer of the session's events. Package session runs the
// turns and creates the questions; this package only shows them and returns the answers. Only the goroutine of
// [Terminal.Run] uses the state of the screen. Other goroutines put messages into its mailbox.
package terminal

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/screens/book"
)

// realCLIPages holds captured pages of the real CLI, for texts that are the same in every run. A nil pointer has no pages.
type realCLIPages struct {
	list   []book.Page
	widest []book.Page // pages of the widest captured screen, for labels that list has only in part
}

// ScreenBookVariable is the environment variable that selects the book of captured screens: a version, or a directory.
const ScreenBookVariable = "CLAUDELESS_SCREENS"

// loadPages returns the captured screens for a terminal: from the book (directory of screens) that [ScreenBookVariable] names,
// else from this version of claude, else from the newest captured version.
func loadPages(sys *process.System, version string, k book.BookID) (*realCLIPages, error) {
	root, name := book.CacheRoot(sys.Environ), sys.Getenv(ScreenBookVariable)
	books, err := book.Find(root, cmp.Or(name, version))
	if err != nil {
		return nil, err
	}
	if name != "" && len(books) == 0 {
		return nil, process.WithHint(fmt.Sprintf("%s: no screens of %s have been captured", ScreenBookVariable, name), "capture them first: claudeless screens capture --claude npm:"+name)
	}
	if len(books) == 0 {
		if books, err = newestBooks(root); err != nil {
			return nil, err
		}
	}
	nearest, ok := book.NearestBook(books, k)
	if !ok {
		return nil, nil
	}
	list, err := nearest.Pages()
	readOther := func(cols, rows int) (pages []book.Page) {
		if other, _ := book.NearestBook(books, book.BookID{Renderer: nearest.Renderer, Tmux: nearest.Tmux, Cols: cols, Rows: rows}); other.BookID != nearest.BookID && err == nil {
			pages, err = other.Pages()
		}
		return pages
	}
	const many = 1000
	widest := readOther(many, nearest.Rows)
	books = slices.DeleteFunc(books, func(b book.Book) bool { return b.Cols != nearest.Cols })
	if tallest := readOther(nearest.Cols, many); tallest != nil {
		list = append(slices.DeleteFunc(list, isTopOfDialogHidden), tallest...)
	}
	return &realCLIPages{list, widest}, err
}

// isTopOfDialogHidden reports whether a page of a small screen shows a dialog without its first rows.
func isTopOfDialogHidden(p book.Page) bool {
	isDialog := slices.Contains([]string{"dialog", "permission"}, p.StateBeforeSlash()) && len(p.Options) > 0
	return isDialog && !slices.ContainsFunc(p.Lines()[:p.Options[0].Row], isRuleRow)
}

func isRuleRow(row string) bool { return strings.HasPrefix(row, strings.Repeat(ruleGlyph, 3)) }

func newestBooks(root string) ([]book.Book, error) {
	all, err := book.List(root)
	all = slices.DeleteFunc(all, func(b book.Book) bool { return !unicode.IsDigit(rune(b.Version[0])) })
	if len(all) > 0 {
		newest := all[len(all)-1].Version
		all = slices.DeleteFunc(all, func(b book.Book) bool { return b.Version != newest })
	}
	return all, err
}

// findPageWithMostSlotsFor returns a captured screen for a state, or an empty one if there is none. If there are several, it returns
// the one that has slots for the most values.
func (p *realCLIPages) findPageWithMostSlotsFor(state string, values map[string]string) *book.Page {
	found, most := &book.Page{}, -1
	for i := range p.pages() {
		if p.list[i].State != state {
			continue
		}
		names := map[string]bool{}
		for _, s := range p.list[i].Slots {
			if _, ok := values[slotBaseName(s)]; ok {
				names[slotBaseName(s)] = true
			}
		}
		if len(names) > most {
			found, most = &p.list[i], len(names)
		}
	}
	return found
}

func (p *realCLIPages) pages() []book.Page {
	if p == nil {
		return nil
	}
	return p.list
}

func slotBaseName(s book.Slot) string {
	name, _, _ := strings.Cut(s.Name, "-")
	return name
}

const missingSlotMark = "\x00"

// fillSlots returns the rows of a captured screen with the values of this run. A place (slot) without a value gets
// [missingSlotMark], except tip, logo, duration and time, which keep the captured text.
func fillSlots(p *book.Page, values map[string]string) []string {
	return book.FillSlots(p.Lines(), p.Slots, func(s book.Slot) string {
		value, ok := values[slotBaseName(s)]
		switch {
		case ok && value != "":
			return value
		case s.Name == "logo" || !ok && (s.Name == "tip" || s.Name == "duration" || s.Name == "time"):
			return s.Value
		}
		return missingSlotMark
	})
}

// capturedOptionLabel returns the full label of the option that begins with prefix, else a truncated one, else "".
func (p *realCLIPages) capturedOptionLabel(state, prefix string) (labelOrEmpty string) {
	if p == nil {
		return ""
	}
	for _, page := range slices.Concat(p.list, p.widest) {
		if page.State != state {
			continue
		}
		rows := page.Lines()
		for _, o := range page.Options {
			if !strings.HasPrefix(o.Label, prefix) {
				continue
			}
			if strings.Contains(o.Label, "\u2026") {
				labelOrEmpty = cmp.Or(labelOrEmpty, o.Label)
				continue
			}
			label := []string{o.Label}
			for next := o.Row + 1; next < len(rows) && rows[next] != "" && !isRuleRow(rows[next]) && !strings.HasPrefix(rows[next], "    ↓") && !slices.ContainsFunc(page.Options, func(p book.DialogOption) bool { return p.Row == next }); next++ {
				label = append(label, strings.TrimSpace(rows[next]))
			}
			return strings.TrimSpace(strings.Join(label, " "))
		}
	}
	return labelOrEmpty
}

func (p *realCLIPages) copyCapturedTextsIntoDialog(d *dialog) {
	page := p.findPageWithMostSlotsFor(string(d.state)+"/"+d.kind, d.slotValues)
	if len(page.Options) == 0 || d.state == StateQuestion || d.hasOwnTexts {
		return
	}
	rows, first, last := fillSlots(page, d.slotValues), page.Options[0].Row, page.Options[len(page.Options)-1].Row
	top := first - 1
	for top >= 0 && !isRuleRow(rows[top]) {
		top--
	}
	if top < 0 {
		return
	}
	head, question := rows[top+1:first], []string(nil)
	thin := func(row string) bool { return strings.HasPrefix(row, strings.Repeat(thinRuleGlyph, 3)) }
	if from := slices.IndexFunc(head, thin); from >= 0 {
		rest := head[from+1:]
		head, question = head[:from], rest[slices.IndexFunc(rest, thin)+1:]
		if at := slices.IndexFunc(question, hasQuotedRowMark); at >= 0 { // replace the captured tool description with the call's
			question = slices.DeleteFunc(slices.Clone(question), hasQuotedRowMark)
			if text := d.slotValues[toolDescriptionSlotName]; text != "" {
				question = slices.Insert(question, at, strings.Split(text, "\n")...)
			}
		}
	}
	foot := rows[last+1:]
	for _, o := range d.options {
		if o.isAction && len(foot) > 0 {
			foot = foot[1:]
		}
	}
	foot = dropTrailingEmptyRows(foot)
	d.head, d.question = rowsWithoutUnfilledSlots(head), rowsWithoutUnfilledSlots(question)
	if d.foot != nil { // a fault may have removed the footer
		d.foot = rowsWithoutUnfilledSlots(foot)
	}
}

const toolDescriptionSlotName = "tool description"

func hasQuotedRowMark(row string) bool {
	return strings.HasPrefix(row, strings.TrimRight(quotedRowMark, " "))
}

func rowsWithoutUnfilledSlots(rows []string) []string {
	return slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return strings.Contains(row, missingSlotMark) })
}

func (p *realCLIPages) headerRowsOfStartPage(slotValues map[string]string) []string {
	rows := fillSlots(p.findPageWithMostSlotsFor("idle/start", slotValues), slotValues)
	end := slices.IndexFunc(rows, isRuleRow)
	if end < 1 {
		return nil
	}
	return append(rowsWithoutUnfilledSlots(dropTrailingEmptyRows(rows[:end-1])), "") // the row with a hint above the input field becomes empty
}

// rowsBelowInputField returns the rows below the input field of a page; nil means that no page contains them.
func (p *realCLIPages) rowsBelowInputField(pageState string) []string {
	rows := p.findPageWithMostSlotsFor(pageState, nil).Lines()
	for i, row := range slices.Backward(rows) {
		if isRuleRow(row) {
			return dropTrailingEmptyRows(rows[i+1:])
		}
	}
	return nil
}

// paragraphRestAfterPrefix returns the text after prefix on a page of a state, up to the next empty row; "" if no page has prefix.
func (p *realCLIPages) paragraphRestAfterPrefix(state, prefix string) string {
	var text string
	for _, page := range p.pages() {
		if _, after, ok := strings.Cut(page.Text, prefix); ok && page.State == state {
			text, _, _ = strings.Cut(after, "\n\n")
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	return regexp.MustCompile(`(https://\S+) (\S+/)`).ReplaceAllString(text, "$1$2") // joins a URL broken into two rows
}

func dropTrailingEmptyRows(rows []string) []string {
	for len(rows) > 0 && strings.TrimSpace(rows[len(rows)-1]) == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

func (p *realCLIPages) tipRowOfRunningTurn() string {
	for _, row := range p.findPageWithMostSlotsFor("busy/turn", nil).Lines() {
		if strings.HasPrefix(row, resultPrefix+"Tip: ") {
			return row
		}
	}
	return ""
}

func modelNameForHeader(model string) string {
	m := regexp.MustCompile(`^claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?:-\d{8})?(\[1m\])?$`).FindStringSubmatch(model)
	if m == nil {
		return model
	}
	name := strings.ToUpper(m[1][:1]) + m[1][1:] + " " + m[2]
	if m[3] != "" {
		name += "." + m[3]
	}
	if m[4] != "" {
		name += " (1M context)"
	}
	return name
}

const (
	promptGlyph                         = "❯"
	noBreakSpace                        = "\u00a0"
	answerGlyph                         = "●"
	resultGlyph                         = "⎿"
	resultPrefix                        = "  ⎿ \u00a0"
	idleWindowGlyph, defaultWindowTitle = "✳ ", "Claude Code"
	ruleGlyph                           = "─"
	thinRuleGlyph                       = "╌"
)

func pointerGlyphs(isSelected bool) string {
	return map[bool]string{true: promptGlyph + " ", false: "  "}[isSelected]
}

// screenLabels holds the texts by which other programs recognize the screen of a version: the labels of options and the hints
// in the footer. Package book calls these texts anchors.
type screenLabels struct {
	anchorLabels []book.Anchor
	pages        *realCLIPages // captured pages, in which labels are complete; nil means none
}

func loadLabels(version string) (screenLabels, error) {
	all, err := book.LoadAnchorsOldestFirst()
	if err != nil || len(all) == 0 {
		return screenLabels{}, err
	}
	chosen := all[0]
	for _, v := range all {
		if book.CompareVersions(v.Version, version) <= 0 {
			chosen = v
		}
	}
	return screenLabels{anchorLabels: chosen.Anchors}, nil
}

// findLabelOrPrefix returns a state's label that begins with labelPrefix, or labelPrefix if there is none. If
// screenState is empty, it looks in all states.
func (l *screenLabels) findLabelOrPrefix(screenState, labelPrefix string) string {
	if full := l.pages.capturedOptionLabel(screenState, labelPrefix); full != "" && !strings.Contains(full, "\u2026") { // a truncated label depends on the width
		return full
	}
	var found string
	for _, a := range l.anchorLabels {
		switch inState := screenState == "" || a.State == screenState || strings.HasPrefix(a.State, screenState+"/"); {
		case inState && a.Label == labelPrefix:
			return labelPrefix
		case inState && found == "" && strings.HasPrefix(a.Label, labelPrefix):
			found = a.Label
		}
	}
	return cmp.Or(found, labelPrefix)
}

func (l *screenLabels) findLabelOrPrefixWithRest(screenState, labelPrefix, fallbackRest string) string {
	label := l.findLabelOrPrefix(screenState, labelPrefix)
	if label == labelPrefix {
		label += fallbackRest
	}
	return label
}

func isRefusalLabel(label string) bool {
	return strings.HasPrefix(label, "No") || strings.HasPrefix(label, "Continue without")
}

func (l *screenLabels) orderAndSelectOptionsByAnchors(d *dialog, screenState string) {
	row := func(label string) *book.Anchor {
		for i, a := range l.anchorLabels {
			if a.State == screenState && strings.HasPrefix(label, a.Label) {
				return &l.anchorLabels[i]
			}
		}
		return nil
	}
	slices.SortStableFunc(d.options, func(a, b dialogOption) int {
		if x, y := row(a.label), row(b.label); x != nil && y != nil {
			return y.Row - x.Row
		}
		return 0
	})
	for i, o := range d.options {
		if a := row(o.label); a != nil && a.Selected {
			d.selected = i
		}
	}
}

const modeCycleHint = " (shift+tab to cycle)"

func (l *screenLabels) modeText(mode string) string {
	texts := map[string]string{
		"acceptEdits": "⏵⏵ accept edits on", "plan": "⏸ plan mode on", "bypassPermissions": "⏵⏵ bypass permissions on",
		"auto": "⏵⏵ auto mode on", "dontAsk": "⏵⏵ don't ask on",
	}
	if text, ok := texts[mode]; ok {
		return l.findLabelOrPrefix("idle", text) + modeCycleHint
	}
	return l.findLabelOrPrefix("idle", "⏸ manual mode on")
}

func (l *screenLabels) shortcutHelpRows(cols int) []string {
	if rows := l.pages.rowsBelowInputField("idle/shortcuts"); rows != nil {
		return rows
	}
	return []string{
		"  / for commands                   shift+tab to cycle modes",
		"  esc esc to clear input           ctrl+z to suspend",
		truncateRow("  backslash (\\) then enter for a newline", cols),
	}
}
