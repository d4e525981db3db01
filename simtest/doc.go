// Package simtest provides a scripted claude for Go tests: the real CLI's events, without tokens and installation.
//
//	func TestTriage(t *testing.T) {
//		claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "git log -1"}), "Parser bug.")
//		out, err := exec.Command(claude.Path, "-p", "triage", "--allowedTools", "Bash").Output()
//		…
//		claude.Tools() // the calls that ran
//	}
//
// The import is enough: the claude on PATH starts the test binary with CLAUDELESS_SIMTEST set, so it runs as claude.
//
// When the test ends, claudeless checks the run. The test fails if a step was not reached, a prompt matched no rule, an
// expectation was not met, or the real CLI would fail. Each message contains the line that defined the rule.
//
// Scripts are scenarios, processes behave like the claudeless binary, and the verdict is that of `claudeless verify`.
package simtest
