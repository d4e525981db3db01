package tomltext

import (
	"testing"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

func FuzzQuote(f *testing.F) {
	for _, s := range []string{
		"", "one line", "two\nlines", "\nfirst", "last\n", `"`, "\n\"", "\n\"\"\"", "\n\"\"\"\"\"\"\"", "\n\\\"", "\r\n\t\x7f\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip("JSON has none of it")
		}
		var got struct{ Text string }
		if _, err := toml.Decode("text = "+BasicString(s), &got); err != nil {
			t.Fatalf("%q: %v", BasicString(s), err)
		}
		if got.Text != s {
			t.Errorf("%q became %q", s, got.Text)
		}
	})
}
