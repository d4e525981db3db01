package book

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Slot is a part of a page that depends on the run.
type Slot struct {
	// Name specifies what the slot contains: dir, prompt, command, answer, spinner, time, tip, and so on.
	Name  string `json:"name"`
	Value string `json:"value"`
	Row   int    `json:"row"`
	Col   int    `json:"col"` // column in characters from the beginning of the row
}

// volatilePart is a part of a page that changes without input: the text that the first group of the pattern matches.
type volatilePart struct {
	name    string
	pattern *regexp.Regexp
}

func volatileParts() []volatilePart {
	patterns := []struct{ name, pattern string }{
		{"logo", `^( ?[▐▝▘▗▖▛▜█▙▟▌▀▄▁▂ ]*[▐▝▘▗▖▛▜█▙▟▌▀▄▁▂]+)`},
		{"dir", `(\S*/claudeless-screens-\d*(?:/[a-z]*)?…?)`},
		{"plan", `(\S+/plans/[\w-]+\.md)`},
		{"version", `Claude Code v?(\d+\.\d+\.\d+)`},
		{"spinner", `^\s*([✢✳✶✻✼✽·*●] \S+…(?: \(.*\))?)`},
		{"spinner", `^\s*([✢✳✶✻✼✽·*] \S+ for \d.*)$`},
		{"key", `sk-ant-\.\.\.([0-9a-f*]{20})`},
		{"hint", `( · ← for agents)`},
		{"hint", `^  ⏸ manual mode on( · \? for shortcuts)`},
		{"hint", `( \(shift\+tab to cycle\))`},
		{"hint", ` {2,}([◐◑◒◓○●◉] \S+ · /effort)$`},
		{"glyph", `([◐◑◒◓]) `},
		{"dot", `^([● ] )(?:[A-Z][a-z]+ing\b|Bash\()`},
		{"count", `^\s*(\d+) new MCP servers`},
		{"tip", `^[\s\x{a0}]*(?:⎿[\s\x{a0}]+)?(Tip: .*)$`},
		{"time", `\b(\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?)\b`},
		{"duration", `\b((?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)?m?s)\b`},
		{"tokens", `([↑↓] [\d.]+k? tokens)`},
		{"id", `\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`},
		{"port", `(?:127\.0\.0\.1|localhost):(\d{2,5})\b`},
	}
	list := make([]volatilePart, len(patterns))
	for i, p := range patterns {
		list[i] = volatilePart{p.name, regexp.MustCompile(p.pattern)}
	}
	return list
}

func namedTexts(slots []Slot) map[string]string {
	all := volatileParts()
	texts := map[string]string{}
	for _, s := range slots {
		if s.Name == "dir" || !slices.ContainsFunc(all, func(v volatilePart) bool { return v.name == s.Name }) {
			texts[s.Name] = s.Value
		}
	}
	return texts
}

// FindSlots returns the parts of lines that depend on the run. These are the given texts, by name, and parts that
// change without input, such as spinners. Slots do not overlap; if texts overlap, the longer text wins.
func FindSlots(lines []string, texts map[string]string) []Slot {
	var slots []Slot
	sorted := namesByTextLength(texts)
	all := volatileParts()
	for row, line := range lines {
		l := slotsInLine{line: line, row: row, byByte: make([]*Slot, len(line))}
		for _, name := range sorted {
			l.addText(name, texts[name])
		}
		for _, v := range all {
			for _, m := range v.pattern.FindAllStringSubmatchIndex(line, -1) {
				l.addSlot(v.name, m[2], m[3])
			}
		}
		for _, s := range slices.Compact(l.byByte) {
			if s != nil {
				slots = append(slots, *s)
			}
		}
	}
	return slots
}

type slotsInLine struct {
	line   string
	row    int
	byByte []*Slot // slot at each byte; nil means none
}

func (l *slotsInLine) addText(name, text string) {
	for from := 0; ; {
		i := strings.Index(l.line[from:], text)
		if i < 0 {
			return
		}
		l.addSlot(name, from+i, from+i+len(text))
		from += i + len(text)
	}
}

// addSlot adds a slot for the bytes from fromByte to toByte, unless it is empty or overlaps another slot.
func (l *slotsInLine) addSlot(name string, fromByte, toByte int) {
	if fromByte >= toByte || slices.ContainsFunc(l.byByte[fromByte:toByte], func(s *Slot) bool { return s != nil }) {
		return
	}
	s := &Slot{Name: name, Value: l.line[fromByte:toByte], Row: l.row, Col: utf8.RuneCountInString(l.line[:fromByte])}
	for i := fromByte; i < toByte; i++ {
		l.byByte[i] = s
	}
}

// namesByTextLength returns the names of the texts that are not empty, by the length of the text, then by name.
func namesByTextLength(texts map[string]string) []string {
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

// Masked returns the page's lines with slots replaced by names and without the changing logo, tips and hints.
func (p *Page) Masked() []string {
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

// FillSlots returns a copy of lines in which the text of each slot is replaced by its value.
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
