package terminal

import (
	"bytes"
	"unicode/utf8"
)

type key struct {
	name keyName
	text string // text of keyText and keyPaste
}

type keyName int

const (
	keyUnknown keyName = iota // a key that has no effect on the screen
	keyText                   // printable characters
	keyPaste
	keyEnter
	keyNewline // Ctrl-J
	keyEscape
	keyBackspace
	keyTab
	keyBackTab
	keyUp
	keyDown
	keyLeft
	keyRight
	keyCtrlC
	keyCtrlD
	keyCtrlU
	keyCtrlK
	keyCtrlW
	keyCtrlY
	keyCtrlR
	keyCtrlS
	keyCtrlZ
	keyHome
	keyEnd
	keyDelete
	keyWordLeft
	keyWordRight
)

// keyReader splits the bytes of a terminal into keys. It keeps an incomplete sequence until the next call.
type keyReader struct {
	pending []byte
	pasting bool
	paste   []byte
}

// maxPendingKeyBytes limits an escape sequence, and maxPasteBytes a pasted text. Longer input is dropped.
const (
	maxPendingKeyBytes = 64
	maxPasteBytes      = 1 << 20
	pasteStart         = "\x1b[200~"
	pasteEnd           = "\x1b[201~"
)

func (r *keyReader) decodeKeys(data []byte) []key {
	var keys []key
	rest := append(r.pending, data...)
	r.pending = nil
	for len(rest) > 0 {
		if r.pasting {
			k, after, done := r.readPaste(rest)
			if !done {
				return keys
			}
			keys, rest = append(keys, k), after
			continue
		}
		k, n := firstKey(rest)
		switch {
		case n == 0 && len(rest) < maxPendingKeyBytes:
			r.pending = bytes.Clone(rest)
			return keys
		case n == 0:
			rest = nil
		case bytes.HasPrefix(rest, []byte(pasteStart)):
			r.pasting, rest = true, rest[n:]
		default:
			if last := len(keys) - 1; k.name == keyText && last >= 0 && keys[last].name == keyText {
				keys[last].text += k.text
			} else {
				keys = append(keys, k)
			}
			rest = rest[n:]
		}
	}
	return keys
}

func (r *keyReader) readPaste(data []byte) (k key, rest []byte, done bool) {
	r.paste = append(r.paste, data...)
	text, rest, done := bytes.Cut(r.paste, []byte(pasteEnd))
	if !done {
		if len(r.paste) > maxPasteBytes+len(pasteEnd) {
			r.paste = append(r.paste[:maxPasteBytes], r.paste[len(r.paste)-len(pasteEnd):]...)
		}
		return key{}, nil, false
	}
	k, rest = key{keyPaste, string(bytes.ToValidUTF8(text, []byte("\uFFFD")))}, bytes.Clone(rest)
	r.pasting, r.paste = false, nil
	return k, rest, true
}

// hasPendingEscapeSequence reports whether the kept bytes begin with Escape.
func (r *keyReader) hasPendingEscapeSequence() bool {
	return len(r.pending) > 0 && r.pending[0] == 0x1b && !r.pasting
}

// dropPendingAndReturnLoneEscape drops the kept bytes, because no bytes followed. If they are a lone Escape, it returns the Escape key.
func (r *keyReader) dropPendingAndReturnLoneEscape() []key {
	lone := len(r.pending) == 1 && r.pending[0] == 0x1b
	r.pending = nil
	if lone {
		return []key{{name: keyEscape}}
	}
	return nil
}

// firstKey returns the first key of data and its length in bytes. The length is 0 if the key is incomplete.
func firstKey(data []byte) (k key, n int) {
	switch c := data[0]; {
	case c == 0x1b:
		return firstKeyOfEscapeSequence(data)
	case c < 0x20 || c == 0x7f:
		return key{name: keyOfControlByte(c)}, 1
	case !utf8.FullRune(data):
		return key{}, 0
	}
	r, n := utf8.DecodeRune(data)
	return key{keyText, string(r)}, n
}

func keyOfControlByte(c byte) keyName {
	return map[byte]keyName{
		'\r': keyEnter, '\n': keyNewline, '\t': keyTab, 0x7f: keyBackspace, 0x08: keyBackspace,
		0x01: keyHome, 0x02: keyLeft, 0x05: keyEnd, 0x06: keyRight, 0x03: keyCtrlC, 0x04: keyCtrlD,
		0x0b: keyCtrlK, 0x15: keyCtrlU, 0x17: keyCtrlW, 0x19: keyCtrlY, 0x12: keyCtrlR, 0x13: keyCtrlS, 0x1a: keyCtrlZ,
	}[c]
}

func firstKeyOfEscapeSequence(data []byte) (k key, n int) {
	if len(data) == 1 {
		return key{}, 0
	}
	switch data[1] {
	case '[':
	case 'O':
		if len(data) < 3 {
			return key{}, 0
		}
		return key{name: keyOfSequence(string(data[2:3]))}, 3
	case 0x1b:
		return key{name: keyEscape}, 1
	case '\r':
		return key{name: keyNewline}, 2
	case 'b':
		return key{name: keyWordLeft}, 2
	case 'f':
		return key{name: keyWordRight}, 2
	default: // Alt and a character
		if _, n := firstKey(data[1:]); n > 0 {
			return key{}, n + 1
		}
		return key{}, 0
	}
	if i := bytes.IndexFunc(data[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e }); i >= 0 {
		return key{name: keyOfSequence(string(data[2 : i+3]))}, i + 3
	}
	return key{}, 0
}

func keyOfSequence(afterCSIOrSS3 string) keyName {
	if final := afterCSIOrSS3[len(afterCSIOrSS3)-1:]; afterCSIOrSS3 == "1"+final || final == "Z" {
		afterCSIOrSS3 = final
	}
	return map[string]keyName{
		"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "F": keyEnd, "H": keyHome, "Z": keyBackTab,
		"1~": keyHome, "7~": keyHome, "3~": keyDelete, "4~": keyEnd, "8~": keyEnd,
		"1;3D": keyWordLeft, "1;5D": keyWordLeft, "1;3C": keyWordRight, "1;5C": keyWordRight,
	}[afterCSIOrSS3]
}
