// Package journal writes what a run received and did to a file, one JSON object per line (--capture FILE,
// CLAUDELESS_CAPTURE). Tests examine it and verdicts are computed from it. The package also reads such files.
//
// Every line is written in one append, so processes may share a file. Package redact replaces secrets before that.
//
// docs/journal.md describes the format; guide.md is its introduction.
package journal

//go:generate go run ../../tools/schemadoc -dir . -type Line -head LineHead -json ../../../docs/schema/journal.json -md ../../../docs/journal.md
