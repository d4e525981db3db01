package process_test

import (
	"testing"

	"github.com/claudeless/claudeless/internal/base/process"
)

// CLI 2.1.329 converts invalid UTF-8 in this way, on its command line and on stdin.
func TestBytesThatAreNoText(t *testing.T) {
	for _, tt := range []struct{ in, argv, stream string }{
		{"é and \ufeff", "é and \ufeff", "é and \ufeff"},
		{"a\xf1b", "a\ufffdb", "a\ufffdb"},
		{"\xe2\x82x", "\ufffd\ufffdx", "\ufffdx"},
		{"\xf0\x9f\x98.", "\ufffd\ufffd\ufffd.", "\ufffd."},
		{"\xf0\x9f\x98", "\ufffd\ufffd\ufffd", "\ufffd"},
		{"\xc0\xaf", "\ufffd\ufffd", "\ufffd\ufffd"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd"},
		{"é\xf0\x80\x80", "é\ufffd\ufffd\ufffd", "é\ufffd\ufffd\ufffd"},
		{"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd\ufffd"},
		{"\ufffd\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd\ufffd"},
	} {
		if got := process.ReplaceInvalidUTF8InCommandLineWords([]string{tt.in}); got[0] != tt.argv {
			t.Errorf("%q on the command line is %+q, want %+q", tt.in, got[0], tt.argv)
		}
		if got := string(process.ReplaceInvalidUTF8LikeJavaScriptStream([]byte(tt.in))); got != tt.stream {
			t.Errorf("%q on stdin is %+q, want %+q", tt.in, got, tt.stream)
		}
	}
}
