// Package telemetry reports the events of a session as OpenTelemetry metrics, events and spans, as the real CLI does
// with CLAUDE_CODE_ENABLE_TELEMETRY (observed with 2.1.330): a dashboard or a collector can be tested without a
// model.
//
// [ReadConfig] reads the variables, [Open] returns a [Recorder], and [Recorder.Record] takes the events of the
// session. [Recorder.Run] sends at the intervals of the configuration and [Recorder.Close] sends the rest.
//
// The SDK of OpenTelemetry is not used: its exporters have no http/json, bring 9.5 MB and 2.5 ms of processor time to
// every start, and take no other clock than the machine's. The names and attributes are the tables in table.go; a
// test compares them with what was recorded of the real CLI.
package telemetry
