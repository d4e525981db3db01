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

// Letters that a word is made of.
const (
	isUpper = 1 << iota
	isLower
	isPercent
	isOther // may be in a word and does not begin one
)

// wordLetters tells for each byte what it is in a word.
var wordLetters = func() (kind [256]byte) {
	for c := range kind {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			kind[c] = isUpper
		case b >= 'a' && b <= 'z':
			kind[c] = isLower
		case b == '%':
			kind[c] = isPercent
		case isBase64(b) || b == '=' || b == '.' || b == '~':
			kind[c] = isOther
		}
	}
	return kind
}()

// encodedWords are the places of words that may be encoded: runs of base64
// characters with letters of both cases, and words with a percent escape.
func encodedWords(s string) [][2]int {
	var words [][2]int
	for i := 0; i < len(s); i++ {
		// Every word that is long enough goes over one of these places.
		if next := i + shortWord - 1; next >= len(s) {
			break
		} else if wordLetters[s[next]] == 0 {
			i = next
			continue
		}
		if wordLetters[s[i]] == 0 || s[i] == '=' || s[i] == '.' || s[i] == '~' {
			continue
		}
		start, has := i, byte(0)
		for i < len(s) && wordLetters[s[i]] != 0 {
			has |= wordLetters[s[i]]
			i++
		}
		if n := i - start; n >= shortWord && n <= longWord && (has&isPercent != 0 || has&isUpper != 0 && has&isLower != 0) {
			words = append(words, [2]int{start, i})
		}
	}
	return words
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

// withoutEscapes is a text of the same length with blanks in the place of the escapes
// of a quoted string: of \n the letter would be taken for a part of the next word.
func withoutEscapes(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\\`, `\n`, "\n\n", `\r`, "\n\n", `\t`, "\t\t", `\"`, ` "`, `\'`, ` '`).Replace(s)
}
