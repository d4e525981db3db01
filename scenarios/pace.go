package scenarios

import (
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tokens estimates the tokens of so many bytes of text: four bytes a token, one
// at least.
func Tokens(bytes int) int { return max(1, (bytes+3)/4) }

// Estimate counts the tokens of a message where the scenario does not: those of
// what was asked last, and those of the blocks.
func Estimate(r Request, blocks []protocol.Block) Usage {
	out := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			out += len(b.Text)
		case protocol.ThinkingBlock:
			out += len(b.Thinking)
		case protocol.ToolUse:
			out += len(b.Name) + len(b.Input)
		}
	}
	return Usage{InputTokens: Tokens(r.size()), OutputTokens: Tokens(out)}
}

// size is the length of the prompt, or of the results' texts joined by newlines.
func (r Request) size() int {
	if r.Results == nil {
		return len(r.Prompt)
	}
	n := max(0, len(r.Results)-1)
	for _, res := range r.Results {
		n += len(res.Text)
	}
	return n
}

// ThinkingTokens are the tokens of a message that are reasoning.
func ThinkingTokens(blocks []protocol.Block) int {
	n := 0
	for _, b := range blocks {
		if th, ok := b.(protocol.ThinkingBlock); ok {
			n += Tokens(len(th.Thinking))
		}
	}
	return n
}

// StopReason is why a message of these blocks ends, where the scenario does not
// say it.
func StopReason(blocks []protocol.Block) string {
	for _, b := range blocks {
		if _, ok := b.(protocol.ToolUse); ok {
			return "tool_use"
		}
	}
	return "end_turn"
}

// Signed fills in a thinking block's opaque signature; it depends on the thought
// alone.
func Signed(b protocol.ThinkingBlock) protocol.ThinkingBlock {
	b.Type = "thinking"
	if b.Signature == "" {
		sum := sha256.Sum256([]byte(b.Thinking))
		b.Signature = base64.StdEncoding.EncodeToString(sum[:])
	}
	return b
}

// Pace is how fast one message is streamed; it waits for nothing itself. The
// zero value takes no time.
type Pace struct {
	Stream

	random func() float64 // nil = no jitter
}

// NewPace is the pace of a stream; r jitters it, nil = it does not.
func NewPace(st Stream, r *rand.Rand) Pace {
	p := Pace{Stream: st}
	if r != nil {
		p.random = r.Float64
	}
	return p
}

// TTFT is the time to the first token.
func (p Pace) TTFT() time.Duration { return time.Duration(p.TTFTMS) * time.Millisecond }

// After is the time a chunk takes, jittered by the seeded source.
func (p Pace) After(chunk string) time.Duration { return p.Wait(chunk, p.random) }

// Wait is the time that a piece of a message takes. random, unless nil, gives
// numbers of [0, 1) for the jitter.
func (s *Stream) Wait(piece string, random func() float64) time.Duration {
	if s.TokensPerSecond <= 0 {
		return 0
	}
	d := time.Duration(Tokens(len(piece))) * time.Duration(float64(time.Second)/s.TokensPerSecond)
	if s.Jitter > 0 && random != nil {
		d = time.Duration(float64(d) * (1 + s.Jitter*(2*random()-1)))
	}
	return d
}

// SplitInput cuts the input of a call as the API does: an empty piece first, and at
// full speed two halves.
func (s *Stream) SplitInput(input string) []string {
	pieces := []string{""}
	if s.Chunk != (Chunk{}) || s.TokensPerSecond > 0 {
		return append(pieces, s.Split(input)...)
	}
	cut := (len(input) + 1) / 2
	for cut > 0 && cut < len(input) && !utf8.RuneStart(input[cut]) {
		cut--
	}
	if cut == 0 || cut == len(input) {
		return append(pieces, input)
	}
	return append(pieces, input[:cut], input[cut:])
}

// Split cuts text into the pieces that go out as deltas. A word keeps the white
// space after it; the empty text is one empty piece.
func (s *Stream) Split(text string) []string {
	switch {
	case text == "":
		return []string{""}
	case s.Chunk.Size > 0:
		return every(text, s.Chunk.Size)
	case s.Chunk.Unit == "line":
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		return lines
	case s.Chunk.Unit == "token":
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
	start, count := 0, 0
	for i := range text {
		if count == n {
			out = append(out, text[start:i])
			start, count = i, 0
		}
		count++
	}
	return append(out, text[start:])
}
