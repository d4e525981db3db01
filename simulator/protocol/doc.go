// Package protocol defines the types that cross the process boundary: messages and their content blocks, the events on
// stdout, tool definitions and results, transcript lines, hook inputs and permission requests. It also defines traces:
// events that are recorded but have no wire form. The frames of the control protocol are in internal/claude/control.
//
// The types have JSON tags and no behavior beyond encoding. The package imports no other package of the module except
// for encoding helpers, and every package may import it. Keys and types follow the real CLI 2.1.329 field by field.
package protocol
