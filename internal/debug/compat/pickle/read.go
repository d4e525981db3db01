package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

var (
	errShort = errors.New("pickle ends early")
	errStack = errors.New("pickle uses what is not on its stack")
)

// mark separates what a container opcode collects.
type mark struct{}

// maxMemo bounds the numbers a pickle may give to its values.
const maxMemo = 1 << 20

type machine struct {
	data  []byte
	pos   int
	stack []any
	memo  map[uint64]any
}

// Read interprets a pickle of any protocol up to 5. Nothing is imported and
// nothing called.
func Read(data []byte) (v any, err error) {
	m := &machine{data: data, memo: map[uint64]any{}}
	for {
		op, err := m.byte()
		if err != nil {
			return nil, err
		}
		if op == '.' {
			return m.pop()
		}
		if err := m.step(op); err != nil {
			return nil, fmt.Errorf("opcode %q at %d: %w", op, m.pos-1, err)
		}
	}
}

// step runs one opcode; each group answers whether the opcode is one of its own.
func (m *machine) step(op byte) error {
	for _, group := range [...]func(byte) (bool, error){m.scalar, m.text, m.container, m.memory, m.object} {
		if known, err := group(op); known || err != nil {
			return err
		}
	}
	return errors.New("unknown opcode")
}

func (m *machine) scalar(op byte) (bool, error) {
	switch op {
	case 0x80:
		_, err := m.byte()
		return true, err
	case 0x95:
		_, err := m.take(8)
		return true, err
	case 'N':
		return true, m.push(nil)
	case 0x88, 0x89:
		return true, m.push(op == 0x88)
	case 'K', 'M', 'J':
		n := map[byte]int{'K': 1, 'M': 2, 'J': 4}[op]
		u, err := m.uint(n)
		if op == 'J' {
			return true, m.pushInt(int64(int32(uint32(u))), err)
		}
		return true, m.pushInt(int64(u), err)
	case 0x8a, 0x8b:
		raw, err := m.sized(map[byte]int{0x8a: 1, 0x8b: 4}[op])
		if err != nil {
			return true, err
		}
		return true, m.push(fromTwosComplement(raw))
	case 'G':
		raw, err := m.take(8)
		if err != nil {
			return true, err
		}
		return true, m.push(math.Float64frombits(binary.BigEndian.Uint64(raw)))
	case 'I', 'L', 'F':
		return true, m.line0(op)
	}
	return false, nil
}

// line0 reads the numbers of protocol 0, written as text.
func (m *machine) line0(op byte) error {
	s, err := m.line()
	if err != nil {
		return err
	}
	if op == 'F' {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return err
		}
		return m.push(f)
	}
	if op == 'I' && (s == "00" || s == "01") {
		return m.push(s == "01")
	}
	const longest = 4096 // digits; parsing takes quadratic time
	n, ok := new(big.Int).SetString(strings.TrimSuffix(s[:min(len(s), longest)], "L"), 10)
	if !ok || len(s) > longest {
		return errors.New("not a number")
	}
	return m.push(n)
}

func (m *machine) text(op byte) (bool, error) {
	size, ok := map[byte]int{
		'X': 4, 0x8c: 1, 0x8d: 8, 'T': 4, 'U': 1, // text
		'B': 4, 'C': 1, 0x8e: 8, 0x96: 8, // bytes
	}[op]
	if ok {
		raw, err := m.sized(size)
		if err != nil {
			return true, err
		}
		switch op {
		case 'B', 'C', 0x8e, 0x96:
			return true, m.push(raw)
		}
		return true, m.push(string(raw))
	}
	if op != 'S' && op != 'V' {
		return false, nil
	}
	s, err := m.line()
	if err != nil {
		return true, err
	}
	if op == 'S' {
		s = strings.Trim(s, `'"`)
	}
	return true, m.push(s)
}

