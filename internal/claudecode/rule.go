package claudecode

import "strings"

// RuleText is the text of a permission rule in its parts: Tool or Tool(content). The zero value is the empty text.
type RuleText struct {
	Tool       string // the text before the first parenthesis
	Content    string // the text in the parentheses, with its escapes
	HasContent bool   // there is an opening parenthesis
	IsClosed   bool   // the text ends with the closing parenthesis
}

// ParseRuleText takes the text of a rule apart. It judges nothing: without the closing parenthesis Content is the rest of
// the text.
func ParseRuleText(text string) RuleText {
	var r RuleText
	r.Tool, r.Content, r.HasContent = strings.Cut(text, "(")
	if r.HasContent {
		r.Content, r.IsClosed = strings.CutSuffix(r.Content, ")")
	}
	return r
}
