package debug

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/debug/item"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Record is a call that is over.
type Record struct {
	CallData
	Status string `json:"status"` // success, exception, or the status of an event
	// Source is "mcp_client" for calls made through the hub to the external
	// server Server.
	Source      string     `json:"source,omitempty"`
	Server      string     `json:"server,omitempty"`
	Action      Action     `json:"action,omitempty"`       // decided before the call
	AfterAction Action     `json:"after_action,omitempty"` // decided after it
	CompletedAt float64    `json:"completed_at"`
	Result      *item.Item `json:"result,omitempty"`
	ResultCID   string     `json:"result_cid,omitempty"`
	ErrorItem   *item.Item `json:"exception_item,omitempty"`
	ErrorCID    string     `json:"exception_cid,omitempty"`
	ErrorType   string     `json:"exception_type,omitempty"`
	Error       string     `json:"exception_message,omitempty"`
	Traceback   string     `json:"exception_traceback,omitempty"`
	Sessions    []string   `json:"repl_sessions,omitempty"`
	// OriginalInput is what the agent asked for, when the input was changed, and
	// FinalResult what it was given, when the result was: a failure is its text.
	OriginalInput json.RawMessage `json:"original_input,omitempty"`
	FinalResult   json.RawMessage `json:"final_result,omitempty"`

	hit []string // breakpoints on the call when it was over
}

// Calls are the newest call records, in the order of their ends.
type Calls struct {
	Calls     []Record `json:"calls"`
	Total     int      `json:"total_count"` // that matched, whether kept or not
	Truncated bool     `json:"truncated"`
}

// DefaultLimit is how many records are given to those who name no limit.
const DefaultLimit = 100

// maxInRecord is the size up to which records hold values themselves; larger
// ones are found by their CID.
const maxInRecord = 64 << 10

// maxRecordBytes bounds the values in all records.
const maxRecordBytes = 64 << 20

// records keeps the newest max records, fewer when their values are large.
type records struct {
	max   int
	total int
	size  int // of the values in list
	list  []*Record
}

func (r *records) add(rec *Record) {
	r.total++
	r.list = append(r.list, rec)
	for r.size += rec.size(); r.size > maxRecordBytes && len(r.list) > 1; r.list = r.list[1:] {
		r.size -= r.list[0].size()
		r.list[0] = nil
	}
	if len(r.list) > r.max+r.max/4 { // cut off rarely, in one go
		for _, old := range r.list[:len(r.list)-r.max] {
			r.size -= old.size()
		}
		r.list = slices.Clone(r.list[len(r.list)-r.max:])
	}
}

// size is that of the values in a record, which nobody changes any more.
func (rec *Record) size() int {
	n := len(rec.Input) + len(rec.OriginalInput) + len(rec.PrettyTarget) + len(rec.PrettyKwargs) + len(rec.PrettyResult) + len(rec.Exception) +
		len(rec.CallSite) + len(rec.Error) + len(rec.Traceback)
	for _, a := range rec.PrettyArgs {
		n += len(a)
	}
	return n
}

// newest are the records that are kept.
func (r *records) newest() []*Record { return r.list[max(0, len(r.list)-r.max):] }

// result is an outcome in its shown form, its values kept.
type result struct {
	Outcome
	cid               string
	pretty, exception json.RawMessage
}

func (h *Hub) resultOf(o Outcome) (result, error) {
	r := result{Outcome: o}
	switch {
	case o.ResultItem != nil:
		r.cid, r.pretty = o.ResultItem.CID, item.Pretty(h.store, *o.ResultItem)
	case len(o.Result) > 0:
		cid, canonical, err := h.store.PutJSON(o.Result)
		if canonical == nil {
			return r, refuse(CodeInvalidPayload, fmt.Sprintf("result: %v", err))
		}
		r.cid, r.pretty = cid, o.Result
	}
	if !o.Failed {
		return r, nil
	}
	if o.ErrorItem != nil {
		r.exception = item.Pretty(h.store, *o.ErrorItem)
		return r, nil
	}
	text := o.Error
	if o.ErrorType != "" {
		text = o.ErrorType + ": " + text
	}
	var err error
	r.exception, err = protocol.Marshal(text)
	return r, err
}

// record keeps what became of a call and tells the observers; h.mu is held.
func (h *Hub) record(k *call, r result) {
	rec := &Record{
		CallData: k.data, Status: "success", Action: k.action, CompletedAt: seconds(h.o.Now()),
		Result: r.ResultItem, ResultCID: r.cid, ErrorItem: r.ErrorItem,
		ErrorType: r.ErrorType, Error: r.Error, Traceback: r.Traceback, Sessions: k.sessions, OriginalInput: shorten(k.original, ""),
	}
	if r.Failed {
		rec.Status = "exception"
	}
	if r.ErrorItem != nil {
		rec.ErrorCID = r.ErrorItem.CID
	}
	rec.PrettyResult, rec.Exception = r.pretty, r.exception
	rec.shorten()
	k.record = rec
	h.addRecord(rec)
}

