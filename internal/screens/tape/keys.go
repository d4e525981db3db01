package tape

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Key returns the bytes that a key sends to a program. Names are as in tmux: "Enter", "Up", "C-c", "M-x"; a single
// character is the key of that character.
func Key(name string) (sends string, ok bool) {
	if sends, ok = namedKeys()[name]; ok {
		return sends, true
	}
	prefix, rest, _ := strings.Cut(name, "-")
	switch {
	case utf8.RuneCountInString(name) == 1:
		return name, true
	case prefix == "M" && rest != "":
		sends, ok = Key(rest)
		return "\x1b" + sends, ok
	case prefix == "C" && len(rest) == 1 && rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z':
		return string(rest[0] & 0x1f), true
	}
	return "", false
}

// KeyNames returns the names of keys that have one, sorted.
func KeyNames() []string {
	var names []string
	for name := range namedKeys() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func namedKeys() map[string]string {
	return map[string]string{
		"Enter": "\r", "Esc": "\x1b", "Escape": "\x1b", "Tab": "\t", "BTab": "\x1b[Z", "Space": " ", "BSpace": "\x7f",
		"Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
		"PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "Insert": "\x1b[2~", "Delete": "\x1b[3~",
	}
}
