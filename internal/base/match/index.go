package match

import (
	"iter"
	"math"
	"slices"
	"strings"
)

// PatternIndex finds the patterns that may match a text without trying each pattern. It is immutable and safe for concurrent use.
//
// Most patterns have literals: a text that matches the pattern contains at least one of them. The index stores the
// rarest piece of each literal and finds all of them in one scan. Patterns without a literal are always candidates.
type PatternIndex struct {
	unfiltered     []int32
	byPiece        map[uint32][]int32
	byShortLiteral map[string][]int32 // literals shorter than indexedNgramBytes
}

// indexedNgramBytes is the length in bytes of the piece of a literal that the index stores.
const indexedNgramBytes = 4

// NewPatternIndex returns an index of patterns. A pattern is identified by its position in the slice.
func NewPatternIndex(patterns []Pattern) *PatternIndex {
	x := &PatternIndex{byPiece: map[uint32][]int32{}, byShortLiteral: map[string][]int32{}}
	needs := make([][]string, len(patterns))
	count := map[uint32]int{} // how often a piece occurs in literals
	for i, t := range patterns {
		needs[i] = t.requiredLiteralAlternatives()
		for _, literal := range needs[i] {
			for piece := range fourByteNgramsOf(literal) {
				count[piece]++
			}
		}
	}
	for i, literals := range needs {
		if literals == nil {
			x.unfiltered = append(x.unfiltered, int32(i))
		}
		for _, literal := range literals {
			if len(literal) < indexedNgramBytes {
				x.byShortLiteral[literal] = append(x.byShortLiteral[literal], int32(i))
				continue
			}
			rarest, least := uint32(0), math.MaxInt
			for piece := range fourByteNgramsOf(literal) {
				if n := count[piece]; n < least {
					rarest, least = piece, n
				}
			}
			x.byPiece[rarest] = append(x.byPiece[rarest], int32(i))
		}
	}
	return x
}

func fourByteNgramsOf(text string) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for at := 0; at+indexedNgramBytes <= len(text); at++ {
			if !yield(uint32(text[at]) | uint32(text[at+1])<<8 | uint32(text[at+2])<<16 | uint32(text[at+3])<<24) {
				return
			}
		}
	}
}

// Candidates yields the positions of the patterns that may match a text, in order; all others cannot match.
func (x *PatternIndex) Candidates(text string) iter.Seq[int] {
	var found []int32
	seen := map[uint32]bool{}
	for piece := range fourByteNgramsOf(text) {
		if matchers := x.byPiece[piece]; matchers != nil && !seen[piece] {
			seen[piece] = true
			found = append(found, matchers...)
		}
	}
	for literal, matchers := range x.byShortLiteral {
		if strings.Contains(text, literal) {
			found = append(found, matchers...)
		}
	}
	slices.Sort(found)
	return func(yield func(int) bool) {
		found, always := slices.Compact(found), x.unfiltered
		for len(found)+len(always) > 0 {
			from := &always
			if len(always) == 0 || len(found) > 0 && found[0] < always[0] {
				from = &found
			}
			if !yield(int((*from)[0])) {
				return
			}
			*from = (*from)[1:]
		}
	}
}

// requiredLiteralAlternatives returns texts such that every match contains at least one of them; nil means that none are known.
func (t Pattern) requiredLiteralAlternatives() (literals []string) {
	var literal string
	switch m := t.m.(type) {
	case exactMatcher:
		literal = string(m)
	case containsMatcher:
		literal = string(m)
	case *regex:
		literal = m.literal
	case *glob:
		literal = m.literal
	case allMatcher: // the literals of one part are enough: the part whose shortest literal is the longest
		for _, part := range m {
			if more := part.requiredLiteralAlternatives(); shortestLength(more) > shortestLength(literals) {
				literals = more
			}
		}
	case anyOfMatcher: // the literals of all parts together; none if a part has none
		for _, part := range m {
			more := part.requiredLiteralAlternatives()
			if more == nil {
				return nil
			}
			literals = append(literals, more...)
		}
	}
	if literal != "" {
		return []string{literal}
	}
	return literals
}

func shortestLength(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	return len(slices.MinFunc(literals, func(a, b string) int { return len(a) - len(b) }))
}
