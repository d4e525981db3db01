package pickle

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

const maxReprDepth = 12

// Repr returns at most about limit bytes of Python's repr of a value. An object created by a call is shown as the call.
func Repr(v any, limit int) string {
	p := &printer{remaining: limit}
	p.writeValue(v, 0)
	if p.remaining < 0 {
		return strings.ToValidUTF8(p.b.String()[:limit], "") + "…"
	}
	return p.b.String()
}

type printer struct {
	b         strings.Builder
	remaining int // remaining number of bytes; when it becomes negative, writing stops
}

func (p *printer) writeText(s string) {
	if p.remaining >= 0 {
		if len(s) > p.remaining+1 {
			s = s[:p.remaining+1]
		}
		p.b.WriteString(s)
		p.remaining -= len(s)
	}
}

func (p *printer) writeValue(v any, depth int) {
	switch {
	case p.remaining < 0:
		return
	case depth > maxReprDepth:
		p.writeText("…")
		return
	}
	switch x := v.(type) {
	case nil:
		p.writeText("None")
	case bool:
		p.writeText(map[bool]string{true: "True", false: "False"}[x])
	case *big.Int:
		if x.BitLen() > 4*(p.remaining+16) { // more digits than are displayed
			p.writeText(fmt.Sprintf("<int of %d bits>", x.BitLen()))
			return
		}
		p.writeText(x.String())
	case float64:
		p.writeText(floatRepr(x))
	case string:
		p.writeText(quote(x[:min(len(x), p.remaining+2)], strconv.IsPrint))
	case []byte:
		p.writeText("b" + quoteBytes(x[:min(len(x), p.remaining+2)]))
	case *List:
		p.writeDelimitedItems("[", x.Items, "]", depth)
	case *Tuple:
		end := ")"
		if len(x.Items) == 1 {
			end = ",)"
		}
		p.writeDelimitedItems("(", x.Items, end, depth)
	case *Set:
		p.writeSet(x, depth)
	case *Dict:
		p.writeDict(x, depth)
	case *Global:
		p.writeText(x.String())
	case *Object:
		p.writeObject(x, depth)
	default:
		p.writeText(fmt.Sprintf("<%T>", v))
	}
}

func (p *printer) writeDelimitedItems(open string, items []any, end string, depth int) {
	p.writeText(open)
	p.writeSeparated(len(items), func(i int) { p.writeValue(items[i], depth+1) })
	p.writeText(end)
}

func (p *printer) writeSeparated(count int, write func(i int)) {
	for i := 0; i < count && p.remaining >= 0; i++ {
		if i > 0 {
			p.writeText(", ")
		}
		write(i)
	}
}

func (p *printer) writeSet(s *Set, depth int) {
	name := TypeName(s)
	switch {
	case len(s.Items) == 0:
		p.writeText(name + "()")
	case s.Frozen:
		p.writeDelimitedItems("frozenset({", s.Items, "})", depth)
	default:
		p.writeDelimitedItems("{", s.Items, "}", depth)
	}
}

func (p *printer) writeDict(d *Dict, depth int) {
	p.writeText("{")
	p.writeSeparated(len(d.Keys), func(i int) {
		p.writeValue(d.Keys[i], depth+1)
		p.writeText(": ")
		p.writeValue(d.Values[i], depth+1)
	})
	p.writeText("}")
}

func (p *printer) writeObject(o *Object, depth int) {
	if text, ok := stringArgumentOfDillCall(o.Callee, o.Args, "_eval_repr"); ok {
		p.writeText(text)
		return
	}
	p.writeValue(o.Callee, depth+1)
	if args, ok := o.Args.(*Tuple); ok {
		p.writeDelimitedItems("(", args.Items, ")", depth)
	} else {
		p.writeText("(*")
		p.writeValue(o.Args, depth+1)
		p.writeText(")")
	}
	if o.State != nil {
		p.writeText(" state=")
		p.writeValue(o.State, depth+1)
	}
}

func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote selects quotes as Python does: single quotes, unless the text contains single but no double quotes. Characters
// that are not printable are escaped.
func quote(s string, isPrintable func(rune) bool) string {
	q := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteRune(q)
	for _, r := range s {
		switch {
		case r == q || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case isPrintable(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(q)
	return b.String()
}

func quoteBytes(raw []byte) string {
	var characters strings.Builder // one character for each byte
	for _, c := range raw {
		characters.WriteRune(rune(c))
	}
	return quote(characters.String(), func(r rune) bool { return r >= ' ' && r < 0x7f })
}
