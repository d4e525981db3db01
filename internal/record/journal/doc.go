// Package journal writes what a run received and did to a file, one JSON object per line (--capture FILE,
// CLAUDELESS_CAPTURE). Tests examine it and verdicts are computed from it. The package also reads such files.
//
// Every line is written in one append, so processes may share a file. Package redact replaces secrets before that.
//
// # The journal
//
// `--capture FILE` (or the variable `CLAUDELESS_CAPTURE`) appends a JSON line for each event: a prompt, a tool call, a
// result and so on. `claudeless exec` writes one journal for all processes of a command. Many processes may share a
// file, because every line is written in one piece. Readers skip a line that was cut off when its process was killed.
//
// Every line has `time` (RFC 3339, UTC), `pid` (of the process that wrote it), `session_id` (empty before a session
// exists) and `type`, which selects one of the lines below. New types and new keys may be added; the meaning of
// existing ones does not change. Keys that end in `ms` are milliseconds. Costs (`total_cost_usd`) are in US dollars. They
// are computed from the public price list and the token counts, which are estimated unless the scenario sets them.
//
// The lines of a process begin with `start` and end with `exit`. A process without an `exit` line was killed. Between
// these two lines, each prompt produces `prompt` and `match`, then alternately `model` (a message of the model) and
// `tool` (the result of each call), and finally `result`. A `context` line precedes a request that contains more than
// its prompt or results. A `host` line records what the host (the program that started claude) did with the process's
// streams. `expectation` and `finding` lines record the checks at the end of the run.
//
// The input of a call has up to two forms. In the `tool_use` block of a `model` line and in `input` of the `tool` line, it is
// the input that the scenario specifies. If a hook, the host or a breakpoint changes it, `ran_with` of the `tool` line has the
// changed input. The key `prompt` contains the text that the host sent, or a text of the CLI itself if `injected` is true.
//
// A journal contains no secrets. `[redacted]` replaces the values of variables whose names look like secrets. It also
// replaces texts that look like keys, passwords or cookies. The reports of exec and verify (--json, --junit, --github,
// the lines on stderr) are redacted in the same way.
package journal

//go:generate go run ../../tools/schemadoc -dir . -type Line -head LineHead -json ../../../docs/schema/journal.json -md ../../../docs/journal.md
