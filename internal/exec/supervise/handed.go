package supervise

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
)

// Handed is a process called claude with what a shim without a shell has left for
// it in claude.env, beside the binary: a line is K=V, or ?K=V where the caller's own
// counts. Other processes are as they were.
func Handed(s *process.System) *process.System {
	if !s.AsClaude() {
		return s
	}
	self, err := s.Executable()
	if err != nil {
		return s
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(self), "claude.env"))
	if err != nil {
		return s
	}
	more := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line, byDefault := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "?")
		name, value, ok := strings.Cut(line, "=")
		if ok && (!byDefault || s.Getenv(name) == "") {
			more[name] = strings.NewReplacer(`\\`, "\\", `\n`, "\n").Replace(value)
		}
	}
	return s.With(more)
}

// RealOf is the real claude that such a shim runs, with what goes in front of its
// arguments and the fault it is under; nil = it is none of those.
func RealOf(s *process.System) (argv []string, fault string) {
	claude := s.Getenv("CLAUDELESS_REAL")
	if claude == "" || !s.AsClaude() {
		return nil, ""
	}
	argv = []string{claude}
	for config := range strings.SplitSeq(s.Getenv("CLAUDELESS_MCP_CONFIG"), "\n") {
		if config != "" {
			argv = append(argv, "--mcp-config="+config)
		}
	}
	return append(argv, s.Args[1:]...), s.Getenv(failureVariable)
}
