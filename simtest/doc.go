// Package simtest provides a scripted claude for Go tests. It prints the real CLI's events, but needs no tokens.
//
//	func TestTriage(t *testing.T) {
//		claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "git log -1"}), "Parser bug.")
//		out, err := exec.Command(claude.Path, "-p", "triage", "--allowedTools", "Bash").Output()
//		…
//		claude.Tools() // the calls that ran
//	}
//
// The import is enough: the claude on PATH is the test binary, which runs as claude if CLAUDELESS_SIMTEST is set.
//
// When the test ends, claudeless checks the run. The test fails if a step was not reached, a prompt matched no rule, an
// expectation was not met, or the real CLI would fail. Each message contains the line that defined the rule.
//
// A script becomes a scenario, and claude behaves like the claudeless binary. `claudeless verify` makes the same checks.
package simtest
