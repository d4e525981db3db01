//go:build unix

package journal_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// fileSizeLimit is the size, in bytes, beyond which the child's file cannot grow: the kernel writes a part of a line
// and refuses the rest, as on a full disk.
const fileSizeLimit = 950

func TestMain(m *testing.M) {
	if path := os.Getenv("JOURNAL_TEST_FULL"); path != "" {
		os.Exit(writeUntilFull(path))
	}
	os.Exit(m.Run())
}

// writeUntilFull returns 7 when the journal has detected the full disk.
func writeUntilFull(path string) int {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: fileSizeLimit, Max: fileSizeLimit}); err != nil {
		return 1
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	j := journal.New(journal.Options{W: file, Now: fixedNow})
	for range 100 {
		j.Write(journal.Warning{Text: strings.Repeat("x", 60)})
	}
	if j.Err() != nil {
		return 7
	}
	return 0
}

// A partial line on a full disk is removed again, so that the next line of another process starts on its own line.
func TestFullDiskLeavesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.jsonl")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_FULL="+path)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	before, err := os.ReadFile(path)
	if err != nil || len(before) == 0 || len(before) >= fileSizeLimit || before[len(before)-1] != '\n' {
		t.Fatalf("%d bytes, %v, the last of them %q", len(before), err, before[max(0, len(before)-40):])
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := journal.New(journal.Options{W: file, Now: fixedNow})
	j.Write(journal.Warning{Text: "there is room again"})
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
	for i, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d: %q", i+1, line)
		}
	}
	if want := strings.Count(string(before), "\n") + 1; len(lines) != want || !strings.Contains(lines[len(lines)-1], "room again") {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
}
