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
	group           int     // group with the secret; 0 means the first matching group, or the whole match without groups
	isGuess         bool    // the rule only guesses from the name of a value, so its findings are not Certain
	usesContext     bool    // recognized by the text before the secret; the secret may have any form
	isCommandOption bool    // recognized by an option of a command; the rule is also tried on lists of arguments
}

// keywordRule is a word near which a rule is tried.
type keywordRule struct {
	rule     int
	precheck keywordContextCheck
}

// keywordContextCheck is a cheap check of the text around a keyword before the rule's expression is matched. Words such as
// "key" and "token" are frequent in source code, and matching an expression costs a hundred times as much as a precheck.
type keywordContextCheck int

const (
	noPrecheckKeywordInMatch            keywordContextCheck = iota // no check, because the expression also matches the keyword
	noPrecheckKeywordFarFromSecret                                 // no check, because the keyword may be far from the secret
	precheckAssignmentAfterKeyword                                 // the keyword is part of a name to which a value is assigned
	precheckAssignedValueHasDigit                                  // like precheckAssignmentAfterKeyword, and the value has a digit
	precheckUpperCaseNameWithDigitValue                            // like precheckAssignedValueHasDigit, and the name is in capitals
	precheckAssignedValueIsQuoted                                  // like precheckAssignmentAfterKeyword, and the value is in quotes
	precheckKeywordInCommandFlag                                   // the keyword is in a flag of a command
	precheckFollowingColon                                         // a colon follows, at once or after one byte
	precheckUserInfo                                               // an at sign follows, before any space, quote or slash
	precheckWebToken                                               // the keyword begins a word of at least nine bytes; a dot follows it
	precheckLongWordAfterKeyword                                   // a word of at least 24 letters and digits follows
	noPrecheckKeywordBeginsBlock                                   // no check, because the secret is the block that the keyword begins
)

func (r rule) choosePrecheckForKeyword(keywordText string) keywordContextCheck {
	byRule := map[string]keywordContextCheck{
		"assignment": precheckUpperCaseNameWithDigitValue, "password": precheckAssignedValueIsQuoted, "flag-value": precheckKeywordInCommandFlag,
		"key-header": precheckFollowingColon, "url-password": precheckUserInfo, "pgpass": noPrecheckKeywordInMatch,
	}
	check, ok := byRule[r.id]
	switch {
	case keywordText == r.id && r.id == "pgpass":
		return noPrecheckKeywordFarFromSecret
	case ok:
		return check
	case strings.HasPrefix(keywordText, "-----"):
		return noPrecheckKeywordBeginsBlock
	case r.id == "jwt":
		return precheckWebToken
	case r.id == "vault-service-token" && keywordText == "s.":
		return precheckLongWordAfterKeyword
	case r.isGuess:
		return precheckAssignedValueHasDigit
	}
	// gitleaks rules for a name and a value all begin with the same expression. Some of their keywords belong to the value, not to the
	// name.
	name, ok := strings.CutPrefix(r.expr, gitleaksPatternBeforeKeywords)
	name, _, _ = strings.Cut(name, gitleaksPatternAfterKeywords)
	if ok && strings.Contains(name, keywordText) && !strings.Contains(name, ",") {
		return precheckAssignmentAfterKeyword
	}
	if !strings.Contains(r.expr, gitleaksPatternAfterKeywords[1:]) && !strings.Contains(strings.ToLower(r.expr), longestAlphanumericRun(keywordText)) {
		return noPrecheckKeywordFarFromSecret
	}
	return noPrecheckKeywordInMatch
}

func longestAlphanumericRun(keywordText string) string {
	parts := strings.FieldsFunc(keywordText, func(r rune) bool { return !isLetterDigitOrUnderscore(byte(r)) || r == '_' })
	return slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
}

const (
	gitleaksPatternBeforeKeywords = gitleaksPatternOfNameBeforeKeyword + `(?:`
	gitleaksPatternAfterKeywords  = `)(?:[ \t\w.-]{0,20})`
)

