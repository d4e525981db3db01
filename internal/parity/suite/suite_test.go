//go:build unix

package suite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/suite"
	"github.com/claudeless/claudeless/internal/process"
)

// Where the system gives no network of their own to lanes, that is said, and the
// cases are compared all the same.
func TestNoNamespaces(t *testing.T) {
	dir := t.TempDir()
	silent, loud := filepath.Join(dir, "silent"), filepath.Join(dir, "loud")
	one := filepath.Join(dir, "one.txtar")
	for name, text := range map[string]string{
		silent: "#!/bin/sh\nexit 1\n", loud: "#!/bin/sh\necho said\nexit 1\n", one: "-- scenario.toml --\n-- argv --\n-p\nx\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	s := *process.Real()
	s.Stderr = &said
	res, err := suite.Run(t.Context(), suite.Options{
		Cases: []string{one}, Self: silent, Isolated: []string{"nobody", "knows"}, Right: suite.Program{Path: loud, Version: "1.0.0"},
		Timeout: 20 * time.Second, System: &s,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "warning: the lanes share this machine's network: ") {
		t.Errorf("stderr: %q", said.String())
	}
	if len(res.Cases) != 1 || res.Cases[0].Status != parity.Differs || len(res.Cases[0].Differences) != 1 || res.Cases[0].Differences[0].Real != "said" {
		t.Errorf("cases: %+v", res.Cases[0])
	}
}
