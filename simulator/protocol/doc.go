// Package protocol holds the types of everything that crosses the process
// boundary: messages and their content blocks, the events on stdout, tool
// definitions and results, transcript lines, hook inputs and questions about
// permission. Beside them stand the traces: events without a wire form, for those
// who record. The frames of the control protocol are those of internal/claude/control.
//
// It has JSON tags and no behaviour beyond encoding; every other package of
// the module may import it and it imports none of them. Key sets and types
// follow the real CLI 2.1.329 field by field.
package protocol
