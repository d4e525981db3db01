package redact

import (
	"regexp"
	"strings"
	"sync"
)

// findConcatenatedSecrets finds secrets that a shell or a program concatenates from parts: "ghp_""cd", 'sk-'abc, "ghp_" +
// "abcd", a line continued with a backslash, base64 split into lines.
func findConcatenatedSecrets(text string, known knownValues, shapes *secretShapeFinder) []Finding {
	var found []Finding
	for _, part := range spansAroundConcatenations(text) {
		plain, at := joinConcatenatedStrings(text[part[0]:part[1]])
		for _, f := range append(append(known.find(plain), shapes.find(plain)...), findEncoded(plain, known, shapes)...) {
			// A secret without a separator in it is found without this function.
			if start, end := part[0]+at[f.Start], part[0]+at[f.End-1]+1; f.Certain && end-start > f.End-f.Start {
				found = append(found, Finding{Kind: f.Kind, Start: start, End: end, Certain: true})
			}
		}
	}
	return found
}

// bytesSearchedOnEachSideOfConcatenation is the number of bytes on each side of a separator that are searched for a
// secret. A separator is what is between two parts of a concatenated word, such as the inner quotes in "ghp_""cd".
const bytesSearchedOnEachSideOfConcatenation = 200

// spansAroundConcatenations returns the ranges around the separators in a text, where concatenated secrets may be.
func spansAroundConcatenations(text string) [][2]int {
	var parts [][2]int
	for i := 1; i+1 < len(text); i++ {
		n := concatenationSeparatorLength(text, i)
		if n == 0 {
			continue
		}
		from, to := max(i-bytesSearchedOnEachSideOfConcatenation, 0), min(i+n+bytesSearchedOnEachSideOfConcatenation, len(text))
		if last := len(parts) - 1; last >= 0 && from <= parts[last][1] {
			parts[last][1] = to
		} else {
			parts = append(parts, [2]int{from, to})
		}
		i += n - 1
	}
	return parts
}

// minBase64LineBytes is the minimum length of a line of base64 characters that may continue in the next line.
const minBase64LineBytes = 40

// concatenationSeparatorLength returns the number of bytes of the separator at i, such as the inner quotes in "ghp_""cd"; 0 means none.
func concatenationSeparatorLength(s string, i int) int {
	c := s[i]
	if c != '"' && c != '\'' && c != '\\' && c != '\n' || !isBase64(s[i-1]) && s[i-1] != '.' {
		return 0
	}
	if c == '\n' {
		if !isBase64(s[i+1]) {
			return 0
		}
		run := i
		for run > 0 && i-run < minBase64LineBytes && isBase64(s[run-1]) {
			run--
		}
		if i-run == minBase64LineBytes {
			return 1
		}
		return 0
	}
	rest := s[i:min(i+12, len(s))]
	n := len(rest) - len(strings.TrimLeft(rest, "\"'\\\n +"))
	gap := rest[:n]
	if n == len(rest) || !isBase64(rest[n]) || strings.Contains(gap, " ") && !strings.Contains(gap, "+") && !strings.HasPrefix(gap, "\\\n") {
		return 0
	}
	return n
}

// joinConcatenatedStrings removes the separators; originalOffsets holds the original position of each remaining byte.
func joinConcatenatedStrings(text string) (joined string, originalOffsets []int) {
	b := make([]byte, 0, len(text))
	originalOffsets = make([]int, 0, len(text))
	for i := 0; i < len(text); i++ {
		if i > 0 && i+1 < len(text) {
			if n := concatenationSeparatorLength(text, i); n > 0 {
				i += n - 1
				continue
			}
		}
		b, originalOffsets = append(b, text[i]), append(originalOffsets, i)
	}
	return string(b), originalOffsets
}

// PrivateKeyFilter removes private keys from text processed line by line. [Finder] finds the secrets within one line.
type PrivateKeyFilter struct{ inKey bool }

var privateKeyEdgePatterns = sync.OnceValue(func() [2]*regexp.Regexp {
	return [2]*regexp.Regexp{
		regexp.MustCompile(`-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`),
		regexp.MustCompile(`-----END[ A-Z0-9_-]{0,100}-----`),
	}
})

// LinePartOutsideKey handles the next line of a text. It returns the part of the line that is not inside a private key from an
// earlier line. shown is false if the whole line is inside such a key.
func (l *PrivateKeyFilter) LinePartOutsideKey(line string) (text string, shown bool) {
	begin, end := privateKeyEdgePatterns()[0], privateKeyEdgePatterns()[1]
	if l.inKey {
		at := end.FindStringIndex(line)
		if at == nil {
			return "", false
		}
		l.inKey, line = false, line[at[1]:]
		if line == "" {
			return "", false
		}
	}
	if all := begin.FindAllStringIndex(line, -1); all != nil {
		l.inKey = !end.MatchString(line[all[len(all)-1][1]:])
	}
	return line, true
}
