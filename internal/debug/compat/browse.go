package compat

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/debug"
)

type callAndBreakpointPages struct {
	hub       *debug.Hub
	templates *template.Template
}

type pageData struct {
	name, Title string
	Data        any
	Choices     []string // the choices of the status filter; nil means no filter

	// Search and Status are set by serve.
	Search, Status string
}

// Pages serves the pages about one call, one breakpoint and the API, and passes all other paths to next. The pages show the
// state of the hub and do not change it. Text from callers is escaped. They need the style sheet of [debug.PageHandler].
func (c *Clients) Pages(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	b := &callAndBreakpointPages{hub: c.hub}
	b.templates = template.Must(template.New("").Funcs(template.FuncMap{
		"arguments": formatCallArguments, "clock": formatTime, "json": formatAsTextOrIndentedJSON, "lasted": formatRunTimeWithoutPause,
		"path": url.PathEscape, "short": oneLineTextOrJSON, "ours": isInputOfClaudelessCaller,
	}).Parse(browsePageTemplates))
	for path, f := range map[string]func(*callAndBreakpointPages, *http.Request) (pageData, error){
		"/call/{id}":                          (*callAndBreakpointPages).pageOfRequestedCall,
		"/callstack/{id}":                     (*callAndBreakpointPages).callStackPageOfRequestedPause,
		"/breakpoint/{name}/history":          (*callAndBreakpointPages).breakpointHistoryPage,
		"/breakpoint/{name}/history/{record}": (*callAndBreakpointPages).historyRecordPage,
		"/docs": func(*callAndBreakpointPages, *http.Request) (pageData, error) {
			return pageData{name: "docs", Title: "API"}, nil
		},
	} {
		mux.HandleFunc("GET "+path, b.serve(f))
	}
	mux.HandleFunc("GET /browse.js", func(w http.ResponseWriter, _ *http.Request) {
		debug.WritePage(w, http.StatusOK, debug.ScriptContentType, []byte(browseScript))
	})
	mux.Handle("/", next)
	return mux
}

// olderClientCallDataOrEmpty returns the values of a call by a client of the older debugger; empty for other calls.
func olderClientCallDataOrEmpty(v debug.CallValues) *CallData {
	if d, ok := v.(*CallData); ok {
		return d
	}
	return &CallData{}
}

// isInputOfClaudelessCaller reports whether values come from one of claudeless's own callers, and the input is known.
func isInputOfClaudelessCaller(callValues debug.CallValues) bool {
	in, ok := callValues.(debug.ClaudelessCallInput)
	return ok && in.JSON != nil
}

func displayedArgumentsByName(callValues debug.CallValues) (argumentsObject json.RawMessage) {
	if in, ok := callValues.(debug.ClaudelessCallInput); ok {
		return in.JSON
	}
	return olderClientCallDataOrEmpty(callValues).PrettyKwargs
}

