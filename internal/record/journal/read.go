package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// LineHead holds the keys that all lines have.
type LineHead struct {
	Time      string `json:"time"`       // Time is when the line was written (RFC 3339, UTC).
	PID       int    `json:"pid"`        // PID is the process that wrote the line.
	SessionID string `json:"session_id"` // SessionID is empty before a session exists.
	Type      string `json:"type"`       // Type is the kind of the line.
}

// Line holds the content of a line: only the field for its `type` is set. The type is the JSON key of the field.
type Line struct {
	Start      *Start      `json:"start"`      // Start is the first line of a process that was started as claude.
	Run        *Run        `json:"run"`        // Run describes the configuration of a process's session.
	Host       *Host       `json:"host"`       // Host is something that the host program did.
	Output     *Output     `json:"output"`     // Output is a piece of what the process wrote to a standard stream.
	Prompt     *Prompt     `json:"prompt"`     // Prompt is a prompt that starts a turn.
	Attachment *Attachment `json:"attachment"` // Attachment is content in addition to the messages.
	// Context is what a request contains in addition to its prompt or results.
	Context         *Context         `json:"context"`
	Match           *Match           `json:"match"`            // Match says which rule answered.
	Model           *Model           `json:"model"`            // Model is a part of a message of the model.
	Permission      *Permission      `json:"permission"`       // Permission is the decision about a call.
	Breakpoint      *Breakpoint      `json:"breakpoint"`       // Breakpoint is the decision at a breakpoint.
	Tool            *Tool            `json:"tool"`             // Tool is a tool call with its result.
	MCPCall         *MCPCall         `json:"mcp_call"`         // MCPCall is a call to an MCP server.
	MCPNotification *MCPNotification `json:"mcp_notification"` // MCPNotification is a notification of an MCP server.
	Retry           *Retry           `json:"retry"`            // Retry is a failed request that is retried.
	Warning         *Warning         `json:"warning"`          // Warning is a message for the user.
	Result          *Result          `json:"result"`           // Result is the result of a prompt.
	Unplayed        *Unplayed        `json:"unplayed"`         // Unplayed is a step that the turn did not reach.
	// Gate is the line about a step that waited until another process released its gate.
	Gate        *Gate        `json:"gate"`
	Screen      *Screen      `json:"screen"`       // Screen is a dialog of the interactive screen and the answer to it.
	Telemetry   *Telemetry   `json:"telemetry"`    // Telemetry counts what a collector has accepted under one name.
	Exit        *Exit        `json:"exit"`         // Exit is the last line of a process that exited normally.
	Request     *Request     `json:"request"`      // Request is a request to claudeless serve that was part of a conversation.
	SideRequest *SideRequest `json:"side_request"` // SideRequest is a request to claudeless serve outside a conversation.
	Exchange    *Exchange    `json:"exchange"`     // Exchange is a request that was forwarded to an API.
	OAuth       *OAuth       `json:"oauth"`        // OAuth is a request to the authorization server of a fixture.
	Expectation *Expectation `json:"expectation"`  // Expectation is the result of an expectation of the scenario.
	Finding     *Finding     `json:"finding"`      // Finding is a problem of the run.
}

// Entry is one parsed line.
type Entry struct {
	LineHead
	When time.Time // the parsed Time; zero means it could not be parsed
	// Source is the number of the journal that contains the line, from 0. If several journals are read together, a
	// process id is not enough to identify a process, because two machines may use the same id.
	Source int
	Line
}

// maxLineBytes bounds the length of a line, which may contain a long tool result.
const maxLineBytes = 256 << 20

// ErrNotAJournalLine means that a line is incomplete: the process that wrote it died, or the file is not a journal.
var ErrNotAJournalLine = errors.New("not a complete journal line: expected one JSON object")

// Read yields the lines of a journal in order. For a line that cannot be parsed it yields an error with a zero
// entry and continues. Lines of unknown types have only a head.
func Read(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
		for n := 1; lines.Scan(); n++ {
			if len(lines.Bytes()) == 0 {
				continue
			}
			e, err := parseEntry(lines.Bytes())
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(e, err) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Entry{}, fmt.Errorf("reading a journal: %w", err))
		}
	}
}

