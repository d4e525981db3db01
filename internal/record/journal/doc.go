// Package journal writes what a run received and did to a file, one JSON object per
// line (--capture FILE, CLAUDELESS_CAPTURE). Tests make assertions about it and
// verdicts are computed from it. The package also reads such files.
//
// Every line is written in one append, so several processes may share a file.
// Secrets are replaced before a line is written, see package redact.
//
// # The journal
//
// `--capture FILE` (or the variable `CLAUDELESS_CAPTURE`) appends one JSON object
// per line for each thing that a process received or did; `claudeless exec` keeps
// one journal for all processes of a command. Many processes may share a file:
// every line is written in one piece. Readers skip a line that was cut off because
// its writer died.
//
// Every line has `time` (RFC 3339, UTC), `pid` (of the process that wrote it),
// `session_id` (empty before a session exists) and `type`, which selects one of the
// lines below. New types and new keys may be added; the meaning of existing ones
// does not change. Times are milliseconds if the key ends in `ms`; costs are US
// dollars by the public price list (`total_cost_usd`), computed from estimated
// token counts unless the scenario sets them.
//
// A process begins with `start` and ends with `exit`; one without `exit` was
// killed. Between them, each prompt produces: `prompt`, `match`, then alternately
// `model` (a message of the model) and `tool` (the result of each call), and
// finally `result`. A `context` line precedes a request that contains more than its
// prompt or results. What the host did with the process's streams is a `host` line.
// Judgements after the run are `expectation` and `finding` lines.
//
// The blocks of `model` lines are the model's: the input of a `tool_use` is as the
// scenario wrote it. `tool.input` is also the model's input; the input after
// changes by a hook, the host or a breakpoint is `tool.ran_with`, which is absent
// if nothing changed it. `prompt` is what the host sent, unless `injected` says
// that the CLI itself wrote it.
//
// A journal contains no secrets: values of variables whose names look like secrets,
// and texts that look like keys, passwords or cookies, are replaced by
// `[redacted]`. The reports of exec and verify (--json, --junit, --github, the
// lines on stderr) are redacted in the same way.
package journal

//go:generate go run ../../tools/schemadoc -dir . -type Line -head LineHead -json ../../../docs/schema/journal.json -md ../../../docs/journal.md