func (b *callAndBreakpointPages) serve(f func(*callAndBreakpointPages, *http.Request) (pageData, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		p, err := f(b, r)
		if err != nil {
			status = http.StatusNotFound
			p = pageData{name: "not-found", Title: "Not found", Data: err.Error()}
		}
		p.Search, p.Status = r.URL.Query().Get("search"), r.URL.Query().Get("status")
		var buf bytes.Buffer
		if err := b.templates.ExecuteTemplate(&buf, p.name, p); err != nil {
			http.Error(w, "writing the page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		debug.WritePage(w, status, debug.HTMLContentType, buf.Bytes())
	}
}

// hasSearchTextOfRequest reports whether a value contains the search text, ignoring case.
func hasSearchTextOfRequest(pageRequest *http.Request, searchedValue any) bool {
	search := strings.ToLower(strings.TrimSpace(pageRequest.URL.Query().Get("search")))
	if search == "" {
		return true
	}
	all, err := json.Marshal(searchedValue)
	return err == nil && strings.Contains(strings.ToLower(string(all)), search)
}

const anyStatus = "all"

func (b *callAndBreakpointPages) breakpointHistoryPage(r *http.Request) (pageData, error) {
	name, status := r.PathValue("name"), cmp.Or(r.URL.Query().Get("status"), anyStatus)
	var entries []debug.HistoryEntry
	for _, e := range b.hub.Records.BreakpointHistory(name, 0) {
		if (status == anyStatus || status == e.CallData.Status) && hasSearchTextOfRequest(r, e) {
			entries = append(entries, e)
		}
	}
	return pageData{
		name: "history", Title: "History of " + name, Choices: []string{anyStatus, "success", "exception"},
		Data: struct {
			Breakpoint string
			Entries    []debug.HistoryEntry
		}{name, entries},
	}, nil
}

func (b *callAndBreakpointPages) historyRecordPage(r *http.Request) (pageData, error) {
	for _, e := range b.hub.Records.BreakpointHistory(r.PathValue("name"), 0) {
		if e.ID == r.PathValue("record") {
			return b.recordPage(e.CallData), nil
		}
	}
	return pageData{}, errors.New("The breakpoint " + r.PathValue("name") + " has no record " + r.PathValue("record") + ".")
}

const maxShownValueBytes = 64 << 10

// formatAsTextOrIndentedJSON formats a value: text unchanged, anything else as indented JSON.
func formatAsTextOrIndentedJSON(shownValue any) string {
	raw, ok := shownValue.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(shownValue); err != nil {
			return err.Error()
		}
	}
	if s, ok := plainjson.StringValue(raw); ok {
		return truncateText(s, maxShownValueBytes)
	}
	var buf bytes.Buffer
	if json.Indent(&buf, raw, "", "  ") != nil {
		return truncateText(string(raw), maxShownValueBytes)
	}
	return truncateText(buf.String(), maxShownValueBytes)
}

const maxBytesOfValueOnOneLine = 200

// oneLineTextOrJSON formats a value in one line: text without quotes and truncated, anything else as in oneLineJSON.
func oneLineTextOrJSON(shownValue json.RawMessage) string {
	if s, ok := plainjson.StringValue(shownValue); ok {
		return truncateText(s, maxBytesOfValueOnOneLine)
	}
	return oneLineJSON(shownValue)
}

// oneLineJSON returns a value in one line of JSON, the summary of an object, or the size of a value that was too large.
func oneLineJSON(raw json.RawMessage) string {
	var o struct {
		Summary   string
		Truncated bool `json:"__truncated__"`
		Size      int
	}
	switch err := json.Unmarshal(raw, &o); {
	case err != nil:
	case o.Truncated:
		return fmt.Sprintf("(%d bytes)", o.Size)
	case o.Summary != "":
		return truncateText(o.Summary, maxBytesOfValueOnOneLine)
	}
	return truncateText(string(raw), maxBytesOfValueOnOneLine)
}

// formatCallArguments formats the arguments of a call in parentheses, as in a program. Arguments of Python clients
// are shown as Python's repr writes them, others as JSON.
func formatCallArguments(d debug.CallData) string {
	show, v := oneLineJSON, olderClientCallDataOrEmpty(d.Values)
	if v.Preferred == "dill" {
		show = oneLineTextOrJSON
	}
	var all []string
	for _, a := range v.PrettyArgs {
		all = append(all, show(a))
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(displayedArgumentsByName(d.Values), &members) == nil {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			all = append(all, name+"="+show(members[name]))
		}
	}
	return "(" + strings.Join(all, ", ") + ")"
}

func formatTime(seconds any) string {
	s, ok := seconds.(float64)
	if p, isPointer := seconds.(*float64); isPointer && p != nil {
		s, ok = *p, true
	}
	if !ok || s <= 0 || s > 1e11 {
		return ""
	}
	whole, part := math.Modf(s)
	return time.Unix(int64(whole), int64(part*1e9)).Format("2006-01-02 15:04:05.000")
}

// formatRunTimeWithoutPause returns how long a call ran, without its pause.
func formatRunTimeWithoutPause(r debug.Record) string {
	return fmt.Sprintf("%.0f ms", max(0, (r.CompletedAt-r.StartedAt-r.PausedSeconds)*1000))
}

func describeCallerProcess(d debug.CallData) string {
	switch {
	case d.PID == 0 && olderClientCallDataOrEmpty(d.Values).PageURL != "":
		return "JS " + olderClientCallDataOrEmpty(d.Values).PageURL
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

func (b *callAndBreakpointPages) pageOfRequestedCall(r *http.Request) (callPageData pageData, notFoundError error) {
	id := r.PathValue("id")
	records, _ := b.hub.Records.Calls("", new(math.MaxInt)) // the limit is valid
	for _, rec := range records.Calls {
		if rec.CallID == id {
			return b.recordPage(rec), nil
		}
	}
	for _, p := range b.hub.Paused() {
		if p.CallData.CallID == id {
			return b.pauseStackPage(p), nil
		}
	}
	for _, d := range b.hub.RunningUnpaused() {
		if d.CallID == id {
			return b.recordPage(debug.Record{CallData: d, CallEnding: debug.CallEnding{Status: "running"}}), nil
		}
	}
	return pageData{}, errors.New("No call " + id + " is recorded.")
}

func (b *callAndBreakpointPages) recordPage(rec debug.Record) pageData {
	outcome, _ := rec.ExtraFields.(OlderClientOutcome)
	return pageData{name: "call", Title: rec.MethodName, Data: struct {
		debug.Record
		ProcessName, Traceback string
		Site                   callSiteStack
	}{rec, describeCallerProcess(rec.CallData), outcome.Traceback, decodeCallSiteStack(rec.CallSite)}}
}

// frame is one entry of a call site's stack, as the client sent it.
type frame struct {
	File     string `json:"filename"`
	Line     any    `json:"lineno"`
	Function string `json:"function"`
	Code     string `json:"code_context"`
}

type callSiteStack struct {
	Frames []frame
	Raw    json.RawMessage
}

func decodeCallSiteStack(callSite json.RawMessage) callSiteStack {
	var site struct {
		Frames []frame `json:"stack_trace"`
	}
	if json.Unmarshal(callSite, &site) != nil {
		site.Frames = nil
	}
	return callSiteStack{site.Frames, callSite}
}

func (b *callAndBreakpointPages) callStackPageOfRequestedPause(r *http.Request) (pageData, error) {
	p, err := b.hub.Pause(r.PathValue("id"))
	if err != nil {
		return pageData{}, errors.New("No call is paused as " + r.PathValue("id") + ".")
	}
	return b.pauseStackPage(p), nil
}

func (b *callAndBreakpointPages) pauseStackPage(p debug.Pause) pageData {
	return pageData{name: "callstack", Title: "Call Stack of " + p.CallData.MethodName, Data: struct {
		Method, Phase string
		Site          callSiteStack
	}{p.CallData.MethodName, string(p.CallData.Phase), decodeCallSiteStack(p.CallData.CallSite)}}
}

var (
	//go:embed debug-client.js
	olderJavaScriptClientSource string
	//go:embed browse.html
	browsePageTemplates string
	//go:embed browse.js
	browseScript string
)

// ServeOlderJavaScriptClient serves the older JavaScript client, which connects to the address that it was loaded from.
func ServeOlderJavaScriptClient(w http.ResponseWriter, r *http.Request) {
	address := fmt.Sprintf("const SERVER_URL = %q;", "http://"+r.Host) // localhttp.Guard has checked the host
	body := []byte(strings.Replace(olderJavaScriptClientSource, `const SERVER_URL = "";`, address, 1))
	h := w.Header()
	h.Set("Content-Type", "application/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
