package book

import (
	"cmp"
	_ "embed" // for the tables of texts and parts
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// Page is one captured screen, labelled with the state that it shows.
type Page struct {
	Tape  string `json:"tape"`
	Name  string `json:"page"`
	State string `json:"state"`           // "permission/bash": state and kind
	Enter string `json:"enter,omitempty"` // effect of Enter: sends, accepts, refuses, quits, nothing
	BookID
	Cursor    emulator.Cursor `json:"cursor"`
	Title     string          `json:"title,omitempty"`
	Alternate bool            `json:"alternate,omitempty"` // the alternate screen is shown
	// Slots are the parts of the screen that depend on the run, such as the working directory.
	Slots   []Slot         `json:"slots,omitempty"`
	Options []DialogOption `json:"options,omitempty"`
	// Offset is the number of bytes that the program had written when the screen was captured; see [Book.RawOutputUpTo].
	Offset int `json:"offset,omitempty"`

	Text string `json:"-"` // a line for each row, without the spaces at its end
	ANSI string `json:"-"` // Text with styles
}

// TapeDotName returns TAPE.PAGE.
func (p *Page) TapeDotName() string { return p.Tape + "." + p.Name }

// StateBeforeSlash returns the part of State before the slash.
func (p *Page) StateBeforeSlash() string {
	kind, _, _ := strings.Cut(p.State, "/")
	return kind
}

// Lines returns the rows of the screen, without styles.
func (p *Page) Lines() []string { return strings.Split(strings.TrimSuffix(p.Text, "\n"), "\n") }

// SetContentAndSlotsFromScreen sets text, size, cursor, title and options from a screen. It also sets the slots, the parts that depend on the
// run: the texts of textBySlotName, and parts that change without input, such as spinners.
func (p *Page) SetContentAndSlotsFromScreen(s emulator.Screen, textBySlotName map[string]string) {
	p.Cols, p.Rows, p.Cursor, p.Title, p.Alternate = s.Cols, s.Rows, s.Cursor, s.Title, s.Alternate
	p.Text, p.ANSI = s.TextWithAllRows(), s.ANSI()
	p.Options, p.Slots = FindDialogOptions(s.Lines()), FindSlots(s.Lines(), textBySlotName)
}

// The suffixes of the files for captured screens and for the output of a tape (a script of keys).
const (
	textSuffix          = ".txt"
	ansiSuffix          = ".ansi"
	jsonSuffix          = ".json"
	castSuffix          = ".cast"
	rawTapeOutputSuffix = ".raw"
	RejectedSuffix      = ".rejected" // the suffix of the files of a screen that does not show the state that its label says
)

// Read reads the captured screen with this name, which has the form TAPE.PAGE.
func (b Book) Read(name string) (p Page, err error) {
	raw, err := os.ReadFile(b.filePath(name, jsonSuffix))
	text, failed := os.ReadFile(b.filePath(name, textSuffix))
	ansi, failedToo := os.ReadFile(b.filePath(name, ansiSuffix))
	if err = cmp.Or(err, failed, failedToo); err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, fmt.Errorf("reading the page %s: %w", name, err)
	}
	p.Text, p.ANSI = string(text), string(ansi)
	p.Slots = FindSlots(p.Lines(), slotTextsNotFoundByPattern(p.Slots)) // the patterns may be newer than the file of the screen
	return p, nil
}

func (b Book) filePath(name, suffix string) string { return filepath.Join(b.Dir, name+suffix) }

// Write writes the files of a captured screen, replacing older files.
func (b Book) Write(p *Page) error { return b.WriteAs(p, p.TapeDotName(), "") }

// WriteAs is like Write, but uses another name, and adds a suffix such as [RejectedSuffix] to the names of the files.
func (b Book) WriteAs(p *Page, pageName, extraSuffix string) error {
	raw, err := plainjson.Indented(p)
	if err = cmp.Or(err, os.MkdirAll(b.Dir, 0o755)); err == nil {
		err = errors.Join(
			os.WriteFile(b.filePath(pageName, textSuffix+extraSuffix), []byte(p.Text), 0o644),
			os.WriteFile(b.filePath(pageName, ansiSuffix+extraSuffix), []byte(p.ANSI), 0o644),
			os.WriteFile(b.filePath(pageName, jsonSuffix+extraSuffix), raw, 0o644),
		)
	}
	if err != nil {
		return fmt.Errorf("writing the page %s: %w", pageName, err)
	}
	return nil
}

