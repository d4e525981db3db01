package carrier

import (
	"bufio"
	"strings"
	"testing"
)

func FuzzNextEvent(f *testing.F) {
	f.Add("event: x\r\ndata: a\ndata:b\n\n")
	f.Add(": c\n\n\ndata\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		in := bufio.NewReader(strings.NewReader(stream))
		for range len(stream) + 1 {
			if _, _, err := nextEvent(in, 1000); err != nil {
				return
			}
		}
		t.Error("no end")
	})
}
