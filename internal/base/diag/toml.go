package diag

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// maxNestingDepth limits the nesting of arrays and tables, because the time of parsing grows faster than the depth.
const maxNestingDepth = 100

const tooDeepText = "nested too deep: at most 100 levels"

type textScanner struct {
	src     string
	pos     int
	problem *possibleSyntaxProblem
}

func (s *textScanner) recordProblemAndReturnFalse(off int, message string) bool {
	s.problem = cmp.Or(s.problem, &possibleSyntaxProblem{offset: off, message: message})
	return false
}

func (s *textScanner) peekByteOrZero() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

// tomlScanner reads TOML 1.0 in one pass. It accepts only text that is certainly valid and reports all other text as a
// problem. After a problem it continues with the next line, to index the positions of later values too.
type tomlScanner struct {
	textScanner
	root       *table
	current    *table // table of the last header
	depth      int    // nesting depth of arrays, inline tables and parts of keys
	tableDepth int    // number of parts of the last header

	// Tables and their first fields are allocated in chunks, because big files have tens of thousands of small tables.
	tables         []table
	fields         []TableEntry
	headersCounted bool // initialCapacityOfTableArray has counted the headers, which it does only once
}

const initialTableCapacity = 2

func (s *tomlScanner) newTable() *table {
	const chunk = 128
	if len(s.tables) == 0 {
		// Small files use small chunks.
		n := min(chunk, 4+len(s.src)/128)
		s.tables, s.fields = make([]table, n), make([]TableEntry, initialTableCapacity*n)
	}
	t := &s.tables[0]
	t.fields = s.fields[0:0:initialTableCapacity]
	s.tables, s.fields = s.tables[1:], s.fields[initialTableCapacity:]
	return t
}

func (s *tomlScanner) scan() {
	s.current = s.root
	if !utf8.ValidString(s.src) {
		s.recordProblemAndReturnFalse(0, "the file is not valid UTF-8")
	}
	if strings.HasPrefix(s.src, "\ufeff") {
		s.pos = len("\ufeff")
	}
	for {
		s.skipBlankAndComments()
		if s.pos >= len(s.src) {
			return
		}
		ok := false
		if s.src[s.pos] == '[' {
			ok = s.scanHeader()
		} else {
			ok = s.scanKeyValue(s.current)
		}
		if !ok || !s.scanLineEnd() {
			s.skipToLineEnd()
		}
	}
}

// enterLevel enters a nesting level. Beyond the limit it returns false and replaces earlier problems by tooDeepText.
func (s *tomlScanner) enterLevel() bool {
	if s.depth++; s.tableDepth+s.depth <= maxNestingDepth {
		return true
	}
	if s.problem == nil || !s.problem.isRefusedBeforeParsing {
		s.problem = &possibleSyntaxProblem{offset: s.pos, message: tooDeepText, isRefusedBeforeParsing: true}
	}
	return false
}

// replaceProblemIfTooDeep rejects an invalid text that looks too deeply nested for the format's parser. It also counts brackets
// in strings, so it may reject a text that is not nested that deeply.
func (s *tomlScanner) replaceProblemIfTooDeep() {
	const most = 5 * maxNestingDepth
	if s.problem == nil || s.problem.isRefusedBeforeParsing {
		return
	}
	depth := 0
	for i := range len(s.src) {
		switch s.src[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth = max(0, depth-1)
		}
		if depth > most {
			s.problem = &possibleSyntaxProblem{offset: i, message: tooDeepText, isRefusedBeforeParsing: true}
			return
		}
	}
}

func (s *tomlScanner) skipSpace() {
	for s.pos < len(s.src) && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t') {
		s.pos++
	}
}

func (s *tomlScanner) skipBlankAndComments() {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\n':
			s.pos++
		case c == '\r' && strings.HasPrefix(s.src[s.pos:], "\r\n"):
			s.pos += 2
		case c == '#':
			s.skipComment()
		default:
			return
		}
	}
}

