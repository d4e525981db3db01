package console

import (
	"strings"

	"github.com/claudeless/claudeless/internal/record/redact"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// minMaskedSecretPartBytes is the minimum length of a part of a secret that is masked. Screens wrap and shorten secrets.
const minMaskedSecretPartBytes = 8

type secretMask struct {
	redactor *redact.Redactor
	known    map[string]bool // parts of secrets, of the length minMaskedSecretPartBytes
}

func newSecretMask(redactOptions redact.Options, secretsToMaskInFragments []string) *secretMask {
	m := &secretMask{redactor: redact.New(redactOptions), known: map[string]bool{}}
	for _, v := range secretsToMaskInFragments {
		m.addFragmentsToMask(v)
	}
	return m
}

func (m *secretMask) addFragmentsToMask(secret string) {
	const most = 10_000 // maximum number of fragments
	for i := 0; i+minMaskedSecretPartBytes <= len(secret) && len(m.known) < most; i++ {
		m.known[secret[i:i+minMaskedSecretPartBytes]] = true
	}
}

func (m *secretMask) findAndLearnSecrets(text string) []bool {
	secret := make([]bool, len(text))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			secret[i] = true
		}
	}
	for _, f := range m.redactor.Find(text) {
		if f.Certain {
			m.addFragmentsToMask(text[f.Start:f.End])
		}
		hide(f.Start, f.End)
	}
	for i := 0; i+minMaskedSecretPartBytes <= len(text); i++ {
		if m.known[text[i:i+minMaskedSecretPartBytes]] {
			hide(i, i+minMaskedSecretPartBytes)
		}
	}
	return secret
}

func (m *secretMask) maskText(text string) string {
	secret := m.findAndLearnSecrets(text)
	var b strings.Builder
	for i, r := range text {
		if secret[i] {
			r = '*'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// maskScreen replaces the secrets on a screen. A row that does not end in a space is read together with the next row.
func (m *secretMask) maskScreen(s emulator.Screen) emulator.Screen {
	var b strings.Builder
	for _, row := range s.Cells {
		for _, c := range row {
			b.WriteString(c.Text)
		}
		if last := len(row) - 1; last < 0 || row[last].Text == " " {
			b.WriteByte('\n')
		}
	}
	secret, at := m.findAndLearnSecrets(b.String()), 0
	for _, row := range s.Cells {
		for i, c := range row {
			if secret[at] {
				row[i] = emulator.Cell{Text: strings.Repeat("*", c.Width), Width: c.Width, Style: c.Style}
			}
			at += len(c.Text)
		}
		if last := len(row) - 1; last < 0 || row[last].Text == " " {
			at++
		}
	}
	s.Title = m.maskText(s.Title)
	return s
}