// RemoveCapturedFilesOfTape removes all files of a tape (a script of keys), so that no screen of an earlier capture remains.
func (b Book) RemoveCapturedFilesOfTape(tape string) error {
	files, err := filepath.Glob(b.filePath(tape, ".*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// WriteRecordedTapeOutput saves what the program wrote during a tape (a script of keys): the recording (asciicast) and the raw bytes.
func (b Book) WriteRecordedTapeOutput(tape string, cast, raw []byte) error {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return fmt.Errorf("writing the tape %s: %w", tape, err)
	}
	return errors.Join(os.WriteFile(b.filePath(tape, castSuffix), cast, 0o644), os.WriteFile(b.filePath(tape, rawTapeOutputSuffix), raw, 0o644))
}

// RawOutputUpTo returns what the program wrote until the screen was captured.
func (b Book) RawOutputUpTo(p *Page) ([]byte, error) {
	raw, err := os.ReadFile(b.filePath(p.Tape, rawTapeOutputSuffix))
	if err != nil {
		return nil, fmt.Errorf("reading the output of the tape %s: %w", p.Tape, err)
	}
	return raw[:min(p.Offset, len(raw))], nil
}

// DialogOption is one choice of a dialog.
type DialogOption struct {
	Number   string `json:"number,omitempty"` // the digit that selects it; empty means none
	Label    string `json:"label"`
	Selected bool   `json:"selected,omitempty"`
	Row      int    `json:"row"`
}

const selectionPointer = "❯"

// FindDialogOptions returns the options of the dialog on a screen; nil means that there are fewer than two. A pointer marks
// the selected option. If the pointer is at the beginning of a row, a number must follow: a pointer without a number
// belongs to the composer or to an earlier prompt.
func FindDialogOptions(lines []string) []DialogOption {
	marked, numbered := -1, regexp.MustCompile(`^(\d+)\. (.*)$`)
	for row, line := range lines {
		before, after, ok := strings.Cut(line, selectionPointer+" ")
		if ok && (before != "" || numbered.MatchString(after)) && strings.Trim(before, " │") == "" && strings.TrimSpace(after) != "" {
			marked = row
		}
	}
	if marked < 0 {
		return nil
	}
	before, _, _ := strings.Cut(lines[marked], selectionPointer)
	column := utf8.RuneCountInString(before) + 2
	first, _ := optionLabelAt(lines[marked], column)
	withNumbers := numbered.MatchString(first)
	read := func(row int) (o DialogOption, ok bool) {
		label, ok := optionLabelAt(lines[row], column)
		if !ok {
			return o, false
		}
		o = DialogOption{Label: label, Selected: row == marked, Row: row}
		if m := numbered.FindStringSubmatch(label); m != nil {
			o.Number, o.Label = m[1], m[2]
		}
		return o, (o.Number != "") == withNumbers
	}
	from, to := marked, marked
	for row := marked - 1; row >= 0 && (withNumbers || isOptionOrExplanation(lines[row], column)); row-- {
		if _, ok := read(row); ok {
			from = row
		}
	}
	for row := marked + 1; row < len(lines) && (withNumbers || isOptionOrExplanation(lines[row], column)); row++ {
		if _, ok := read(row); ok {
			to = row
		}
	}
	var options []DialogOption
	for row := from; row <= to; row++ {
		if o, ok := read(row); ok {
			options = append(options, o)
		}
	}
	if len(options) < 2 {
		return nil
	}
	return options
}

// isOptionOrExplanation reports whether a row belongs to a list of options: it is an option, or the explanation of an option.
func isOptionOrExplanation(line string, labelColumn int) bool {
	runes := []rune(line)
	return len(runes) > labelColumn && strings.Trim(string(runes[:labelColumn]), " │"+selectionPointer) == ""
}

func optionLabelAt(line string, labelColumn int) (optionLabel string, isOption bool) {
	if !isOptionOrExplanation(line, labelColumn) {
		return "", false
	}
	label := string([]rune(line)[labelColumn:])
	if strings.HasPrefix(label, " ") {
		return "", false
	}
	return strings.TrimRight(strings.TrimSpace(label), " │"), true
}

// IsBusyTitle reports whether a title shows that claude is working. Inside tmux, titles never show this.
func IsBusyTitle(title string) bool {
	first, _ := utf8.DecodeRuneInString(title)
	return strings.ContainsRune("◐◑◒◓", first) || first >= 0x2801 && first <= 0x28ff // a Braille spinner, in older versions
}

// dialogTextsWithStates has texts of dialogs, each with the state of its dialog. The first text that a dialog contains applies.
//
//go:embed dialogs.txt
var dialogTextsWithStates string

// StateOf returns the state of a screen; empty means unknown, for example because the screen is empty.
func StateOf(s emulator.Screen) string {
	lines := s.Lines()
	options := FindDialogOptions(lines)
	switch {
	case len(options) > 1:
		return dialogStateFromText(lines, options)
	case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "Enter to stay in auto mode") }):
		return "dialog/auto"
	case IsBusyTitle(s.Title) || slices.ContainsFunc(lines, isBusyLine):
		return "busy"
	case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "API Error") }):
		return "error"
	case regexp.MustCompile(`(?m)^[ │]*[❯>]\x{a0}`).MatchString(strings.Join(lines, "\n")): // the row of the composer
		return "idle"
	}
	return ""
}