func (s *tomlScanner) skipComment() {
	start := s.pos
	s.skipToLineEnd()
	text := strings.TrimSuffix(s.src[start:s.pos], "\r")
	for i := 0; i < len(text); i++ {
		if isControlExceptTab(text[i]) {
			s.recordProblemAndReturnFalse(start+i, "control characters are not allowed in comments")
			return
		}
	}
}

func (s *tomlScanner) skipToLineEnd() {
	if end := strings.IndexByte(s.src[s.pos:], '\n'); end >= 0 {
		s.pos += end
	} else {
		s.pos = len(s.src)
	}
}

func (s *tomlScanner) scanLineEnd() bool {
	s.skipSpace()
	switch {
	case s.pos >= len(s.src) || s.src[s.pos] == '\n' || strings.HasPrefix(s.src[s.pos:], "\r\n"):
		return true
	case s.src[s.pos] == '#':
		s.skipComment()
		return true
	}
	return s.recordProblemAndReturnFalse(s.pos, "expected the end of the line")
}

// scanHeader reads [a.b] or [[a.b]] and selects its table.
func (s *tomlScanner) scanHeader() bool {
	start := s.pos
	s.pos++
	many := s.peekByteOrZero() == '['
	if many {
		s.pos++
	}
	t := s.root
	s.tableDepth = 0
	for {
		s.skipSpace()
		off := s.pos
		if s.tableDepth++; s.tableDepth > maxNestingDepth {
			s.tableDepth = maxNestingDepth
			return s.enterLevel() && s.recordProblemAndReturnFalse(off, tooDeepText)
		}
		key, ok := s.scanKey()
		if !ok {
			return false
		}
		s.skipSpace()
		if s.peekByteOrZero() == '.' {
			s.pos++
			if t = s.openParentTable(t, key, off); t == nil {
				return false
			}
			continue
		}
		if s.peekByteOrZero() != ']' || (many && !strings.HasPrefix(s.src[s.pos:], "]]")) {
			return s.recordProblemAndReturnFalse(s.pos, "expected the end of the table header")
		}
		s.pos++
		if many {
			s.pos++
			t = s.appendArrayTable(t, key, off, start)
		} else {
			t = s.openTable(t, key, off, start)
		}
		if t == nil {
			return false
		}
		s.current = t
		return true
	}
}

// openParentTable returns the table of one key of a header, such as a in [a.b]; it is not called for the last key. It
// creates a missing table. For an array of tables it returns the last element. Nil means that it recorded a problem.
func (s *tomlScanner) openParentTable(t *table, key string, off int) *table {
	f := t.findField(key)
	if f == nil {
		f = t.addField(TableEntry{Key: key, offset: int32(off), Value: Value{Kind: KindTable, offset: int32(off), table: s.newTable()}})
		return f.Value.table
	}
	switch v := &f.Value; {
	case v.Kind == KindTable && !v.table.isClosed:
		return v.table
	case v.isArrayOfTables():
		return v.list.items[len(v.list.items)-1].table
	}
	s.recordProblemAndReturnFalse(off, "key `"+key+"` already has a value that cannot be extended: it is not a table, or was written in one line")
	return nil
}

// initialCapacityOfTableArray returns the initial capacity of an array of tables. For the first array of a big file, this is the
// number of [[…]] headers in the rest of the file; for all other arrays it is 1.
func (s *tomlScanner) initialCapacityOfTableArray() int {
	const big = 64 << 10
	if s.headersCounted || len(s.src) < big {
		return 1
	}
	s.headersCounted = true
	return 1 + strings.Count(s.src[s.pos:], "\n[[")
}

// isArrayOfTables reports whether the array was created by headers, so that more headers may append to it.
func (v Value) isArrayOfTables() bool {
	if v.Kind != KindArray || len(v.list.items) == 0 {
		return false
	}
	first := v.list.items[0].table
	return first != nil && first.hasHeader
}

