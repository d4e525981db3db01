package book

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// Page is one labelled screen.
type Page struct {
	Tape  string `json:"tape"`
	Name  string `json:"page"`
	State string `json:"state"`           // "permission/bash": state and kind
	Enter string `json:"enter,omitempty"` // effect of Enter: sends, accepts, refuses, quits, nothing
	Key
	Cursor    emulator.Cursor `json:"cursor"`
	Title     string          `json:"title,omitempty"`
	Alternate bool            `json:"alternate,omitempty"` // the alternate screen is shown
	// Slots are the parts that depend on the run.
	Slots   []Slot   `json:"slots,omitempty"`
	Options []Option `json:"options,omitempty"`
	// Offset is the number of bytes of the tape's output (see [Book.Raw]) up to the page.
	Offset int `json:"offset,omitempty"`

	Text string `json:"-"` // a line for each row, without the spaces at its end
	ANSI string `json:"-"` // Text with styles
}

// FullName returns TAPE.PAGE.
func (p *Page) FullName() string { return p.Tape + "." + p.Name }

// Kind returns the part of State before the slash.
func (p *Page) Kind() string {
	kind, _, _ := strings.Cut(p.State, "/")
	return kind
}

// Lines returns the rows.
func (p *Page) Lines() []string { return strings.Split(strings.TrimSuffix(p.Text, "\n"), "\n") }

// SetScreen sets text, size, cursor, title and options from a screen. It also finds the slots: the given texts, by
// name, and parts that change without input, such as spinners.
func (p *Page) SetScreen(s emulator.Screen, texts map[string]string) {
	p.Cols, p.Rows, p.Cursor, p.Title, p.Alternate = s.Cols, s.Rows, s.Cursor, s.Title, s.Alternate
	p.Text, p.ANSI = s.Text(), s.ANSI()
	p.Options, p.Slots = FindOptions(s.Lines()), FindSlots(s.Lines(), texts)
}

// Screen returns the page as a terminal shows it.
func (p *Page) Screen() emulator.Screen {
	e := emulator.New(p.Cols, p.Rows)
	rows := strings.Split(strings.TrimSuffix(p.ANSI, "\n"), "\n")
	_, _ = e.Write([]byte("\x1b[?7l" + strings.Join(rows, "\r\n"))) // never fails
	s := e.Screen()
	s.Cursor, s.Title, s.Alternate = p.Cursor, p.Title, p.Alternate
	return s
}

// The file suffixes of pages and tapes.
const (
	textSuffix = ".txt"
	ansiSuffix = ".ansi"
	jsonSuffix = ".json"
	castSuffix = ".cast"
	rawSuffix  = ".raw"
	// RejectedSuffix is the suffix of the files of a page that does not show what its label says.
	RejectedSuffix = ".rejected"
)

// Read reads the page TAPE.PAGE.
func (b Book) Read(name string) (Page, error) {
	var p Page
	raw, err := os.ReadFile(b.path(name, jsonSuffix))
	if err != nil {
		return p, fmt.Errorf("reading the page %s: %w", name, err)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("reading the page %s: %w", name, err)
	}
	text, err := os.ReadFile(b.path(name, textSuffix))
	if err != nil {
		return p, fmt.Errorf("reading the page %s: %w", name, err)
	}
	ansi, err := os.ReadFile(b.path(name, ansiSuffix))
	if err != nil {
		return p, fmt.Errorf("reading the page %s: %w", name, err)
	}
	p.Text, p.ANSI = string(text), string(ansi)
	p.Slots = FindSlots(p.Lines(), namedTexts(p.Slots)) // the patterns are newer than the page
	return p, nil
}

func (b Book) path(name, suffix string) string { return filepath.Join(b.Dir, name+suffix) }

// Write writes the files of a page, replacing older ones.
func (b Book) Write(p *Page) error { return b.write(p, p.FullName(), "") }

// Reject writes a page with a wrong label under another suffix.
func (b Book) Reject(p *Page) error { return b.write(p, p.FullName(), RejectedSuffix) }

// WriteAs is like Write with another name than TAPE.PAGE.
func (b Book) WriteAs(p *Page, name string) error { return b.write(p, name, "") }

func (b Book) write(p *Page, name, suffix string) error {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return fmt.Errorf("writing the page %s: %w", name, err)
	}
	raw, err := plainjson.Indented(p)
	if err != nil {
		return fmt.Errorf("writing the page %s: %w", name, err)
	}
	err = errors.Join(
		os.WriteFile(b.path(name, textSuffix+suffix), []byte(p.Text), 0o644),
		os.WriteFile(b.path(name, ansiSuffix+suffix), []byte(p.ANSI), 0o644),
		os.WriteFile(b.path(name, jsonSuffix+suffix), raw, 0o644),
	)
	if err != nil {
		return fmt.Errorf("writing the page %s: %w", name, err)
	}
	return nil
}

// RemoveTape removes all files of a tape, so that no page of an earlier capture remains.
func (b Book) RemoveTape(tape string) error {
	files, err := filepath.Glob(b.path(tape, ".*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// WriteTape saves the output of a tape: the recording (asciicast) and the raw bytes.
func (b Book) WriteTape(tape string, cast, raw []byte) error {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return fmt.Errorf("writing the tape %s: %w", tape, err)
	}
	return errors.Join(os.WriteFile(b.path(tape, castSuffix), cast, 0o644), os.WriteFile(b.path(tape, rawSuffix), raw, 0o644))
}

// Raw returns the output that led to a page.
func (b Book) Raw(p *Page) ([]byte, error) {
	raw, err := os.ReadFile(b.path(p.Tape, rawSuffix))
	if err != nil {
		return nil, fmt.Errorf("reading the output of the tape %s: %w", p.Tape, err)
	}
	return raw[:min(p.Offset, len(raw))], nil
}
