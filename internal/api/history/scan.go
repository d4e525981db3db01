package history

import (
	"bytes"
	"encoding/json"
	"errors"
)

var errSyntax = errors.New("the request body is not valid JSON")

func forEachJSONElement(raw []byte, f func(value []byte) error) error {
	return forEachJSONMemberOrElement(raw, '[', ']', func(_ string, value []byte) error { return f(value) })
}

func forEachJSONMemberOrElement(raw []byte, open, closing byte, f func(string, []byte) error) error {
	i := endOfJSONSpace(raw, 0)
	if i >= len(raw) || raw[i] != open {
		return errSyntax
	}
	if i = endOfJSONSpace(raw, i+1); i < len(raw) && raw[i] == closing {
		return checkOnlySpaceFollows(raw, i+1)
	}
	for {
		key := ""
		if open == '{' {
			var err error
			if key, i, err = readMemberKey(raw, i); err != nil {
				return err
			}
		}
		end := endOfJSONValue(raw, i)
		if end < 0 {
			return errSyntax
		}
		if err := f(key, raw[i:end]); err != nil {
			return err
		}
		i = endOfJSONSpace(raw, end)
		switch {
		case i < len(raw) && raw[i] == closing:
			return checkOnlySpaceFollows(raw, i+1)
		case i >= len(raw) || raw[i] != ',':
			return errSyntax
		}
		i = endOfJSONSpace(raw, i+1)
	}
}

func readMemberKey(raw []byte, i int) (key string, valueStart int, err error) {
	if i >= len(raw) || raw[i] != '"' {
		return "", 0, errSyntax
	}
	end := endOfJSONValue(raw, i)
	if end < 0 || json.Unmarshal(raw[i:end], &key) != nil {
		return "", 0, errSyntax
	}
	i = endOfJSONSpace(raw, end)
	if i >= len(raw) || raw[i] != ':' {
		return "", 0, errSyntax
	}
	return key, endOfJSONSpace(raw, i+1), nil
}

func checkOnlySpaceFollows(raw []byte, i int) error {
	if endOfJSONSpace(raw, i) < len(raw) {
		return errSyntax
	}
	return nil
}

func endOfJSONSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// endOfJSONValue returns the end of the value that begins at i, or a negative number if the value is incomplete.
func endOfJSONValue(raw []byte, i int) int {
	if i >= len(raw) {
		return -1
	}
	switch raw[i] {
	case '"':
		return endOfJSONString(raw, i)
	case '{', '[':
		depth := 0
		for i < len(raw) {
			switch raw[i] {
			case '"':
				if i = endOfJSONString(raw, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(raw) && bytes.IndexByte([]byte(",]} \n\t\r"), raw[i]) < 0 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func endOfJSONString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		back := i
		for raw[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1
		}
	}
	return -1
}
