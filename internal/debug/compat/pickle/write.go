package pickle

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

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
