package redact

import (
	"regexp"
	"strings"
	"sync"
)

// glued finds secrets that a shell or a program puts together from parts:
// "ghp_ab""cd", 'sk-'abc, "ghp_" + "abcd", a line that goes on behind a
// backslash, base64 that is broken into lines.
func glued(s string, known known, shapes *shapes) []Finding {
	var found []Finding
	for _, part := range seams(s) {
		plain, at := unglue(s[part[0]:part[1]])
		for _, f := range append(append(known.find(plain), shapes.find(plain)...), encoded(plain, known, shapes)...) {
			start, end := part[0]+at[f.Start], part[0]+at[f.End-1]+1
			if f.Sure && end-start > f.End-f.Start { // else it is found as it stands
				found = append(found, Finding{Kind: f.Kind, Start: start, End: end, Sure: true})
			}
		}
	}
	return found
}

// around is how much of a text on both sides of a seam may belong to a secret.
const around = 200

// seams are the parts of a text in which words are put together.
func seams(s string) [][2]int {
	var parts [][2]int
	for i := 1; i+1 < len(s); i++ {
		if c := s[i]; c != '"' && c != '\'' && c != '\\' && c != '\n' {
			continue
		}
		n := seam(s, i)
		if n == 0 {
			continue
		}
		from, to := max(i-around, 0), min(i+n+around, len(s))
		if last := len(parts) - 1; last >= 0 && from <= parts[last][1] {
			parts[last][1] = to
		} else {
			parts = append(parts, [2]int{from, to})
		}
		i += n - 1
	}
	return parts
}

// longLine is the length from which a line of base64 characters may go on in the
// next one.
const longLine = 40

// seam is how many bytes at i stand between two parts of one word; 0 = none.
func seam(s string, i int) int {
	c := s[i]
	if c != '"' && c != '\'' && c != '\\' && c != '\n' || !isBase64(s[i-1]) && s[i-1] != '.' {
		return 0
	}
	if c == '\n' {
		if !isBase64(s[i+1]) {
			return 0
		}
		run := i
		for run > 0 && i-run < longLine && isBase64(s[run-1]) {
			run--
		}
		if i-run == longLine {
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

// unglue leaves out the seams; at is where each byte that is left stands.
func unglue(s string) (plain string, at []int) {
	b := make([]byte, 0, len(s))
	at = make([]int, 0, len(s))
	for i := 0; i < len(s); i++ {
		if i > 0 && i+1 < len(s) {
			if n := seam(s, i); n > 0 {
				i += n - 1
				continue
			}
		}
		b, at = append(b, s[i]), append(at, i)
	}
	return string(b), at
}

// Lines follows a text that comes line by line: a private key that begins in one
// of them ends in another. What is secret in one line it leaves to others.
type Lines struct{ begun bool }

var keyEdges = sync.OnceValue(func() [2]*regexp.Regexp {
	return [2]*regexp.Regexp{
		regexp.MustCompile(`-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`),
		regexp.MustCompile(`-----END[ A-Z0-9_-]{0,100}-----`),
	}
})

// Next is what of the next line belongs to no key that began in an earlier one;
// shown = false for a line that is part of a key and nothing else.
func (l *Lines) Next(line string) (text string, shown bool) {
	begin, end := keyEdges()[0], keyEdges()[1]
	if l.begun {
		at := end.FindStringIndex(line)
		if at == nil {
			return "", false
		}
		l.begun, line = false, line[at[1]:]
		if line == "" {
			return "", false
		}
	}
	if all := begin.FindAllStringIndex(line, -1); all != nil {
		l.begun = !end.MatchString(line[all[len(all)-1][1]:])
	}
	return line, true
}
