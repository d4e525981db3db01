// Package terminal plays a session on a terminal: it reads keys, draws the screen of an interactive claude in a plain
// layout, and asks its questions in dialogs.
//
// [RunStartup] asks the questions that precede a session, such as the trust of a folder. [Open] then builds the
// session, and [Terminal.Run] plays it. The screen is a consumer of the session's events. Package session runs the
// turns and creates the questions; this package only shows them and returns the answers. Only the goroutine of
// [Terminal.Run] uses the state of the screen. Other goroutines put messages into its mailbox.
package terminal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/screens/book"
)

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

// findLabelOrPrefix returns a state's label that begins with labelPrefix, or labelPrefix if there is none. An empty screenState
// matches every state.
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
