package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// encoded finds what is a secret only once it has been decoded: base64 texts
// and words with percent escapes.
func encoded(s string, known known, shapes *shapes) []Finding {
	var found []Finding
	for _, w := range encodedWords(s) {
		plain, ok := decode(s[w[0]:w[1]])
		if !ok {
			continue
		}
		for _, f := range append(known.find(plain), shapes.find(plain)...) {
			if f.Sure {
				found = append(found, Finding{Kind: f.Kind, Start: w[0], End: w[1], Sure: true})
				break
			}
		}
	}
	return found
}

// Lengths between which a word is decoded: shorter ones hold no secret, longer
// ones are pictures.
const (
	shortWord = 20
	longWord  = 64 << 10
)

// encodedWords are the places of words that may be encoded: runs of base64
// characters, and words with a percent escape.
func encodedWords(s string) [][2]int {
	var words [][2]int
	for i := 0; i < len(s); {
		if !isBase64(s[i]) && s[i] != '%' {
			i++
			continue
		}
		start, percent := i, false
		for i < len(s) && (isBase64(s[i]) || s[i] == '=' || s[i] == '%' || s[i] == '.' || s[i] == '~') {
			percent = percent || s[i] == '%'
			i++
		}
		if n := i - start; n >= shortWord && n <= longWord && (percent || mixed(s[start:i])) {
			words = append(words, [2]int{start, i})
		}
	}
	return words
}

// mixed tells base64 from words and numbers: it has letters of both cases.
func mixed(s string) bool {
	return strings.ContainsFunc(s, unicode.IsUpper) && strings.ContainsFunc(s, unicode.IsLower)
}

// decode reads a word; it gives ok = false for what is no text.
func decode(word string) (plain string, ok bool) {
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
	if err != nil || !utf8.Valid(data) || strings.ContainsFunc(string(data), unprintable) {
		return "", false
	}
	return string(data), true
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }
