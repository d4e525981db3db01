// Package wire encodes the responses of the Messages API: messages, as one body or as a stream of events, errors,
// and the list of models. The events of a message add up to exactly its body.
package wire
