package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// findEncoded finds encoded secrets: in base64 strings and in words with percent escapes.
func findEncoded(s string, known knownValues, shapes *secretShapeFinder) []Finding {
	var found []Finding
	for _, w := range base64AndPercentEncodedWordSpans(s) {
		plain, ok := decodeWord(s[w[0]:w[1]])
		if !ok {
			continue
		}
		for _, f := range append(known.find(plain), shapes.find(plain)...) {
			if f.Certain {
				found = append(found, Finding{Kind: f.Kind, Start: w[0], End: w[1], Certain: true})
				break
			}
		}
	}
	return found
}

// Only words with a length in this range are decoded: shorter ones contain no secret, longer ones are images.
const (
	minBytesOfWordToDecode = 20
	maxBytesOfWordToDecode = 64 << 10
)

// Classes of bytes in words.
const (
	encodedByteClassUpperLetter = 1 << iota
	encodedByteClassLowerLetter
	encodedByteClassPercentSign
	encodedByteClassDigitOrSymbol // a digit, or another character that encoded words contain
)

var encodedByteClasses = func() (kind [256]byte) {
	for c := range kind {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			kind[c] = encodedByteClassUpperLetter
		case b >= 'a' && b <= 'z':
			kind[c] = encodedByteClassLowerLetter
		case b == '%':
			kind[c] = encodedByteClassPercentSign
		case isBase64(b) || b == '=' || b == '.' || b == '~':
			kind[c] = encodedByteClassDigitOrSymbol
		}
	}
	return kind
}()

// base64AndPercentEncodedWordSpans returns the positions of words with percent escapes, and of base64 words in mixed case.
func base64AndPercentEncodedWordSpans(text string) [][2]int {
	var words [][2]int
	for i := 0; i+minBytesOfWordToDecode <= len(text); i++ {
		if next := i + minBytesOfWordToDecode - 1; encodedByteClasses[text[next]] == 0 { // the byte at next ends every word
			i = next
			continue
		}
		if encodedByteClasses[text[i]] == 0 || text[i] == '=' || text[i] == '.' || text[i] == '~' {
			continue
		}
		start, has := i, byte(0)
		for i < len(text) && encodedByteClasses[text[i]] != 0 {
			has |= encodedByteClasses[text[i]]
			i++
		}
		if n := i - start; n >= minBytesOfWordToDecode && n <= maxBytesOfWordToDecode && (has&encodedByteClassPercentSign != 0 || has&encodedByteClassUpperLetter != 0 && has&encodedByteClassLowerLetter != 0) {
			words = append(words, [2]int{start, i})
		}
	}
	return words
}

// decodeWord decodes a word. ok is false if the result is not text.
func decodeWord(word string) (plain string, ok bool) {
	if strings.Contains(word, "%") {
		plain, err := url.PathUnescape(word)
		return plain, err == nil && plain != word && utf8.ValidString(plain)
	}
	bare := strings.TrimRight(word, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(bare, "-_") {
		enc = base64.RawURLEncoding
	}
	data, err := enc.DecodeString(bare)
	if err != nil || !utf8.Valid(data) || strings.ContainsFunc(string(data), func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
		return "", false
	}
	return string(data), true
}

// replaceBackslashEscapesBySpaces replaces \n, \r and \t by white space, and the backslash before a quote by a space.
// Otherwise the letter of the escape would begin the next word. The length of the text does not change.
func replaceBackslashEscapesBySpaces(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return strings.NewReplacer(`\\`, `\\`, `\n`, "\n\n", `\r`, "\n\n", `\t`, "\t\t", `\"`, ` "`, `\'`, ` '`).Replace(text)
}
