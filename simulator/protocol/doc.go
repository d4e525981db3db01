// Package protocol holds the types of everything that crosses the process
// boundary: messages and their content blocks, the events on stdout, tool
// definitions and results, transcript lines, hook inputs and control frames.
//
// It has JSON tags and no behaviour beyond encoding; every other package of
// the module may import it and it imports none of them. Key sets and types
// follow the real CLI 2.1.329 field by field.
package protocol
