package scenarios

import (
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// EstimateTokens estimates the number of tokens of a text of this many bytes: four bytes per token, at least one.
func EstimateTokens(bytes int) int { return max(1, (bytes+3)/4) }

// EstimateUsage estimates the usage of a message for which the scenario sets none. The input tokens are those of the prompt
// or the results in r, not of the whole conversation. The output tokens are those of the blocks.
func EstimateUsage(r Request, blocks []protocol.Block) Usage {
	out := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			out += len(b.Text)
		case protocol.ThinkingBlock:
			out += len(b.Thinking)
		case protocol.ToolUse:
			out += len(CanonicalToolName(b.Name)) + len(b.Input)
		}
	}
	return Usage{InputTokens: EstimateTokens(r.bytesOfPromptOrResults()), OutputTokens: EstimateTokens(out)}
}

var durationMSPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`duration_ms(: |>)\d+`) }) // constant

// bytesOfPromptOrResults returns the number of bytes of the prompt or, if there are results, of their texts joined by newlines.
// The time that an agent took is left out, because it differs in each run.
func (r Request) bytesOfPromptOrResults() int {
	text := r.Prompt
	if r.Results != nil {
		texts := make([]string, len(r.Results))
		for i, res := range r.Results {
			texts[i] = res.Text
		}
		text = strings.Join(texts, "\n")
	}
	if strings.Contains(text, "duration_ms") {
		text = durationMSPattern().ReplaceAllString(text, "duration_ms$1")
	}
	return len(text)
}

// EstimateThinkingTokens estimates how many tokens the thinking blocks among blocks have.
func EstimateThinkingTokens(blocks []protocol.Block) int {
	n := 0
	for _, b := range blocks {
		if th, ok := b.(protocol.ThinkingBlock); ok {
			n += EstimateTokens(len(th.Thinking))
		}
	}
	return n
}

// DefaultStopReason returns the stop reason of a message with these blocks: "tool_use" or "end_turn".
func DefaultStopReason(blocks []protocol.Block) string {
	for _, b := range blocks {
		if _, ok := b.(protocol.ToolUse); ok {
			return "tool_use"
		}
	}
	return "end_turn"
}

// WithDefaultSignature returns b with its type set. If b has no signature, the result has one that depends only on the text.
// The signature is short, because the real CLI estimates the length of the reasoning from the length of the signature.
func WithDefaultSignature(b protocol.ThinkingBlock) protocol.ThinkingBlock {
	b.Type = "thinking"
	if b.Signature == "" {
		sum := sha256.Sum256([]byte(b.Thinking))
		b.Signature = base64.StdEncoding.EncodeToString(sum[:9])
	}
	return b
}

// Pace computes the delays of one streamed message. It does not wait. The zero value means no delays.
type Pace struct {
	Stream

	random func() float64 // nil means no jitter
}

// NewPace returns the pace of a stream. jitterSource provides the jitter; nil means no jitter.
func NewPace(stream Stream, jitterSource *rand.Rand) Pace {
	p := Pace{Stream: stream}
	if jitterSource != nil {
		p.random = jitterSource.Float64
	}
	return p
}

// TTFT returns the time to the first token.
func (p Pace) TTFT() (unjittered time.Duration) { return time.Duration(p.TTFTMS) * time.Millisecond }

// DelayBefore returns the delay of a chunk, with jitter from the seeded source.
func (p Pace) DelayBefore(chunk string) time.Duration { return p.Delay(chunk, p.random) }

// Delay returns the delay of a piece; without a speed, it is 0. random returns numbers in [0, 1); nil means no jitter.
func (s *Stream) Delay(piece string, random func() float64) time.Duration {
	if s.TokensPerSecond <= 0 {
		return 0
	}
	d := time.Duration(EstimateTokens(len(piece))) * time.Duration(float64(time.Second)/s.TokensPerSecond)
	if s.Jitter > 0 && random != nil {
		d = time.Duration(float64(d) * (1 + s.Jitter*(2*random()-1)))
	}
	return d
}

// SplitInput splits the input of a tool call into the pieces in which it is streamed. As with the API, the first piece
// is empty. By default, two halves follow. If a speed or a chunk size is set, the pieces of [Stream.Split] follow.
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

// Split splits text into deltas to send. A word includes the white space after it. An empty text has one empty delta.
func (s *Stream) Split(text string) []string {
	switch {
	case text == "":
		return []string{""}
	case s.Chunk.Size > 0:
		return splitEvery(text, s.Chunk.Size)
	case s.Chunk.Unit == "line":
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		return lines
	case s.Chunk.Unit == "token":
		return splitEvery(text, 4)
	default:
		return splitAfterSpaces(text)
	}
}

func splitAfterSpaces(text string) []string {
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

func splitEvery(text string, n int) []string {
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
