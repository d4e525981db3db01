package runner_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
)

// BenchmarkRun compares a complete run of a command that does nothing with the command alone.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "s.toml")
	if err := os.WriteFile(file, []byte("default_response = \"x\"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("exec", func(b *testing.B) {
		s := process.InitSystemSIGPIPEAndLog()
		s.Stdin, s.Stdout, s.Stderr, s.StdinIsTTY = nil, io.Discard, io.Discard, false
		for b.Loop() {
			report, _, err := runner.Run(b.Context(), runner.Options{
				Command: []string{"true"}, Setup: runner.ClaudeSetup{Executable: os.Args[0], Scenario: file, Lenient: true}, System: s,
			})
			if err != nil || report.ExitCode() != 0 {
				b.Fatal(report, err)
			}
		}
	})
}