func isBusyLine(line string) bool { return strings.Contains(line, "esc to interrupt") }

func dialogStateFromText(screenLines []string, options []DialogOption) string {
	const most = 20 // maximum number of rows of a dialog above its options
	first, last := options[0].Row, options[len(options)-1].Row
	text := strings.Join(screenLines[max(0, first-most):min(len(screenLines), last+4)], "\n")
	for row := range strings.Lines(dialogTextsWithStates) {
		if label, state, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t"); strings.Contains(text, label) {
			return state
		}
	}
	return "menu"
}

// ImplausibleStateReason returns the reason why a screen cannot show the state of its label; empty means that it can. A dialog
// needs options, and the state busy needs a title or a row that indicates work.
func ImplausibleStateReason(p *Page) string {
	waiting := []string{"permission", "question", "plan", "dialog"}
	kind := p.StateBeforeSlash()
	working := IsBusyTitle(p.Title) || slices.ContainsFunc(p.Lines(), isBusyLine)
	spinner := regexp.MustCompile(`(?m)^\s*[✢✳✶✻✼✽·*●] (\S+…|Waiting for )`)
	singleOption := regexp.MustCompile(`\[[ ✔]\]|❯ \d+\. `) // on a small screen, the other options of a list are hidden
	switch {
	case slices.Contains(waiting, kind) && len(p.Options) == 0 && p.State != "dialog/auto" && !singleOption.MatchString(p.Text):
		return "a dialog without options"
	case kind == "busy" && p.Tmux && !working && !spinner.MatchString(p.Text):
		return "busy, but nothing on the screen indicates it"
	case kind == "busy" && !p.Tmux && !IsBusyTitle(p.Title):
		return "busy, but the title does not indicate it: " + p.Title
	case kind == "idle" && IsBusyTitle(p.Title):
		return "idle, but the title indicates work: " + p.Title
	}
	return ""
}

// Slot is a part of a screen that depends on the run.
type Slot struct {
	Name  string `json:"name"` // specifies what the slot contains: dir, prompt, command, answer, spinner, time, tip, and so on
	Value string `json:"value"`
	Row   int    `json:"row"`
	Col   int    `json:"col"` // column in characters from the beginning of the row
}

// runDependentPartPattern describes a part of a screen that changes without input. The first group of pattern matches this part.
type runDependentPartPattern struct {
	name    string
	pattern *regexp.Regexp
	literal string // is in each row that matches; most rows are excluded by it, which is faster. Empty means that none is known
}

// runDependentParts has the name of each [runDependentPartPattern], its pattern and, if known, a literal text that every matching row
// contains.
//
//go:embed parts.txt
var runDependentParts string

