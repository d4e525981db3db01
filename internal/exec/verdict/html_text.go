package verdict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// commandLine returns a command with the quotes that a shell needs.
func commandLine(argv []string) string {
	words := slices.Clone(argv)
	for i, word := range words {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\$`!*?[](){}<>|&;#~", r) }) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// exitText describes how a process ended; a nil code means that the end was not recorded.
func exitText(code *int, signal string) string {
	switch {
	case code == nil:
		return "has no recorded end"
	case signal != "":
		return fmt.Sprintf("ended by %s (exit code %d)", signal, *code)
	}
	return fmt.Sprintf("exited with code %d", *code)
}

func milliseconds(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.2f s", ms/1000)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func statusText(failed bool) string {
	if failed {
		return "error"
	}
	return "ok"
}

func truncate(s string) string {
	if len(s) <= maxPageTextBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxPageTextBytes], "") + fmt.Sprintf("\n… (%d more bytes; the journal has all of them)", len(s)-maxPageTextBytes)
}

// firstLine returns the first line of a text, cut to the width of a row.
func firstLine(s string) string {
	const most = 160
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	if more {
		s += " …"
	}
	return s
}

// indentJSON formats JSON; other text is returned unchanged.
func indentJSON(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	if text, ok := v.(string); ok {
		return text
	}
	var b bytes.Buffer
	_ = json.Indent(&b, raw, "", "  ") // fails only for text that does not parse
	return b.String()
}
