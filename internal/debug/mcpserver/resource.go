package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/fixtures/wire"
)

type resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`

	read func() (any, error)
}

const maxHistoryCalls = 50

func (f *hubAccess) resources() []resource {
	always := func(f func() any) func() (any, error) { return func() (any, error) { return f(), nil } }
	limit := maxHistoryCalls
	all := []resource{
		{URI: "breakpoint://status", Description: "Counts of breakpoints, tools, calls and sessions.", read: func() (any, error) { return f.hub.Status(), nil }},
		{URI: "breakpoint://breakpoints", Description: "All breakpoints with their settings.", read: always(f.breakpoints)},
		{URI: "breakpoint://paused", Description: "The calls that wait for a decision.", read: always(f.paused)},
		{URI: "breakpoint://call-history", Description: "The newest 50 finished calls.", read: func() (any, error) { return f.calls("", &limit) }},
		{URI: "breakpoint://functions", Description: "The tools that can be called, with their schemas.", read: always(f.functions)},
	}
	for i := range all {
		all[i].Name = all[i].URI[len("breakpoint://"):]
		all[i].MIMEType = "application/json"
	}
	return all
}

func (f *hubAccess) readResource(params json.RawMessage) (any, error) {
	var in struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, invalidParams("resources/read: " + err.Error())
	}
	all := f.resources()
	i := slices.IndexFunc(all, func(r resource) bool { return r.URI == in.URI })
	if i < 0 {
		return nil, &wire.Error{Code: wire.CodeResourceNotFound, Message: fmt.Sprintf("unknown resource %q", in.URI)}
	}
	body, err := all[i].read()
	if err != nil {
		return nil, err
	}
	text, err := wire.Marshal(body)
	if err != nil {
		return nil, err
	}
	type contents struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
	}
	return map[string]any{"contents": [1]contents{{in.URI, all[i].MIMEType, string(text)}}}, nil
}
