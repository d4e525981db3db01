//go:build unix

package suite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/suite"
)

// If the system has no network namespaces, a warning reports this, and the cases are still compared.
func TestNoNamespaces(t *testing.T) {
	res, said := compare(t, "echo said", suite.Options{})
	if !strings.Contains(said, "warning: claudeless and the real claude share this machine's network: ") {
		t.Errorf("stderr: %q", said)
	}
	if len(res.Cases) != 1 || res.Cases[0].Status != parity.StatusDiffers || len(res.Cases[0].Differences) != 1 || res.Cases[0].Differences[0].Real != "said" {
		t.Errorf("cases: %+v", res.Cases[0])
	}
}

// A case that differs is compared again: random differences are reported as flaky, constant ones as differences.
func TestRetries(t *testing.T) {
	for _, test := range []struct {
		name, loud string
		want       parity.Status
		flaky      []string
	}{
		{"by chance", `test -e "$0.ran" || echo said; : >"$0.ran"`, parity.StatusSame, []string{"stdout.text"}},
		{"always", "echo said", parity.StatusDiffers, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, _ := compare(t, test.loud, suite.Options{Retries: 1})
			v := res.Cases[0]
			if v.Status != test.want || !slices.Equal(v.Flaky, test.flaky) {
				t.Errorf("%s, flaky %q; want %s, %q", v.Status, v.Flaky, test.want, test.flaky)
			}
			var text bytes.Buffer
			if err := res.WriteText(&text); err != nil || strings.Contains(text.String(), "flaky: one") != (test.flaky != nil) {
				t.Errorf("%v:\n%s", err, text.String())
			}
		})
	}
}

// compare compares one case for two programs: one without output, and a script.
func compare(t *testing.T, script string, o suite.Options) (res *suite.Result, stderr string) {
	t.Helper()
	dir := t.TempDir()
	silent, loud := filepath.Join(dir, "silent"), filepath.Join(dir, "loud")
	one := filepath.Join(dir, "one.txtar")
	for name, text := range map[string]string{
		silent: "#!/bin/sh\n", loud: "#!/bin/sh\n" + script + "\nexit 0\n", one: "-- scenario.toml --\n-- argv --\n-p\nx\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	s := *process.InitSystemSIGPIPEAndLog()
	s.Stderr = &said
	o.Cases, o.Executable, o.IsolatedArgs = []string{one}, silent, []string{"nobody", "knows"}
	o.Right, o.Timeout, o.System = suite.Program{Path: loud, Version: "1.0.0"}, 20*time.Second, &s
	res, err := suite.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res, said.String()
}
