package redact

import "slices"

// wordFinder finds many words in a text in one pass. Words must have at least three bytes.
type wordFinder struct {
	ignoreCase bool              // ignore the case of ASCII letters; the words are in lower case
	prefixBits [1 << 10]uint64   // one bit per hash of three bytes, to skip most of a text
	byPrefix   map[uint32][]word // words by their first three bytes
}

type word struct {
	text string
	n    int
}

func newWordFinder(fold bool) *wordFinder {
	return &wordFinder{ignoreCase: fold, byPrefix: map[uint32][]word{}}
}

func (d *wordFinder) add(text string, n int) {
	key := prefixKey(text)
	h := hash(key)
	d.prefixBits[h>>6] |= 1 << (h & 63)
	d.byPrefix[key] = append(d.byPrefix[key], word{text, n})
}

func (d *wordFinder) has(text string) bool {
	return slices.ContainsFunc(d.byPrefix[prefixKey(text)], func(w word) bool { return w.text == text })
}

func prefixKey(text string) uint32 {
	return uint32(text[0])<<16 | uint32(text[1])<<8 | uint32(text[2])
}

func hash(key uint32) uint32 { return key * 0x9E3779B1 >> 16 }

// forEach calls the function found for each word in s, with the number and the position of the word.
func (d *wordFinder) forEach(s string, found func(n, start, end int)) {
	key := uint32(0)
	for i := range len(s) {
		b := s[i]
		if d.ignoreCase {
			b = lowerCase(b)
		}
		key = (key<<8 | uint32(b)) & 0xFFFFFF
		h := hash(key)
		if d.prefixBits[h>>6]&(1<<(h&63)) == 0 || i < 2 {
			continue
		}
		for _, w := range d.byPrefix[key] {
			if d.matchesAt(s[i-2:], w.text) {
				found(w.n, i-2, i-2+len(w.text))
			}
		}
	}
}

func (d *wordFinder) matchesAt(s, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for i := 3; i < len(word); i++ {
		b := s[i]
		if d.ignoreCase {
			b = lowerCase(b)
		}
		if b != word[i] {
			return false
		}
	}
	return true
}

func lowerCase(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b | 0x20
	}
	return b
}
