package match

import (
	"regexp"
	"slices"
	"unicode/utf8"
)

// MismatchPoint describes how much of a pattern matches a text.
type MismatchPoint struct {
	At   int    // position in the text, in bytes, up to which the pattern matches
	Want string // the part of the pattern that fails at this position; empty means that the pattern ended before the text
	// Pattern is the whole pattern. Want is the part of it that did not match.
	Pattern string
}

// FirstMismatch returns the position where matching s fails. ok is false if the failure has no single position.
func (t Pattern) FirstMismatch(s string) (m MismatchPoint, ok bool) {
	switch p := t.m.(type) {
	case exactMatcher:
		n := commonPrefixLengthInBytes(string(p), s)
		return MismatchPoint{At: n, Want: string(p)[n:], Pattern: string(p)}, true
	case containsMatcher:
		at, n := findLongestPatternPrefixInText(string(p), s)
		return MismatchPoint{At: at + n, Want: string(p)[n:], Pattern: string(p)}, n > 0
	case *regex:
		at, want, ok := p.findLongestMatchingExprPrefix(s)
		return MismatchPoint{At: at, Want: want, Pattern: p.expr}, ok
	case *glob:
		at, want := p.findLongestMatchingGlobPrefix(s)
		return MismatchPoint{At: at, Want: want, Pattern: p.pattern}, true
	case allMatcher:
		for _, part := range p {
			if _, fits := part.Match(s); !fits {
				return part.FirstMismatch(s)
			}
		}
	case anyOfMatcher:
		for _, part := range p {
			if found, has := part.FirstMismatch(s); has && (!ok || found.At > m.At) {
				m, ok = found, true
			}
		}
	}
	return m, ok
}

// CountMatchingParts returns how many parts of an [All] pattern match, and their number. Others have one part.
func (t Pattern) CountMatchingParts(text string) (matchingParts, totalParts int) {
	parts, ok := t.m.(allMatcher)
	if !ok {
		parts = allMatcher{t}
	}
	for _, part := range parts {
		if _, fits := part.Match(text); fits {
			matchingParts++
		}
	}
	return matchingParts, len(parts)
}

func commonPrefixLengthInBytes(a, b string) (bytesOfWholeCharacters int) {
	n := 0
	for n < len(a) && n < len(b) {
		r, size := utf8.DecodeRuneInString(a[n:])
		if q, _ := utf8.DecodeRuneInString(b[n:]); q != r {
			break
		}
		n += size
	}
	return n
}

const (
	maxExplainedBytes            = 4 << 10 // limits how many bytes of a text are searched for the longest matching prefix
	maxRegexBytesForPrefixSearch = 400
)

// findLongestPatternPrefixInText finds the longest prefix of pattern that occurs in text. offsetInText is its position
// in text, and prefixBytes is its length.
func findLongestPatternPrefixInText(pattern, text string) (offsetInText, prefixBytes int) {
	text = text[:min(len(text), maxExplainedBytes)]
	for i := range text {
		if c := commonPrefixLengthInBytes(pattern, text[i:]); c > prefixBytes {
			offsetInText, prefixBytes = i, c
		}
	}
	return offsetInText, prefixBytes
}

// findLongestMatchingExprPrefix finds the longest prefix of the expression that matches a part of text. matchEnd is the end of
// this part, and restOfExpr is the rest of the expression. Prefixes that end inside a group are skipped.
func (r *regex) findLongestMatchingExprPrefix(text string) (matchEnd int, restOfExpr string, isFound bool) {
	if len(r.expr) > maxRegexBytesForPrefixSearch {
		return 0, "", false
	}
	for n := len(r.expr) - 1; n > 0; n-- {
		re, err := regexp.Compile(r.expr[:n])
		if err != nil {
			continue
		}
		if found := re.FindStringIndex(text); found != nil {
			return found[1], r.expr[n:], found[1] > found[0]
		}
	}
	return 0, "", false
}

// EditDistanceOfBeginnings returns the edit distance of two texts: the number of changed, inserted or deleted characters. It
// compares only the first few hundred characters.
func EditDistanceOfBeginnings(a, b string) int {
	row := editDistancesToEachPrefix(a, b, 1)
	return row[len(row)-1]
}

// MinEditDistanceToSubstring returns the smallest [EditDistanceOfBeginnings] between a pattern and any part of a text.
func MinEditDistanceToSubstring(pattern, text string) int {
	return slices.Min(editDistancesToEachPrefix(pattern, text, 0))
}

// editDistancesToEachPrefix returns the edit distances between wholeText and each prefix of textWithPrefixes. Each
// character that is skipped at the start of textWithPrefixes costs costPerSkippedLeadingCharacter. If that is 0,
// wholeText is compared with parts that may begin anywhere in textWithPrefixes.
func editDistancesToEachPrefix(wholeText, textWithPrefixes string, costPerSkippedLeadingCharacter int) []int {
	const most = 300
	a, b := []rune(wholeText), []rune(textWithPrefixes)
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j * costPerSkippedLeadingCharacter
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row
}
