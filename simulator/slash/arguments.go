package slash

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var argumentPlaceholderPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\$(?:ARGUMENTS\[(\d+)\]|(ARGUMENTS)|(\d+)\b)`)
})

// appendArgumentsUnlessUsed returns body with args appended. If alreadyUsed is true or args is empty, it returns body.
func appendArgumentsUnlessUsed(body, args string, alreadyUsed bool) string {
	if alreadyUsed || args == "" {
		return body
	}
	return body + "\n\nARGUMENTS: " + args
}

func fillPlaceholders(body, args string, names []string) (text string, used bool) {
	words := SplitWords(args)
	var b strings.Builder
	for rest := body; ; {
		at := strings.IndexByte(rest, '$')
		if at < 0 {
			b.WriteString(rest)
			return b.String(), used
		}
		before, written := rest[:at], rest[at:]
		value, n := placeholderValue(written, args, words, names)
		switch {
		case n == 0:
			value, n = "$", 1
		case len(before)-len(strings.TrimRight(before, `\`)) == 1: // exactly one backslash precedes the placeholder
			before, value = before[:at-1], written[:n]
		default:
			used = used || value != written[:n]
		}
		b.WriteString(before)
		b.WriteString(value)
		rest = written[n:]
	}
}

// placeholderValue returns the value and the length of the placeholder at the start of s; the length is 0 if s does not
// begin with one. Names have precedence over numbers, and longer names over shorter ones.
func placeholderValue(s, args string, words, names []string) (value string, n int) {
	for i, name := range names {
		if n < 1+len(name) && beginsWithArgumentName(s[1:], name) {
			value, n = "", 1+len(name)
			if i < len(words) {
				value = words[i]
			}
		}
	}
	if n > 0 {
		return value, n
	}
	m := argumentPlaceholderPattern().FindStringSubmatch(s)
	if m == nil {
		return "", 0
	}
	if m[2] != "" {
		return args, len(m[0])
	}
	if i, err := strconv.Atoi(m[1] + m[3]); err == nil && i < len(words) {
		return words[i], len(m[0])
	}
	return m[0], len(m[0])
}

// beginsWithArgumentName reports whether s begins with a name that is followed by neither a word character nor an index.
func beginsWithArgumentName(s, name string) bool {
	rest, ok := strings.CutPrefix(s, name)
	if !ok || rest == "" {
		return ok
	}
	c := rest[0]
	return c != '[' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
}

var shellCommandPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?m)^```!\\s*\\n((?s:.*?))\\n?```$|(?:^|[\\s])(!`([^`]+)`)")
})

// ShellToolOfCommandBody returns "Bash" if a command with this body runs shell commands, otherwise "".
func ShellToolOfCommandBody(body string) string {
	return map[bool]string{true: "Bash"}[shellCommandPattern().MatchString(body)]
}

// FillArgumentsAndRunShell replaces placeholders in body with arguments: $ARGUMENTS with all of them, and $0, $1, … or
// $ARGUMENTS[0], $ARGUMENTS[1], … with single ones. With names, $name is replaced with the argument at the position of
// the name, or removed if that argument was not given. Numbered placeholders without an argument stay unchanged. So does
// a placeholder after a backslash, and the backslash is removed. If body has no placeholder, the arguments are appended.
//
// Shell commands (!`command`, and code blocks that begin with ```!) are replaced by their output. Neither output nor
// arguments are searched for placeholders. run executes a command; its parameter pattern is the text in body that the
// output replaces. An error of run is returned.
func FillArgumentsAndRunShell(body, args string, names []string, run func(command, pattern string) (string, error)) (string, error) {
	var printed []string
	var failed error
	used := false
	body = shellCommandPattern().ReplaceAllStringFunc(body, func(found string) string {
		m := shellCommandPattern().FindStringSubmatch(found)
		command, pattern, before := m[1], found, ""
		if m[3] != "" {
			command, pattern = m[3], m[2]
			before = strings.TrimSuffix(found, pattern)
		}
		if failed != nil {
			return found
		}
		filled, place := fillPlaceholders(command, args, names)
		if used = used || place; filled != command {
			pattern, _ = fillPlaceholders(pattern, args, names)
		}
		var out string
		out, failed = run(filled, pattern)
		printed = append(printed, out)
		return before + shellOutputPlaceholder(len(printed)-1)
	})
	if failed != nil {
		return "", failed
	}
	body, place := fillPlaceholders(body, args, names)
	body = appendArgumentsUnlessUsed(body, args, used || place)
	for i, out := range printed {
		body = strings.Replace(body, shellOutputPlaceholder(i), out, 1)
	}
	return body, nil
}

// shellOutputPlaceholder returns the text that stands for the output of command commandIndex until the arguments are filled in.
func shellOutputPlaceholder(commandIndex int) string { return fmt.Sprintf("\x00%d\x00", commandIndex) }

// SplitWords splits arguments as a shell does: at blanks and operators that are not quoted. The text from an
// unclosed quote on is one word, including the quote.
func SplitWords(args string) []string {
	var words []string
	var word strings.Builder
	open := false
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for i := 0; i < len(args); i++ {
		c := args[i]
		switch {
		case c == '"' || c == '\'':
			text, n := leadingQuotation(args[i:])
			word.WriteString(text)
			open = true
			i += n - 1
		case c == '\\' && i+1 < len(args):
			i++
			word.WriteByte(args[i])
			open = true
		case strings.IndexByte(" \t\n;|&<>()", c) >= 0:
			end()
		default:
			word.WriteByte(c)
			open = true
		}
	}
	end()
	return words
}

func leadingQuotation(s string) (text string, n int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return b.String(), i + 1
		case s[i] == '\\' && s[0] == '"' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0:
			i++
		}
		b.WriteByte(s[i])
	}
	return s, len(s)
}
