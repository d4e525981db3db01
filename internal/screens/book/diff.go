package book

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// ChangedScreenPart says which part of a captured screen changed, and thereby how important the change is.
type ChangedScreenPart string

// The kinds of changes, the most important ones first.
const (
	ChangedDialogOptions ChangedScreenPart = "options" // the options of a dialog, the selected one, or the effect of Enter
	ChangedStateOrTitle  ChangedScreenPart = "label"   // the state that the screen shows, or the title
	ChangedPageText      ChangedScreenPart = "text"
	PageInOneBookOnly    ChangedScreenPart = "page" // only one of the two books has the screen
)

// ScreenChange is one difference between the captured screens of two versions.
type ScreenChange struct {
	Kind ChangedScreenPart `json:"kind"`
	Page string            `json:"page"` // TAPE.PAGE
	Book string            `json:"book"` // renderer and size
	Text string            `json:"text"`
}

// Compare compares the captured screens of two books, after masking the parts that depend on the run.
func Compare(a, b Book) ([]ScreenChange, error) {
	before, after, err := readPages(a, b)
	if err != nil {
		return nil, err
	}
	c := comparison{book: strings.TrimPrefix(b.String(), b.Version+"/")}
	c.comparePages(before, after)
	kinds := []ChangedScreenPart{ChangedDialogOptions, ChangedStateOrTitle, PageInOneBookOnly, ChangedPageText}
	slices.SortStableFunc(c.changes, func(a, b ScreenChange) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	return c.changes, nil
}

func readPages(a, b Book) (before, after []Page, err error) {
	if before, err = a.Pages(); err == nil {
		after, err = b.Pages()
	}
	return before, after, err
}

func pagesByName(pages []Page) map[string]*Page {
	byName := map[string]*Page{}
	for i := range pages {
		byName[pages[i].TapeDotName()] = &pages[i]
	}
	return byName
}

type comparison struct {
	book    string
	changes []ScreenChange
}

func (c *comparison) addChange(kind ChangedScreenPart, p *Page, format string, args ...any) {
	c.changes = append(c.changes, ScreenChange{Kind: kind, Page: p.TapeDotName(), Book: c.book, Text: fmt.Sprintf(format, args...)})
}

func (c *comparison) comparePages(before, after []Page) {
	byName := pagesByName(after)
	for i := range before {
		a := &before[i]
		b := byName[a.TapeDotName()]
		delete(byName, a.TapeDotName())
		if b == nil {
			c.addChange(PageInOneBookOnly, a, "only the first version has this page")
			continue
		}
		c.comparePage(a, b)
	}
	for i := range after {
		if p := &after[i]; byName[p.TapeDotName()] != nil {
			c.addChange(PageInOneBookOnly, p, "only the second version has this page")
		}
	}
}

func (c *comparison) comparePage(a, b *Page) {
	c.compareDialogOptions(a, b)
	if a.Enter != b.Enter {
		c.addChange(ChangedDialogOptions, b, "the label of the Enter key is %s; it was %s before", cmp.Or(b.Enter, "missing"), cmp.Or(a.Enter, "missing"))
	}
	if a.State != b.State {
		c.addChange(ChangedStateOrTitle, b, "the page has the state %s; it had %s before", b.State, a.State)
	}
	if titleStateForComparison(a.Title) != titleStateForComparison(b.Title) {
		c.addChange(ChangedStateOrTitle, b, "the title of the terminal is %q; it was %q before", b.Title, a.Title)
	}
	if before, after := maskedNonEmptyRows(a), maskedNonEmptyRows(b); before != after {
		c.addChange(ChangedPageText, b, "%s", strings.TrimRight(diffRows(before, after), "\n"))
	}
}

// titleStateForComparison returns the first character of a title, which shows claude's state. For every busy title it returns ◐.
func titleStateForComparison(terminalTitle string) string {
	_, n := utf8.DecodeRuneInString(terminalTitle)
	if IsBusyTitle(terminalTitle) {
		return "◐"
	}
	return terminalTitle[:n]
}

// maskedNonEmptyRows returns the masked rows of a captured screen without empty rows, whose number depends on other
// rows. It joins the rows around the path of a plan file: the path has a random length, so the line breaks there vary.
func maskedNonEmptyRows(p *Page) string {
	lines := slices.DeleteFunc(p.MaskedWithoutLogoAndTips(), func(line string) bool { return strings.TrimSpace(line) == "" })
	text := regexp.MustCompile(`\S*/claudeless-exec-\S*\n +\S*\.md`).ReplaceAllString(strings.Join(lines, "\n")+"\n", "<plan>")
	text = regexp.MustCompile(`\n +<plan>`).ReplaceAllString(text, " <plan>")
	for continued := regexp.MustCompile(`(<plan>.*)\n {3,}`); continued.MatchString(text); {
		text = continued.ReplaceAllString(text, "$1 ")
	}
	return text
}

func diffRows(before, after string) string {
	var b strings.Builder
	for _, h := range textdiff.Hunks(before, after, 0) {
		b.WriteString(strings.Join(h.Lines, "\n") + "\n")
	}
	return b.String()
}

func (c *comparison) compareDialogOptions(a, b *Page) {
	if len(a.Options) == 0 && len(b.Options) == 0 {
		return
	}
	mask := func(label string, p *Page) string {
		for _, s := range p.Slots {
			label = strings.ReplaceAll(label, s.Value, "<"+s.Name+">")
		}
		return label
	}
	before, after := map[string]DialogOption{}, map[string]DialogOption{}
	selected, order, common := "", []string(nil), []string(nil) // selected is the option that was selected before
	for _, o := range a.Options {
		before[mask(o.Label, a)] = o
		if o.Selected {
			selected = mask(o.Label, a)
		}
	}
	for _, o := range b.Options {
		label := mask(o.Label, b)
		after[label] = o
		old, ok := before[label]
		switch {
		case !ok:
			c.addChange(ChangedDialogOptions, b, "option %q is new%s", label, parenthesizedOptionNumber(o))
		case old.Number != o.Number:
			c.addChange(ChangedDialogOptions, b, "option %q has%s; it had%s before", label, optionNumberPhrase(o), optionNumberPhrase(old))
		}
		if ok {
			order = append(order, label)
		}
		if o.Selected && selected != "" && label != selected {
			c.addChange(ChangedDialogOptions, b, "option %q is selected when the dialog appears; option %q was selected before", label, selected)
		}
	}
	for _, o := range a.Options {
		label := mask(o.Label, a)
		if _, ok := after[label]; ok {
			common = append(common, label)
		} else {
			c.addChange(ChangedDialogOptions, b, "option %q was removed%s", label, parenthesizedOptionNumber(o))
		}
	}
	if !slices.Equal(order, common) {
		c.addChange(ChangedDialogOptions, b, "the order of the options is %q; it was %q before", order, common)
	}
}

func parenthesizedOptionNumber(o DialogOption) string {
	if o.Number == "" {
		return ""
	}
	return " (number " + o.Number + ")"
}

func optionNumberPhrase(o DialogOption) string {
	if o.Number == "" {
		return " no number"
	}
	return " the number " + o.Number
}
