package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		reads []string
		want  []key
	}{
		"text":                   {[]string{"hé❯"}, []key{{keyText, "hé❯"}}},
		"a character in pieces":  {[]string{"\xe2\x9d", "\xaf"}, []key{{keyText, "❯"}}},
		"control keys":           {[]string{"\r\n\t\x7f\x03\x04\x15"}, []key{{name: keyEnter}, {name: keyNewline}, {name: keyTab}, {name: keyBackspace}, {name: keyCtrlC}, {name: keyCtrlD}, {name: keyCtrlU}}},
		"arrows":                 {[]string{"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[Z"}, []key{{name: keyUp}, {name: keyDown}, {name: keyRight}, {name: keyLeft}, {name: keyBackTab}}},
		"application arrows":     {[]string{"\x1bOA"}, []key{{name: keyUp}}},
		"a sequence in pieces":   {[]string{"\x1b", "[", "A"}, []key{{name: keyUp}}},
		"a lone escape":          {[]string{"\x1b"}, []key{{name: keyEscape}}},
		"escape twice":           {[]string{"\x1b\x1b[A"}, []key{{name: keyEscape}, {name: keyUp}}},
		"focus is no key":        {[]string{"\x1b[Ia"}, []key{{}, {keyText, "a"}}},
		"a modified arrow":       {[]string{"\x1b[1;5A"}, []key{{}}},
		"a paste":                {[]string{"a\x1b[200~x\ry\x1b[201~b"}, []key{{keyText, "a"}, {keyPaste, "x\ry"}, {keyText, "b"}}},
		"a paste in pieces":      {[]string{"\x1b[200~x", "\x1b[20", "1~b"}, []key{{keyPaste, "x"}, {keyText, "b"}}},
		"a paste of broken text": {[]string{"\x1b[200~\xff\x1b[201~"}, []key{{keyPaste, "\uFFFD"}}},
		"Alt and Enter":          {[]string{"\x1b\r"}, []key{{name: keyNewline}}},
	} {
		var r keyReader
		var got []key
		for _, data := range tt.reads {
			got = append(got, r.decodeKeys([]byte(data))...)
		}
		if r.hasPendingEscapeSequence() {
			got = append(got, r.dropPendingAndReturnLoneEscape()...)
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(key{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSlowCharacter: the two halves of a character may arrive in two reads, however slow.
func TestSlowCharacter(t *testing.T) {
	var r keyReader
	for _, half := range []string{"a\xc3", "\xa9"} {
		keys := r.decodeKeys([]byte(half))
		if r.hasPendingEscapeSequence() {
			t.Errorf("%q starts the time limit of the Escape key", half)
		}
		if want := map[string]string{"a\xc3": "a", "\xa9": "é"}[half]; len(keys) != 1 || keys[0].text != want {
			t.Errorf("%q: keys %v, want the text %q", half, keys, want)
		}
	}
}

// TestKeysAreBounded: an endless sequence or paste keeps a bounded number of bytes.
func TestKeysAreBounded(t *testing.T) {
	var r keyReader
	for range 1000 {
		r.decodeKeys([]byte("\x1b[" + strings.Repeat("1;", 5000)))
	}
	if len(r.pending) > maxPendingKeyBytes {
		t.Errorf("%d bytes are pending", len(r.pending))
	}
	r = keyReader{}
	r.decodeKeys([]byte(pasteStart))
	for range 50 {
		r.decodeKeys([]byte(strings.Repeat("x", 100_000)))
	}
	keys := r.decodeKeys([]byte(pasteEnd))
	if len(keys) != 1 || len(keys[0].text) > maxPasteBytes+len(pasteEnd) {
		t.Errorf("%d keys", len(keys))
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1b[A\x1b[200~x\x1b[201~"), 3)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = min(max(cut, 0), len(data))
		var r keyReader
		var c composer
		for _, part := range [][]byte{data[:cut], data[cut:]} {
			for _, k := range r.decodeKeys(part) {
				c.insert(k.text)
			}
		}
		rows, row, col := c.rows(20)
		if row >= len(rows) || col > 20 {
			t.Errorf("the cursor is at %d,%d of %d rows", row, col, len(rows))
		}
		for _, text := range rows {
			if textWidth(text) > 20 {
				t.Errorf("%q is wider than 20 columns", text)
			}
		}
	})
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                  {""},
		"one two three":     {"one two", "three"},
		"ab abcdefghij":     {"ab abcde", "fghij"},
		"abcdef abcdefghi":  {"abcdef a", "bcdefghi"},
		"abcdefg abcdefghi": {"abcdefg", "abcdefgh", "i"},
		"abcdefghijkl":      {"abcdefgh", "ijkl"},
		"abc efgh ijk":      {"abc efgh", "ijk"},
		"日本語日本語":            {"日本語日", "本語"},
		"a\nb":              {"a", "b"},
		"x\x1b[31mred\a!":   {"x[31mred", "!"},
	} {
		if diff := cmp.Diff(want, wrapText(text, 8)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestComposer(t *testing.T) {
	var c composer
	c.insert("one\r\ntwo")
	c.editDraftWithKey(keyLeft)
	c.deleteRuneBeforeCursor()
	if c.text() != "one\nto" {
		t.Errorf("%q", c.text())
	}
	c.cutToLineStartOrJoinLines()
	if c.text() != "one\no" {
		t.Errorf("%q", c.text())
	}
	c.cutToLineStartOrJoinLines()
	if c.text() != "oneo" {
		t.Errorf("%q", c.text())
	}
}
