package shellcmd

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	positionalPattern             = LazyRegexp(`^\$(\d|\{\d+(:\?)?\}|[@*]|\{[@*]\})`)
	singleQuotedDollarPattern     = LazyRegexp(`'[^']*\$[^']*'`)
	untraceablePositionalsPattern = LazyRegexp(`(?s)\$\{?[@*\d].*\b(shift|set\s+(--|[^-+\s]))|(\b(shift|set\s+(--|[^-+\s]))|\(\)).*\$\{?[@*\d]|\$\{[@*]:|\$\{\d+([^}:\d]|:[^?])|'[^']*\$\{?[@*\d][^']*'`)
)

// PassesUnclearScriptToShell reports whether the command passes to a shell a script that the real CLI cannot follow (observed with
// 2.1.330): the script refers to one of the variables, even within quotes, or it uses its arguments in an unclear way, for example after
// shift.
func (c Command) PassesUnclearScriptToShell(unclearVariables []string) bool {
	inner := c.Innermost()
	i := indexOfShellScriptArgument(inner.Args)
	if i == 0 {
		return false
	}
	script := inner.Args[i]
	if inner.Words[i].IsDynamic {
		return singleQuotedDollarPattern().MatchString(script)
	}
	return len(inner.Args) > i+1 && untraceablePositionalsPattern().MatchString(script) || slices.ContainsFunc(unclearVariables, func(name string) bool {
		return regexp.MustCompile(`\$\{?#?` + regexp.QuoteMeta(name) + `\b`).MatchString(script)
	})
}

// replacePositionalParameters replaces $1, $@ and similar expansions in a script by arguments, which start with $0.
func replacePositionalParameters(script string, argumentsFromDollarZero []Word) string {
	if len(argumentsFromDollarZero) < 2 {
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
		case quote != '\'' && found != "" && (quote != 0 || len(argumentsFromDollarZero) > 0):
			b.WriteString(sourceOfPositionalParameter(strings.Trim(found, "${:?}"), argumentsFromDollarZero, quote != 0))
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

func sourceOfPositionalParameter(name string, argumentsFromDollarZero []Word, isInsideQuotes bool) string {
	chosen := argumentsFromDollarZero[min(1, len(argumentsFromDollarZero)):]
	if n, err := strconv.Atoi(name); err == nil {
		chosen = argumentsFromDollarZero[min(n, len(argumentsFromDollarZero)):min(n+1, len(argumentsFromDollarZero))]
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
		if isInsideQuotes {
			texts[i] = strings.Trim(strings.ReplaceAll(texts[i], `"$HOME"`, "$HOME"), `"'`)
		}
	}
	if isInsideQuotes && name == "@" {
		return strings.Join(texts, `" "`)
	}
	return strings.Join(texts, " ")
}
