package shellcmd

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Placeholders for expansions in a Shape. Command lines cannot contain these
// characters: the tools refuse them.
const (
	Output   = '\x01' // $( … ), backquotes
	Variable = '\x02' // $NAME and ${NAME}
	Expanded = '\x03' // any other expansion
	HomeDir  = '\x04' // $HOME, however it is expanded
	NotEmpty = '\x05' // ${NAME:-x} and ${NAME:?}
)

// shape returns a word without its quoting, with a placeholder for each expansion.
// Globs, braces and tildes are unchanged, quoted or not.
func shape(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		shapePart(&b, part)
	}
	return b.String()
}

func shapePart(b *strings.Builder, part syntax.WordPart) {
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
		if !literal(b, p) {
			b.WriteByte(Expanded)
		}
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				quoted(b, lit.Value)
				continue
			}
			shapePart(b, inner)
		}
	case *syntax.CmdSubst:
		b.WriteByte(Output)
	case *syntax.ParamExp:
		switch {
		case p.Param != nil && p.Param.Value == "HOME" && !p.Length && !p.Excl:
			b.WriteByte(HomeDir)
		case plainExpansion(p):
			b.WriteByte(Variable)
		case p.Exp != nil && (p.Exp.Op == syntax.DefaultUnsetOrNull || p.Exp.Op == syntax.ErrorUnsetOrNull):
			b.WriteByte(NotEmpty)
		default:
			b.WriteByte(Expanded)
		}
	case *syntax.ExtGlob:
		b.WriteString(p.Op.String() + p.Pattern.Value + ")")
	default:
		b.WriteByte(Expanded)
	}
}