func parseEntry(line []byte) (Entry, error) {
	var e Entry
	rest, ok := e.parseHeadInPlace(line)
	if !ok && (json.Unmarshal(line, &e.LineHead) != nil || e.Type == "") {
		return Entry{}, ErrNotAJournalLine
	}
	if ok {
		line = rest
	}
	e.When, _ = time.Parse(time.RFC3339Nano, e.Time) // zero if the time is invalid
	body := e.allocateBody()
	if body == nil {
		if !json.Valid(line) {
			return Entry{}, ErrNotAJournalLine
		}
		return e, nil
	}
	if err := json.Unmarshal(line, body); err != nil {
		if !json.Valid(line) {
			return Entry{}, ErrNotAJournalLine
		}
		return Entry{}, fmt.Errorf("invalid journal line of type %s: %w", e.Type, err)
	}
	return e, nil
}

// parseHeadInPlace parses the head of a line. hasStandardForm is false if the head does not have the form that this package writes.
// restAsObject is the rest of the line as a JSON object. The object shares the bytes of the argument line: parseHeadInPlace replaces one
// of them by a brace.
func (e *Entry) parseHeadInPlace(line []byte) (restAsObject []byte, hasStandardForm bool) {
	var pid []byte
	rest, hasStandardForm := bytes.CutPrefix(line, []byte(`{"time":"`))
	if !hasStandardForm {
		return nil, false
	}
	for _, part := range []struct {
		to  *string
		end string
	}{{&e.Time, `","pid":`}, {nil, `,"session_id":"`}, {&e.SessionID, `","type":"`}, {&e.Type, `"`}} {
		var text []byte
		if text, rest, hasStandardForm = bytes.Cut(rest, []byte(part.end)); !hasStandardForm || bytes.ContainsAny(text, `"\{`) {
			*e = Entry{}
			return nil, false
		}
		if part.to == nil {
			pid = text
		} else {
			*part.to = string(text)
		}
	}
	var err error
	e.PID, err = strconv.Atoi(string(pid))
	switch {
	case err != nil || e.Type == "":
		*e = Entry{}
		return nil, false
	case len(rest) > 0 && rest[0] == ',':
		rest[0] = '{'
		return rest, true
	case string(rest) == "}":
		return []byte("{}"), true
	}
	return rest, true // the line is incomplete
}

var lineFieldIndexByJSONName = sync.OnceValue(func() map[string]int {
	places := map[string]int{}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Line]()) {
		places[f.Tag.Get("json")] = i
	}
	return places
})

// allocateBody sets the field of the entry for its line type to a new value, and returns it; nil means unknown type.
func (e *Entry) allocateBody() any {
	i, known := lineFieldIndexByJSONName()[e.Type]
	if !known {
		return nil
	}
	field := reflect.ValueOf(&e.Line).Elem().Field(i)
	field.Set(reflect.New(field.Type().Elem()))
	return field.Interface()
}

// Body returns the content of the line; nil means the type of the line is unknown.
func (l *Line) Body() Body {
	for _, field := range reflect.ValueOf(l).Elem().Fields() {
		if !field.IsNil() {
			body, _ := field.Elem().Interface().(Body) // every field is a Body
			return body
		}
	}
	return nil
}

// RunNumberPerEntry returns for each entry the number of the process run that wrote it. Runs are numbered from 0, in the order
// of their first entries. A process id does not identify a run: it may occur in two journals, or be used again by a
// later process, which begins with another start line.
func RunNumberPerEntry(entries []Entry) []int {
	type process struct{ source, pid int }
	runs, current, count := make([]int, len(entries)), map[process]int{}, 0
	for i, e := range entries {
		key := process{e.Source, e.PID}
		run, known := current[key]
		if !known || e.Start != nil {
			run = count
			count++
			current[key] = run
		}
		runs[i] = run
	}
	return runs
}
