package shellcmd

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Placeholders for expansions in a Shape. Command lines cannot contain these characters: the tools refuse them.
const (
	PlaceholderOutput    = '\x01' // $( … ), backquotes
	PlaceholderVariable  = '\x02' // $NAME and ${NAME}
	PlaceholderExpansion = '\x03' // any other expansion
	PlaceholderHome      = '\x04' // $HOME, however it is expanded
	PlaceholderNotEmpty  = '\x05' // ${NAME:-x} and ${NAME:?}
)

// wordShape returns a word without its quoting, with a placeholder for each expansion.
// Globs, braces and tildes are unchanged, quoted or not.
func wordShape(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		appendShape(&b, part)
	}
	return b.String()
}

func appendShape(b *strings.Builder, part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		for i := 0; i < len(p.Value); i++ {
			if p.Value[i] == '\\' {
				if i++; i == len(p.Value) || p.Value[i] == '\n' {
					continue
				}
			}
			b.WriteByte(p.Value[i])
		}
	case *syntax.SglQuoted:
		b.WriteString(singleQuoted(p))
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				appendQuoted(b, lit.Value)
				continue
			}
			appendShape(b, inner)
		}
	case *syntax.CmdSubst:
		b.WriteByte(PlaceholderOutput)
	case *syntax.ParamExp:
		switch {
		case p.Param != nil && p.Param.Value == "HOME" && !p.Length && !p.Excl:
			b.WriteByte(PlaceholderHome)
		case isPlainExpansion(p):
			b.WriteByte(PlaceholderVariable)
		case p.Exp != nil && (p.Exp.Op == syntax.DefaultUnsetOrNull || p.Exp.Op == syntax.ErrorUnsetOrNull):
			b.WriteByte(PlaceholderNotEmpty)
		default:
			b.WriteByte(PlaceholderExpansion)
		}
	case *syntax.ExtGlob:
		b.WriteString(p.Op.String() + p.Pattern.Value + ")")
	default:
		b.WriteByte(PlaceholderExpansion)
	}
}
