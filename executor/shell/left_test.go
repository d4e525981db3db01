package shell

import (
	"os"
	"testing"
	"time"
)

// What has been left behind and has ended since is not kept, or a long session would have a guard for each.
func TestLeftIsForgotten(t *testing.T) {
	s := New(Options{CWD: t.TempDir(), Environ: os.Environ()})
	defer s.Close()
	behind := func(line string) {
		c, err := s.Start(t.Context(), line, "")
		if err != nil {
			t.Fatal(err)
		}
		c.End()
		c.Discard()
	}
	behind("mkfifo go; sleep 1000 &")
	for range 5 {
		behind("{ read -r x <go; } &")
		behind("echo >go")
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.left) > 2; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are kept", len(s.left))
		}
		behind("sleep 1000 & kill $!")
	}
	if len(s.left) == 0 || s.left[0].Over() {
		t.Error("what runs was forgotten")
	}
}
