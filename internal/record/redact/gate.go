package redact

import (
	"slices"
	"strings"
)

// rule is one shape of secrets. Its expression is tried near its keywords only.
type rule struct {
	id       string
	expr     string
	keywords string  // in lower case, between bars
	entropy  float64 // bits a character that the secret must have; 0 = any
	group    int     // the secret's group; 0 = the first that matched, or all
	guess    bool    // by the name beside a value; see Finding.Sure
	context  bool    // by what stands before a value of any look
	line     bool    // by options of a command, which may also come as a list of arguments
}

// keyword is a word near which a rule is tried.
type keyword struct {
	rule int
	gate gate
}

// gate is what a text must have beside a keyword for the rule to match at all:
// words such as "key" and "token" are all over the texts of programmers, and an
// expression costs a hundred times what a look at the next bytes does.
type gate int

const (
	open         gate = iota // the keyword is a part of the secret
	anywhere                 // the keyword may be far from the secret
	beside                   // the keyword is in a name; a sign of assignment and a value follow
	guessed                  // the same, and the value has a digit
	upper                    // the same, and the name is in capitals
	quoted                   // the same, and the value is in quotes
	flag                     // the keyword is in a flag of a command
	header                   // a colon follows
	authority                // a user's name, a colon and an at sign follow
	webToken                 // three parts with dots follow
	longWordNext             // a word of 24 letters and digits follows
	blockBegin               // what follows up to the end of the block
)

// gateOf is the gate for a keyword of a rule.
func (r rule) gateOf(word string) gate {
	switch r.id {
	case "assignment":
		return upper
	case "password":
		return quoted
	case "flag-value":
		return flag
	case "key-header":
		return header
	case "url-password":
		return authority
	case "pgpass":
		if word == "pgpass" {
			return anywhere
		}
		return open
	}
	switch {
	case strings.HasPrefix(word, "-----"):
		return blockBegin
	case r.id == "jwt":
		return webToken
	case r.id == "vault-service-token" && word == "s.":
		return longWordNext
	case r.guess:
		return guessed
	}
	// The maintained rules for a name with a value begin alike; some of their
	// keywords are in the value all the same.
	name, ok := strings.CutPrefix(r.expr, nameFirst)
	name, _, _ = strings.Cut(name, nameLast)
	if ok && strings.Contains(name, word) && !strings.Contains(name, ",") {
		return beside
	}
	if !strings.Contains(r.expr, nameLast[1:]) && !strings.Contains(strings.ToLower(r.expr), longestPart(word)) {
		return anywhere
	}
	return open
}

// longestPart is the longest run of letters and digits in a keyword.
func longestPart(word string) string {
	parts := strings.FieldsFunc(word, func(r rune) bool { return !letterOrDigit(byte(r)) || r == '_' })
	return slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
}

const (
	nameFirst = nameBefore + `(?:`
	nameLast  = `)(?:[ \t\w.-]{0,20})`
)

// reach is how far around a keyword an expression is tried.
func (g gate) reach() (before, behind int) {
	switch g {
	case beside, guessed, upper, quoted:
		return 80, 240
	case anywhere:
		return 32 << 10, 32 << 10
	case blockBegin:
		return 0, 16 << 10
	default:
		return 80, 600
	}
}

// passes says whether a rule may match around the keyword at text[start:end].
func (g gate) passes(text string, start, end int) bool {
	rest := text[end:]
	switch g {
	case beside, guessed:
		return assigned(rest, g == guessed)
	case upper:
		return text[start] < 'a' && assigned(rest, true)
	case quoted:
		return inQuotes(rest)
	case flag:
		for start > 0 && (letterOrDigit(text[start-1]) || text[start-1] == '-') {
			start--
		}
		return text[start] == '-'
	case header:
		return len(rest) > 1 && (rest[0] == ':' || rest[1] == ':')
	case authority:
		const longest = 512
		for i := range min(len(rest), longest) {
			if c := rest[i]; c == '@' || c <= ' ' || c == '"' || c == '\'' || c == '/' {
				return c == '@'
			}
		}
		return len(rest) > longest
	case webToken:
		const shortestPart = 9
		n := 0
		for n < len(rest) && isBase64(rest[n]) {
			n++
		}
		return n+end-start >= shortestPart && n < len(rest) && rest[n] == '.'
	case longWordNext:
		const length = 23 // beside the one that the keyword was spelled out with
		return len(rest) >= length && !strings.ContainsFunc(rest[:length], func(r rune) bool { return r > 'z' || r == '_' || !letterOrDigit(byte(r)) })
	default:
		return true
	}
}

// Lengths in what follows a name: the rest of it up to the sign, the sign with
// quotes, the value. What the rules allow is less.
const (
	longestName   = 48
	longestSign   = 9
	shortestValue = 6
)

// assigned says whether a sign of assignment and a value follow a name.
func assigned(rest string, digit bool) bool {
	i := signAt(rest)
	if i < 0 {
		return false
	}
	for n := 0; n < longestSign && i < len(rest) && strings.IndexByte("=>:|?,\"'` \t\r\n", rest[i]) >= 0; i++ {
		if rest[i] > ' ' { // the rules allow any number of blanks
			n++
		}
	}
	n, digits := 0, false
	for ; i < len(rest) && rest[i] > ' ' && strings.IndexByte("\"'`\\;", rest[i]) < 0; i++ {
		digits = digits || rest[i] >= '0' && rest[i] <= '9'
		n++
		if n >= shortestValue && (digits || !digit) {
			return true
		}
	}
	return false
}

// signAt is the place of a sign of assignment behind the rest of a name; -1 =
// there is none.
func signAt(rest string) int {
	for i := range min(len(rest), longestName) {
		switch c := rest[i]; {
		case strings.IndexByte("=>:|?,", c) >= 0:
			return i
		case c != '.' && c != '-' && c != '_' && c != '\'' && c != '"' && c > ' ' && !letterOrDigit(c):
			return -1
		}
	}
	return -1
}

// inQuotes says whether a sign of assignment and a value in quotes follow.
func inQuotes(rest string) bool {
	i := signAt(rest)
	if i < 0 {
		return false
	}
	value := strings.TrimLeft(rest[i:], ":=> \t\r\n")
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return false
	}
	n := 1
	for n < len(value) && value[n] > ' ' && value[n] != '"' && value[n] != '\'' && value[n] != '\\' {
		n++
	}
	return n > shortestValue && n < len(value) && (value[n] == '"' || value[n] == '\'')
}
