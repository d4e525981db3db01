package process

import (
	"unicode/utf8"
)

// Stream is what a JavaScript program reads from a stream of bytes: what is no UTF-8 is U+FFFD, one for as much of a
// character as there is (observed with 2.1.329).
func Stream(data []byte) []byte {
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

// Words are the words of a command line as a JavaScript program reads them: here each byte that is no UTF-8 is a U+FFFD.
func Words(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if !utf8.ValidString(word) {
			out[i] = string([]rune(word))
		}
	}
	return out
}
