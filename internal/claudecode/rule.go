package claudecode

import (
	"slices"
	"strings"
)

// RuleText is the text of a permission rule in its parts: Tool or Tool(content). The zero value is the empty text.
type RuleText struct {
	Tool       string // the text before the first parenthesis
	Content    string // the text in the parentheses, with its escapes
	HasContent bool   // there is an opening parenthesis
	IsClosed   bool   // the text ends with a closing parenthesis
}

// ParseRuleText splits the text of a rule without validating it. If the closing parenthesis is missing, Content
// is everything after the opening one.
func ParseRuleText(text string) RuleText {
	var r RuleText
	r.Tool, r.Content, r.HasContent = strings.Cut(text, "(")
	if r.HasContent {
		r.Content, r.IsClosed = strings.CutSuffix(r.Content, ")")
	}
	return r
}

// PermitsArbitraryCode reports whether a Bash rule with this content permits a program that runs any code. Examples are
// python3:* and py*. Plan mode and auto mode ignore such a rule if no user can be asked (observed with 2.1.330).
func PermitsArbitraryCode(content string) bool {
	prefix, isPrefix := strings.CutSuffix(content, ":*")
	attached := false
	if !isPrefix {
		prefix, isPrefix = strings.CutSuffix(content, "*")
		attached = isPrefix && !strings.HasSuffix(prefix, " ")
	}
	prefix = strings.TrimRight(prefix, " ")
	if word, rest, _ := strings.Cut(prefix, " "); strings.TrimRight(strings.TrimPrefix(word, "python"), "0123456789.") == "" && word != "" {
		prefix = strings.TrimRight("python "+rest, " ")
	}
	return slices.ContainsFunc(codeRunners[:], func(name string) bool {
		return prefix == name || attached && prefix != "" && strings.HasPrefix(name, prefix) || isPrefix && strings.HasPrefix(prefix, name+" -")
	})
}

// codeRunners are programs that run code or commands from their arguments.
var codeRunners = [...]string{
	"python", "node", "deno", "tsx", "ruby", "perl", "php", "lua", "npx", "bunx", "npm run", "npm exec", "yarn run", "yarn exec", "yarn dlx",
	"pnpm run", "pnpm exec", "pnpm dlx", "bun run", "bun x", "bash", "sh", "zsh", "fish", "ksh", "mksh", "dash", "ash", "csh", "tcsh",
	"powershell", "pwsh", "cmd", "busybox", "ssh", "env", "xargs", "eval", "exec", "source", "sudo", "doas", "su", "runuser", "pkexec",
	"timeout", "nohup", "nice", "ionice", "stdbuf", "setsid", "flock", "unshare", "script", "strace", "ltrace",
}
