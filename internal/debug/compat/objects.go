package compat

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/debug"
)

// snapshot is a value at one moment, as one part of a call.
type snapshot struct {
	// Key identifies the object: a process and its number there, or the CID of a value without a process.
	Key          string
	CID          string
	Role         string // target, arg, kwarg, input, result, exception
	Name         string // index or name of an argument
	Pretty       json.RawMessage
	Method       string
	CallID       string
	At           float64
	process, ref string
}

// snapshotsOf returns the values of a call.
func snapshotsOf(rec debug.Record) []snapshot {
	all := argumentsOf(rec.CallData)
	more := endingOf(rec)
	end := snapshot{Role: "result", CID: rec.ResultCID, Pretty: rec.PrettyResult}
	if more.Result != nil {
		end.ref = string(more.Result.ClientRef)
	}
	if end.CID != "" {
		all = append(all, end.fromCall(rec.CallData, rec.CompletedAt))
	}
	end = snapshot{Role: "exception", CID: rec.ErrorCID, Pretty: rec.Exception}
	if more.ErrorItem != nil {
		end.ref = string(more.ErrorItem.ClientRef)
	}
	if end.CID != "" {
		all = append(all, end.fromCall(rec.CallData, rec.CompletedAt))
	}
	return all
}

func argumentsOf(d debug.CallData) []snapshot {
	var all []snapshot
	add := func(s snapshot) { all = append(all, s.fromCall(d, d.StartedAt)) }
	v := callDataOf(d.Values)
	if v.Target != nil {
		add(snapshot{Role: "target", CID: v.Target.CID, ref: string(v.Target.ClientRef), Pretty: v.PrettyTarget})
	}
	for i, a := range v.Args {
		s := snapshot{Role: "arg", Name: strconv.Itoa(i), CID: a.CID, ref: string(a.ClientRef)}
		if i < len(v.PrettyArgs) {
			s.Pretty = v.PrettyArgs[i]
		}
		add(s)
	}
	var pretty map[string]json.RawMessage
	if json.Unmarshal(v.PrettyKwargs, &pretty) != nil {
		pretty = nil
	}
	for _, name := range slices.Sorted(maps.Keys(v.Kwargs)) {
		it := v.Kwargs[name]
		add(snapshot{Role: "kwarg", Name: name, CID: it.CID, ref: string(it.ClientRef), Pretty: pretty[name]})
	}
	if in, ok := d.Values.(debug.JSONInput); ok && in.CID != "" {
		add(snapshot{Role: "input", CID: in.CID, Pretty: in.JSON})
	}
	return all
}

// fromCall fills in the fields that come from the call.
func (s snapshot) fromCall(d debug.CallData, at float64) snapshot {
	s.Method, s.CallID, s.At, s.process = d.MethodName, d.CallID, at, processOf(d)
	s.Key = s.CID
	if ref := strings.Trim(s.ref, `"`); ref != "" && ref != "null" {
		s.Key = s.process + ":" + ref
	}
	return s
}

// snapshots returns the values of all calls, completed or not, oldest first.
func (b *browser) snapshots() []snapshot {
	var all []snapshot
	for _, rec := range b.records() {
		all = append(all, snapshotsOf(rec)...)
	}
	for _, p := range b.hub.Paused() {
		if p.CallData.Phase == debug.PhaseBefore {
			all = append(all, argumentsOf(p.CallData)...)
		}
	}
	for _, d := range b.hub.Running() {
		all = append(all, argumentsOf(d)...)
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return cmp.Compare(a.At, b.At) })
	return all
}

// object is a value by its key, with its last snapshot.
type object struct {
	Key   string
	Times int
	Last  snapshot
}

// maxRows bounds the rows of the page of objects.
const maxRows = 1000

func (b *browser) objects(r *http.Request) (pageData, error) {
	byKey := map[string]*object{}
	for _, s := range b.snapshots() {
		if !matchesSearch(r, s) {
			continue
		}
		o := byKey[s.Key]
		if o == nil {
			o = &object{Key: s.Key}
			byKey[s.Key] = o
		}
		o.Times++
		o.Last = s
	}
	all := slices.Collect(maps.Values(byKey))
	slices.SortFunc(all, func(a, b *object) int {
		return cmp.Or(cmp.Compare(b.Last.At, a.Last.At), strings.Compare(a.Key, b.Key))
	})
	return pageData{name: "objects", Title: "Objects", Data: all[:min(len(all), maxRows)]}, nil
}

// object shows a value by its CID, or the history of an object of a process.
func (b *browser) object(r *http.Request) (pageData, error) {
	ref := r.PathValue("ref")
	var found []snapshot
	for _, s := range b.snapshots() {
		if s.Key == ref || s.CID == ref {
			found = append(found, s)
		}
	}
	slices.Reverse(found)
	data := struct {
		Value     any // nil = not in the store
		Snapshots []snapshot
	}{Snapshots: found}
	cid := ref
	if len(found) > 0 {
		cid = found[0].CID
	}
	bytes, err := b.hub.Value(cid)
	if err == nil {
		data.Value = Inspect(cid, bytes)
	} else if len(found) == 0 {
		return pageData{}, missingError("No object " + ref + " is kept.")
	}
	return pageData{name: "object", Title: "Object " + shortName(ref), Data: data}, nil
}
