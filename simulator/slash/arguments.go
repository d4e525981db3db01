package slash

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\?\$(?:ARGUMENTS\[(\d+)\]|(ARGUMENTS)|(\d+))`)
})

// Fill puts the arguments in the place of $ARGUMENTS, and single ones in that
// of $0, $1, … and $ARGUMENTS[0], $ARGUMENTS[1], …; those that were not given
// stay as they are written, and so does what has a backslash in front, which it
// loses. Arguments that the body has no place for follow it.
func Fill(body, args string) string {
	out, used := fill(body, args)
	if !used && args != "" {
		out = strings.TrimRight(out, "\n") + "\n\nARGUMENTS: " + args
	}
	return out
}

// fill tells as well whether there was a place for arguments.
func fill(body, args string) (text string, used bool) {
	words := Words(args)
	text = placeholder().ReplaceAllStringFunc(body, func(p string) string {
		if literal, ok := strings.CutPrefix(p, `\`); ok {
			return literal
		}
		used = true
		m := placeholder().FindStringSubmatch(p)
		if m[2] != "" {
			return args
		}
		i, err := strconv.Atoi(m[1] + m[3])
		if err != nil || i >= len(words) {
			return p
		}
		return words[i]
	})
	return text, used
}

var shellCommand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?m)^```!\\s*\\n((?s:.*?))\\n?```$|(?:^|[\\s])(!`([^`]+)`)")
})

// Run fills a body as [Fill] does and puts what its shell commands print in
// their place: !`command` and blocks of code that begin with ```!. What is
// printed, and what arguments hold, is text and nothing more. The error is that
// of run, which is given the command and how it is written.
func Run(body, args string, run func(command, pattern string) (string, error)) (string, error) {
	var printed []string
	var failed error
	body = shellCommand().ReplaceAllStringFunc(body, func(found string) string {
		m := shellCommand().FindStringSubmatch(found)
		command, pattern, before := m[1], found, ""
		if m[3] != "" {
			command, pattern = m[3], m[2]
			before = strings.TrimSuffix(found, pattern)
		}
		if failed != nil {
			return found
		}
		filled, _ := fill(command, args)
		if filled != command {
			pattern, _ = fill(pattern, args)
		}
		var out string
		out, failed = run(filled, pattern)
		printed = append(printed, out)
		return before + mark(len(printed)-1)
	})
	if failed != nil {
		return "", failed
	}
	body = Fill(body, args)
	for i, out := range printed {
		body = strings.Replace(body, mark(i), out, 1)
	}
	return body, nil
}

// mark stands for what a command has printed, until arguments are filled in.
func mark(i int) string { return fmt.Sprintf("\x00%d\x00", i) }

// Words splits arguments as a shell does: at blanks and operators, quotes and
// backslashes keep them. A quote that is never closed is a character.
func Words(args string) []string {
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
			text, n := quoted(args[i:])
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

// quoted reads the quote that s begins with; n is its length.
func quoted(s string) (text string, n int) {
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
	return s[:1], 1
}
