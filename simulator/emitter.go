package simulator

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// errConsumerStopped ends a turn after its consumer has stopped iterating; see [emitter.errorIfConsumerStopped].
var errConsumerStopped = errors.New("the consumer stopped")

// turnEndError describes how a turn ends. It is an error, so that every step of the turn returns it. Only [turn.run]
// converts it to a result.
type turnEndError struct {
	subtype             string // "success" or one of the error subtypes
	terminalReason      string // empty if the result has none
	isError             bool
	errors              []string
	apiFailure          *failureSummary // nil if no request failed
	structuredOutput    json.RawMessage
	deferredCall        *protocol.ToolUse
	resultText          *string // nil means the last assistant text
	stopReason          string  // empty means the stop reason of the last reply
	withoutModelRequest bool
	excludeLastReply    bool   // the usage of the last reply is not part of the turn's usage
	localCommand        string // name of the slash command that ran; empty if none
	crashReason         string // error that ends the session with exit code 1; empty means that the session continues
}

func (e *turnEndError) Error() string { return "the turn has ended: " + e.subtype }

func turnEndWithoutModelRequest(resultText string) *turnEndError {
	return &turnEndError{subtype: "success", withoutModelRequest: true, resultText: &resultText}
}

type failureSummary struct {
	status    int    // HTTP status; 0 if there was no response
	errorType string // api_error_type; empty if there was no response
	apiError  string // value of api_error, the cause of some failures; empty means none
	code      string // api_error_code; empty means none
	hookInput protocol.StopFailureHookInput
}

// recordingEmitter records the events of a turn in the transcript and passes them to the consumer. Only the emitter calls yield.
// After the consumer has stopped, emit neither records nor yields anything, so emitting cannot fail. Code that waits or
// starts work calls [emitter.errorIfConsumerStopped] first.
type recordingEmitter struct {
	sim             *Simulator
	yield           func(protocol.Event, error) bool
	consumerStopped bool
	userEventCount  int // user events of the main conversation so far
}

func (o *recordingEmitter) errorIfConsumerStopped() error {
	if o.consumerStopped {
		return errConsumerStopped
	}
	return nil
}

func (o *recordingEmitter) emitAsIs(ev protocol.Event) {
	if o.consumerStopped {
		return
	}
	if u, ok := ev.(*protocol.UserEvent); ok && u.ParentToolUseID == nil && u.IsReplay == nil {
		o.userEventCount++
	}
	if a, ok := ev.(*protocol.AssistantEvent); ok && a.ParentToolUseID == nil {
		o.sim.history.lastAssistantUUID = a.UUID
	}
	o.sim.history.retained.recordEvent(ev)
	if tr := o.sim.main.Transcript; tr != nil && !o.sim.history.transcriptSaveFailed {
		if err := tr.Record(ev); err != nil {
			o.sim.history.transcriptSaveFailed = true
			o.emitTranscriptNotSavedWarning(err)
		}
	}
	o.consumerStopped = o.consumerStopped || !o.yield(ev, nil)
}

func (o *recordingEmitter) yieldErrorToConsumer(err error) {
	if !o.consumerStopped {
		o.consumerStopped = true
		o.yield(nil, err)
	}
}

func (o *recordingEmitter) assignIDsAndEmitAll(events []protocol.Event) {
	for _, ev := range events {
		o.emitAsIs(o.assignIDs(ev))
	}
}

func (o *recordingEmitter) emitTranscriptNotSavedWarning(err error) {
	o.emitAsIs(&protocol.StderrWarning{Text: "the session is not saved: " + err.Error()})
}

func (o *recordingEmitter) emitSystem(subtype string, fields ...protocol.Field) {
	o.emitAsIs(&protocol.SystemEvent{Subtype: subtype, Fields: fields, SessionID: o.sim.options.State.SessionID(), UUID: o.sim.options.Clock.NewID()})
}

func (o *recordingEmitter) emitInformational(content, level string) {
	o.emitSystem("informational", protocol.Field{Key: "content", Value: content}, protocol.Field{Key: "level", Value: level})
}

func (o *recordingEmitter) emitTitleChange(title string) {
	o.emitSystem("session_title_changed", protocol.Field{Key: "title", Value: title})
}

func (o *recordingEmitter) emitInjectedText(text string, synthetic bool) {
	o.emitAsIs(o.injectedMessage(text, synthetic))
}

func (o *recordingEmitter) injectedMessage(text string, synthetic bool) *protocol.UserEvent {
	content := protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}
	return &protocol.UserEvent{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: content},
		SessionID: o.sim.options.State.SessionID(), UUID: o.sim.options.Clock.NewID(), Timestamp: o.currentTimestamp(), IsSynthetic: synthetic,
	}
}

// assignIDs sets the session id, uuid and timestamp of an event from another package.
func (o *recordingEmitter) assignIDs(ev protocol.Event) protocol.Event {
	switch ev := ev.(type) {
	case *protocol.SystemEvent:
		if ev.UUID == "" {
			ev.SessionID, ev.UUID = o.sim.options.State.SessionID(), o.sim.options.Clock.NewID()
		}
	case *protocol.Frame:
		if ev.UUID == "" {
			ev.SessionID, ev.UUID = o.sim.options.State.SessionID(), o.sim.options.Clock.NewID()
		}
	case *protocol.UserEvent:
		if ev.UUID == "" {
			ev.Type, ev.UUID, ev.Timestamp = "user", o.sim.options.Clock.NewID(), o.currentTimestamp()
		}
		ev.SessionID = o.sim.options.State.SessionID()
	case *protocol.AssistantEvent:
		ev.SessionID = o.sim.options.State.SessionID()
	case *protocol.AttachmentAdded:
		if hooked, ok := ev.Attachment.(protocol.HookAttachment); ok && hooked.Notice != nil {
			o.assignIDs(hooked.Notice)
			ev.UUID = hooked.Notice.UUID
		}
	case *protocol.TranscriptOnlyEvent:
		o.assignIDs(ev.Event)
	}
	return ev
}

const timestampFormat = "2006-01-02T15:04:05.000Z"

func (o *recordingEmitter) currentTimestamp() string {
	return o.sim.options.Clock.Now().UTC().Format(timestampFormat)
}

// newAPIStyleID creates an id in the format of the API: msg_01…, toolu_01…, req_01….
func (o *recordingEmitter) newAPIStyleID(prefix string) string {
	return prefix + "_01" + strings.ReplaceAll(o.sim.options.Clock.NewID(), "-", "")[:22]
}
