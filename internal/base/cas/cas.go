// Package cas is a content-addressed store.
//
// A CID is the lower-case hexadecimal SHA-512 of the stored bytes, and Get returns exactly the bytes with that
// hash. Values created by claudeless are stored as canonical JSON, so equal values have equal CIDs.
package cas

import (
	"bytes"
	"container/list"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options limit a store. Zero values select the defaults.
type Options struct {
	MaxBytes int64 // limit of Stats.Bytes; the newest value is kept even if it alone exceeds the limit; 0 means 16 MiB
	MaxValue int64 // maximum size of one value; 0 means 64 MiB
}

const (
	defaultMaxStoreBytes = 16 << 20
	defaultMaxValueBytes = 64 << 20
	// memoryOverheadBytesPerValue is the memory that a stored value needs in addition to its bytes: the CID, the list element
	// and the map entry. It counts towards MaxBytes, so that MaxBytes also limits the number of small values.
	memoryOverheadBytesPerValue = 512
)

// TooLargeError reports a value over the limit of the store; it was not stored.
type TooLargeError struct{ Size, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("value of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// Store keeps values in memory. When full, it drops and counts the least recently used values. It is safe for concurrent use.
type Store struct {
	o Options

	mu      sync.Mutex
	byCID   map[string]*list.Element // elements of the list, each a *value
	byUse   *list.List               // values, the most recently used first
	bytes   int64
	dropped int
}

type storedValue struct {
	cid  string
	data []byte
}

// New creates an empty store.
func New(o Options) *Store {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxStoreBytes
	}
	if o.MaxValue <= 0 {
		o.MaxValue = defaultMaxValueBytes
	}
	return &Store{o: o, byCID: map[string]*list.Element{}, byUse: list.New()}
}

// CID returns the id of data: 128 hexadecimal digits.
func CID(data []byte) (sha512Hex string) {
	sum := sha512.Sum512(data)
	return hex.EncodeToString(sum[:])
}

// IsCID reports whether s has the form of a content id (CID), the hash that identifies a stored value.
func IsCID(s string) bool {
	return len(s) == 2*sha512.Size && !strings.ContainsFunc(s, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// Put stores data, which must not be modified afterwards, and returns its CID. If data exceeds the limit, the error is
// a *TooLargeError, and the CID is valid nevertheless.
func (s *Store) Put(data []byte) (string, error) {
	cid := CID(data)
	if size := int64(len(data)); size > s.o.MaxValue {
		return cid, &TooLargeError{Size: size, Limit: s.o.MaxValue}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byCID[cid]; ok {
		s.byUse.MoveToFront(e)
		return cid, nil
	}
	s.byCID[cid] = s.byUse.PushFront(&storedValue{cid: cid, data: data})
	s.bytes += int64(len(data)) + memoryOverheadBytesPerValue
	for s.bytes > s.o.MaxBytes && s.byUse.Len() > 1 {
		oldest, ok := s.byUse.Remove(s.byUse.Back()).(*storedValue)
		if !ok {
			break
		}
		delete(s.byCID, oldest.cid)
		s.bytes -= int64(len(oldest.data)) + memoryOverheadBytesPerValue
		s.dropped++
	}
	return cid, nil
}

// Get returns the stored bytes with this CID, which the caller must not modify. ok is false if the store does not hold them.
func (s *Store) Get(cid string) (data []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byCID[cid]
	if !ok {
		return nil, false
	}
	s.byUse.MoveToFront(e)
	v, ok := e.Value.(*storedValue)
	if !ok {
		return nil, false
	}
	return v.data, true
}

// Stats describes the content of a store.
type Stats struct {
	Values  int   `json:"values"`
	Bytes   int64 `json:"bytes"`   // size of the values and of the overhead
	Dropped int   `json:"dropped"` // number of values dropped to free space
}

// Stats returns how many values and bytes the store contains, and how many values it has dropped.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Values: s.byUse.Len(), Bytes: s.bytes, Dropped: s.dropped}
}

const maxJSONDepth = 1000

// CanonicalJSON rewrites one JSON value without white space, with sorted keys and with as few escapes as JSON allows. Of
// duplicate keys the last one wins. Numbers keep their digits. The result shares no memory with data.
func CanonicalJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading JSON: unexpected text after the first value")
	}
	if isTooDeep(v, maxJSONDepth) {
		return nil, errors.New("objects and arrays in the JSON are nested too deeply")
	}
	return plainjson.Marshal(v)
}

func isTooDeep(v any, remaining int) bool {
	var inner iter.Seq[any]
	switch x := v.(type) {
	case map[string]any:
		inner = maps.Values(x)
	case []any:
		inner = slices.Values(x)
	default:
		return remaining < 0
	}
	for e := range inner {
		if isTooDeep(e, remaining-1) {
			return true
		}
	}
	return remaining < 0
}

// PutJSON stores a JSON value in canonical form. It returns the CID of the value, and its canonical form. If the value
// exceeds the store's limit, it returns both with a *TooLargeError.
func (s *Store) PutJSON(data []byte) (cid string, canonical []byte, err error) {
	canonical, err = CanonicalJSON(data)
	if err != nil {
		return "", nil, err
	}
	cid, err = s.Put(canonical)
	return cid, canonical, err
}
