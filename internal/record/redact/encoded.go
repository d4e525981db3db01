package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// findEncoded finds encoded secrets: in base64 strings and in words with percent escapes.
func findEncoded(s string, known knownValues, shapes *secretFormFinder) []Finding {
	var found []Finding
	for _, w := range encodedWords(s) {
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
	minEncodedWordBytes = 20
	maxEncodedWordBytes = 64 << 10
)

// Classes of bytes in words.
const (
	upperLetterClass = 1 << iota
	lowerLetterClass
	percentClass
	otherByteClass // a digit, or another character that encoded words contain
)

var encodedByteClasses = func() (kind [256]byte) {
	for c := range kind {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			kind[c] = upperLetterClass
		case b >= 'a' && b <= 'z':
			kind[c] = lowerLetterClass
		case b == '%':
			kind[c] = percentClass
		case isBase64(b) || b == '=' || b == '.' || b == '~':
			kind[c] = otherByteClass
		}
	}
	return kind
}()

// encodedWords returns the positions of base64 words with letters of both cases, and of words with a percent escape.
func encodedWords(s string) [][2]int {
	var words [][2]int
	for i := 0; i+minEncodedWordBytes <= len(s); i++ {
		if next := i + minEncodedWordBytes - 1; encodedByteClasses[s[next]] == 0 { // no word of sufficient length contains it
			i = next
			continue
		}
		if encodedByteClasses[s[i]] == 0 || s[i] == '=' || s[i] == '.' || s[i] == '~' {
			continue
		}
		start, has := i, byte(0)
		for i < len(s) && encodedByteClasses[s[i]] != 0 {
			has |= encodedByteClasses[s[i]]
			i++
		}
		if n := i - start; n >= minEncodedWordBytes && n <= maxEncodedWordBytes && (has&percentClass != 0 || has&upperLetterClass != 0 && has&lowerLetterClass != 0) {
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
	if err != nil || !utf8.Valid(data) || strings.ContainsFunc(string(data), isUnprintable) {
		return "", false
	}
	return string(data), true
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }

// withoutEscapes replaces an escape such as a backslash and an n by white space, and an escaped quote by a space and
// the quote. Otherwise the n would begin the next word. The length of the text does not change.
func withoutEscapes(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\\`, `\n`, "\n\n", `\r`, "\n\n", `\t`, "\t\t", `\"`, ` "`, `\'`, ` '`).Replace(s)
}
