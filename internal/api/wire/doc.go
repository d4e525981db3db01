// Package wire is what the Messages API says: messages, whole and as the events of a
// stream, errors, models.
//
// Its one invariant: a message is the same however it goes out; its events put
// together are its body. The package knows no request and sends nothing.
package wire