// bytesSearchedAroundKeyword returns how many bytes before and after a keyword are searched for a secret.
func (g keywordContextCheck) bytesSearchedAroundKeyword() (before, after int) {
	switch g {
	case precheckAssignmentAfterKeyword, precheckAssignedValueHasDigit, precheckUpperCaseNameWithDigitValue, precheckAssignedValueIsQuoted:
		return 80, 240
	case noPrecheckKeywordFarFromSecret:
		return 32 << 10, 32 << 10
	case noPrecheckKeywordBeginsBlock:
		return 0, 16 << 10
	default:
		return 80, 600
	}
}

func (g keywordContextCheck) canRuleMatchAround(text string, keywordStart, keywordEnd int) bool {
	rest := text[keywordEnd:]
	switch g {
	case precheckAssignmentAfterKeyword, precheckAssignedValueHasDigit:
		return hasAssignmentAfterKeyword(rest, g == precheckAssignedValueHasDigit)
	case precheckUpperCaseNameWithDigitValue:
		return text[keywordStart] < 'a' && hasAssignmentAfterKeyword(rest, true)
	case precheckAssignedValueIsQuoted:
		return hasQuotedAssignment(rest)
	case precheckKeywordInCommandFlag:
		for keywordStart > 0 && (isLetterDigitOrUnderscore(text[keywordStart-1]) || text[keywordStart-1] == '-') {
			keywordStart--
		}
		return text[keywordStart] == '-'
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
		return n+keywordEnd-keywordStart >= shortestPart && n < len(rest) && rest[n] == '.'
	case precheckLongWordAfterKeyword:
		const length = 23 // maximum length, without the byte by which the keyword was extended
		return len(rest) >= length && !strings.ContainsFunc(rest[:length], func(r rune) bool { return r > 'z' || r == '_' || !isLetterDigitOrUnderscore(byte(r)) })
	default:
		return true
	}
}

// Limits for the text after a keyword: the maximum length of the rest of the name, the maximum length of an assignment
// sign with quotes, and the minimum length of a value. The expressions of the rules are stricter.
const (
	maxNameBytesAfterKeyword       = 48
	maxAssignmentSignAndQuoteBytes = 9
	minValueBytes                  = 6
)

// hasAssignmentAfterKeyword reports whether textAfterKeyword assigns a value, with a digit if needsDigitInValue is true.
func hasAssignmentAfterKeyword(textAfterKeyword string, needsDigitInValue bool) bool {
	i := assignmentSignOffset(textAfterKeyword)
	if i < 0 {
		return false
	}
	for n := 0; n < maxAssignmentSignAndQuoteBytes && i < len(textAfterKeyword) && strings.IndexByte("=>:|?,\"'` \t\r\n", textAfterKeyword[i]) >= 0; i++ {
		if textAfterKeyword[i] > ' ' { // the rules allow any number of spaces
			n++
		}
	}
	n, digits := 0, false
	for ; i < len(textAfterKeyword) && textAfterKeyword[i] > ' ' && strings.IndexByte("\"'`\\;", textAfterKeyword[i]) < 0; i++ {
		digits = digits || textAfterKeyword[i] >= '0' && textAfterKeyword[i] <= '9'
		n++
		if n >= minValueBytes && (digits || !needsDigitInValue) {
			return true
		}
	}
	return false
}

// assignmentSignOffset returns the offset of the assignment sign, or -1. Only the rest of a name may precede the sign.
func assignmentSignOffset(textAfterKeyword string) int {
	for i := range min(len(textAfterKeyword), maxNameBytesAfterKeyword) {
		switch c := textAfterKeyword[i]; {
		case strings.IndexByte("=>:|?,", c) >= 0:
			return i
		case c != '.' && c != '-' && c != '_' && c != '\'' && c != '"' && c > ' ' && !isLetterDigitOrUnderscore(c):
			return -1
		}
	}
	return -1
}

func hasQuotedAssignment(textAfterKeyword string) bool {
	i := assignmentSignOffset(textAfterKeyword)
	if i < 0 {
		return false
	}
	value := strings.TrimLeft(textAfterKeyword[i:], ":=> \t\r\n")
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return false
	}
	n := 1
	for n < len(value) && value[n] > ' ' && value[n] != '"' && value[n] != '\'' && value[n] != '\\' {
		n++
	}
	return n > minValueBytes && n < len(value) && (value[n] == '"' || value[n] == '\'')
}