func (m *machine) container(op byte) (bool, error) {
	switch op {
	case '(':
		return true, m.push(mark{})
	case ']':
		return true, m.push(&List{})
	case ')':
		return true, m.push(&Tuple{})
	case '}':
		return true, m.push(&Dict{})
	case 0x8f:
		return true, m.push(&Set{})
	case 0x85, 0x86, 0x87:
		items, err := m.popN(int(op) - 0x84)
		if err != nil {
			return true, err
		}
		return true, m.push(&Tuple{Items: items})
	case 't', 'l', 'd', 0x91:
		return true, m.collect(op)
	case 'a', 'e', 's', 'u', 0x90:
		return true, m.add(op)
	}
	return false, nil
}

// collect makes a container of everything above the mark.
func (m *machine) collect(op byte) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	switch op {
	case 't':
		return m.push(&Tuple{Items: items})
	case 'l':
		return m.push(&List{Items: items})
	case 0x91:
		return m.push(&Set{Items: items, Frozen: true})
	}
	d := &Dict{}
	if err := d.add(items); err != nil {
		return err
	}
	return m.push(d)
}

// add puts values into the container below them.
func (m *machine) add(op byte) error {
	var items []any
	var err error
	switch op {
	case 'a':
		items, err = m.popN(1)
	case 's':
		items, err = m.popN(2)
	default:
		items, err = m.popMark()
	}
	if err != nil {
		return err
	}
	if len(m.stack) == 0 {
		return errStack
	}
	switch c := m.stack[len(m.stack)-1].(type) {
	case *List:
		c.Items = append(c.Items, items...)
	case *Set:
		c.Items = append(c.Items, items...)
	case *Dict:
		return c.add(items)
	case *Object: // a subclass of list or dict: its items are part of its state
		c.State = &Tuple{Items: []any{c.State, &Tuple{Items: items}}}
	default:
		return errStack
	}
	return nil
}

func (d *Dict) add(items []any) error {
	if len(items)%2 != 0 {
		return errStack
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
	}
	return nil
}

func (m *machine) memory(op byte) (bool, error) {
	switch op {
	case '0':
		_, err := m.pop()
		return true, err
	case '1':
		_, err := m.popMark()
		return true, err
	case '2':
		v, err := m.top()
		if err != nil {
			return true, err
		}
		return true, m.push(v)
	case 0x94:
		return true, m.remember(uint64(len(m.memo)), nil)
	case 'q', 'r', 'p':
		n, err := m.number(op, 'q', 'r')
		return true, m.remember(n, err)
	case 'h', 'j', 'g':
		n, err := m.number(op, 'h', 'j')
		if err != nil {
			return true, err
		}
		v, ok := m.memo[n]
		if !ok {
			return true, errStack
		}
		return true, m.push(v)
	}
	return false, nil
}

func (m *machine) number(op, one, four byte) (uint64, error) {
	switch op {
	case one:
		return m.uint(1)
	case four:
		return m.uint(4)
	}
	s, err := m.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(s, 10, 64)
}

func (m *machine) remember(n uint64, err error) error {
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	if n > maxMemo {
		return errors.New("too many values")
	}
	m.memo[n] = v
	return nil
}

