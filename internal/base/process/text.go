package process

import (
	"unicode/utf8"
)

// DecodeStream decodes bytes as a JavaScript program does when it reads a stream: each
// maximal invalid part of a UTF-8 sequence becomes U+FFFD (observed with 2.1.329).
func DecodeStream(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/2)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		for r == utf8.RuneError && size < len(data) && size < utf8.UTFMax && !utf8.FullRune(data[:size+1]) {
			size++
		}
		out = utf8.AppendRune(out, r)
		data = data[size:]
	}
	return out
}

// DecodeArguments decodes the words of a command line as a JavaScript program does: each byte
// that is not valid UTF-8 becomes U+FFFD.
func DecodeArguments(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if !utf8.ValidString(word) {
			out[i] = string([]rune(word))
		}
	}
	return out
}
