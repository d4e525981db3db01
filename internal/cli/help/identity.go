package help

import (
	"runtime"

	"github.com/claudeless/claudeless/internal/base/process"
)

// BinaryInfo describes the running binary, so that a test can verify which claude it uses.
type BinaryInfo struct {
	Claudeless string `json:"claudeless"` // version of claudeless
	Claude     string `json:"claude"`     // the version that is simulated
	Simulated  bool   `json:"simulated"`  // always true
	Path       string `json:"path"`       // path of the binary
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Go         string `json:"go"`
}

// Identify describes the running binary. Path is empty if it cannot be determined.
func Identify(s *process.System, version, claude string) BinaryInfo {
	path, err := s.Executable()
	if err != nil {
		path = ""
	}
	return BinaryInfo{Claudeless: version, Claude: claude, Simulated: true, Path: path, OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
}