func (m *machine) object(op byte) (bool, error) {
	switch op {
	case 'c', 'i':
		return true, m.global(op == 'i')
	case 0x93:
		v, err := m.popN(2)
		if err != nil {
			return true, err
		}
		module, _ := v[0].(string)
		name, _ := v[1].(string)
		return true, m.push(&Global{Module: module, Name: name})
	case 'R', 0x81:
		v, err := m.popN(2)
		if err != nil {
			return true, err
		}
		return true, m.push(called(v[0], v[1]))
	case 0x92:
		v, err := m.popN(3)
		if err != nil {
			return true, err
		}
		return true, m.push(&Object{Callee: v[0], Args: &Tuple{Items: []any{v[1], v[2]}}})
	case 'o':
		v, err := m.popMark()
		if err != nil || len(v) == 0 {
			return true, errStack
		}
		return true, m.push(&Object{Callee: v[0], Args: &Tuple{Items: v[1:]}})
	case 'b':
		state, err := m.pop()
		if err != nil {
			return true, err
		}
		v, err := m.top()
		if o, ok := v.(*Object); ok {
			o.State = state
		}
		return true, err
	case 'P':
		_, err := m.line()
		return true, m.external(err)
	case 'Q':
		_, err := m.pop()
		return true, m.external(err)
	case 0x82, 0x83, 0x84:
		_, err := m.take(map[byte]int{0x82: 1, 0x83: 2, 0x84: 4}[op])
		return true, m.external(err)
	}
	return false, nil
}

// external stands for a value that is kept outside of the pickle.
func (m *machine) external(err error) error {
	if err != nil {
		return err
	}
	return m.push(&Object{Callee: &Global{Name: "<external>"}, Args: &Tuple{}})
}

func (m *machine) global(instance bool) error {
	module, err := m.line()
	if err != nil {
		return err
	}
	name, err := m.line()
	if err != nil {
		return err
	}
	g := &Global{Module: module, Name: name}
	if !instance {
		return m.push(g)
	}
	args, err := m.popMark()
	if err != nil {
		return err
	}
	return m.push(&Object{Callee: g, Args: &Tuple{Items: args}})
}

func (m *machine) push(v any) error { m.stack = append(m.stack, v); return nil }

func (m *machine) pushInt(v int64, err error) error {
	if err != nil {
		return err
	}
	return m.push(big.NewInt(v))
}

func (m *machine) top() (any, error) {
	if len(m.stack) == 0 {
		return nil, errStack
	}
	v := m.stack[len(m.stack)-1]
	if _, isMark := v.(mark); isMark {
		return nil, errStack
	}
	return v, nil
}

func (m *machine) pop() (any, error) {
	v, err := m.top()
	if err == nil {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return v, err
}

func (m *machine) popN(n int) ([]any, error) {
	if len(m.stack) < n {
		return nil, errStack
	}
	at := len(m.stack) - n
	items := append([]any(nil), m.stack[at:]...)
	for _, v := range items {
		if _, isMark := v.(mark); isMark {
			return nil, errStack
		}
	}
	m.stack = m.stack[:at]
	return items, nil
}

func (m *machine) popMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			items := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items, nil
		}
	}
	return nil, errStack
}

func (m *machine) byte() (byte, error) {
	raw, err := m.take(1)
	if err != nil {
		return 0, err
	}
	return raw[0], nil
}

func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.data)-m.pos {
		return nil, errShort
	}
	raw := m.data[m.pos : m.pos+n]
	m.pos += n
	return raw, nil
}

func (m *machine) uint(size int) (uint64, error) {
	raw, err := m.take(size)
	if err != nil {
		return 0, err
	}
	var u uint64
	for i, b := range raw {
		u |= uint64(b) << (8 * i)
	}
	return u, nil
}

// sized takes the bytes behind their length of size bytes.
func (m *machine) sized(size int) ([]byte, error) {
	n, err := m.uint(size)
	if err != nil {
		return nil, err
	}
	if n > uint64(len(m.data)) {
		return nil, errShort
	}
	return m.take(int(n))
}

func (m *machine) line() (string, error) {
	for i := m.pos; i < len(m.data); i++ {
		if m.data[i] == '\n' {
			s := string(m.data[m.pos:i])
			m.pos = i + 1
			return s, nil
		}
	}
	return "", errShort
}

func fromTwosComplement(raw []byte) *big.Int {
	swapped := make([]byte, len(raw))
	for i, b := range raw {
		swapped[len(raw)-1-i] = b
	}
	n := new(big.Int).SetBytes(swapped)
	if len(raw) > 0 && raw[len(raw)-1]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return n
}
