package scenarios

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/match"
)

// Secrets finds where the secrets of a text begin and end, in order.
type Secrets interface {
	Places(text string) [][2]int
}

// excerpts shows parts of prompts and patterns in messages. Secrets are hidden before a text is cut, because a part of a
// secret no longer looks like one.
type excerpts struct {
	secrets Secrets // nil = nothing is hidden
}

// Hide returns a text without its secrets.
func (x excerpts) Hide(s string) string {
	_, all := x.split(s, 0)
	return all
}

// split returns what is before and after a place of a text, without secrets. A place inside a secret moves to the
// beginning of it.
func (x excerpts) split(s string, at int) (before, after string) {
	if x.secrets == nil {
		return s[:at], s[at:]
	}
	var parts [2]strings.Builder
	end := 0
	copyTo := func(to int) {
		first := max(end, min(at, to))
		parts[0].WriteString(s[end:first])
		parts[1].WriteString(s[first:to])
	}
	for _, place := range x.secrets.Places(s) {
		if place[0] < at && at < place[1] {
			at = place[0]
		}
		copyTo(place[0])
		side := 0
		if place[0] >= at {
			side = 1
		}
		parts[side].WriteString("[redacted]")
		end = place[1]
	}
	copyTo(len(s))
	return parts[0].String(), parts[1].String()
}

// stopped says why a pattern does not match, and as far as it is known where it
// stopped doing so.
func (x excerpts) stopped(t match.Text, prompt string) string {
	why := t.Explain(prompt, x)
	m, ok := t.Miss(prompt)
	const few = 3 // characters that fit by chance
	if !ok || m.At < few {
		return why
	}
	fitting, rest := x.split(prompt, m.At)
	_, want := x.split(m.Pattern, len(m.Pattern)-len(m.Want))
	switch fits := "; it fits as far as " + tail(fitting); {
	case rest == "":
		return why + fits + ", where " + clip(want) + " should follow"
	case m.Want == "":
		return why + fits + ", but " + head(rest) + " follows"
	default:
		return why + fits + ", then " + head(rest) + " is where " + clip(want) + " should"
	}
}

// shown is how much of a text is shown beside the place that matters.
const shown = 40

func head(s string) string {
	if r := []rune(s); len(r) > shown {
		return fmt.Sprintf("%q…", string(r[:shown]))
	}
	return strconv.Quote(s)
}

func tail(s string) string {
	if r := []rune(s); len(r) > shown {
		return fmt.Sprintf("…%q", string(r[len(r)-shown:]))
	}
	return strconv.Quote(s)
}

func (x excerpts) clip(s string) string { return clip(x.Hide(s)) }

func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}
