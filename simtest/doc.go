// Package simtest is a scripted claude for Go tests: the same events as the real one, no tokens, nothing to install.
//
//	func TestTriage(t *testing.T) {
//		claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "git log -1"}), "Parser bug.")
//		out, err := exec.Command(claude.Path, "-p", "triage", "--allowedTools", "Bash").Output()
//		…
//		claude.Tools() // the calls that ran
//	}
//
// Importing the package is enough: the test binary runs as claude if it is started with CLAUDELESS_SIMTEST set, and
// the claude on PATH does that. At the end of the test, claudeless checks the run: a step that was not reached, a
// prompt without a rule, an unmet expectation, and a use of claude that breaks with the real one make the test fail,
// each with the line that defined the rule.
//
// Scripts are ordinary scenarios, the processes behave like the claudeless binary, and the verdict is the same as
// with `claudeless verify`.
package simtest
