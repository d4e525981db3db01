package redact

import (
	"slices"
	"strings"
)

// rule describes one form of secrets. Its expression is matched only near its keywords.
type rule struct {
	id, expr        string
	keywords        string  // keywords in lower case, separated by bars
	entropy         float64 // minimum entropy of the secret in bits per character; 0 means any
	group           int     // group with the secret; 0 means the first group that matched, or the whole match if there are no groups
	isGuess         bool    // the rule only guesses from the name of a value, so its findings are not Certain
	usesContext     bool    // recognized by the text before the secret; the secret may have any form
	isCommandOption bool    // recognized by an option of a command; the rule is also tried on command lines that are lists of arguments
}

// keyword is a word near which a rule is tried.
type keyword struct {
	rule     int
	precheck keywordPrecheck
}

// keywordPrecheck is a cheap check of the text around a keyword before the rule's expression is matched. Words such as
// "key" and "token" are frequent in source code, and matching an expression costs a hundred times as much as a
// precheck.
type keywordPrecheck int

const (
	precheckNone              keywordPrecheck = iota // no check, because the keyword itself is part of what the expression matches
	precheckNoneFarFromSecret                        // no check, because the keyword may be far from the secret
	precheckAssignment                               // the keyword is part of a name; an assignment sign and a value follow the name
	precheckDigitValue                               // like precheckAssignment, and the value has a digit
	precheckUpperCaseName                            // like precheckDigitValue, and the name is in capitals
	precheckQuotedValue                              // like precheckAssignment, and the value is in quotes
	precheckCommandFlag                              // the keyword is in a flag of a command
	precheckFollowingColon                           // a colon follows, at once or after one byte
	precheckUserInfo                                 // an at sign follows, before any space, quote or slash
	precheckWebToken                                 // the keyword begins a word of at least nine bytes that a dot follows
	precheckLongWord                                 // a word of at least 24 letters and digits follows
	precheckNoneForBlock                             // no check, because the secret is the block that the keyword begins
)

func (r rule) precheckFor(word string) keywordPrecheck {
	switch r.id {
	case "assignment":
		return precheckUpperCaseName
	case "password":
		return precheckQuotedValue
	case "flag-value":
		return precheckCommandFlag
	case "key-header":
		return precheckFollowingColon
	case "url-password":
		return precheckUserInfo
	case "pgpass":
		if word == "pgpass" {
			return precheckNoneFarFromSecret
		}
		return precheckNone
	}
	switch {
	case strings.HasPrefix(word, "-----"):
		return precheckNoneForBlock
	case r.id == "jwt":
		return precheckWebToken
	case r.id == "vault-service-token" && word == "s.":
		return precheckLongWord
	case r.isGuess:
		return precheckDigitValue
	}
	// gitleaks rules for a name with a value have the same beginning. Some of their keywords are in the value.
	name, ok := strings.CutPrefix(r.expr, namePatternStart)
	name, _, _ = strings.Cut(name, namePatternEnd)
	if ok && strings.Contains(name, word) && !strings.Contains(name, ",") {
		return precheckAssignment
	}
	if !strings.Contains(r.expr, namePatternEnd[1:]) && !strings.Contains(strings.ToLower(r.expr), longestPart(word)) {
		return precheckNoneFarFromSecret
	}
	return precheckNone
}

func longestPart(word string) string {
	parts := strings.FieldsFunc(word, func(r rune) bool { return !isLetterOrDigit(byte(r)) || r == '_' })
	return slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
}

const (
	namePatternStart = namePrefixPattern + `(?:`
	namePatternEnd   = `)(?:[ \t\w.-]{0,20})`
)

// contextLength returns how many bytes before and after a keyword are searched for a secret.
func (g keywordPrecheck) contextLength() (before, after int) {
	switch g {
	case precheckAssignment, precheckDigitValue, precheckUpperCaseName, precheckQuotedValue:
		return 80, 240
	case precheckNoneFarFromSecret:
		return 32 << 10, 32 << 10
	case precheckNoneForBlock:
		return 0, 16 << 10
	default:
		return 80, 600
	}
}

// passes reports whether a rule may match around the keyword at text[start:end].
func (g keywordPrecheck) passes(text string, start, end int) bool {
	rest := text[end:]
	switch g {
	case precheckAssignment, precheckDigitValue:
		return hasAssignment(rest, g == precheckDigitValue)
	case precheckUpperCaseName:
		return text[start] < 'a' && hasAssignment(rest, true)
	case precheckQuotedValue:
		return hasQuotedAssignment(rest)
	case precheckCommandFlag:
		for start > 0 && (isLetterOrDigit(text[start-1]) || text[start-1] == '-') {
			start--
		}
		return text[start] == '-'
	case precheckFollowingColon:
		return len(rest) > 1 && (rest[0] == ':' || rest[1] == ':')
	case precheckUserInfo:
		const longest = 512
		for i := range min(len(rest), longest) {
			if c := rest[i]; c == '@' || c <= ' ' || c == '"' || c == '\'' || c == '/' {
				return c == '@'
			}
		}
		return len(rest) > longest
	case precheckWebToken:
		const shortestPart = 9
		n := 0
		for n < len(rest) && isBase64(rest[n]) {
			n++
		}
		return n+end-start >= shortestPart && n < len(rest) && rest[n] == '.'
	case precheckLongWord:
		const length = 23 // maximum length, without the byte by which the keyword was extended
		return len(rest) >= length && !strings.ContainsFunc(rest[:length], func(r rune) bool { return r > 'z' || r == '_' || !isLetterOrDigit(byte(r)) })
	default:
		return true
	}
}

// Limits, in bytes, for the text after a keyword: the most of a name, the longest assignment sign with quotes, and the
// shortest value. They only serve to exclude most texts quickly; the expressions of the rules are stricter.
const (
	maxNameRestBytes       = 48
	maxAssignmentSignBytes = 9
	minValueBytes          = 6
)

// hasAssignment reports whether rest, the text after a keyword, assigns a value, with a digit if needsDigit is set.
func hasAssignment(rest string, needsDigit bool) bool {
	i := assignmentSignAt(rest)
	if i < 0 {
		return false
	}
	for n := 0; n < maxAssignmentSignBytes && i < len(rest) && strings.IndexByte("=>:|?,\"'` \t\r\n", rest[i]) >= 0; i++ {
		if rest[i] > ' ' { // the rules allow any number of spaces
			n++
		}
	}
	n, digits := 0, false
	for ; i < len(rest) && rest[i] > ' ' && strings.IndexByte("\"'`\\;", rest[i]) < 0; i++ {
		digits = digits || rest[i] >= '0' && rest[i] <= '9'
		n++
		if n >= minValueBytes && (digits || !needsDigit) {
			return true
		}
	}
	return false
}

// assignmentSignAt returns the position of the assignment sign after the rest of a name; -1 means none.
func assignmentSignAt(rest string) int {
	for i := range min(len(rest), maxNameRestBytes) {
		switch c := rest[i]; {
		case strings.IndexByte("=>:|?,", c) >= 0:
			return i
		case c != '.' && c != '-' && c != '_' && c != '\'' && c != '"' && c > ' ' && !isLetterOrDigit(c):
			return -1
		}
	}
	return -1
}

func hasQuotedAssignment(rest string) bool {
	i := assignmentSignAt(rest)
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
	return n > minValueBytes && n < len(value) && (value[n] == '"' || value[n] == '\'')
}
