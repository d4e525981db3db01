package connection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The line with the reason why a server exited precedes the stack traces and notes of interpreters and package
// managers.
func TestLastLine(t *testing.T) {
	for stderr, want := range map[string]string{
		"":                   "",
		"starting\nno key\n": "no key",
		"config.json:3: no key\n  3 | x\n    ^\nhint: set KEY\n":                                                                                                                                                           "config.json:3: no key",
		"Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\n    import nope\nModuleNotFoundError: No module named 'nope'\n":                                                                         "ModuleNotFoundError: No module named 'nope'",
		"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/x.js'\n    at Module._load (node:internal:1) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.11.0\n": "Error: Cannot find module '/x.js'",
		"npm error code E404\nnpm error 404 'nope@*' is not in this registry.\nnpm error\nnpm error A complete log of this run can be found in: /x.log\n":                                                                  "npm error 404 'nope@*' is not in this registry.",
		"panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/w/main.go:3 +0x18\nexit status 2\n":                                                                                                                        "panic: boom",
		"thread 'main' panicked at src/main.rs:2:5:\nboom\nnote: run with `RUST_BACKTRACE=1` to see it\n":                                                                                                                  "boom",
	} {
		if diff := cmp.Diff(want, lastFailureMessageLine(stderr)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", stderr, diff)
		}
	}
}
