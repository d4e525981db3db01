// Package simulator is the agent: one user message in, an ordered stream of
// events out.
//
// [Simulator.Turn] asks the scripted model, runs its tool calls through the
// executor chain and yields every event exactly once, in the order in which
// the real CLI shows them, ending with exactly one result. Text, JSON,
// stream-json, SDK hosts, transcripts and the journal are loops over that one
// stream. The package knows no output format, no control protocol, no command
// line and no operating system: clock, ids, randomness and waiting are given.
package simulator