func (s *tomlScanner) openTable(t *table, key string, off, headerOffset int) *table {
	f := t.findField(key)
	if f == nil {
		f = t.addField(TableEntry{Key: key, offset: int32(off), Value: Value{Kind: KindTable, offset: int32(headerOffset), table: s.newTable()}})
		f.Value.table.hasHeader = true
		return f.Value.table
	}
	if v := f.Value; v.Kind == KindTable && !v.table.hasHeader && !v.table.isDotted && !v.table.isClosed {
		v.table.hasHeader = true
		return v.table
	}
	s.recordProblemAndReturnFalse(off, "table `"+key+"` is defined twice")
	return nil
}

func (s *tomlScanner) appendArrayTable(t *table, key string, off, headerOffset int) *table {
	f := t.findField(key)
	if f == nil {
		f = t.addField(TableEntry{Key: key, offset: int32(off), Value: Value{Kind: KindArray, offset: int32(headerOffset), list: &tomlOrJSONArrayElements{items: make([]Value, 0, s.initialCapacityOfTableArray())}}})
	} else if !f.Value.isArrayOfTables() {
		s.recordProblemAndReturnFalse(off, "key `"+key+"` already has a value, but [[…]] needs an array of tables")
		return nil
	}
	element := s.newTable()
	element.hasHeader = true
	f.Value.list.items = append(f.Value.list.items, Value{Kind: KindTable, offset: int32(headerOffset), table: element})
	return element
}

func (s *tomlScanner) scanKeyValue(t *table) bool {
	depth := s.depth
	defer func() { s.depth = depth }()
	for {
		s.skipSpace()
		off := s.pos
		key, ok := s.scanKey()
		if !ok {
			return false
		}
		s.skipSpace()
		switch s.peekByteOrZero() {
		case '.':
			s.pos++
			if !s.enterLevel() {
				return false
			}
			if t = s.openDottedTable(t, key, off); t == nil {
				return false
			}
			continue
		case '=':
			s.pos++
		default:
			return s.recordProblemAndReturnFalse(s.pos, "expected `=` after the key")
		}
		s.skipSpace()
		v, ok := s.scanValue()
		if t.findField(key) != nil {
			return s.recordProblemAndReturnFalse(off, "key `"+key+"` is defined twice")
		}
		// A key keeps its position even if its value cannot be read.
		t.addField(TableEntry{Key: key, Value: v, offset: int32(off)})
		return ok
	}
}

// openDottedTable returns the table of one part of a dotted key, such as a in a.b = 1; it is not called for the last
// part. It creates a missing table. Nil means that it recorded a problem.
func (s *tomlScanner) openDottedTable(t *table, key string, off int) *table {
	f := t.findField(key)
	if f == nil {
		f = t.addField(TableEntry{Key: key, offset: int32(off), Value: Value{Kind: KindTable, offset: int32(off), table: s.newTable()}})
		f.Value.table.isDotted = true
		return f.Value.table
	}
	if f.Value.Kind == KindTable && f.Value.table.isDotted && !f.Value.table.isClosed {
		return f.Value.table
	}
	s.recordProblemAndReturnFalse(off, "key `"+key+"` already has a value, and dotted keys cannot extend it")
	return nil
}

func (s *tomlScanner) scanKey() (string, bool) {
	switch c := s.peekByteOrZero(); c {
	case '"', '\'':
		if strings.HasPrefix(s.src[s.pos:], `"""`) || strings.HasPrefix(s.src[s.pos:], `'''`) {
			return "", s.recordProblemAndReturnFalse(s.pos, "a key cannot be a multi-line string")
		}
		return s.scanSingleLine(c)
	}
	start := s.pos
	for s.pos < len(s.src) && isBareKeyByte(s.src[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return "", s.recordProblemAndReturnFalse(s.pos, "expected a key")
	}
	return s.src[start:s.pos], true
}

func isBareKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func isControlExceptTab(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }
