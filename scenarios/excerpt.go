package scenarios

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/match"
)

// SecretFinder finds secrets in a text. Places returns the start and end of each secret as byte offsets, in order.
type SecretFinder interface {
	Places(text string) [][2]int
}

// redactingExcerptFormatter formats parts of prompts and patterns for messages. It redacts secrets before it truncates a text,
// because a part of a secret would not be recognized.
type redactingExcerptFormatter struct {
	secrets SecretFinder // nil means no redaction
}

// Hide returns s with its secrets redacted.
func (x redactingExcerptFormatter) Hide(s string) string {
	_, all := x.redactAndSplitAt(s, 0)
	return all
}

// redactAndSplitAt redacts text and splits it at byteOffset. A secret that contains this offset is redacted in the second result.
func (x redactingExcerptFormatter) redactAndSplitAt(text string, byteOffset int) (before, after string) {
	if x.secrets == nil {
		return text[:byteOffset], text[byteOffset:]
	}
	var parts [2]strings.Builder
	end := 0
	copyTo := func(to int) {
		first := max(end, min(byteOffset, to))
		parts[0].WriteString(text[end:first])
		parts[1].WriteString(text[first:to])
	}
	for _, place := range x.secrets.Places(text) {
		if place[0] < byteOffset && byteOffset < place[1] {
			byteOffset = place[0]
		}
		copyTo(place[0])
		side := 0
		if place[0] >= byteOffset {
			side = 1
		}
		parts[side].WriteString("[redacted]")
		end = place[1]
	}
	copyTo(len(text))
	return parts[0].String(), parts[1].String()
}

func (x redactingExcerptFormatter) explainMiss(t match.Pattern, prompt string) string {
	why := t.Explain(prompt, x)
	m, ok := t.FirstMismatch(prompt)
	const few = 3 // a match of fewer characters may be accidental
	if !ok || m.At < few {
		return why
	}
	fitting, rest := x.redactAndSplitAt(prompt, m.At)
	_, want := x.redactAndSplitAt(m.Pattern, len(m.Pattern)-len(m.Want))
	switch matching := "; the match ends after " + quotedTail(fitting); {
	case rest == "":
		return why + matching + ", where " + quoteShortened(want, maxCharactersOfShownText) + " should follow"
	case m.Want == "":
		return why + matching + ", but " + quoteShortened(rest, excerptLength) + " follows"
	default:
		return why + matching + ", where " + quoteShortened(rest, excerptLength) + " follows instead of " + quoteShortened(want, maxCharactersOfShownText)
	}
}

// excerptLength is the number of characters shown before or after a position.
const excerptLength = 40

func quotedTail(s string) string {
	if r := []rune(s); len(r) > excerptLength {
		return fmt.Sprintf("…%q", string(r[len(r)-excerptLength:]))
	}
	return strconv.Quote(s)
}

func (x redactingExcerptFormatter) redactAndQuoteShortened(s string) string {
	return quoteShortened(x.Hide(s), maxCharactersOfShownText)
}

// maxCharactersOfShownText limits how many characters of a text a message shows; the rest is cut off.
const maxCharactersOfShownText = 200

func quoteShortened(s string, maxChars int) string {
	if r := []rune(s); len(r) > maxChars {
		return fmt.Sprintf("%q…", string(r[:maxChars]))
	}
	return strconv.Quote(s)
}
