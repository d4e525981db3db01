package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// carefulCaller is a caller of the real CLI that checks every result and does not wait forever.
const carefulCaller = `#!/bin/sh
timeout -k 1 "${PATIENCE:-10}" claude -p hi --allowedTools Bash --output-format stream-json --verbose </dev/null >out.$$
code=$?
grep -a -q '"result":"all good"' out.$$ && grep -a -q '"is_error":false' out.$$ && test $code = 0; found=$?
rm out.$$
exit $found
`

// faultScenario is a scenario whose run has a tool call.
const faultScenario = `[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [{ tool = "Bash", input = { command = "echo hello" } }]
[[responses.response.steps]]
text = "all good"
`

// Every fault of the catalogue can be applied between the real CLI and its caller. A careful caller survives each fault
// or reports it, and the runs of the real CLI are counted. The home directory is fresh, because start-up files of a
// shell in the user's home can delay the real CLI by a minute.
func TestFaultsOfTheRealCLI(t *testing.T) {
	modules, bin := realCLI(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"careful.sh": carefulCaller, "s.toml": faultScenario, "net.sh": "ip link set lo up 2>/dev/null || ifconfig lo up\nexec \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	claude := "--real=" + filepath.Join(modules, "newest", "claude")
	judged := func(args ...string) (report struct {
		Runs    []json.RawMessage
		Command struct{ MS float64 }
		Faults  []struct {
			Name, Outcome string
			MS            float64
		}
	},
	) {
		words := []string{"-n", "--", "sh", "net.sh", filepath.Join(bin, "claudeless"), "exec", "-s", "s.toml", claude, "--fresh-home", "--json", "r.json"}
		cmd := exec.CommandContext(t.Context(), "unshare", append(words, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "r.json"))
		if err == nil {
			err = json.Unmarshal(raw, &report)
		}
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	r := judged("--", "sh", "-c", "PATIENCE=100 ./careful.sh && claude --version")
	if len(r.Runs) != 2 {
		t.Errorf("%d runs, want 2", len(r.Runs))
	}
	// On a slow machine all runs take longer, but the time limit of the caller must expire before that of exec.
	patience := fmt.Sprintf("PATIENCE=%.0f", min(r.Command.MS/1000+8, 10))
	r = judged("--faults", "all", "--", "env", patience, "./careful.sh")
	if len(r.Faults) < 22 {
		t.Errorf("%d faults", len(r.Faults))
	}
	survived := 0
	for _, f := range r.Faults {
		t.Logf("%-20s %-9s %5.1f s", f.Name, f.Outcome, f.MS/1000)
		if f.Outcome == "survived" {
			survived++
		}
	}
	if survived == 0 {
		t.Error("none of them was survived: the caller gives up in any case")
	}
}
