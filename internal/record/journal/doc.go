// Package journal writes what a run received and did to a file, one JSON object
// a line: what tests assert on (--capture FILE, CLAUDELESS_CAPTURE), and what a
// verdict is made from. It reads such files too.
//
// Every line goes out in one append, so that many processes may share a file.
// Secrets are replaced before anything is written, as package redact finds them.
// The package reads events and decides nothing.
//
// # The journal
//
// `--capture FILE` (or the variable `CLAUDELESS_CAPTURE`) appends one JSON object
// a line for each thing that a process received or did; `claudeless exec` keeps
// one journal of all processes of a command. Many processes may share a file:
// every line is written in one piece. A line that was cut off by the death of
// its writer is passed over by those who read.
//
// Every line has `time` (RFC 3339, UTC), `pid` (of the process that wrote it),
// `session_id` (empty before there is a session) and `type`, which says which of
// the lines below it is. New types and new keys may come; the meaning of those
// here stays. Times are milliseconds where the key ends in `ms`; prices are US
// dollars by the public price list (`total_cost_usd`), computed from estimated
// token counts unless the scenario gives them.
//
// A process begins with `start` and ends with `exit`; one without `exit` was
// killed. Between them stand, for each prompt: `prompt`, `match`, then by turns
// `model` (what the model said) and `tool` (what came of each call), and at last
// `result`; before a request that says more than its prompt or results, `context`. What the host did with the process's streams is a `host` line. What
// was judged afterwards are `expectation` and `finding` lines.
//
// Whose input is it? The blocks of `model` lines are the model's: the input of a
// `tool_use` stands there as the scenario wrote it. `tool.input` is what the
// model asked for, too; what a hook, the host or a breakpoint made of it is
// `tool.ran_with`, which is left out when nobody changed anything. `prompt` is
// what the host sent, unless `injected` says that the CLI itself wrote it.
//
// A journal holds no secrets: values of variables whose names look like secrets,
// and texts that look like keys, passwords or cookies, are `[redacted]`. The reports
// of exec and verify (--json, --junit, --github, the lines on stderr) are redacted in
// the same way.
package journal

//go:generate go run ../../tools/schemadoc -dir . -type Line -head Head -json ../../../docs/schema/journal.json -md ../../../docs/journal.md
