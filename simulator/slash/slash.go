// Package slash reads slash commands and words what the local ones say.
//
// Its one invariant: it only makes text from what it is given. It must not
// know turns, events or where custom commands come from.
package slash

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Call is a prompt that is a slash command: "/name args".
type Call struct {
	Name string // without the slash: "clear", "plugin:cmd", "mcp__server__prompt"
	Args string // the rest, without the space around it
}

var name = regexp.MustCompile(`^/([A-Za-z0-9][A-Za-z0-9_:.-]*)(?:\s+|$)`)

// Parse reads a prompt; false = it is plain text. A path is no command.
func Parse(prompt string) (Call, bool) {
	prompt = strings.TrimSpace(prompt)
	m := name.FindStringSubmatch(prompt)
	if m == nil {
		return Call{}, false
	}
	return Call{Name: m[1], Args: strings.TrimSpace(prompt[len(m[0]):])}, true
}

// Tags is what a transcript keeps of a call in place of the prompt (spec:
// cli-contract 9.6).
func (c Call) Tags() string {
	s := "<command-message>" + c.Name + "</command-message>\n<command-name>/" + c.Name + "</command-name>"
	if c.Args != "" {
		s += "\n<command-args>" + c.Args + "</command-args>"
	}
	return s
}

// Output is what a local command printed, as users' messages hold it.
func Output(text string) string { return "<local-command-stdout>" + text + "</local-command-stdout>" }

// Expansion is what a custom command, a skill or an MCP prompt says to the
// model in place of the call.
type Expansion struct {
	Text   string
	Kind   string // "slash_command" or "mcp_prompt"
	Source string // where it was found: "projectSettings", "userSettings", "plugin", "mcp"; empty = unknown
}

var placeholder = regexp.MustCompile(`\$ARGUMENTS\[(\d+)\]|\$ARGUMENTS|\$(\d+)`)

// Fill puts the arguments in the place of $ARGUMENTS, and single ones in that
// of $1, $2, … and $ARGUMENTS[0], $ARGUMENTS[1], …. Arguments that the body
// has no place for follow it.
func Fill(body, args string) string {
	words := Words(args)
	used := false
	word := func(i int) string {
		if i < 0 || i >= len(words) {
			return ""
		}
		return words[i]
	}
	out := placeholder.ReplaceAllStringFunc(body, func(p string) string {
		used = true
		m := placeholder.FindStringSubmatch(p)
		switch {
		case m[1] != "":
			i, _ := strconv.Atoi(m[1]) // too large a number is no word either
			return word(i)
		case m[2] != "":
			i, _ := strconv.Atoi(m[2])
			return word(i - 1)
		default:
			return args
		}
	})
	if !used && args != "" {
		out = strings.TrimRight(out, "\n") + "\n\nARGUMENTS: " + args
	}
	return out
}

// Words splits arguments at blanks; single and double quotes keep them.
func Words(args string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	open := false
	for _, r := range args {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}

// Unavailable is what a command says that exists on a terminal only.
func Unavailable(name string) string {
	return "/" + name + " isn't available in this environment."
}

// Model is one model's line of /cost.
type Model struct {
	Name                string
	Input, Output       int
	CacheRead, CacheNew int
	USD                 float64
}

// Cost is what /cost tells.
type Cost struct {
	USD    float64
	APIMS  int
	WallMS int
	Models []Model
}

// Text words the costs.
func (c Cost) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Total cost:            $%.4f\n", c.USD)
	fmt.Fprintf(&b, "Total duration (API):  %.1fs\n", float64(c.APIMS)/1000)
	fmt.Fprintf(&b, "Total duration (wall): %.1fs", float64(c.WallMS)/1000)
	if len(c.Models) > 0 {
		b.WriteString("\nUsage by model:")
	}
	for _, m := range c.Models {
		fmt.Fprintf(&b, "\n%20s:  %d input, %d output, %d cache read, %d cache write ($%.4f)", m.Name, m.Input, m.Output, m.CacheRead, m.CacheNew, m.USD)
	}
	return b.String()
}
