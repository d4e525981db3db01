package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

var (
	errIncomplete     = errors.New("the pickle is incomplete")
	errStackUnderflow = errors.New("the opcode needs a value from the stack, but the stack is empty")

	errTooManyValues = fmt.Errorf("pickle has more than %d values", maxValues)
)

// mark separates the values that a container opcode collects.
type mark struct{}

// Limits on the values in a pickle. Read returns an error for a pickle that exceeds one of them.
const (
	maxValues       = 1 << 19 // maximum number of values, and of memo entries
	maxIntegerBytes = 1 << 11 // maximum bytes of an integer: writing a long one in decimal would take too much time
)

type reader struct {
	data        []byte
	pos         int
	stack       []any
	pushedCount int
	memo        map[uint64]any
	err         error // the first error; after it, reading stops and the result is not used
}

// Read parses a pickle of protocol 4, which the older clients write. It imports nothing and calls nothing.
func Read(data []byte) (any, error) {
	m := &reader{data: data, memo: map[uint64]any{}}
	for {
		op := m.readUint(1)
		switch {
		case m.err != nil:
			return nil, m.err
		case op == '.':
			return m.pop(), m.err
		case !m.executeScalar(op) && !m.executeText(op) && !m.executeContainer(op) && !m.executeMemoOrPop(op) && !m.executeObjectOpcode(op):
			m.fail(errors.New("unknown opcode"))
		}
		if m.err != nil {
			return nil, fmt.Errorf("opcode %q at byte %d: %w", byte(op), m.pos-1, m.err)
		}
	}
}

func (m *reader) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// executeScalar executes an opcode that pushes None, a boolean or a number, or that begins or frames a pickle. It
// returns false for other opcodes. The other methods named execute… do the same for other groups of opcodes.
func (m *reader) executeScalar(op uint64) bool {
	switch op {
	case 0x80:
		m.readBytes(1)
	case 0x95:
		m.readBytes(8)
	case 'N':
		m.push(nil)
	case 0x88, 0x89:
		m.push(op == 0x88)
	case 'K':
		m.push(big.NewInt(int64(m.readUint(1))))
	case 'M':
		m.push(big.NewInt(int64(m.readUint(2))))
	case 'J':
		m.push(big.NewInt(int64(int32(uint32(m.readUint(4))))))
	case 0x8a:
		m.push(m.decodeInteger(m.readLengthPrefixed(1)))
	case 0x8b:
		m.push(m.decodeInteger(m.readLengthPrefixed(4)))
	case 'G':
		m.push(math.Float64frombits(bits.ReverseBytes64(m.readUint(8))))
	default:
		return false
	}
	return true
}

func (m *reader) executeText(op uint64) bool {
	switch op {
	case 0x8c:
		m.push(string(m.readLengthPrefixed(1)))
	case 'X':
		m.push(string(m.readLengthPrefixed(4)))
	case 0x8d:
		m.push(string(m.readLengthPrefixed(8)))
	case 'C':
		m.push(m.readLengthPrefixed(1))
	case 'B':
		m.push(m.readLengthPrefixed(4))
	case 0x8e:
		m.push(m.readLengthPrefixed(8))
	default:
		return false
	}
	return true
}

func (m *reader) executeContainer(op uint64) bool {
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
	case 0x91:
		m.push(&Set{Items: m.popMark(), Frozen: true})
	case 'a':
		m.appendToContainerAtStackTop(m.popN(1))
	case 's':
		m.appendToContainerAtStackTop(m.popN(2))
	case 'e', 'u', 0x90:
		m.appendToContainerAtStackTop(m.popMark())
	default:
		return false
	}
	return true
}

func (m *reader) appendToContainerAtStackTop(items []any) {
	if len(m.stack) == 0 || m.err != nil {
		m.fail(errStackUnderflow)
		return
	}
	switch c := m.stack[len(m.stack)-1].(type) {
	case *List:
		c.Items = append(c.Items, items...)
	case *Set:
		c.Items = append(c.Items, items...)
	case *Dict:
		if len(items)%2 != 0 {
			m.fail(errStackUnderflow)
		}
		for pair := range slices.Chunk(items, 2) {
			c.Keys, c.Values = append(c.Keys, pair[0]), append(c.Values, pair[len(pair)-1])
		}
	case *Object: // a subclass of list or dict: its items are part of its state
		c.State = &Tuple{Items: []any{c.State, &Tuple{Items: items}}}
	default:
		m.fail(errStackUnderflow)
	}
}