var runDependentPartPatterns = sync.OnceValue(func() (patterns []runDependentPartPattern) {
	for row := range strings.Lines(runDependentParts) {
		name, pattern, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
		pattern, literal, _ := strings.Cut(pattern, "\t")
		patterns = append(patterns, runDependentPartPattern{name, regexp.MustCompile(pattern), literal})
	}
	return patterns
})

func slotTextsNotFoundByPattern(slots []Slot) (textBySlotName map[string]string) {
	texts := map[string]string{}
	for _, s := range slots {
		if s.Name == "dir" || !slices.ContainsFunc(runDependentPartPatterns(), func(v runDependentPartPattern) bool { return v.name == s.Name }) {
			texts[s.Name] = s.Value
		}
	}
	return texts
}

// FindSlots returns the parts of lines that depend on the run. These are the given texts, by name, and parts that change without
// input, such as spinners. The returned parts do not overlap; if texts overlap, only the longer text is returned.
func FindSlots(lines []string, texts map[string]string) []Slot {
	var slots []Slot
	sorted := namesLongestTextFirst(texts)
	for row, line := range lines {
		l := screenLineSlots{line: line, row: row, slotByByte: make([]*Slot, len(line))}
		for _, name := range sorted {
			l.addSlotsForText(name, texts[name])
		}
		for _, v := range runDependentPartPatterns() {
			if !strings.Contains(line, v.literal) {
				continue
			}
			for _, m := range v.pattern.FindAllStringSubmatchIndex(line, -1) {
				l.addSlotUnlessOverlapping(v.name, m[2], m[3])
			}
		}
		for _, s := range slices.Compact(l.slotByByte) {
			if s != nil {
				slots = append(slots, *s)
			}
		}
	}
	return slots
}

type screenLineSlots struct {
	line       string
	row        int
	slotByByte []*Slot // slot at each byte; nil means none
}

func (l *screenLineSlots) addSlotsForText(slotName, text string) {
	for from := 0; ; {
		i := strings.Index(l.line[from:], text)
		if i < 0 {
			return
		}
		l.addSlotUnlessOverlapping(slotName, from+i, from+i+len(text))
		from += i + len(text)
	}
}

// addSlotUnlessOverlapping adds a slot for the bytes from fromByte to toByte, unless it is empty or overlaps another slot.
func (l *screenLineSlots) addSlotUnlessOverlapping(slotName string, fromByte, toByte int) {
	if fromByte >= toByte || slices.ContainsFunc(l.slotByByte[fromByte:toByte], func(s *Slot) bool { return s != nil }) {
		return
	}
	s := &Slot{Name: slotName, Value: l.line[fromByte:toByte], Row: l.row, Col: utf8.RuneCountInString(l.line[:fromByte])}
	for i := fromByte; i < toByte; i++ {
		l.slotByByte[i] = s
	}
}

func namesLongestTextFirst(texts map[string]string) []string {
	var names []string
	for name, value := range texts {
		if value != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(texts[b]), len(texts[a])), strings.Compare(a, b))
	})
	return names
}

// MaskedWithoutLogoAndTips returns the rows for a comparison: names replace parts that depend on the run; the logo, tips and hints are left out.
func (p *Page) MaskedWithoutLogoAndTips() []string {
	lines := FillSlots(p.Lines(), p.Slots, func(s Slot) string {
		switch s.Name {
		case "logo":
			return strings.Repeat(" ", utf8.RuneCountInString(s.Value))
		case "tip", "hint":
			return ""
		}
		return "<" + s.Name + ">"
	})
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
		if strings.Trim(lines[i], " \u00a0") == "⎿" { // continuation of a tip
			lines[i] = ""
		}
	}
	return lines
}

// FillSlots returns a copy of lines in which value(slot) replaces the captured text of each slot.
func FillSlots(lines []string, slots []Slot, value func(Slot) string) []string {
	lines = slices.Clone(lines)
	for _, s := range slices.Backward(slots) {
		if s.Row >= len(lines) {
			continue
		}
		runes := []rune(lines[s.Row])
		from := min(s.Col, len(runes))
		to := min(from+utf8.RuneCountInString(s.Value), len(runes))
		lines[s.Row] = string(runes[:from]) + value(s) + string(runes[to:])
	}
	return lines
}
