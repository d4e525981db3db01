package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

var (
	errShort = errors.New("pickle ends early")
	errStack = errors.New("pickle uses what is not on its stack")

	errTooMany = fmt.Errorf("pickle has more than %d values", maxValues)
)

// mark separates what a container opcode collects.
type mark struct{}

// Bounds of what a pickle may hold, whatever its size in bytes. A pickle over
// one of them is an error, and is shown by its size.
const (
	maxValues  = 1 << 19 // values made, and numbers given to them
	maxInteger = 1 << 11 // bytes of an integer: writing it in decimal takes more than linear time
)

type machine struct {
	data  []byte
	pos   int
	stack []any
	made  int // values pushed so far
	memo  map[uint64]any
	err   error // the first thing that is wrong: nothing is taken after it, and what comes of the rest does not count
}

// Read interprets a pickle of any protocol up to 5. Nothing is imported and
// nothing called.
func Read(data []byte) (any, error) {
	m := &machine{data: data, memo: map[uint64]any{}}
	for {
		op := m.uint(1)
		switch {
		case m.err != nil:
			return nil, m.err
		case op == '.':
			return m.pop(), m.err
		case !m.scalar(op) && !m.text(op) && !m.container(op) && !m.memory(op) && !m.object(op):
			m.fail(errors.New("unknown opcode"))
		}
		if m.err != nil {
			return nil, fmt.Errorf("opcode %q at %d: %w", byte(op), m.pos-1, m.err)
		}
	}
}

func (m *machine) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// scalar runs an opcode, as the other groups do, and tells whether it is one of its
// own.
func (m *machine) scalar(op uint64) bool {
	switch op {
	case 0x80:
		m.take(1)
	case 0x95:
		m.take(8)
	case 'N':
		m.push(nil)
	case 0x88, 0x89:
		m.push(op == 0x88)
	case 'K':
		m.push(big.NewInt(int64(m.uint(1))))
	case 'M':
		m.push(big.NewInt(int64(m.uint(2))))
	case 'J':
		m.push(big.NewInt(int64(int32(uint32(m.uint(4))))))
	case 0x8a:
		m.push(m.long(m.sized(1)))
	case 0x8b:
		m.push(m.long(m.sized(4)))
	case 'G':
		m.push(math.Float64frombits(bits.ReverseBytes64(m.uint(8))))
	case 'I', 'L', 'F':
		m.line0(op)
	default:
		return false
	}
	return true
}

// line0 reads the numbers of protocol 0, written as text.
func (m *machine) line0(op uint64) {
	s := m.line()
	if op == 'F' {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			m.fail(err)
		}
		m.push(f)
		return
	}
	if op == 'I' && (s == "00" || s == "01") {
		m.push(s == "01")
		return
	}
	const longest = 4096 // digits; parsing takes quadratic time
	n, ok := new(big.Int).SetString(strings.TrimSuffix(s[:min(len(s), longest)], "L"), 10)
	if !ok || len(s) > longest {
		m.fail(errors.New("not a number"))
	}
	m.push(n)
}

func (m *machine) text(op uint64) bool {
	switch op {
	case 0x8c, 'U':
		m.push(string(m.sized(1)))
	case 'X', 'T':
		m.push(string(m.sized(4)))
	case 0x8d:
		m.push(string(m.sized(8)))
	case 'C':
		m.push(m.sized(1))
	case 'B':
		m.push(m.sized(4))
	case 0x8e, 0x96:
		m.push(m.sized(8))
	case 'S':
		m.push(strings.Trim(m.line(), `'"`))
	case 'V':
		m.push(m.line())
	default:
		return false
	}
	return true
}

func (m *machine) container(op uint64) bool {
	switch op {
	case '(':
		m.push(mark{})
	case ']':
		m.push(&List{})
	case ')':
		m.push(&Tuple{})
	case '}':
		m.push(&Dict{})
	case 0x8f:
		m.push(&Set{})
	case 0x85, 0x86, 0x87:
		m.push(&Tuple{Items: m.popN(int(op) - 0x84)})
	case 't':
		m.push(&Tuple{Items: m.popMark()})
	case 'l':
		m.push(&List{Items: m.popMark()})
	case 0x91:
		m.push(&Set{Items: m.popMark(), Frozen: true})
	case 'd':
		d := &Dict{}
		m.addTo(d, m.popMark())
		m.push(d)
	case 'a':
		m.add(m.popN(1))
	case 's':
		m.add(m.popN(2))
	case 'e', 'u', 0x90:
		m.add(m.popMark())
	default:
		return false
	}
	return true
}

// add puts values into the container below them.
func (m *machine) add(items []any) {
	if len(m.stack) == 0 || m.err != nil {
		m.fail(errStack)
		return
	}
	switch c := m.stack[len(m.stack)-1].(type) {
	case *List:
		c.Items = append(c.Items, items...)
	case *Set:
		c.Items = append(c.Items, items...)
	case *Dict:
		m.addTo(c, items)
	case *Object: // a subclass of list or dict: its items are part of its state
		c.State = &Tuple{Items: []any{c.State, &Tuple{Items: items}}}
	default:
		m.fail(errStack)
	}
}

