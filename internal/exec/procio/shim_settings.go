package procio

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
)

// ApplyShimSettings applies the settings in the file claude.env next to the binary, if that file exists and the process
// is called claude. A line K=V sets a variable, and ?K=V sets it only if the caller has not. Other processes are
// returned unchanged.
func ApplyShimSettings(s *process.System) *process.System {
	if !s.CalledAsClaude() {
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
	return s.WithEnv(more)
}

// RealCommand returns the command line of the real claude that the shim runs, with the options that the shim adds, and
// the fault to apply. argv is nil for other processes.
func RealCommand(s *process.System) (argv []string, fault string) {
	claude := s.Getenv("CLAUDELESS_REAL")
	if claude == "" || !s.CalledAsClaude() {
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
