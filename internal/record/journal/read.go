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

// Head is what every line begins with.
type Head struct {
	// Time at which the line was written (RFC 3339, UTC).
	Time string `json:"time"`
	// PID is the process that wrote it.
	PID int `json:"pid"`
	// SessionID is empty before there is a session.
	SessionID string `json:"session_id"`
	// Type says which line it is.
	Type string `json:"type"`
}

// Line is one of these; the keys here are the values of `type`.
type Line struct {
	// Start is the first line of a process that was started as claude.
	Start *Start `json:"start"`
	// Run says how the session of a process was set up.
	Run *Run `json:"run"`
	// Host is something that the program around claude did.
	Host *Host `json:"host"`
	// Prompt is a prompt that a turn begins with.
	Prompt *Prompt `json:"prompt"`
	// Attachment is something beside the messages.
	Attachment *Attachment `json:"attachment"`
	// Context is what a request says beside its prompt or results.
	Context *Context `json:"context"`
	// Match says which rule answered.
	Match *Match `json:"match"`
	// Model is a part of what the model said.
	Model *Model `json:"model"`
	// Permission is what was decided about a call.
	Permission *Permission `json:"permission"`
	// Breakpoint is what was decided at a breakpoint.
	Breakpoint *Breakpoint `json:"breakpoint"`
	// Tool is a call of a tool and what came of it.
	Tool *Tool `json:"tool"`
	// MCPCall is what an MCP server was asked.
	MCPCall *MCPCall `json:"mcp_call"`
	// MCPNotification is what an MCP server said while it worked.
	MCPNotification *MCPNotification `json:"mcp_notification"`
	// Retry is a failed request that is made again.
	Retry *Retry `json:"retry"`
	// Warning is a text for the user.
	Warning *Warning `json:"warning"`
	// Result is the end of a prompt.
	Result *Result `json:"result"`
	// Unplayed is a step that the turn did not come to.
	Unplayed *Unplayed `json:"unplayed"`
	// Gate is a step that waited at a gate.
	Gate *Gate `json:"gate"`
	// Exit is the last line of a process that ended in order.
	Exit *Exit `json:"exit"`
	// Request is one of the Messages API face that was part of a conversation.
	Request *Request `json:"request"`
	// SideRequest is one of that face beside the conversations.
	SideRequest *SideRequest `json:"side_request"`
	// Exchange is a request that was forwarded to an API.
	Exchange *Exchange `json:"exchange"`
	// OAuth is a request to the authorization server of a fixture.
	OAuth *OAuth `json:"oauth"`
	// Expectation is what the scenario expects, as it was judged.
	Expectation *Expectation `json:"expectation"`
	// Finding is something that is wrong with the run.
	Finding *Finding `json:"finding"`
}

// Entry is one line as it was read.
type Entry struct {
	Head
	// When is Time; zero = it could not be read.
	When time.Time
	// Source numbers the journals that are read together, from 0: process ids of two
	// machines may be the same.
	Source int
	Line
}

// maxLine bounds a line: a tool's result may be long.
const maxLine = 256 << 20

// ErrTorn says that a line is not whole: its writer died, or the file is none of
// ours.
var ErrTorn = errors.New("not a whole line of a journal")

// Read yields the lines of a journal in their order. A line that cannot be read
// is an error beside a zero entry, and reading goes on after it. Lines of types
// that are not known here have a head only.
func Read(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		for n := 1; lines.Scan(); n++ {
			if len(lines.Bytes()) == 0 {
				continue
			}
			e, err := parse(lines.Bytes())
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

func parse(line []byte) (Entry, error) {
	var e Entry
	rest, ok := e.quick(line)
	if !ok && (json.Unmarshal(line, &e.Head) != nil || e.Type == "") {
		return Entry{}, ErrTorn
	}
	if ok {
		line = rest
	}
	e.When, _ = time.Parse(time.RFC3339Nano, e.Time) // zero is what is left to do
	body := e.body()
	if body == nil {
		if !json.Valid(line) {
			return Entry{}, ErrTorn
		}
		return e, nil
	}
	if err := json.Unmarshal(line, body); err != nil {
		if !json.Valid(line) {
			return Entry{}, ErrTorn
		}
		return Entry{}, fmt.Errorf("a line of type %s: %w", e.Type, err)
	}
	return e, nil
}

// quick reads the head of a line as this package writes it, and makes an object of
// the rest, in its place; false = it is written in another way.
func (e *Entry) quick(line []byte) (body []byte, ok bool) {
	var pid []byte
	rest, ok := bytes.CutPrefix(line, []byte(`{"time":"`))
	if !ok {
		return nil, false
	}
	for _, part := range []struct {
		to  *string
		end string
	}{{&e.Time, `","pid":`}, {nil, `,"session_id":"`}, {&e.SessionID, `","type":"`}, {&e.Type, `"`}} {
		var text []byte
		if text, rest, ok = bytes.Cut(rest, []byte(part.end)); !ok || bytes.ContainsAny(text, `"\{`) {
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
	return rest, true // torn
}

// bodies are the places of the fields of a Line by the types of lines.
var bodies = sync.OnceValue(func() map[string]int {
	places := map[string]int{}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Line]()) {
		places[f.Tag.Get("json")] = i
	}
	return places
})

// body makes room for what a line of its type holds; nil = an unknown type.
func (e *Entry) body() any {
	i, known := bodies()[e.Type]
	if !known {
		return nil
	}
	field := reflect.ValueOf(&e.Line).Elem().Field(i)
	field.Set(reflect.New(field.Type().Elem()))
	return field.Interface()
}
