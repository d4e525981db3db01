package book

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/tomltext"
)

// The maximum number of anchors (texts that identify screens) of a version, and the maximum number of characters of an anchor.
const (
	MaxAnchorsPerVersion = 80
	MaxAnchorLength      = 60
)

//go:embed anchors.toml
var embeddedScreenAnchorsTOML string

// Anchor is a short text by which programs recognize a screen, such as the label of an option, with its place on the screen.
type Anchor struct {
	Page  string `toml:"page"`  // TAPE.PAGE
	State string `toml:"state"` // state that the screen shows
	Row   int    `toml:"row"`   // counts from the bottom; 0 is the last row that is not empty
	Label string `toml:"label"`
	// Selected is set for the option that is selected when the dialog appears.
	Selected bool `toml:"selected"`
}

// VersionScreenAnchors has the texts by which programs recognize the screens of one version.
type VersionScreenAnchors struct {
	Version string   `toml:"version"`
	Anchors []Anchor `toml:"anchors"`
}

// LoadAnchorsOldestFirst returns the anchors (texts that identify screens) of all versions that this binary knows, oldest first.
func LoadAnchorsOldestFirst() ([]VersionScreenAnchors, error) {
	return ParseScreenAnchorsTOML("anchors.toml", embeddedScreenAnchorsTOML)
}

// ParseScreenAnchorsTOML reads a file of anchors: the texts that identify the screens of each version.
func ParseScreenAnchorsTOML(fileName, content string) ([]VersionScreenAnchors, error) {
	var all struct {
		Versions []VersionScreenAnchors `toml:"versions"`
	}
	ix := diag.IndexTOML(fileName, []byte(content))
	if problem := ix.FirstPossibleProblem(); problem != nil {
		return nil, diag.List{*problem}
	}
	if err := ix.BindFileTo(&all).Err(); err != nil {
		return nil, err
	}
	return all.Versions, nil
}

// ChooseScreenAnchors chooses the texts that identify the screens of a version: the options of dialogs, the name of the mode in
// the last row, and hints about keys such as "esc to cancel".
func ChooseScreenAnchors(version string, pages []Page) VersionScreenAnchors {
	v := VersionScreenAnchors{Version: version}
	seen := map[string]bool{}
	hint := regexp.MustCompile(`(?i)((ctrl|shift)[-+ ])?\w+ to (confirm|cancel|amend|interrupt|select|reject|cycle|exit|edit|save|approve)\b`)
	add := func(p *Page, row int, label string, selected bool) {
		for _, s := range p.Slots {
			if strings.Contains(label, s.Value) {
				label, _, _ = strings.Cut(label, s.Value) // keeps only the part that does not depend on the run
			}
		}
		label = strings.TrimSpace(label)
		label = shortenToMaxAnchorLength(label)
		id := p.State + "\x00" + label
		if label == "" || seen[id] || len(v.Anchors) >= MaxAnchorsPerVersion {
			return
		}
		seen[id] = true
		v.Anchors = append(v.Anchors, Anchor{Page: p.TapeDotName(), State: p.State, Row: lastNonEmptyRow(p) - row, Label: label, Selected: selected})
	}
	for _, p := range pagesNeedingAnchors(pages) {
		// Only the first screen of a dialog is used, because a key may have changed the selection on later screens.
		if p.StateBeforeSlash() != "menu" && !slices.ContainsFunc(pages, func(q Page) bool {
			return q.Tape == p.Tape && q.State == p.State && q.Offset < p.Offset
		}) {
			for _, o := range p.Options {
				add(p, o.Row, o.Label, o.Selected)
			}
		}
		if kind := p.StateBeforeSlash(); kind == "idle" || kind == "busy" {
			mode, _, _ := strings.Cut(p.Lines()[lastNonEmptyRow(p)], " (")
			mode, _, _ = strings.Cut(mode, " · ")
			add(p, lastNonEmptyRow(p), mode, false)
		}
		for row, line := range p.Lines() {
			if m := hint.FindString(line); m != "" && row > lastNonEmptyRow(p)-3 {
				add(p, row, m, false)
			}
		}
	}
	return v
}

// shortenToMaxAnchorLength shortens a label that is too long: it keeps as many complete parts as fit.
func shortenToMaxAnchorLength(label string) string {
	r := []rune(label)
	if len(r) <= MaxAnchorLength {
		return label
	}
	label = string(r[:MaxAnchorLength])
	for _, part := range []string{" · ", " (", " "} {
		if at := strings.LastIndex(label, part); at > 0 {
			return label[:at]
		}
	}
	return label
}

// pagesNeedingAnchors returns the screens that need anchors (identifying texts), the most important first.
func pagesNeedingAnchors(pages []Page) []*Page {
	var ordered []*Page
	for _, kind := range []string{"dialog", "permission", "plan", "question", "busy", "idle", "error", "menu", "ended"} {
		for i := range pages {
			if pages[i].StateBeforeSlash() == kind {
				ordered = append(ordered, &pages[i])
			}
		}
	}
	return ordered
}

func lastNonEmptyRow(p *Page) (row int) {
	lines := p.Lines()
	for row := len(lines) - 1; row > 0; row-- {
		if strings.TrimSpace(lines[row]) != "" {
			return row
		}
	}
	return 0
}

// MergeAnchors adds v to the anchors of all versions, in place of earlier anchors of the same version.
func MergeAnchors(all []VersionScreenAnchors, v VersionScreenAnchors) []VersionScreenAnchors {
	all = slices.DeleteFunc(slices.Clone(all), func(old VersionScreenAnchors) bool { return old.Version == v.Version })
	all = append(all, v)
	slices.SortStableFunc(all, func(a, b VersionScreenAnchors) int { return CompareVersions(a.Version, b.Version) })
	return all
}

// ScreenAnchorsTOML encodes anchors (texts that identify screens) for the file anchors.toml.
func ScreenAnchorsTOML(all []VersionScreenAnchors) string {
	var b strings.Builder
	b.WriteString("# Short labels of the screens of the CLI, written by `claudeless screens anchors --write`.\n")
	for _, v := range all {
		fmt.Fprintf(&b, "\n[[versions]]\nversion = %s\nanchors = [\n", tomltext.BasicString(v.Version))
		for _, a := range v.Anchors {
			selected := ""
			if a.Selected {
				selected = ", selected = true"
			}
			fmt.Fprintf(&b, "  { page = %s, state = %s, row = %d, label = %s%s },\n", tomltext.BasicString(a.Page), tomltext.BasicString(a.State), a.Row, tomltext.BasicString(a.Label), selected)
		}
		b.WriteString("]\n")
	}
	return b.String()
}

// CheckAnchorLimits returns an error if v has too many anchors or one of them is too long.
func (v VersionScreenAnchors) CheckAnchorLimits() error {
	if len(v.Anchors) > MaxAnchorsPerVersion {
		return fmt.Errorf("version %s has %d anchors (labels that identify a screen), but at most %d can be stored: remove some", v.Version, len(v.Anchors), MaxAnchorsPerVersion)
	}
	for _, a := range v.Anchors {
		if n := utf8.RuneCountInString(a.Label); n > MaxAnchorLength {
			return fmt.Errorf("the anchor %q (a label that identifies a screen) has %d characters; at most %d are allowed", a.Label, n, MaxAnchorLength)
		}
	}
	return nil
}
