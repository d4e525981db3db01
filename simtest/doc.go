// Package simtest is a scripted claude for Go tests: the same events as the real
// one, no tokens, nothing to install.
//
//	func TestTriage(t *testing.T) {
//		claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "git log -1"}), "Parser bug.")
//		out, err := exec.Command(claude.Path, "-p", "triage", "--allowedTools", "Bash").Output()
//		…
//		claude.Tools() // the calls that ran
//	}
//
// Importing the package is enough: the test binary plays claude itself when its
// processes are started with CLAUDELESS_SIMTEST set, which the claude on PATH
// does. The end of the test is the verdict of claudeless: a step that was not
// played, a prompt without a rule, an unmet expectation, and conduct that breaks
// with the real claude fail the test, each with the line that wrote the rule.
//
// Scripts are ordinary scenarios, the processes are those of the binary, and the
// verdict is the one of `claudeless verify`.
package simtest
