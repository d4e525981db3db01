// Package wire encodes what the Messages API sends: messages, as one body or as
// a stream of events, errors, and the list of models. The events of a message
// add up to exactly its body.
package wire
