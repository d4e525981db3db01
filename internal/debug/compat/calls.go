package compat

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
)

// records returns all records, oldest first.
func (b *callPages) records() []debug.Record {
	calls, err := b.hub.Records.Calls("", new(math.MaxInt))
	if err != nil {
		return nil // the limit is valid
	}
	return calls.Calls
}

func processName(d debug.CallData) string {
	switch {
	case d.PID == 0 && callDataOf(d.Values).PageURL != "":
		return "JS " + callDataOf(d.Values).PageURL
	case d.PID != 0 && d.SessionID != "":
		return fmt.Sprintf("%d, session %s", d.PID, d.SessionID)
	case d.PID != 0:
		return strconv.Itoa(d.PID)
	case d.SessionID != "":
		return "session " + d.SessionID
	default:
		return "unknown"
	}
}

func (b *callPages) callPage(r *http.Request) (pageData, error) {
	id := r.PathValue("id")
	for _, rec := range b.records() {
		if rec.CallID == id {
			return b.recordPage(rec), nil
		}
	}
	for _, p := range b.hub.Paused() {
		if p.CallData.CallID == id {
			return b.pauseStackPage(p), nil
		}
	}
	for _, d := range b.hub.Running() {
		if d.CallID == id {
			return b.recordPage(debug.Record{CallData: d, CallEnding: debug.CallEnding{Status: "running"}}), nil
		}
	}
	return pageData{}, pageNotFoundError("No call " + id + " is recorded.")
}

func (b *callPages) recordPage(rec debug.Record) pageData {
	outcome, _ := rec.ExtraFields.(ClientOutcome)
	return pageData{name: "call", Title: rec.MethodName, Data: struct {
		debug.Record
		ProcessName, Traceback string
		Site                   callLocation
	}{rec, processName(rec.CallData), outcome.Traceback, callLocationOf(rec.CallSite)}}
}

// frame is one entry of a call site's stack, as the client sent it.
type frame struct {
	File     string `json:"filename"`
	Line     any    `json:"lineno"`
	Function string `json:"function"`
	Code     string `json:"code_context"`
}

func framesOf(callSite json.RawMessage) []frame {
	var s struct {
		Frames []frame `json:"stack_trace"`
	}
	if json.Unmarshal(callSite, &s) != nil {
		return nil
	}
	return s.Frames
}

type callLocation struct {
	Frames []frame
	Raw    json.RawMessage
}

func callLocationOf(callSite json.RawMessage) callLocation {
	return callLocation{framesOf(callSite), callSite}
}

func (b *callPages) callStackPage(r *http.Request) (pageData, error) {
	p, err := b.hub.Pause(r.PathValue("id"))
	if err != nil {
		return pageData{}, pageNotFoundError("No call is paused as " + r.PathValue("id") + ".")
	}
	return b.pauseStackPage(p), nil
}

func (b *callPages) pauseStackPage(p debug.Pause) pageData {
	return pageData{name: "callstack", Title: "Call Stack of " + p.CallData.MethodName, Data: struct {
		Method, Phase string
		Site          callLocation
	}{p.CallData.MethodName, string(p.CallData.Phase), callLocationOf(p.CallData.CallSite)}}
}

var (
	//go:embed debug-client.js
	clientScript string
	//go:embed browse.html
	browsePages string
	//go:embed browse.js
	browseScript string
)

// ServeScript serves the older JavaScript client, which connects to the address that it was loaded from.
func ServeScript(w http.ResponseWriter, r *http.Request) {
	address := fmt.Sprintf("const SERVER_URL = %q;", "http://"+r.Host) // a host of this machine
	body := []byte(strings.Replace(clientScript, `const SERVER_URL = "";`, address, 1))
	h := w.Header()
	h.Set("Content-Type", "application/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
