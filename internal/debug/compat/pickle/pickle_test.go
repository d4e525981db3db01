package pickle

import (
	"encoding/base64"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Bytes that the older Python client and server were observed to write.
func TestRepr(t *testing.T) {
	tests := map[string]string{
		"gARLAy4=":                     "3",
		"gASVCgAAAAAAAAB9lIwBeJRLAXMu": "{'x': 1}",
		"gARLCi4=":                     "10",
	}
	for data, want := range tests {
		v, err := Read(decode(t, data))
		if err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		if got := Repr(v, 500); got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
	}
}

// TestReadOpcodes decodes every opcode of protocol 4, as Python's pickletools documents it. Nothing is ever called: a
// reducer is shown as the call that Python would make.
func TestReadOpcodes(t *testing.T) {
	tests := map[string]string{
		"\x80\x04N.":    "None",
		"\x80\x04\x88.": "True",
		"\x80\x04\x8a\x09\xd2\x0a\x1f\xeb\x8c\xa9\x54\xab\x00.": "12345678901234567890",
		"\x80\x04G\x40\x04\x00\x00\x00\x00\x00\x00.":            "2.5",
		"\x80\x04\x8c\x02it.":                                   "'it'",
		"\x80\x04]\x94K\x01aK\x02a.":                            "[1, 2]",
		"\x80\x04}\x94\x8c\x01aK\x01s.":                         "{'a': 1}",
		"\x80\x02K\x01K\x02\x86.":                               "(1, 2)",
		"\x80\x02K\x01\x85.":                                    "(1,)",
		"\x80\x04\x8f(K\x01\x90.":                               "{1}",
		"\x80\x04(K\x01\x91.":                                   "frozenset({1})",
		"\x80\x04C\x02a\xff.":                                   `b'a\xff'`,
		"\x80\x04C\x05'\n\r\t\\.":                               `b"'\n\r\t\\"`,
		"\x80\x04C\x02'\".":                                     `b'\'"'`,
		"\x80\x04\x8a\x01\xff.":                                 "-1",
		"J\xfe\xff\xff\xff.":                                    "-2",
		"\x8c\x02os\x8c\x06system\x93(\x8c\x08rm -rf /tR.":      "os.system('rm -rf /')",
		"\x80\x04]\x94h\x00a.":                                  "[[[[[[[[[[[[[…]]]]]]]]]]]]]", // contains itself
		"cdatetime\ndate\nC\x01x\x94\x85R.":                     "datetime.date(b'x')",
		"ca\nB\n)\x81}X\x01\x00\x00\x00xK\x01sb.":               "a.B() state={'x': 1}",

		// The pickles that dill writes for types and for some values.
		"cdill._dill\n_load_type\n(\x8c\x03inttR.":      "int",
		"cdill._dill\n_load_type\n)R.":                  "dill._dill._load_type()",
		"cdill._dill\n_eval_repr\n(\x8c\x08range(3)tR.": "range(3)",
		"cdill._dill\n_eval_repr\n(K\x01tR.":            "dill._dill._eval_repr(1)",
	}
	for data, want := range tests {
		v, err := Read([]byte(data))
		if err != nil {
			t.Errorf("%q: %v", data, err)
			continue
		}
		if got := Repr(v, 500); got != want {
			t.Errorf("%q: %s, want %s", data, got, want)
		}
	}
}

// S74: bytes that do not decode as their format are an error, never a panic.
func TestReadCorrupt(t *testing.T) {
	for _, data := range []string{"", "\x80", "\x80\x04", "a.", "(.", "h\x00.", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "K", "\xfe.", "}(K\x01u.", "I1\n.", "\x80\x04X\xff\xff\xff\x7fabc."} {
		if v, err := Read([]byte(data)); err == nil {
			t.Errorf("%q reads as %s", data, Repr(v, 100))
		}
	}
}

func TestFromJSON(t *testing.T) {
	tests := []struct{ in, repr string }{
		{`null`, "None"},
		{`[true,false]`, "[True, False]"},
		{`0`, "0"},
		{`255`, "255"},
		{`256`, "256"},
		{`65536`, "65536"},
		{`-1`, "-1"},
		{`-2147483649`, "-2147483649"},
		{`128`, "128"},
		{`9223372036854775808`, "9223372036854775808"},
		{`-9223372036854775809`, "-9223372036854775809"},
		{`1.5`, "1.5"},
		{`1e3`, "1000.0"},
		{`"hé\n"`, `'hé\n'`},
		{`{"b":[1,{"c":null}],"a":"it's"}`, `{'b': [1, {'c': None}], 'a': "it's"}`},
		{`[]`, "[]"},
		{`{}`, "{}"},
		{"1" + strings.Repeat("0", 700), "1" + strings.Repeat("0", 700)},
	}
	for _, tt := range tests {
		data, err := FromJSON([]byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		v, err := Read(data)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.repr, Repr(v, 2000)); diff != "" {
			t.Errorf("%s: %s", tt.in, diff)
		}
	}
	if got, err := FromJSON([]byte("10")); err != nil || base64.StdEncoding.EncodeToString(got) != "gARLCi4=" {
		t.Errorf("10 is %q (%v)", got, err)
	}
	for _, bad := range []string{"", "{", "1 2", strings.Repeat("[", 2000) + strings.Repeat("]", 2000)} {
		if _, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%.20q was written", bad)
		}
	}
}

func TestReprLimit(t *testing.T) {
	v := any("x")
	for range 40 { // the complete repr would have 2^40 elements
		v = &List{Items: []any{v, v}}
	}
	if got := Repr(v, 100); len(got) > 110 {
		t.Errorf("%d bytes", len(got))
	}
	if got := Repr(strings.Repeat("é", 1<<20), 20); len(got) > 40 {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"gARLAy4=", "gASVCgAAAAAAAAB9lIwBeJRLAXMu"} {
		data, err := base64.StdEncoding.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("cos\nsystem\n(S'x'\ntR."))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := Read(data); err == nil && len(Repr(v, 200)) > 220 {
			t.Error("too long")
		}
	})
}

func FuzzFromJSON(f *testing.F) {
	f.Add(`{"a":[1,-2.5,"x",null,true]}`)
	f.Fuzz(func(t *testing.T, in string) {
		data, err := FromJSON([]byte(in))
		if err != nil {
			return
		}
		if !json.Valid([]byte(in)) {
			t.Fatalf("%q is not JSON", in)
		}
		if _, err := Read(data); err != nil {
			t.Fatalf("%q: %v", in, err)
		}
	})
}

// Reading takes time and memory in proportion to the displayed text, not to the size of the pickle (A7). Examples are a
// huge integer, and millions of values that are created, dropped, stored or put into containers.
func TestReadIsBounded(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 3<<20/len(s)) }
	tests := map[string]string{
		"integer":         "\x8b\x00\x00\x50\x00" + strings.Repeat("\x7f", 5<<20) + ".",
		"values and POPs": many("N0") + ".",
		"POPs at the end": many("N") + many("0") + ".",
		"numbers":         "](" + many("K\x01") + "e.",
		"batches":         "]" + many("(K\x01K\x02e") + ".",
		"remembered":      "N" + many("\x94") + ".",
		"dictionaries":    many("}") + ".",
	}
	for name, data := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read([]byte(data))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 96<<20 {
			t.Errorf("%s: %d bytes allocated, error %v", name, n, err)
		}
	}
}
