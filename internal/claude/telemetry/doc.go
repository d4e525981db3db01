// Package telemetry reports the events of a session as OpenTelemetry metrics, events and spans, as the real CLI does
// with CLAUDE_CODE_ENABLE_TELEMETRY (observed with 2.1.330): a dashboard or a collector can be tested without a model.
//
// [ReadConfig] reads the variables, [New] returns a [Recorder], and [Recorder.Record] takes the events of the session.
// [Recorder.Run] sends at the intervals of the configuration and [Recorder.Close] sends the rest.
//
// The SDK of OpenTelemetry is not used: its exporters do not support http/json, add 9.5 MB to the binary and 2.5 ms of
// processor time to every start, and cannot use another clock. The names and attributes are in table.go; a test
// compares them with recordings of the real CLI.
package telemetry
