package match

import (
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// PatternIndex finds which matchers may match a text, without trying each. It is immutable and safe for concurrent use.
//
// Most matchers have literals: texts of which every matching text contains at least one. The index stores the rarest
// piece of each literal, and looks for all these pieces in one scan of the text. Matchers without a literal are always
// candidates.
type PatternIndex struct {
	unfiltered     []int32
	grams          gramTable          // pieces of gramBytes bytes
	byShortLiteral map[string][]int32 // literals shorter than gramBytes
}

// gramBytes is the length of a piece in bytes.
const gramBytes = 4

// NewPatternIndex makes the index of matchers, which are identified by their position.
func NewPatternIndex(texts []Pattern) *PatternIndex {
	x := &PatternIndex{byShortLiteral: map[string][]int32{}}
	needs := make([][]string, len(texts))
	pieces := 0
	for i, t := range texts {
		needs[i] = t.requiredLiterals()
		for _, literal := range needs[i] {
			pieces += max(0, len(literal)-gramBytes+1)
		}
	}
	common := newGramCounts(pieces)
	for _, literals := range needs {
		for _, literal := range literals {
			common.add(literal)
		}
	}
	x.grams = newGramTable(len(texts))
	for i, literals := range needs {
		if literals == nil {
			x.unfiltered = append(x.unfiltered, int32(i))
		}
		for _, literal := range literals {
			x.addLiteral(int32(i), literal, common)
		}
	}
	return x
}

func (x *PatternIndex) addLiteral(i int32, literal string, common gramCounts) {
	if len(literal) >= gramBytes {
		x.grams.put(common.rarestGram(literal), i)
		return
	}
	x.byShortLiteral[literal] = append(x.byShortLiteral[literal], i)
}

// Candidates yields the positions of the matchers that may match a text, in order; all others cannot match.
func (x *PatternIndex) Candidates(text string) iter.Seq[int] {
	found := x.grams.find(text)
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

func gramAt(text string, at int) uint32 {
	return uint32(text[at]) | uint32(text[at+1])<<8 | uint32(text[at+2])<<16 | uint32(text[at+3])<<24
}

// hashSlot hashes a piece for a table of size 1<<(32-shift).
func hashSlot(gram uint32, shift int) uint32 { return gram * 2654435761 >> shift }

// hashShift returns the shift to pass to hashSlot for a table with room for n pieces.
func hashShift(n int) int { return 32 - bits.Len(uint(max(n, 1<<8)*2)) }

// gramCounts holds how many literals contain a piece. The counts are approximate: pieces with the same hash share one.
type gramCounts struct {
	n     []uint32
	shift int
}

func newGramCounts(pieces int) gramCounts {
	shift := hashShift(pieces)
	return gramCounts{n: make([]uint32, 1<<(32-shift)), shift: shift}
}

func (c gramCounts) add(literal string) {
	for at := 0; at+gramBytes <= len(literal); at++ {
		c.n[hashSlot(gramAt(literal, at), c.shift)]++
	}
}

func (c gramCounts) rarestGram(literal string) (rarest uint32) {
	least := ^uint32(0)
	for at := 0; at+gramBytes <= len(literal); at++ {
		g := gramAt(literal, at)
		if n := c.n[hashSlot(g, c.shift)]; n < least {
			rarest, least = g, n
		}
	}
	return rarest
}

// gramTable is a hash table of pieces with their matchers.
type gramTable struct {
	shift int
	heads []int32 // for each slot, 1 plus an index into cells; 0 means an empty slot
	cells []gramCell
}

type gramCell struct {
	gram     uint32
	next     int32 // next cell of the slot, encoded as in heads
	matchers []int32
}

func newGramTable(n int) gramTable {
	shift := hashShift(n)
	return gramTable{shift: shift, heads: make([]int32, 1<<(32-shift)), cells: make([]gramCell, 0, n)}
}

// cellIndex returns 1 plus the index of a piece in cells, or 0 if cells does not contain the piece.
func (g *gramTable) cellIndex(gram uint32) int32 {
	c := g.heads[hashSlot(gram, g.shift)]
	for c > 0 && g.cells[c-1].gram != gram {
		c = g.cells[c-1].next
	}
	return c
}

func (g *gramTable) put(gram uint32, i int32) {
	c := g.cellIndex(gram)
	if c == 0 {
		head := &g.heads[hashSlot(gram, g.shift)]
		g.cells = append(g.cells, gramCell{gram: gram, next: *head})
		c = int32(len(g.cells))
		*head = c
	}
	g.cells[c-1].matchers = append(g.cells[c-1].matchers, i)
}

func (g *gramTable) find(text string) (found []int32) {
	var seen []uint64 // one bit for each cell, set if its matchers were added
	for at := 0; at+gramBytes <= len(text); at++ {
		c := g.cellIndex(gramAt(text, at))
		if c == 0 {
			continue
		}
		if seen == nil {
			seen = make([]uint64, (len(g.cells)+63)/64)
		}
		word, bit := (c-1)/64, uint64(1)<<((c-1)%64)
		if seen[word]&bit == 0 {
			seen[word] |= bit
			found = append(found, g.cells[c-1].matchers...)
		}
	}
	return found
}

// literalMatcher is a matcher that knows which literals a matching text contains.
type literalMatcher interface {
	// requiredLiterals returns literals of which every matching text contains at least one; nil means that none are known.
	requiredLiterals() []string
}

func (t Pattern) requiredLiterals() []string {
	if l, ok := t.m.(literalMatcher); ok {
		return l.requiredLiterals()
	}
	return nil
}

func literalList(literal string) []string {
	if literal == "" {
		return nil
	}
	return []string{literal}
}

func (e exactMatcher) requiredLiterals() []string    { return literalList(string(e)) }
func (c containsMatcher) requiredLiterals() []string { return literalList(string(c)) }
func (r *regex) requiredLiterals() []string          { return literalList(r.literal) }
func (g glob) requiredLiterals() []string            { return literalList(g.longestLiteral()) }

// requiredLiterals returns the literals of only one part, which is enough because every part must match. It chooses the
// part whose shortest literal is the longest.
func (a allMatcher) requiredLiterals() (best []string) {
	for _, part := range a {
		if n := part.requiredLiterals(); shortestLength(n) > shortestLength(best) {
			best = n
		}
	}
	return best
}

func shortestLength(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	least := len(literals[0])
	for _, l := range literals {
		least = min(least, len(l))
	}
	return least
}

// requiredLiterals returns the literals of all parts together; nil if one part has none.
func (a anyOfMatcher) requiredLiterals() (each []string) {
	for _, part := range a {
		n := part.requiredLiterals()
		if n == nil {
			return nil
		}
		each = append(each, n...)
	}
	return each
}

func (g glob) longestLiteral() (longest string) {
	run := 0 // start of a run of plain characters
	take := func(end int) {
		if end-run > len(longest) {
			longest = g.pattern[run:end]
		}
	}
	for at := 0; at < len(g.pattern); {
		r, size := utf8.DecodeRuneInString(g.pattern[at:])
		next := at + size
		switch {
		case strings.HasPrefix(g.pattern[at:], "**/"): // may match an empty text, including the slash
			next = at + len("**/")
		case r == '[':
			next = at + classEnd(g.pattern[at:]) + 1
		case r == '*', r == '?', r == utf8.RuneError && size == 1: // also matches any invalid byte
		default:
			at = next
			continue
		}
		take(at)
		at, run = next, next
	}
	take(len(g.pattern))
	return longest
}
