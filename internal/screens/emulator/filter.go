package emulator

import (
	"bytes"
	"io"
	"unicode/utf8"
)

const (
	maxTitleBytes            = 1 << 10
	maxHeldNonASCIIBytes     = 256     // maximum number of bytes held back, because a combining character may follow them
	maxBytesPerTerminalWrite = 4 << 10 // maximum number of bytes that are passed on at once
)

// outputFilter removes the parts of a program's output that the terminal library handles differently from real terminals: bytes that are
// not UTF-8, and control strings. The library ends a control string at byte 9c, which may be part of a UTF-8 character. It holds back
// incomplete characters, and characters with which the next character may combine.
type outputFilter struct {
	terminal io.Writer // never fails
	title    string

	state   filterState
	text    []byte // complete output that was not forwarded yet
	held    []byte // the characters outside ASCII at the end of the output
	partial []byte // beginning of the next character
	kind    byte   // kind of the control string
	content []byte // content of an OSC, at most maxTitleBytes
}

type filterState int

const (
	filterInText   filterState = iota
	filterInEscape             // after ESC
	filterInString             // inside a control string
)

const (
	escapeByte     = 0x1b
	bellByte       = 0x07
	cancelByte     = 0x18
	substituteByte = 0x1a
)

func (f *outputFilter) write(p []byte) {
	for _, b := range p {
		switch f.state {
		case filterInText:
			f.filterTextByte(b)
		case filterInEscape:
			f.filterEscapeByte(b)
		case filterInString:
			f.filterControlStringByte(b)
		}
	}
	f.writePendingTextToTerminal()
}

// flush forwards the bytes that were held back, except an incomplete character or sequence.
func (f *outputFilter) flush() {
	f.text = append(f.text, f.held...)
	f.held = f.held[:0]
	f.writePendingTextToTerminal()
}

func (f *outputFilter) writePendingTextToTerminal() {
	if len(f.text) > 0 {
		_, _ = f.terminal.Write(f.text)
		f.text = f.text[:0]
	}
}

func (f *outputFilter) filterTextByte(b byte) {
	switch {
	case b == escapeByte:
		f.queueHeldAndDropPartial()
		f.state = filterInEscape
	case b < utf8.RuneSelf:
		f.queueHeldAndDropPartial()
		f.queueTerminalBytes(b)
	default:
		f.holdNonASCIIByte(b)
	}
}

func (f *outputFilter) queueTerminalBytes(b ...byte) {
	f.text = append(f.text, b...)
	if len(f.text) >= maxBytesPerTerminalWrite {
		f.writePendingTextToTerminal()
	}
}

// holdNonASCIIByte adds a byte outside ASCII to the held bytes. It drops bytes that are not UTF-8 and 8-bit control characters.
func (f *outputFilter) holdNonASCIIByte(b byte) {
	if utf8.RuneStart(b) {
		f.partial = f.partial[:0]
	} else if len(f.partial) == 0 {
		return
	}
	f.partial = append(f.partial, b)
	if !utf8.FullRune(f.partial) {
		return
	}
	if r, _ := utf8.DecodeRune(f.partial); r >= 0xa0 && (r != utf8.RuneError || len(f.partial) == 3) {
		f.held = append(f.held, f.partial...)
	}
	f.partial = f.partial[:0]
	if len(f.held) >= maxHeldNonASCIIBytes {
		f.queueHeldAndDropPartial()
	}
}

func (f *outputFilter) queueHeldAndDropPartial() {
	f.partial = f.partial[:0]
	if len(f.held) > 0 {
		f.queueTerminalBytes(f.held...)
		f.held = f.held[:0]
	}
}

func (f *outputFilter) filterEscapeByte(b byte) {
	switch b {
	case ']', 'P', '_', '^', 'X', 'k':
		f.state, f.kind, f.content = filterInString, b, f.content[:0]
	case '\\': // the end of a control string
		f.state = filterInText
	case escapeByte:
	default:
		f.state = filterInText
		if b < utf8.RuneSelf {
			f.queueTerminalBytes(escapeByte, b)
		}
	}
}

func (f *outputFilter) filterControlStringByte(b byte) {
	switch {
	case b == escapeByte:
		f.setTitleFromOSC()
		f.state = filterInEscape
	case b == bellByte && f.kind == ']':
		f.setTitleFromOSC()
		f.state = filterInText
	case b == cancelByte || b == substituteByte:
		f.state = filterInText
	case f.kind == ']' && len(f.content) < maxTitleBytes:
		f.content = append(f.content, b)
	}
}

func (f *outputFilter) setTitleFromOSC() {
	if f.kind != ']' {
		return
	}
	number, text, ok := bytes.Cut(f.content, []byte(";"))
	if n := string(number); ok && (n == "0" || n == "2") {
		f.title = string(bytes.ToValidUTF8(text, nil))
	}
}
