package shellcmd

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	positionalPattern        = LazyPattern(`^\$(\d|\{\d+(:\?)?\}|[@*]|\{[@*]\})`)
	quotedVariablePattern    = LazyPattern(`'[^']*\$[^']*'`)
	untrackedArgumentPattern = LazyPattern(`(?s)\$\{?[@*\d].*\b(shift|set\s+(--|[^-+\s]))|(\b(shift|set\s+(--|[^-+\s]))|\(\)).*\$\{?[@*\d]|\$\{[@*]:|\$\{\d+([^}:\d]|:[^?])|'[^']*\$\{?[@*\d][^']*'`)
)

// HasUnclearScript reports whether the command passes to a shell a script that refers to one of the variables, quoted
// or not, or that uses its arguments in a way that the real CLI does not follow, as after shift (observed with
// 2.1.330).
func (c Command) HasUnclearScript(variables []string) bool {
	inner := c.Innermost()
	i := scriptArgumentIndex(inner.Args)
	if i == 0 {
		return false
	}
	script := inner.Args[i]
	if inner.Words[i].IsDynamic {
		return quotedVariablePattern().MatchString(script)
	}
	return len(inner.Args) > i+1 && untrackedArgumentPattern().MatchString(script) || slices.ContainsFunc(variables, func(name string) bool {
		return regexp.MustCompile(`\$\{?#?` + regexp.QuoteMeta(name) + `\b`).MatchString(script)
	})
}

// withArguments replaces $1, $@ and similar expansions in a script by arguments; the first argument is $0.
func withArguments(script string, args []Word) string {
	if len(args) < 2 {
		script = strings.ReplaceAll(script, `"$@"`, "")
	}
	var b strings.Builder
	var quote byte
	for i := 0; i < len(script); i++ {
		c := script[i]
		found := positionalPattern().FindString(script[i:])
		switch {
		case quote != '\'' && c == '\\' && i+1 < len(script):
			b.WriteByte(c)
			i++
		case quote != '\'' && found != "" && (quote != 0 || len(args) > 0):
			b.WriteString(argumentText(strings.Trim(found, "${:?}"), args, quote != 0))
			i += len(found) - 1
			continue
		case quote == c:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
		b.WriteByte(script[i])
	}
	return b.String()
}

// argumentText returns the text of the positional parameter name, as it is written in a script.
func argumentText(name string, args []Word, quoted bool) string {
	chosen := args[min(1, len(args)):]
	if n, err := strconv.Atoi(name); err == nil {
		chosen = args[min(n, len(args)):min(n+1, len(args))]
	}
	texts := make([]string, len(chosen))
	for i, w := range chosen {
		texts[i] = w.Source
		if rest, ok := strings.CutPrefix(w.Source, "~"); ok && (rest == "" || rest[0] == '/') {
			texts[i] = `"$HOME"` + rest
		}
		if w.Shape == "" {
			texts[i] = ""
		}
		if quoted {
			texts[i] = strings.Trim(strings.ReplaceAll(texts[i], `"$HOME"`, "$HOME"), `"'`)
		}
	}
	if quoted && name == "@" {
		return strings.Join(texts, `" "`)
	}
	return strings.Join(texts, " ")
}
