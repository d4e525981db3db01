package journal

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

const hidden = "[redacted]"

// Compiled on first use: a run without a journal should not pay for them.
var (
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(token|secret|passw|credential|api_?key|private_?key|authorization)`)
	})
	secretText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{20,}|(?i:bearer\s+)[A-Za-z0-9._~+/-]{8,}=*`)
	})
	secretKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)("[^"]*(?:token|secret|passw|credential|api_?key|authorization)[^"]*"\s*:\s*)"(?:[^"\\]|\\.)*"`)
	})
)

// redactor hides secrets in JSON lines.
type redactor struct{ values [][]byte }

// newRedactor collects the values of variables whose names look secret; values
// shorter than six bytes would hide half of every line and are left alone.
func newRedactor(environ []string) redactor {
	var r redactor
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if len(value) < 6 || !secretName().MatchString(name) {
			continue
		}
		if text, err := protocol.Marshal(value); err == nil {
			r.values = append(r.values, text[1:len(text)-1])
		}
	}
	return r
}

func (r redactor) apply(line []byte) []byte {
	for _, v := range r.values {
		line = bytes.ReplaceAll(line, v, []byte(hidden))
	}
	line = secretKey().ReplaceAll(line, []byte(`${1}"`+hidden+`"`))
	return secretText().ReplaceAll(line, []byte(hidden))
}
