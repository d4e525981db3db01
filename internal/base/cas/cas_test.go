package cas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test vectors of the older clients: the hash covers the exact bytes.
func TestCIDVectors(t *testing.T) {
	for data, want := range map[string]string{
		"\x80\x04K\x03.": "62a1db2cf8f9088d94c33e521e48918a392b53514f35a4ef6e4d4d6a13eb2c42f75357c3f460ce5af631ccc118d8fedb808a64d8951f9ab8cd9b59786316ab69",
		"3":              "3bafbf08882a2d10133093a1b8433f50563b93c14acd05b79028eb1d12799027241450980651994501423a66c276ae26c43b739bc65c4e16b10c3af6c202aebb",
	} {
		if got := CID([]byte(data)); got != want || !IsCID(got) {
			t.Errorf("CID(%q) = %s, want %s", data, got, want)
		}
	}
	for _, bad := range []string{"", "3baf", strings.Repeat("G", 128), strings.Repeat("A", 128)} {
		if IsCID(bad) {
			t.Errorf("IsCID(%q)", bad)
		}
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"b":1,"a":{"y":[1, 2],"x":null}}`, `{"a":{"x":null,"y":[1,2]},"b":1}`},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{` "<&>\u00e9" `, `"<&>é"`},
		{`12345678901234567890`, `12345678901234567890`},
		{`1.50`, `1.50`},
		{`true`, `true`},
		{`[]`, `[]`},
	}
	for _, tt := range tests {
		got, err := CanonicalJSON([]byte(tt.in))
		if err != nil {
			t.Errorf("Canonical(%s): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("Canonical(%s): %s", tt.in, diff)
		}
	}
	for _, bad := range []string{``, `{`, `1 2`, `nul`, strings.Repeat("[", 1500) + strings.Repeat("]", 1500)} {
		if got, err := CanonicalJSON([]byte(bad)); err == nil {
			t.Errorf("Canonical(%.20q) = %.20q, want an error", bad, got)
		}
	}
}

func TestEqualValuesShareACID(t *testing.T) {
	s := New(Options{})
	a, _, err := s.PutJSON([]byte(`{"x": 1, "y": "é"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, canonical, err := s.PutJSON([]byte(`{"y":"\u00e9","x":1}`))
	if err != nil || a != b {
		t.Errorf("CIDs %s and %s (%v), want one", a, b, err)
	}
	if got, ok := s.Get(a); !ok || string(got) != string(canonical) {
		t.Errorf("Get = %q, %v", got, ok)
	}
}

func TestBounds(t *testing.T) {
	s := New(Options{MaxBytes: 100 + 2*memoryOverheadBytesPerValue, MaxValue: 60})
	if _, err := s.Put(make([]byte, 61)); err == nil {
		t.Error("61 bytes kept in spite of a limit of 60")
	} else if tooLarge, ok := errors.AsType[*TooLargeError](err); !ok || tooLarge.Size != 61 {
		t.Errorf("error %v", err)
	}
	first, err := s.Put([]byte(strings.Repeat("a", 50)))
	if err != nil {
		t.Fatal(err)
	}
	second, _ := s.Put([]byte(strings.Repeat("b", 40)))
	s.Get(first) // second is now the least recently used value
	third, _ := s.Put([]byte(strings.Repeat("c", 30)))
	for cid, want := range map[string]bool{first: true, second: false, third: true} {
		if _, ok := s.Get(cid); ok != want {
			t.Errorf("Get(%.8s) = %v, want %v", cid, ok, want)
		}
	}
	if diff := cmp.Diff(Stats{Values: 2, Bytes: 80 + 2*memoryOverheadBytesPerValue, Dropped: 1}, s.Stats()); diff != "" {
		t.Error(diff)
	}
}

// The number of small values is bounded by the memory that they need; a large value is stored alone.
func TestManySmallValuesAndOneLarge(t *testing.T) {
	s := New(Options{MaxBytes: 100_000})
	for i := range 10_000 {
		if _, err := s.Put(fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Values; n != 100_000/(memoryOverheadBytesPerValue+4) {
		t.Errorf("%d values of 4 bytes are kept", n)
	}
	cid, err := s.Put(make([]byte, 200_000))
	if _, ok := s.Get(cid); !ok || err != nil || s.Stats().Values != 1 {
		t.Errorf("a value over the limit: kept %v beside %d others (%v)", ok, s.Stats().Values-1, err)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x"]}`, `null`, `"\ud800"`, `{"":{"":[]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		once, err := CanonicalJSON([]byte(in))
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("not JSON: %q", once)
		}
		twice, err := CanonicalJSON(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q becomes %q (%v)", once, twice, err)
		}
	})
}
