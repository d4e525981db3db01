package simulator

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// errStopped ends a turn whose consumer has left the loop; see [emitter.gone].
var errStopped = errors.New("the consumer stopped")

// turnEndError says how a turn ends. It travels as an error, so that whatever is under
// way unwinds; [turn.run] alone takes it and makes the result of it.
type turnEndError struct {
	subtype    string // "success" or one of the error subtypes
	terminal   string // terminal_reason; empty = left out
	isError    bool
	errors     []string
	api        *failureSummary // nil = no request failed
	structured json.RawMessage
	deferred   *protocol.ToolUse
	result     *string // nil = the last assistant text
	stop       string  // stop_reason; empty = the last reply's
	untouched  bool    // the model loop never ran
	exhausted  bool    // the last reply is one too many: it is no part of the turn's usage
	local      string  // the slash command that ran; empty = none
}

func (e *turnEndError) Error() string { return "the turn has ended: " + e.subtype }

// unasked is the end of a turn that has its answer without the model.
func unasked(text string) *turnEndError {
	return &turnEndError{subtype: "success", untouched: true, result: &text}
}

// failureSummary is what a result says of a request that failed.
type failureSummary struct {
	status     int    // HTTP status; 0 = no response
	kind       string // api_error_type; empty without a response
	connection string // api_error; empty with a response
}

// emitter is the way to the consumer of a turn, by way of the transcript. It alone
// calls yield: one who has left is never called again, whatever the turn goes on
// to do, and what nobody has seen is not recorded either. So emitting cannot
// fail; what waits, asks or runs anything looks first whether the consumer is
// [emitter.gone].
type emitter struct {
	s     *Simulator
	yield func(protocol.Event, error) bool
	left  bool
	users int // top-level user events so far
}

// gone is errStopped once the consumer has left.
func (o *emitter) gone() error {
	if o.left {
		return errStopped
	}
	return nil
}

// emit records an event and hands it over.
func (o *emitter) emit(ev protocol.Event) {
	if o.left {
		return
	}
	if u, ok := ev.(*protocol.User); ok && u.ParentToolUseID == nil && u.IsReplay == nil {
		o.users++
	}
	if a, ok := ev.(*protocol.Assistant); ok && a.ParentToolUseID == nil {
		o.s.past.leaf = a.UUID
	}
	o.s.past.tail.see(ev)
	if tr := o.s.main.Transcript; tr != nil && !o.s.past.warned {
		if err := tr.Record(ev); err != nil {
			o.s.past.warned = true
			o.unsaved(err)
		}
	}
	o.left = o.left || !o.yield(ev, nil)
}

// fail hands over the error that the turn ends with.
func (o *emitter) fail(err error) {
	if !o.left {
		o.left = true
		o.yield(nil, err)
	}
}

// all stamps events that others have made, and emits them.
func (o *emitter) all(events []protocol.Event) {
	for _, ev := range events {
		o.emit(o.stamp(ev))
	}
}

// unsaved warns that the transcript cannot be written.
func (o *emitter) unsaved(err error) {
	o.emit(&protocol.Warning{Text: "the session is not saved: " + err.Error()})
}

// system yields a system event of the given subtype.
func (o *emitter) system(subtype string, fields ...protocol.Field) {
	o.emit(&protocol.System{Subtype: subtype, Fields: fields, SessionID: o.s.o.Live.SessionID(), UUID: o.s.o.Clock.NewID()})
}

// inform yields a line of the CLI itself.
func (o *emitter) inform(content, level string) {
	o.system("informational", protocol.Field{Key: "content", Value: content}, protocol.Field{Key: "level", Value: level})
}

// titled says that the session has a name.
func (o *emitter) titled(title string) {
	o.system("session_title_changed", protocol.Field{Key: "title", Value: title})
}

// inject yields text that the CLI itself puts into the conversation.
func (o *emitter) inject(text string, synthetic bool) { o.emit(o.injected(text, synthetic)) }

func (o *emitter) injected(text string, synthetic bool) *protocol.User {
	content := protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}
	return &protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: content},
		SessionID: o.s.o.Live.SessionID(), UUID: o.s.o.Clock.NewID(), Timestamp: o.timestamp(), IsSynthetic: synthetic,
	}
}

// stamp gives an event made by others its ids.
func (o *emitter) stamp(ev protocol.Event) protocol.Event {
	switch ev := ev.(type) {
	case *protocol.System:
		if ev.UUID == "" {
			ev.SessionID, ev.UUID = o.s.o.Live.SessionID(), o.s.o.Clock.NewID()
		}
	case *protocol.Frame:
		if ev.UUID == "" {
			ev.SessionID, ev.UUID = o.s.o.Live.SessionID(), o.s.o.Clock.NewID()
		}
	case *protocol.User:
		if ev.UUID == "" {
			ev.Type, ev.UUID, ev.Timestamp = "user", o.s.o.Clock.NewID(), o.timestamp()
		}
		ev.SessionID = o.s.o.Live.SessionID()
	case *protocol.Assistant:
		ev.SessionID = o.s.o.Live.SessionID()
	case *protocol.HiddenEvent:
		o.stamp(ev.Event)
	}
	return ev
}

// timestampFormat is that of all timestamps on the stream.
const timestampFormat = "2006-01-02T15:04:05.000Z"

func (o *emitter) timestamp() string { return o.s.o.Clock.Now().UTC().Format(timestampFormat) }

// apiID makes an id as the API writes them: msg_01…, toolu_01…, req_01….
func (o *emitter) apiID(prefix string) string {
	return prefix + "_01" + strings.ReplaceAll(o.s.o.Clock.NewID(), "-", "")[:22]
}
