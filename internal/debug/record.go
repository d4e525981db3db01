package debug

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// NewestCallRecords holds the newest call records, ordered by completion.
type NewestCallRecords struct {
	Calls     []CallRecord `json:"calls"`
	Total     int          `json:"total_count"` // number of matching records, including dropped ones
	Truncated bool         `json:"truncated"`
}

// DefaultRecordLimit is the number of records returned if the request sets no limit.
const DefaultRecordLimit = 100

const (
	maxTotalBytesOfRecords       = 16 << 20
	estimatedFixedBytesPerRecord = 1 << 10
)

// callRecordStore keeps the newest maxRecords records, or fewer if their values are large.
type callRecordStore struct {
	*hubState
	breakpoints       *breakpointSet
	maxRecords, total int
	keptBytes         int // size of the list in bytes
	keptRecords       []*CallRecord
}

// storeAndPublishLocked stores a record, drops the oldest ones beyond the limits, and notifies observers; r.mu must be held.
func (r *callRecordStore) storeAndPublishLocked(rec *CallRecord) {
	for _, b := range r.breakpoints.breakpointsForToolLocked(rec.MethodName) {
		rec.breakpoints = append(rec.breakpoints, b.Name)
	}
	r.total++
	r.keptRecords = append(r.keptRecords, rec)
	for r.keptBytes += rec.size; r.keptBytes > maxTotalBytesOfRecords && len(r.keptRecords) > 1; r.keptRecords = r.keptRecords[1:] {
		r.keptBytes -= r.keptRecords[0].size
		r.keptRecords[0] = nil
	}
	if len(r.keptRecords) > r.maxRecords+r.maxRecords/4 { // truncate rarely, in one step
		for _, old := range r.keptRecords[:len(r.keptRecords)-r.maxRecords] {
			r.keptBytes -= old.size
		}
		r.keptRecords = slices.Clone(r.keptRecords[len(r.keptRecords)-r.maxRecords:])
	}
	r.publishLocked(Event{Kind: EventCompleted, CallID: rec.CallID, MethodName: rec.MethodName, Status: rec.Status})
}

func (r *callRecordStore) newestRecordsOldestFirst() []*CallRecord {
	return r.keptRecords[max(0, len(r.keptRecords)-r.maxRecords):]
}

// storeResultAndFillException stores the result of an outcome and sets ResultCID. If the call failed, it fills in a missing
// Exception from the error.
func storeResultAndFillException(store *cas.Store, o CallOutcome) (CallOutcome, error) {
	if o.ResultCID == "" && len(o.Result) > 0 {
		cid, canonical, err := store.PutJSON(o.Result)
		if canonical == nil {
			return o, NewError(CodeInvalidPayload, fmt.Sprintf("result: %v", err))
		}
		o.ResultCID = cid
	}
	if !o.Failed || o.Exception != nil {
		return o, nil
	}
	text := o.Error
	if o.ErrorType != "" {
		text = o.ErrorType + ": " + text
	}
	var err error
	o.Exception, err = protocol.Marshal(text)
	return o, err
}

// recordCall stores the outcome of a call and notifies the observers; r.mu must be held.
func (r *callRecordStore) recordCall(k *runningCall, o CallOutcome) {
	rec := CallRecord{CallData: k.data, ExtraFields: o.ExtraFields, CallEnding: CallEnding{
		Status: "success", Action: k.action, CompletedAt: unixSeconds(r.options.Now()), PausedSeconds: float64(k.pausedTime.Microseconds()) / 1e6, ResultCID: o.ResultCID, ErrorCID: o.ErrorCID,
		ErrorType: o.ErrorType, Error: o.Error, Sessions: k.sessions, OriginalInput: k.originalInput,
	}}
	rec.PrettyResult = o.Result
	if o.Failed {
		rec.Status, rec.Exception = "exception", o.Exception
	}
	k.record = recordWithLargeValuesTruncated(rec)
	r.storeAndPublishLocked(k.record)
}

func recordWithLargeValuesTruncated(rec CallRecord) *CallRecord {
	rec.Values = rec.valuesOrDefault().Truncated()
	rec.PrettyResult, rec.Exception = ValueOrTruncationMarker(rec.PrettyResult, rec.ResultCID), ValueOrTruncationMarker(rec.Exception, rec.ErrorCID)
	rec.CallSite, rec.OriginalInput = ValueOrTruncationMarker(rec.CallSite, ""), ValueOrTruncationMarker(rec.OriginalInput, "")
	rec.size = estimatedFixedBytesPerRecord + rec.sizeInBytes() + len(rec.OriginalInput) + len(rec.Error)
	if more, ok := rec.ExtraFields.(interface{ Size() int }); ok {
		rec.size += more.Size()
	}
	return &rec
}

// AddExternalRecord stores a record of something that the hub did not handle as a running call: an event of an older client, or a call to
// an external server. It fills in a missing call id and missing times.
func (r *callRecordStore) AddExternalRecord(record CallRecord) {
	rec := recordWithLargeValuesTruncated(record)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := unixSeconds(r.options.Now())
	if rec.CallID == "" {
		rec.CallID = r.newCallID(now)
	}
	rec.StartedAt = cmp.Or(rec.StartedAt, now)
	rec.CompletedAt = cmp.Or(rec.CompletedAt, now)
	r.storeAndPublishLocked(rec)
}

// Calls returns the newest limit records of a tool; an empty tool means all. A nil limit means DefaultRecordLimit.
func (r *callRecordStore) Calls(tool string, limit *int) (NewestCallRecords, error) {
	n := DefaultRecordLimit
	if limit != nil {
		n = *limit
	}
	if n < 1 {
		return NewestCallRecords{}, NewError(CodeInvalidLimit, "limit must be at least 1", "limit", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.breakpoints.functions.canonicalNameOfToolSpelling(tool)
	out := NewestCallRecords{Calls: []CallRecord{}}
	kept := r.newestRecordsOldestFirst()
	for _, rec := range kept {
		if tool == "" || rec.MethodName == tool || rec.MethodName == want {
			out.Total++
			out.Calls = append(out.Calls, *rec)
		}
	}
	if tool == "" {
		out.Total = r.total
	}
	out.Calls = slices.Clone(out.Calls[max(0, len(out.Calls)-n):])
	out.Truncated = out.Total > len(out.Calls)
	return out, nil
}

// BreakpointHistoryEntry is a finished call that a breakpoint matched.
type BreakpointHistoryEntry struct {
	ID           string     `json:"id"` // id of the call
	FunctionName string     `json:"function_name"`
	CallData     CallRecord `json:"call_data"`
	CompletedAt  float64    `json:"completed_at"`
}

// BreakpointHistory returns the calls that matched a breakpoint, newest first; limit 0 means all stored calls.
func (r *callRecordStore) BreakpointHistory(breakpoint string, limit int) []BreakpointHistoryEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []BreakpointHistoryEntry{}
	for _, rec := range slices.Backward(r.newestRecordsOldestFirst()) {
		if limit > 0 && len(out) == limit {
			break
		}
		if slices.Contains(rec.breakpoints, breakpoint) {
			out = append(out, BreakpointHistoryEntry{ID: rec.CallID, FunctionName: rec.MethodName, CallData: *rec, CompletedAt: rec.CompletedAt})
		}
	}
	return out
}
