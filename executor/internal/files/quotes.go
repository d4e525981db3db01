package files

import (
	"strings"
	"unicode"
)

// matchQuotes takes over the quotes of the file where only these differ.
func matchQuotes(content, before, after string) (from, to string) {
	if strings.Contains(content, before) {
		return before, after
	}
	if found := findQuoted(content, before); found != "" {
		return found, curled(found, after)
	}
	return before, after
}

// straight turns curly quotes into those of a keyboard.
var straight = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`)

// findQuoted finds a text whose quotes may be curly in the file; "" = nowhere.
func findQuoted(content, old string) string {
	from := []rune(content)
	at := strings.Index(straight.Replace(content), straight.Replace(old))
	if at < 0 {
		return ""
	}
	start := len([]rune(straight.Replace(content)[:at]))
	return string(from[start : start+len([]rune(old))])
}

// curled writes a new text with the kinds of quotes that the old one has.
func curled(old, text string) string {
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