func (m *reader) executeMemoOrPop(op uint64) bool {
	switch op {
	case '0':
		m.pop()
	case '1':
		m.popMark()
	case 0x94:
		if len(m.memo) > maxValues {
			m.fail(errTooManyValues)
		}
		m.memo[uint64(len(m.memo))] = m.top()
	case 'h':
		m.pushMemo(m.readUint(1))
	case 'j':
		m.pushMemo(m.readUint(4))
	default:
		return false
	}
	return true
}

func (m *reader) pushMemo(n uint64) {
	v, ok := m.memo[n]
	if !ok {
		m.fail(errStackUnderflow)
	}
	m.push(v)
}

func (m *reader) executeObjectOpcode(op uint64) (isObjectOpcode bool) {
	switch op {
	case 'c':
		module := m.readLine()
		m.push(&Global{Module: module, Name: m.readLine()})
	case 0x93:
		v := m.popN(2)
		module, _ := v[0].(string)
		name, _ := v[1].(string)
		m.push(&Global{Module: module, Name: name})
	case 'R', 0x81:
		v := m.popN(2)
		if name, ok := stringArgumentOfDillCall(v[0], v[1], "_load_type"); ok { // dill writes a built-in type as a call that looks up the type
			m.push(&Global{Module: "builtins", Name: name})
		} else {
			m.push(&Object{Callee: v[0], Args: v[1]})
		}
	case 0x92:
		v := m.popN(3)
		m.push(&Object{Callee: v[0], Args: &Tuple{Items: v[1:]}})
	case 'b':
		state := m.pop()
		if o, ok := m.top().(*Object); ok {
			o.State = state
		}
	default:
		return false
	}
	return true
}

func (m *reader) push(v any) {
	if m.pushedCount++; m.pushedCount > maxValues {
		m.fail(errTooManyValues)
		return
	}
	m.stack = append(m.stack, v)
}

func (m *reader) top() any { return m.peek(1)[0] }

func (m *reader) pop() any { return m.popN(1)[0] }

// peek returns the n topmost values of the stack. If fewer values follow the last mark, reading fails and it returns n nils.
func (m *reader) peek(n int) []any {
	at := len(m.stack) - n
	if m.err != nil || at < 0 || slices.Contains(m.stack[at:], any(mark{})) {
		m.fail(errStackUnderflow)
		return make([]any, n)
	}
	return m.stack[at:]
}

func (m *reader) popN(n int) []any {
	items := slices.Clone(m.peek(n))
	if m.err == nil {
		m.stack = m.stack[:len(m.stack)-n]
	}
	return items
}

func (m *reader) popMark() []any {
	for i, v := range slices.Backward(m.stack) {
		if _, ok := v.(mark); ok {
			items := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items
		}
	}
	m.fail(errStackUnderflow)
	return nil
}

// readBytes reads n bytes. If fewer remain, reading fails and the result is nil.
func (m *reader) readBytes(n int) []byte {
	if m.err != nil || n < 0 || n > len(m.data)-m.pos {
		m.fail(errIncomplete)
		return nil
	}
	m.pos += n
	return m.data[m.pos-n : m.pos]
}

func (m *reader) readUint(size int) (u uint64) {
	for i, b := range m.readBytes(size) {
		u |= uint64(b) << (8 * i)
	}
	return u
}

// readLengthPrefixed reads a length field, which takes size bytes, and then as many bytes as the field states.
func (m *reader) readLengthPrefixed(size int) []byte {
	n := m.readUint(size)
	if n > uint64(len(m.data)) {
		m.fail(errIncomplete)
	}
	return m.readBytes(int(n))
}

func (m *reader) readLine() string {
	text, _, ok := bytes.Cut(m.data[m.pos:], []byte("\n"))
	if !ok || m.err != nil {
		m.fail(errIncomplete)
		return ""
	}
	m.pos += len(text) + 1
	return string(text)
}

// decodeInteger reads a little-endian integer in two's complement.
func (m *reader) decodeInteger(raw []byte) *big.Int {
	if len(raw) > maxIntegerBytes {
		m.fail(fmt.Errorf("the pickle has an integer of %d bytes; at most %d are allowed", len(raw), maxIntegerBytes))
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
