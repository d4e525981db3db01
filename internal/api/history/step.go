package history

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"
)

// SegmentKind says what a step of the history contains, such as a prompt or results of tool calls.
type SegmentKind string

// The kinds of steps.
const (
	KindPrompt                     SegmentKind = "prompt"
	KindResults                    SegmentKind = "results"   // results of tool calls
	KindResultsOfEndedTurn         SegmentKind = "closed"    // results that were not sent to the model, because their turn had ended
	KindAddedPrompt                SegmentKind = "added"     // a prompt that was typed while the model worked
	KindClaudeCodeTextNeedingReply SegmentKind = "injected"  // a text that Claude Code added and that requires a reply
	KindTextRequestingNewReply     SegmentKind = "retry"     // a text that asks for a reply to replace the last one
	KindTextRequestingRestOfReply  SegmentKind = "resumed"   // a text that requests the rest of a reply
	KindBackgroundWorkNotice       SegmentKind = "notice"    // notice about background work
	KindInterrupt                  SegmentKind = "interrupt" // the work in progress was interrupted
	KindSummaryReplacingHistory    SegmentKind = "summary"   // summary that replaces a part of the history

	kindTextNextToResults SegmentKind = "typed" // text next to results; [RequestSender.GroupAndInterpretMessages] determines its kind
)

// Segment is a part of a user message that has one meaning, such as a prompt or tool results.
type Segment struct {
	Kind    SegmentKind
	Text    string
	Blocks  []string // the blocks that were joined to form a prompt
	Results []*ToolResult
	Files   []string // media types of images and documents that accompany a prompt
	digest  Digest   // digest of the relevant parts; not used for results
}

// ToolResult is a tool_result block.
type ToolResult struct {
	index    int // index of the block
	ID, Text string
	Content  json.RawMessage // as received
	IsError  bool
	digest   Digest
}

// ToolUse is a tool_use block.
type ToolUse struct {
	ID, Name string
	Input    json.RawMessage
}

// contentPart is one content block of a message, reduced to the parts that are needed to interpret it.
type contentPart struct {
	kind, text     string
	result         *ToolResult
	hasAttachments bool
	isUnsigned     bool // thinking without a signature
	isAltered      bool // thinking whose signature belongs to another text
}

func newSegment(kind SegmentKind, text string) Segment {
	s := Segment{Kind: kind, Text: text}
	s.digest = s.digestWithoutUses()
	return s
}

func (s *Segment) digestWithoutUses() Digest {
	return Digest{}.Chain(append([]string{string(s.Kind), s.Text}, s.Files...)...)
}

func (s *Segment) markAsResultsOfEndedTurn() {
	s.Kind = KindResultsOfEndedTurn
	s.digest = s.digestWithoutUses()
}

// Digest returns the digest of a step. uses are the calls before it; their order matters, that of the results does not.
func (s *Segment) Digest(uses []ToolUse) Digest {
	if s.Kind != KindResults {
		return s.digest
	}
	sum := Digest{1}
	for i := range uses {
		for _, r := range s.Results {
			if r.ID == uses[i].ID {
				sum = sum.ChainDigest(r.digest)
			}
		}
	}
	return sum
}

// PromptFromFirstBlocks returns the prompt that consists of the first blockCount blocks only.
func (s *Segment) PromptFromFirstBlocks(blockCount int) Segment {
	head := newSegment(KindPrompt, joinBlocksWithNewlines(s.Blocks[:blockCount]))
	head.Blocks = s.Blocks[:blockCount]
	return head
}

// PromptWithoutFirstBlocks returns the prompt without its first blockCount blocks.
func (s *Segment) PromptWithoutFirstBlocks(blockCount int) Segment {
	tail := *s
	tail.Blocks = s.Blocks[blockCount:]
	tail.Text = joinBlocksWithNewlines(tail.Blocks)
	tail.digest = tail.digestWithoutUses()
	return tail
}

func joinBlocksWithNewlines(blocks []string) string { return strings.Join(blocks, "\n") }

// Digest identifies a history or a part of one: equal digests mean equal histories.
type Digest [16]byte

// Chain returns the digest of a longer history: d is the digest of its beginning, and parts are the texts that follow.
func (d Digest) Chain(parts ...string) Digest {
	h := sha256.New()
	h.Write(d[:])
	for _, p := range parts {
		var n [4]byte
		n[0], n[1], n[2], n[3] = byte(len(p)>>24), byte(len(p)>>16), byte(len(p)>>8), byte(len(p))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return Digest(h.Sum(nil)[:len(d)])
}

// ChainDigest is like Chain, but for one part that is given by its digest. It is fast, but it is not a secure hash.
func (d Digest) ChainDigest(part Digest) Digest {
	const p, q = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
	a, b := binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])
	x, y := binary.LittleEndian.Uint64(part[:8]), binary.LittleEndian.Uint64(part[8:])
	hi, lo := bits.Mul64(a^x^p, q|1)
	hi2, lo2 := bits.Mul64(b^y^q, p|1)
	a, b = bits.RotateLeft64(hi^lo2, 29)*p+x, bits.RotateLeft64(hi2^lo, 41)*q+y
	a ^= a >> 32
	b ^= b >> 29
	binary.LittleEndian.PutUint64(d[:8], a*q+b)
	binary.LittleEndian.PutUint64(d[8:], b*p+a)
	return d
}