func (m *machine) addTo(d *Dict, items []any) {
	if len(items)%2 != 0 {
		m.fail(errStack)
		return
	}
	for pair := range slices.Chunk(items, 2) {
		d.Keys, d.Values = append(d.Keys, pair[0]), append(d.Values, pair[1])
	}
}

func (m *machine) memory(op uint64) bool {
	switch op {
	case '0':
		m.pop()
	case '1':
		m.popMark()
	case '2':
		m.push(m.top())
	case 0x94:
		m.remember(uint64(len(m.memo)))
	case 'q':
		m.remember(m.uint(1))
	case 'r':
		m.remember(m.uint(4))
	case 'p':
		m.remember(m.decimal())
	case 'h':
		m.recall(m.uint(1))
	case 'j':
		m.recall(m.uint(4))
	case 'g':
		m.recall(m.decimal())
	default:
		return false
	}
	return true
}

func (m *machine) decimal() uint64 {
	n, err := strconv.ParseUint(m.line(), 10, 64)
	if err != nil {
		m.fail(err)
	}
	return n
}

func (m *machine) remember(n uint64) {
	v := m.top()
	if n > maxValues {
		m.fail(errTooMany)
	}
	if m.err == nil {
		m.memo[n] = v
	}
}

func (m *machine) recall(n uint64) {
	v, ok := m.memo[n]
	if !ok {
		m.fail(errStack)
	}
	m.push(v)
}

func (m *machine) object(op uint64) bool {
	switch op {
	case 'c':
		m.push(m.global())
	case 'i':
		m.push(&Object{Callee: m.global(), Args: &Tuple{Items: m.popMark()}})
	case 0x93:
		v := m.popN(2)
		module, _ := v[0].(string)
		name, _ := v[1].(string)
		m.push(&Global{Module: module, Name: name})
	case 'R', 0x81:
		v := m.popN(2)
		m.push(called(v[0], v[1]))
	case 0x92:
		v := m.popN(3)
		m.push(&Object{Callee: v[0], Args: &Tuple{Items: v[1:]}})
	case 'o':
		v := m.popMark()
		if len(v) == 0 {
			m.fail(errStack)
			return true
		}
		m.push(&Object{Callee: v[0], Args: &Tuple{Items: v[1:]}})
	case 'b':
		state := m.pop()
		if o, ok := m.top().(*Object); ok {
			o.State = state
		}
	case 'P':
		m.line()
		m.external()
	case 'Q':
		m.pop()
		m.external()
	case 0x82, 0x83, 0x84:
		m.take(1 << (op - 0x82))
		m.external()
	default:
		return false
	}
	return true
}

// external stands for a value that is kept outside of the pickle.
func (m *machine) external() {
	m.push(&Object{Callee: &Global{Name: "<external>"}, Args: &Tuple{}})
}

func (m *machine) global() *Global {
	module := m.line()
	return &Global{Module: module, Name: m.line()}
}

func (m *machine) push(v any) {
	if m.made++; m.made > maxValues {
		m.fail(errTooMany)
		return
	}
	m.stack = append(m.stack, v)
}

func (m *machine) top() any { return m.peek(1)[0] }

func (m *machine) pop() any {
	v := m.top()
	if m.err == nil {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return v
}

// peek are the n newest values; what is not there is nil.
func (m *machine) peek(n int) []any {
	at := len(m.stack) - n
	if m.err != nil || at < 0 || slices.Contains(m.stack[at:], any(mark{})) {
		m.fail(errStack)
		return make([]any, n)
	}
	return m.stack[at:]
}

func (m *machine) popN(n int) []any {
	items := slices.Clone(m.peek(n))
	if m.err == nil {
		m.stack = m.stack[:len(m.stack)-n]
	}
	return items
}

func (m *machine) popMark() []any {
	for i, v := range slices.Backward(m.stack) {
		if _, ok := v.(mark); ok {
			items := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items
		}
	}
	m.fail(errStack)
	return nil
}

// take takes n bytes; nil when they are not there.
func (m *machine) take(n int) []byte {
	if m.err != nil || n < 0 || n > len(m.data)-m.pos {
		m.fail(errShort)
		return nil
	}
	m.pos += n
	return m.data[m.pos-n : m.pos]
}

func (m *machine) uint(size int) (u uint64) {
	for i, b := range m.take(size) {
		u |= uint64(b) << (8 * i)
	}
	return u
}

// sized takes the bytes behind their length of size bytes.
func (m *machine) sized(size int) []byte {
	n := m.uint(size)
	if n > uint64(len(m.data)) {
		m.fail(errShort)
	}
	return m.take(int(n))
}

func (m *machine) line() string {
	text, _, ok := bytes.Cut(m.data[m.pos:], []byte("\n"))
	if !ok || m.err != nil {
		m.fail(errShort)
		return ""
	}
	m.pos += len(text) + 1
	return string(text)
}

// long reads an integer in two's complement, its lowest byte first.
func (m *machine) long(raw []byte) *big.Int {
	if len(raw) > maxInteger {
		m.fail(fmt.Errorf("integer of %d bytes, more than %d", len(raw), maxInteger))
		return nil
	}
	raw = slices.Clone(raw)
	slices.Reverse(raw)
	n := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return n
}
