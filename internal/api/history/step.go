package history

import (
	"encoding/json"
	"strings"
)

// Kind is what a step of a history is.
type Kind string

// The kinds of steps.
const (
	Prompt        Kind = "prompt"
	Results       Kind = "results"   // of calls
	ClosedResults Kind = "closed"    // results of which the model was asked nothing: their turn had ended
	AddedPrompt   Kind = "added"     // a prompt that was typed while the model worked
	InjectedText  Kind = "injected"  // a text of Claude Code's own that asks for an answer
	ResumeText    Kind = "resumed"   // one that asks for the rest of an answer
	Notice        Kind = "notice"    // of background work
	Interrupt     Kind = "interrupt" // what was under way was given up
	Summary       Kind = "summary"   // of what a cut took away

	kindTyped Kind = "typed" // addText beside results: [Client.Groups] finds out what it is
)

// Step is one thing that a message of the user means.
type Step struct {
	Kind    Kind
	Text    string
	Pieces  []string // of a prompt: the blocks that it was joined from
	Results []*Result
	Files   []string // types of images and documents beside a prompt
	digest  Digest   // of what counts of it; of results it depends on the calls
}

// Result is a tool_result block.
type Result struct {
	index   int // index of the block
	ID      string
	Text    string
	Content json.RawMessage // kind it came
	IsError bool
	digest  Digest
}

// ToolUse is a tool_use block.
type ToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage
}

// part is a text block, or the place of another one.
type part struct {
	kind        string // type of the block
	text        string
	result      *Result
	attachments bool
	unsigned    bool // reasoning without a signature
	altered     bool // reasoning with the signature of another text
}

func newStep(kind Kind, text string) Step {
	s := Step{Kind: kind, Text: text}
	s.digest = s.ownDigest()
	return s
}

// ownDigest is the digest of a step by itself.
func (s *Step) ownDigest() Digest {
	return Digest{}.Chain(append([]string{string(s.Kind), s.Text}, s.Files...)...)
}

// markClosed says that nobody was asked about results.
func (s *Step) markClosed() {
	s.Kind = ClosedResults
	s.digest = s.ownDigest()
}

// Digest is that of a step where it stands: results count in the order of their
// calls.
func (s *Step) Digest(uses []ToolUse) Digest {
	if s.Kind != Results {
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

// FirstPieces is the prompt that the first n pieces of a prompt would have been alone.
func (s *Step) FirstPieces(n int) Step {
	head := newStep(Prompt, joinPieces(s.Pieces[:n]))
	head.Pieces = s.Pieces[:n]
	return head
}

// WithoutPieces is the prompt without its first n pieces.
func (s *Step) WithoutPieces(n int) Step {
	tail := *s
	tail.Pieces = s.Pieces[n:]
	tail.Text = joinPieces(tail.Pieces)
	tail.digest = tail.ownDigest()
	return tail
}

// joinPieces makes one prompt of its blocks.
func joinPieces(pieces []string) string { return strings.Join(pieces, "\n") }
