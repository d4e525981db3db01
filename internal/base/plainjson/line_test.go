package plainjson

import (
	"bufio"
	"strings"
	"testing"
)

// TestReadLine: short lines are returned with their ends; the bytes of a long one go to the callback, even if it is
// longer than the buffer of the reader.
func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 40)
	in := bufio.NewReaderSize(strings.NewReader("a\n12345678\n"+long+"\nb"), 16)
	var got []string
	for {
		dropped := ""
		line, tooLong, err := ReadLine(in, nil, 8, func(part []byte) { dropped += string(part) })
		if tooLong != (dropped != "") {
			t.Errorf("%q: too long %t", dropped, tooLong)
		}
		got = append(got, string(line)+dropped)
		if err != nil {
			break
		}
	}
	if want := "a\n|12345678\n|" + long + "\n|b"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
