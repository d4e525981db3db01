package shellcmd

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxSpellings bounds what the braces of one word may stand for; a word with
// more is not known.
const maxSpellings = 256

// Word is what is known of a word before it runs.
type Word struct {
	// Dynamic says that the word holds an expansion or an unquoted glob.
	Dynamic bool
	// Paths are the names that the word stands for, one for each way to resolve
	// its braces; nil = it cannot be told.
	Paths []Path
	// Tilde says that the word begins with ~user, ~+ or ~-.
	Tilde bool
	// Coded says that the word holds $'…' or $"…", or that a line ends inside it.
	Coded bool
	// Source is the word as it is written.
	Source string
	// Spaced says that more than one blank, or a tab, is in front of the word.
	Spaced bool
	// Value is the text of a variable that the word is, and that the script set
	// before; empty = it is none.
	Value string
	// Shape is the word of a command without its quoting, with [Output] and its
	// like in the place of expansions.
	Shape string
}

// Path is a word in which nothing but a leading home directory and globs are
// left to resolve.
type Path struct {
	Home bool   // Name is below the home directory
	Name string // with its quoting removed; empty = the home directory itself
	// Glob is the pattern that Name is when it has unquoted stars, question
	// marks or brackets, with all other special characters escaped; empty = none.
	Glob string
}

// word returns the word without its quoting, or, when it is dynamic, as it was
// written.
func (r *reader) word(w *syntax.Word) (text string, known Word) {
	known = Word{Paths: r.spellings(w), Tilde: tilde(w), Shape: shape(w), Source: r.text(w)}
	known.Coded = strings.Contains(strings.TrimSuffix(known.Source, "\\\n"), "\\\n")
	var b strings.Builder
	for _, part := range w.Parts {
		known.Coded = known.Coded || coded(part)
	}
	if p, ok := w.Parts[0].(*syntax.ParamExp); ok && len(w.Parts) == 1 && plainExpansion(p) {
		known.Value = r.values[p.Param.Value]
	}
	for _, part := range w.Parts {
		if !literal(&b, part) {
			known.Dynamic = true
			return r.text(w), known
		}
	}
	return b.String(), known
}

// coded tells whether the part is $'…' or $"…".
func coded(part syntax.Node) bool {
	switch p := part.(type) {
	case *syntax.SglQuoted:
		return p.Dollar
	case *syntax.DblQuoted:
		return p.Dollar
	default:
		return false
	}
}

func tilde(w *syntax.Word) bool {
	if len(w.Parts) == 0 {
		return false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	return ok && len(lit.Value) > 1 && lit.Value[0] == '~' && lit.Value[1] != '/'
}

// spellings resolves the braces of a word; nil = what it stands for is not
// known.
func (r *reader) spellings(w *syntax.Word) []Path {
	words := []*syntax.Word{w}
	if split := (&syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}); syntax.SplitBraces(split) {
		words = nil
		for one, err := range expand.BracesSeq(nil, split) {
			if err != nil || len(words) == maxSpellings {
				return nil
			}
			words = append(words, one)
		}
	}
	var out []Path
	for _, one := range words {
		s := speller{home: !r.setsHome}
		for i, part := range one.Parts {
			if !s.part(part, i == 0) {
				return nil
			}
		}
		out = append(out, s.path())
	}
	return out
}

// speller spells one word.
type speller struct {
	home    bool // $HOME is the home directory
	below   bool // the word begins with it
	here    bool // the word begins with the working directory
	globs   bool
	name    strings.Builder
	pattern strings.Builder
}

func (s *speller) path() Path {
	p := Path{Home: s.below, Name: s.name.String()}
	if s.globs {
		p.Glob = s.pattern.String()
	}
	if s.below {
		p.Name, p.Glob = strings.TrimPrefix(p.Name, "/"), strings.TrimPrefix(p.Glob, "/")
	}
	if s.here {
		p.Name, p.Glob = "."+p.Name, "."+p.Glob
		if !s.globs {
			p.Glob = ""
		}
	}
	return p
}

// part spells one part; false = what it becomes is not known.
func (s *speller) part(part syntax.WordPart, first bool) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return s.literal(p.Value, first)
	case *syntax.SglQuoted:
		value := p.Value
		if p.Dollar {
			var err error // (a nil Config is one that all callers share)
			if value, _, err = expand.Format(&expand.Config{}, value, nil); err != nil {
				return false
			}
		}
		s.plain(value)
		return true
	case *syntax.DblQuoted:
		for i, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				if !s.variable(inner, first && i == 0, true) {
					return false
				}
				continue
			}
			var b strings.Builder
			quoted(&b, lit.Value)
			s.plain(b.String())
		}
		return true
	default:
		return s.variable(part, first, false)
	}
}

// variable takes $HOME and "$PWD" at the beginning of a word and nothing else.
func (s *speller) variable(part syntax.WordPart, first, quoted bool) bool {
	p, ok := part.(*syntax.ParamExp)
	if ok && first && quoted && p.Param != nil && p.Param.Value == "PWD" && plainExpansion(p) {
		s.here = true
		return true
	}
	if !ok || !first || !s.home || p.Param == nil || p.Param.Value != "HOME" || !plainExpansion(p) {
		return false
	}
	s.below = true
	return true
}

// plainExpansion says that the variable stands for its value and no more.
func plainExpansion(p *syntax.ParamExp) bool {
	return p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Length && !p.Excl && !p.Width && p.Names == 0
}

// plain adds text that stands for itself.
func (s *speller) plain(text string) {
	s.name.WriteString(text)
	for i := range len(text) {
		if strings.IndexByte(`*?[]\`, text[i]) >= 0 {
			s.pattern.WriteByte('\\')
		}
		s.pattern.WriteByte(text[i])
	}
}

// literal adds unquoted text.
func (s *speller) literal(text string, first bool) bool {
	if first && strings.HasPrefix(text, "~") {
		if text = text[1:]; text != "" && text[0] != '/' {
			return false
		}
		s.below = true
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i < len(text) && text[i] != '\n' {
				s.plain(text[i : i+1])
			}
		case '*', '?', '[':
			s.globs = s.globs || text != "["
			s.name.WriteByte(c)
			s.pattern.WriteByte(c)
		case ']':
			if !s.globs {
				s.plain("]")
				continue
			}
			s.name.WriteByte(c)
			s.pattern.WriteByte(c)
		default:
			s.plain(text[i : i+1])
		}
	}
	return true
}

func literal(b *strings.Builder, part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return unescape(b, p.Value)
	case *syntax.SglQuoted:
		value := p.Value
		if p.Dollar {
			var err error
			if value, _, err = expand.Format(&expand.Config{}, value, nil); err != nil {
				return false
			}
		}
		b.WriteString(value)
		return true
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				return false
			}
			quoted(b, lit.Value)
		}
		return true
	default:
		return false
	}
}

// unescape writes an unquoted literal; false = it holds a glob, a brace
// expansion or a tilde, so that it may become other words.
func unescape(b *strings.Builder, s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?', '[', '{', '~':
			// A lone bracket is the test command, a later tilde a letter.
			if s != "[" && s != "{" && (s[i] != '~' || i == 0) {
				return false
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return true
}

// quoted writes a literal from inside double quotes, where a backslash only
// escapes a few characters.
func quoted(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
}
