package pickle

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
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
	operations := m.valueOperations()
	maps.Copy(operations, m.containerOperations())
	maps.Copy(operations, m.memoAndObjectOperations())
	for {
		op := byte(m.readUint(1))
		switch execute := operations[op]; {
		case m.err != nil:
			return nil, m.err
		case op == '.':
			return m.pop(), m.err
		case execute == nil:
			m.fail(errors.New("unknown opcode"))
		default:
			execute()
		}
		if m.err != nil {
			return nil, fmt.Errorf("opcode %q at byte %d: %w", op, m.pos-1, m.err)
		}
	}
}

func (m *reader) fail(err error) {
	m.err = cmp.Or(m.err, err)
}

// valueOperations returns the effects of the opcodes that push None, a boolean, a number or a text, or that begin or frame a pickle.
func (m *reader) valueOperations() map[byte]func() {
	return map[byte]func(){
		0x80: func() { m.readBytes(1) }, // number of the protocol
		0x95: func() { m.readBytes(8) }, // size of the frame
		'N':  func() { m.push(nil) },
		0x88: func() { m.push(true) },
		0x89: func() { m.push(false) },
		'K':  func() { m.push(big.NewInt(int64(m.readUint(1)))) },
		'M':  func() { m.push(big.NewInt(int64(m.readUint(2)))) },
		'J':  func() { m.push(big.NewInt(int64(int32(uint32(m.readUint(4)))))) },
		0x8a: func() { m.push(m.decodeInteger(m.readLengthPrefixed(1))) },
		0x8b: func() { m.push(m.decodeInteger(m.readLengthPrefixed(4))) },
		'G':  func() { m.push(math.Float64frombits(bits.ReverseBytes64(m.readUint(8)))) },
		0x8c: func() { m.push(string(m.readLengthPrefixed(1))) },
		'X':  func() { m.push(string(m.readLengthPrefixed(4))) },
		0x8d: func() { m.push(string(m.readLengthPrefixed(8))) },
		'C':  func() { m.push(m.readLengthPrefixed(1)) },
		'B':  func() { m.push(m.readLengthPrefixed(4)) },
		0x8e: func() { m.push(m.readLengthPrefixed(8)) },
	}
}

func (m *reader) containerOperations() map[byte]func() {
	return map[byte]func(){
		'(':  func() { m.push(mark{}) },
		']':  func() { m.push(&List{}) },
		')':  func() { m.push(&Tuple{}) },
		'}':  func() { m.push(&Dict{}) },
		0x8f: func() { m.push(&Set{}) },
		0x85: func() { m.push(&Tuple{Items: m.popN(1)}) },
		0x86: func() { m.push(&Tuple{Items: m.popN(2)}) },
		0x87: func() { m.push(&Tuple{Items: m.popN(3)}) },
		't':  func() { m.push(&Tuple{Items: m.popMark()}) },
		0x91: func() { m.push(&Set{Items: m.popMark(), Frozen: true}) },
		'a':  func() { m.appendToContainerAtStackTop(m.popN(1)) },
		's':  func() { m.appendToContainerAtStackTop(m.popN(2)) },
		'e':  func() { m.appendToContainerAtStackTop(m.popMark()) },
		'u':  func() { m.appendToContainerAtStackTop(m.popMark()) },
		0x90: func() { m.appendToContainerAtStackTop(m.popMark()) },
	}
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

func (m *reader) memoAndObjectOperations() map[byte]func() {
	return map[byte]func(){
		'0':  func() { m.pop() },
		'1':  func() { m.popMark() },
		0x94: func() { m.storeTopInMemo() },
		'h':  func() { m.pushMemo(m.readUint(1)) },
		'j':  func() { m.pushMemo(m.readUint(4)) },
		'c':  func() { m.push(&Global{Module: m.readLine(), Name: m.readLine()}) },
		0x93: func() { m.pushGlobalNamedOnStack() },
		'R':  func() { m.pushResultOfCall() },
		0x81: func() { m.pushResultOfCall() },
		0x92: func() { v := m.popN(3); m.push(&Object{Callee: v[0], Args: &Tuple{Items: v[1:]}}) },
		'b':  func() { m.setObjectState() },
	}
}

func (m *reader) storeTopInMemo() {
	if len(m.memo) > maxValues {
		m.fail(errTooManyValues)
	}
	m.memo[uint64(len(m.memo))] = m.top()
}

func (m *reader) pushMemo(n uint64) {
	v, ok := m.memo[n]
	if !ok {
		m.fail(errStackUnderflow)
	}
	m.push(v)
}

func (m *reader) pushGlobalNamedOnStack() {
	v := m.popN(2)
	module, _ := v[0].(string)
	name, _ := v[1].(string)
	m.push(&Global{Module: module, Name: name})
}

func (m *reader) pushResultOfCall() {
	v := m.popN(2)
	if name, ok := stringArgumentOfDillCall(v[0], v[1], "_load_type"); ok { // dill writes a built-in type as a call that looks up the type
		m.push(&Global{Module: "builtins", Name: name})
	} else {
		m.push(&Object{Callee: v[0], Args: v[1]})
	}
}

func (m *reader) setObjectState() {
	state := m.pop()
	if o, ok := m.top().(*Object); ok {
		o.State = state
	}
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

const maxNestingDepth = 1000

// FromJSON encodes one JSON value as a pickle. Objects become dicts with the same order of keys. Whole numbers become
// ints of any size, and other numbers become floats.
func FromJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	out, err := appendPickledNextValue([]byte("\x80\x04"), dec, 0)
	if err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading JSON: unexpected text after the first value")
	}
	return append(out, '.'), nil
}

