// Package simtest provides a scripted claude for Go tests: the same events as the real CLI, without tokens and
// installation.
//
//	func TestTriage(t *testing.T) {
//		claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "git log -1"}), "Parser bug.")
//		out, err := exec.Command(claude.Path, "-p", "triage", "--allowedTools", "Bash").Output()
//		…
//		claude.Tools() // the calls that ran
//	}
//
// Importing the package is enough: a test binary that is started with CLAUDELESS_SIMTEST set runs as claude. The claude
// on PATH starts it in this way.
//
// At the end of the test, claudeless checks the run. The test fails if a step was not reached, a prompt matched no
// rule, an expectation was not met, or claude was used in a way that fails with the real CLI. Each message contains the
// line that defined the rule.
//
// Scripts are ordinary scenarios, the processes behave like the claudeless binary, and the verdict is that of
// `claudeless verify`.
package simtest