func (h *Hub) addRecord(rec *Record) {
	for _, b := range h.hits(rec.MethodName) {
		rec.hit = append(rec.hit, b.Name)
	}
	h.records.add(rec)
	h.publish(Event{Kind: EventCompleted, CallID: rec.CallID, MethodName: rec.MethodName, Status: rec.Status})
}

// shorten makes a record small enough to be one of many. Values of older
// clients stay in the store alone.
func (rec *Record) shorten() {
	rec.Input, rec.PrettyKwargs = shorten(rec.Input, rec.InputCID), shorten(rec.PrettyKwargs, rec.InputCID)
	rec.PrettyResult, rec.Exception = shorten(rec.PrettyResult, rec.ResultCID), shorten(rec.Exception, rec.ErrorCID)
	rec.CallSite = shorten(rec.CallSite, "")
	bare := func(it item.Item) item.Item {
		it.Data = nil
		return it
	}
	if rec.Target != nil {
		it := bare(*rec.Target)
		rec.Target, rec.PrettyTarget = &it, shorten(rec.PrettyTarget, it.CID)
	}
	args := make([]item.Item, len(rec.Args))
	pretty := slices.Clone(rec.PrettyArgs)
	for i, it := range rec.Args {
		args[i] = bare(it)
		if i < len(pretty) {
			pretty[i] = shorten(pretty[i], it.CID)
		}
	}
	kwargs := make(map[string]item.Item, len(rec.Kwargs))
	for name, it := range rec.Kwargs {
		kwargs[name] = bare(it)
	}
	rec.Args, rec.PrettyArgs, rec.Kwargs = args, pretty, kwargs
}

// shorten gives up a value too large for a record and says so in its place.
func shorten(v json.RawMessage, cid string) json.RawMessage {
	if len(v) <= maxInRecord {
		return v
	}
	short, err := protocol.Marshal(map[string]any{"__truncated__": true, "size": len(v), "cid": cid})
	if err != nil {
		return nil
	}
	return short
}

// AddRecord keeps the record of something that was no call through the hub: an
// event of an older client, a call to an external server. What is empty of
// call id and times is filled in.
func (h *Hub) AddRecord(rec Record) {
	if rec.PrettyArgs == nil {
		rec.PrettyArgs = []json.RawMessage{}
	}
	if rec.PrettyKwargs == nil {
		rec.PrettyKwargs = json.RawMessage("{}")
	}
	rec.shorten()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := seconds(h.o.Now())
	if rec.CallID == "" {
		h.seq++
		rec.CallID = fmt.Sprintf("%.6f-%03d", now, h.seq)
	}
	if rec.StartedAt == 0 {
		rec.StartedAt = now
	}
	if rec.CompletedAt == 0 {
		rec.CompletedAt = now
	}
	h.addRecord(&rec)
}

// Calls returns the newest limit records of one tool, or of all when tool is
// empty; nil = DefaultLimit.
func (h *Hub) Calls(tool string, limit *int) (Calls, error) {
	n := DefaultLimit
	if limit != nil {
		n = *limit
	}
	if n < 1 {
		return Calls{}, refuse(CodeInvalidLimit, "limit must be at least 1", "limit", n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	want := h.canonical(tool)
	out := Calls{Calls: []Record{}}
	kept := h.records.newest()
	for _, rec := range kept {
		if tool == "" || rec.MethodName == tool || rec.MethodName == want {
			out.Total++
			out.Calls = append(out.Calls, *rec)
		}
	}
	if tool == "" {
		out.Total = h.records.total
	}
	out.Calls = slices.Clone(out.Calls[max(0, len(out.Calls)-n):])
	out.Truncated = out.Total > len(out.Calls)
	return out, nil
}

// Execution is one entry of a breakpoint's history.
type Execution struct {
	ID           string  `json:"id"` // the call's
	FunctionName string  `json:"function_name"`
	CallData     Record  `json:"call_data"`
	CompletedAt  float64 `json:"completed_at"`
}

// History returns the calls that a breakpoint was on, the newest first; limit 0
// = all that are kept.
func (h *Hub) History(name string, limit int) []Execution {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []Execution{}
	for _, rec := range slices.Backward(h.records.newest()) {
		if limit > 0 && len(out) == limit {
			break
		}
		if slices.Contains(rec.hit, name) {
			out = append(out, Execution{ID: rec.CallID, FunctionName: rec.MethodName, CallData: *rec, CompletedAt: rec.CompletedAt})
		}
	}
	return out
}

// ComError is a failure of communication that a client reported, as it sent
// it.
type ComError = json.RawMessage

// ReportComError keeps a client's report; the newest 500 are kept.
func (h *Hub) ReportComError(e ComError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.comErrors = append(h.comErrors, shorten(e, ""))
	if n := len(h.comErrors) - maxComErrors; n > 0 {
		h.comErrors = slices.Clone(h.comErrors[n:])
	}
	h.publish(Event{Kind: EventChanged, Topic: TopicErrors})
}

// ComErrors are the clients' reports, the oldest first.
func (h *Hub) ComErrors() []ComError {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.comErrors)
}
