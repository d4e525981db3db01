package mcp

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/record/redact"
)

// sharedDebugLogOutput is a writer that the debug logs of many servers share. Parameters, results,
// headers and environment variables are never written to it. A nil pointer discards everything.
type sharedDebugLogOutput struct {
	redact *redact.Redactor

	mu sync.Mutex
	w  io.Writer
}

// newSharedDebugLogOutput returns nil if w is nil. Secrets in the environment are redacted.
func newSharedDebugLogOutput(w io.Writer, environWithSecrets []string) *sharedDebugLogOutput {
	if w == nil {
		return nil
	}
	return &sharedDebugLogOutput{redact: redact.New(redact.Options{Environ: environWithSecrets}), w: w}
}

// debugLog is the log of one server. A nil log discards everything.
type debugLog struct {
	server string
	output *sharedDebugLogOutput

	mu           sync.Mutex
	hiddenValues []string
}

// LogOfServer returns the log of a server, or nil if s is nil. The log redacts the values of the given maps, such as the
// environment variables and headers of the server.
func (s *sharedDebugLogOutput) LogOfServer(serverName string, mapsWithSecretValues ...map[string]string) *debugLog {
	if s == nil {
		return nil
	}
	l := &debugLog{server: serverName, output: s}
	for _, t := range mapsWithSecretValues {
		l.HideValuesOf(t)
	}
	return l
}

// HideValuesOf redacts the values of a map, such as headers, in everything that is written from now on.
func (l *debugLog) HideValuesOf(table map[string]string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(table)) {
		l.hiddenValues = append(l.hiddenValues, table[k])
	}
}

// LogMessage logs a message that was sent ("->") or received ("<-"); messageID is empty for notifications.
func (l *debugLog) LogMessage(direction, method, messageID string) {
	switch {
	case l == nil:
	case messageID == "":
		l.Printf("%s %s", direction, method)
	default:
		l.Printf("%s %s id=%s", direction, method, messageID)
	}
}

func (l *debugLog) Printf(format string, args ...any) {
	if l == nil {
		return
	}
	line := l.Redact(fmt.Sprintf(format, args...))
	l.output.mu.Lock()
	defer l.output.mu.Unlock()
	fmt.Fprintf(l.output.w, "[mcp] %s: %s\n", l.server, line)
}

// Redact redacts anything that looks like a secret, and the hidden values. Short hidden values are not redacted,
// because they are too common to be secrets. A nil log redacts nothing.
func (l *debugLog) Redact(text string) string {
	const tooShort = 4
	if l == nil {
		return text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.hiddenValues {
		if len(s) > tooShort {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return l.output.redact.String(text)
}

// NewStderrWriter returns a writer, for one goroutine, that copies lines to the log; it is nil if l is nil.
func (l *debugLog) NewStderrWriter() io.Writer {
	if l == nil {
		return nil
	}
	return &lineWriter{log: l}
}

type lineWriter struct {
	log   *debugLog
	lines redact.PrivateKeyFilter
	line  []byte
}

func (s *lineWriter) Write(p []byte) (int, error) {
	const longest = 4 << 10
	for _, b := range p {
		if b != '\n' && len(s.line) < longest {
			s.line = append(s.line, b)
			continue
		}
		if b == '\n' {
			if text, shown := s.lines.LinePartOutsideKey(string(s.line)); shown {
				s.log.Printf("stderr: %s", text)
			}
			s.line = s.line[:0]
		}
	}
	return len(p), nil
}
