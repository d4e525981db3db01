package simulator

import (
	"math/rand/v2"
	"strings"
	"time"
	"unicode"

	"github.com/claudeless/claudeless/scenarios"
)

// pace is how fast a message is streamed.
type pace struct {
	ttft   time.Duration
	perTok time.Duration // 0 = as fast as possible
	jitter float64
	chunk  string
	size   int // characters per chunk when chunk is a number
	random func() float64
}

func newPace(st scenarios.Stream, r *rand.Rand) pace {
	p := pace{ttft: time.Duration(st.TTFTMS) * time.Millisecond, jitter: st.Jitter, chunk: st.Chunk.Unit, size: st.Chunk.Size}
	if st.TokensPerSecond > 0 {
		p.perTok = time.Duration(float64(time.Second) / st.TokensPerSecond)
	}
	if r != nil {
		p.random = r.Float64
	}
	return p
}

// wait is the time a chunk takes, jittered by the seeded source.
func (p pace) wait(chunk string) time.Duration {
	d := time.Duration(tokens(len(chunk))) * p.perTok
	if p.jitter > 0 && p.random != nil {
		d = time.Duration(float64(d) * (1 + p.jitter*(2*p.random()-1)))
	}
	return d
}

// split cuts text into the pieces that go out as deltas. A word keeps the
// white space after it; the empty text is one empty piece.
func (p pace) split(text string) []string {
	if text == "" {
		return []string{""}
	}
	switch {
	case p.size > 0:
		return every(text, p.size)
	case p.chunk == "line":
		return strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	case p.chunk == "token":
		return every(text, 4)
	default:
		return words(text)
	}
}

func words(text string) []string {
	var out []string
	start, space := 0, false
	for i, r := range text {
		if space && !unicode.IsSpace(r) {
			out = append(out, text[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	return append(out, text[start:])
}

func every(text string, n int) []string {
	var out []string
	runes := []rune(text)
	for len(runes) > n {
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return append(out, string(runes))
}

// halves cuts the input of a call the way the API does at least: in two.
func halves(text string) []string {
	if len(text) < 4 {
		return []string{text}
	}
	cut := len(text) / 2
	for cut < len(text) && text[cut]&0xC0 == 0x80 { // not inside a rune
		cut++
	}
	return []string{text[:cut], text[cut:]}
}
