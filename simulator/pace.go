package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/claudeless/claudeless/scenarios"
)

// pace is how fast a message is streamed.
type pace struct {
	scenarios.Stream

	random func() float64 // nil = no jitter
}

func newPace(st scenarios.Stream, r *rand.Rand) pace {
	p := pace{Stream: st}
	if r != nil {
		p.random = r.Float64
	}
	return p
}

func (p pace) ttft() time.Duration { return time.Duration(p.TTFTMS) * time.Millisecond }

// wait is the time a chunk takes, jittered by the seeded source.
func (p pace) wait(chunk string) time.Duration { return p.Wait(chunk, p.random) }

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
