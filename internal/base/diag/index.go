package diag

import (
	"encoding/json"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// Path is the path of a value: string keys of tables and int indexes of arrays.
type Path []any

// SourceIndex contains the position of every key and value of a file. It may be used by many goroutines.
type SourceIndex struct {
	file, src string
	root      Value
	problem   *possibleSyntaxProblem

	once  sync.Once
	lines []int32 // offset of the beginning of each line; see lineStarts
}

// possibleSyntaxProblem is the first text that a scanner could not read with certainty.
type possibleSyntaxProblem struct {
	offset                 int
	message                string
	isRefusedBeforeParsing bool // the file is refused before the format's parser reads it
}

func (ix *SourceIndex) lineStarts() []int32 {
	ix.once.Do(func() {
		ix.lines = make([]int32, 1, 1+strings.Count(ix.src, "\n"))
		for i := 0; i < len(ix.src); i++ {
			j := strings.IndexByte(ix.src[i:], '\n')
			if j < 0 {
				break
			}
			i += j
			ix.lines = append(ix.lines, int32(i+1))
		}
	})
	return ix.lines
}

// IndexTOML scans TOML source. It never fails: it skips invalid text, which [SourceIndex.FirstPossibleProblem] reports.
func IndexTOML[Text string | []byte](file string, src Text) *SourceIndex {
	ix := &SourceIndex{file: file, src: string(src)}
	s := &tomlScanner{textScanner: textScanner{src: ix.src}, root: &table{hasHeader: true}}
	s.scan()
	s.replaceProblemIfTooDeep()
	ix.root, ix.problem = Value{Kind: KindTable, table: s.root}, s.problem
	return ix
}

// IndexJSON scans JSON source. It never fails: text after the first error is not indexed; see [SourceIndex.FirstPossibleProblem].
func IndexJSON(file string, src []byte) *SourceIndex {
	ix := &SourceIndex{file: file, src: string(src)}
	s := &jsonScanner{textScanner: textScanner{src: ix.src}}
	ix.root = s.scanDocument()
	ix.problem = s.problem
	return ix
}

// Text returns the source.
func (ix *SourceIndex) Text() string { return ix.src }

// Root returns the whole file as one table.
func (ix *SourceIndex) Root() Value { return ix.root }

// ConvertFromOlderFormat replaces the content of an index, whose file is in an older format, by the result of convertRoot. parsedTree is
// the file as decoded by the parser of its format. It may be nil only if FirstPossibleProblem returns nil.
func (ix *SourceIndex) ConvertFromOlderFormat(parsedTree map[string]any, convertRoot func(Value) Value) {
	if parsedTree != nil {
		ix.root = newValueFromDecoded(parsedTree, ix.root)
	}
	ix.root = convertRoot(ix.root)
}

// FirstPossibleProblem returns the first text that may be invalid. Only the format's parser can decide that. Nil means a valid file.
func (ix *SourceIndex) FirstPossibleProblem() *Diagnostic {
	if ix.problem == nil {
		return nil
	}
	return new(ix.diagnosticAt(ix.problem.offset, ix.problem.message))
}

// HasExceededParserLimit reports whether the file exceeds a limit. The format's parser must not get such a file.
func (ix *SourceIndex) HasExceededParserLimit() bool {
	return ix.problem != nil && ix.problem.isRefusedBeforeParsing
}

// Pos returns the position of path. The position of a table's field is that of its key, and the position of an element
// of [[a]] is that of its header. If the file does not contain path, Pos returns the position of the nearest parent.
func (ix *SourceIndex) Pos(path Path) Position {
	off, _, _ := ix.lookup(path)
	return ix.position(off)
}

// Keys returns the keys of the table at path in file order; nil if it is not a table.
func (ix *SourceIndex) Keys(path Path) []string {
	_, v, ok := ix.lookup(path)
	if !ok {
		return nil
	}
	var keys []string
	for _, f := range v.Fields() {
		keys = append(keys, f.Key)
	}
	return keys
}

// DiagnosticAt returns a diagnostic with the position and source line of path.
func (ix *SourceIndex) DiagnosticAt(path Path, message string) Diagnostic {
	off, _, _ := ix.lookup(path)
	return ix.diagnosticAt(off, message)
}

// DiagnosticAtLine returns a diagnostic for a line and column that another parser reported.
func (ix *SourceIndex) DiagnosticAtLine(line, col int, message string) Diagnostic {
	lines := ix.lineStarts()
	line = max(1, min(line, len(lines)))
	d := ix.diagnosticAt(int(lines[line-1]), message)
	d.Pos.Col = max(1, min(col, 1+utf8.RuneCountInString(d.Source)))
	return d
}

// DiagnosticAtText returns a diagnostic for a place in the string at path. charOffset is the number of characters before
// this place. If the string contains escapes, the diagnostic points to the beginning of the string.
func (ix *SourceIndex) DiagnosticAtText(path Path, charOffset int, message string) Diagnostic {
	off, v, ok := ix.lookup(path)
	if ok && v.Kind == KindString {
		off = int(v.offset)
		for _, quotes := range []int{1, 3, 4, 5} { // length of the quotes: ", """, or """ and a line end
			if begin := off + quotes; begin <= len(ix.src) && strings.HasPrefix(ix.src[begin:], v.Text) {
				off = begin + byteOffset(v.Text, charOffset)
				break
			}
		}
	}
	return ix.diagnosticAt(off, message)
}

func byteOffset(s string, runes int) int {
	for i := range s {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(s)
}

// Lookup returns the value at path; ok is false if none exists.
func (ix *SourceIndex) Lookup(path Path) (Value, bool) {
	_, v, ok := ix.lookup(path)
	return v, ok
}

func (ix *SourceIndex) lookup(path Path) (off int, v Value, ok bool) {
	v = ix.root
	off = int(v.offset)
	for _, step := range path {
		switch s := step.(type) {
		case string:
			if v.table == nil {
				return off, v, false
			}
			f := v.table.findField(s)
			if f == nil {
				return off, v, false
			}
			off, v = int(f.offset), f.Value
		case int:
			items := v.Items()
			if s < 0 || s >= len(items) {
				return off, v, false
			}
			v = items[s]
			off = int(v.offset)
		default:
			return off, v, false
		}
	}
	return off, v, true
}

func (ix *SourceIndex) position(off int) Position {
	off = max(0, min(off, len(ix.src)))
	lines := ix.lineStarts()
	line := sort.Search(len(lines), func(i int) bool { return int(lines[i]) > off })
	return Position{File: ix.file, Line: line, Col: 1 + utf8.RuneCountInString(ix.src[int(lines[line-1]):off])}
}

func (ix *SourceIndex) diagnosticAt(off int, message string) Diagnostic {
	pos := ix.position(off)
	line, _, _ := strings.Cut(ix.src[ix.lineStarts()[pos.Line-1]:], "\n")
	return Diagnostic{Pos: pos, Message: message, Source: strings.TrimSuffix(line, "\r")}
}

// jsonScanner reads JSON (RFC 8259) and stops at the first error. Comments and repeated keys are errors.
type jsonScanner struct {
	textScanner
	depth int
}

func (s *jsonScanner) scanDocument() Value {
	if !utf8.ValidString(s.src) {
		s.recordProblemAndReturnFalse(0, "the file is not valid UTF-8")
	}
	v, ok := s.scanValue()
	s.skipSpace()
	if ok && s.pos < len(s.src) {
		s.recordProblemAndReturnFalse(s.pos, "expected the end of the file")
	}
	if ok && v.Kind != KindTable {
		s.recordProblemAndReturnFalse(int(v.offset), "expected an object")
	}
	if v.Kind != KindTable {
		return Value{Kind: KindTable, table: &table{}}
	}
	return v
}

func (s *jsonScanner) skipSpace() {
	for s.pos < len(s.src) && strings.IndexByte(" \t\r\n", s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *jsonScanner) scanValue() (Value, bool) {
	s.skipSpace()
	v := Value{offset: int32(s.pos)}
	var ok bool
	switch s.peekByteOrZero() {
	case '{':
		v.Kind = KindTable
		v.table, ok = s.scanObject()
	case '[':
		v.Kind = KindArray
		v.list = &tomlOrJSONArrayElements{}
		v.list.items, ok = s.scanArray()
	case '"':
		v.Kind = KindString
		v.Text, ok = s.scanString()
	default:
		v.Kind, v.Text, ok = s.scanBareValue()
	}
	return v, ok
}

func (s *jsonScanner) scanObject() (*table, bool) {
	t := &table{}
	ok := s.scanElements('}', func() bool {
		s.skipSpace()
		off := s.pos
		if s.peekByteOrZero() != '"' {
			return s.recordProblemAndReturnFalse(s.pos, "expected a key in double quotes")
		}
		key, ok := s.scanString()
		if !ok {
			return false
		}
		s.skipSpace()
		if s.peekByteOrZero() != ':' {
			return s.recordProblemAndReturnFalse(s.pos, "expected `:` after the key")
		}
		s.pos++
		v, ok := s.scanValue()
		if t.findField(key) != nil {
			s.recordProblemAndReturnFalse(off, "key `"+key+"` is defined twice")
		}
		t.addField(TableEntry{Key: key, Value: v, offset: int32(off)})
		return ok
	})
	return t, ok
}

func (s *jsonScanner) scanArray() ([]Value, bool) {
	items := []Value{}
	ok := s.scanElements(']', func() bool {
		v, ok := s.scanValue()
		items = append(items, v)
		return ok
	})
	return items, ok
}

// scanElements reads the elements of an array or object, from the opening bracket to the closing bracket, which is the byte end.
func (s *jsonScanner) scanElements(end byte, scanElement func() bool) bool {
	if s.depth >= maxNestingDepth {
		return s.recordProblemAndReturnFalse(s.pos, "objects and arrays are nested too deeply")
	}
	s.depth++
	defer func() { s.depth-- }()
	s.pos++
	s.skipSpace()
	if s.peekByteOrZero() == end {
		s.pos++
		return true
	}
	for scanElement() {
		s.skipSpace()
		switch s.peekByteOrZero() {
		case ',':
			s.pos++
		case end:
			s.pos++
			return true
		default:
			return s.recordProblemAndReturnFalse(s.pos, "expected `,` or `"+string(end)+"`")
		}
	}
	return false
}

func (s *jsonScanner) scanString() (string, bool) {
	start := s.pos
	plain := true
	for i := start + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return "", s.recordProblemAndReturnFalse(i, "the string is not closed, or contains a control character")
		case c == '"':
			s.pos = i + 1
			if plain {
				return s.src[start+1 : i], true
			}
			var text string
			if err := json.Unmarshal([]byte(s.src[start:s.pos]), &text); err != nil {
				return "", s.recordProblemAndReturnFalse(start, "the string contains an invalid escape sequence")
			}
			return text, true
		}
	}
	return "", s.recordProblemAndReturnFalse(start, "the string is not closed")
}

func (s *jsonScanner) scanBareValue() (Kind, string, bool) {
	start := s.pos
	for s.pos < len(s.src) && (isBareKeyByte(s.src[s.pos]) || s.src[s.pos] == '+' || s.src[s.pos] == '.') {
		s.pos++
	}
	text := s.src[start:s.pos]
	switch {
	case text == "true" || text == "false":
		return KindBool, text, true
	case text == "null":
		return KindNull, "", true
	case text == "":
		return KindNull, "", s.recordProblemAndReturnFalse(start, "expected a value")
	case text[0] != '-' && (text[0] < '0' || text[0] > '9') || !json.Valid([]byte(text)):
		return KindNull, "", s.recordProblemAndReturnFalse(start, "`"+text+"` is not a JSON value")
	case strings.ContainsAny(text, ".eE"):
		return KindFloat, text, true
	}
	return KindInt, text, true
}