func appendPickledNextValue(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	if depth > maxNestingDepth {
		return nil, errors.New("objects and arrays in the JSON are nested too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return appendPickledJSONContainer(dst, dec, t, depth)
	case json.Number:
		return appendPickledNumber(dst, t.String())
	case string:
		return appendPickledString(dst, t), nil
	case bool:
		if t {
			return append(dst, 0x88), nil
		}
		return append(dst, 0x89), nil
	default:
		return append(dst, 'N'), nil
	}
}

func appendPickledJSONContainer(dst []byte, dec *json.Decoder, openingBracket json.Delim, depth int) ([]byte, error) {
	empty, add := byte(']'), byte('e')
	if openingBracket == '{' {
		empty, add = '}', 'u'
	}
	dst = append(dst, empty)
	if dec.More() {
		dst = append(dst, '(')
		for dec.More() {
			var err error
			if openingBracket == '{' {
				key, err := dec.Token()
				if err != nil {
					return nil, err
				}
				text, _ := key.(string)
				dst = appendPickledString(dst, text)
			}
			if dst, err = appendPickledNextValue(dst, dec, depth+1); err != nil {
				return nil, err
			}
		}
		dst = append(dst, add)
	}
	_, err := dec.Token() // the closing bracket
	return dst, err
}

func appendPickledString(dst []byte, s string) []byte {
	if len(s) < 256 {
		return append(append(dst, 0x8c, byte(len(s))), s...)
	}
	if uint64(len(s)) <= math.MaxUint32 {
		return append(binary.LittleEndian.AppendUint32(append(dst, 'X'), uint32(len(s))), s...)
	}
	return append(binary.LittleEndian.AppendUint64(append(dst, 0x8d), uint64(len(s))), s...)
}

func appendPickledNumber(dst []byte, jsonNumber string) ([]byte, error) {
	if strings.ContainsAny(jsonNumber, ".eE") {
		f, err := strconv.ParseFloat(jsonNumber, 64)
		if err != nil {
			return nil, fmt.Errorf("number %.40s: %w", jsonNumber, err)
		}
		return binary.BigEndian.AppendUint64(append(dst, 'G'), math.Float64bits(f)), nil
	}
	n, ok := new(big.Int).SetString(jsonNumber, 10)
	if !ok {
		return nil, fmt.Errorf("invalid number %.40s", jsonNumber)
	}
	if n.IsInt64() {
		switch v := n.Int64(); {
		case v >= 0 && v < 1<<8:
			return append(dst, 'K', byte(v)), nil
		case v >= 0 && v < 1<<16:
			return binary.LittleEndian.AppendUint16(append(dst, 'M'), uint16(v)), nil
		case v >= math.MinInt32 && v <= math.MaxInt32:
			return binary.LittleEndian.AppendUint32(append(dst, 'J'), uint32(int32(v))), nil
		}
	}
	raw := twosComplement(n)
	if len(raw) < 256 {
		return append(append(dst, 0x8a, byte(len(raw))), raw...), nil
	}
	return append(binary.LittleEndian.AppendUint32(append(dst, 0x8b), uint32(len(raw))), raw...), nil
}

// twosComplement returns n in the smallest number of little-endian bytes that keep its sign.
func twosComplement(n *big.Int) []byte {
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	raw := n.FillBytes(make([]byte, size))
	slices.Reverse(raw)
	return raw
}
