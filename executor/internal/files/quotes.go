package files

import (
	"strings"
	"unicode"
)

// matchQuotes adapts the quotes of a search text to those of the file, if nothing else differs.
func matchQuotes(content, before, after string) (from, to string) {
	if strings.Contains(content, before) {
		return before, after
	}
	if found := findQuoted(content, before); found != "" {
		return found, withCurlyQuotes(found, after)
	}
	return before, after
}

// straightQuotes replaces curly quotes by straight ones.
var straightQuotes = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`)

// findQuoted finds a text whose quotes may be curly in the file; "" means not found.
func findQuoted(content, old string) string {
	from := []rune(content)
	at := strings.Index(straightQuotes.Replace(content), straightQuotes.Replace(old))
	if at < 0 {
		return ""
	}
	start := len([]rune(straightQuotes.Replace(content)[:at]))
	return string(from[start : start+len([]rune(old))])
}

// withCurlyQuotes writes a new text with the kinds of quotes of the old text.
func withCurlyQuotes(old, text string) string {
	double, single := strings.ContainsAny(old, "“”"), strings.ContainsAny(old, "‘’")
	runes := []rune(text)
	opens := func(i int) bool { return i == 0 || strings.ContainsRune(" \t\n\r([{—–", runes[i-1]) }
	letter := func(i int) bool { return i >= 0 && i < len(runes) && unicode.IsLetter(runes[i]) }
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '"' && double && opens(i):
			b.WriteRune('“')
		case r == '"' && double:
			b.WriteRune('”')
		case r == '\'' && single && opens(i) && (!letter(i-1) || !letter(i+1)):
			b.WriteRune('‘')
		case r == '\'' && single:
			b.WriteRune('’')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
