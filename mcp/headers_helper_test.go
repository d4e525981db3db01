package mcp

import (
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// TestHelperFailures: failures of a helper are reported without its output (S5).
func TestHelperFailures(t *testing.T) {
	for command, want := range map[string]string{
		"echo secret; exit 3":     "headersHelper failed with exit status 3",
		"echo secret":             "headersHelper did not print a JSON object of strings",
		"echo null":               "headersHelper did not print a JSON object of strings",
		`echo '{"k":["secret"]}'`: "headersHelper did not print a JSON object of strings",
		"sleep 10":                "headersHelper did not finish within 100ms",
	} {
		_, err := runHeadersHelper(t.Context(), proc.Command{Path: proc.Shell, Args: []string{"-c", command}, Env: []string{"PATH=/bin:/usr/bin"}}, 100*time.Millisecond)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func FuzzParseHeaders(f *testing.F) {
	f.Add(`{"Authorization":"x"}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, out string) {
		if headers, err := parseHelperHeaders([]byte(out)); (headers == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", out, headers, err)
		}
	})
}
