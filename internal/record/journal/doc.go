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
// existing ones does not change. Times are milliseconds if the key ends in `ms`; costs are US dollars by the public
// price list (`total_cost_usd`), computed from estimated token counts unless the scenario sets them.
//
// A process begins with `start` and ends with `exit`; one without `exit` was killed. Between them, each prompt
// produces: `prompt`, `match`, then alternately `model` (a message of the model) and `tool` (the result of each
// call), and finally `result`. A `context` line precedes a request that contains more than its prompt or results. A
// `host` line records what the host (the program that started claude) did with the process's streams. `expectation`
// and `finding` lines record the checks at the end of the run.
//
// The blocks of `model` lines are as the model sent them: the input of a `tool_use` is the input in the scenario.
// `tool.input` is the same input. If a hook, the host or a breakpoint has changed the input, `tool.ran_with` is the
// changed input. `prompt` is the text that the host sent, or, if `injected` is true, a text of the CLI itself.
//
// A journal contains no secrets: values of variables whose names look like secrets, and texts that look like keys,
// passwords or cookies, are replaced by `[redacted]`. The reports of exec and verify (--json, --junit, --github, the
// lines on stderr) are redacted in the same way.
package journal

//go:generate go run ../../tools/schemadoc -dir . -type Line -head LineHead -json ../../../docs/schema/journal.json -md ../../../docs/journal.md
