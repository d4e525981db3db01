package verdict

import (
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// modelSource identifies the model of a process or of a sub-agent in it.
type modelSource struct {
	process processKey
	agent   string
}

// seen converts the journal to the form that expectations use.
func seen(entries []journal.Entry) *scenarios.RunRecord {
	var s scenarios.RunRecord
	s.ReadFixtures()
	var api requestTracker
	heard := map[modelSource]string{} // the last message of each model
	retries := map[processKey]int{}
	for _, e := range entries {
		switch {
		case e.Prompt != nil:
			s.Prompt(e.Prompt.Prompt)
		case e.Tool != nil:
			s.Call(e.Tool.Tool, e.Tool.Input)
		case e.Start != nil && e.Start.Cache != "":
			s.ReadReal()
		case e.Screen != nil:
			s.Screen(scenarios.ScreenSeen{State: e.Screen.State, Kind: e.Screen.Kind, Answer: e.Screen.Answer})
		case e.OAuth != nil:
			s.OAuth(scenarios.OAuthSeen{Request: e.OAuth.Request, Grant: e.OAuth.Grant, Client: e.OAuth.Client, Scopes: e.OAuth.Granted, Result: e.OAuth.Result})
		case e.MCPCall != nil:
			s.ServerCall(e.MCPCall.Server, e.MCPCall.RawTool)
		case e.MCPNotification != nil:
			n := e.MCPNotification
			s.Notification(scenarios.NotificationSeen{Server: n.Server, Tool: n.RawTool, Level: n.Level, Text: n.Text})
		case e.Match != nil && e.Match.Rule != "":
			s.Rule(scenarios.RuleRef{Name: e.Match.Rule, File: e.Match.File, Line: e.Match.Line})
		case e.Exit != nil:
			s.Exit(e.Exit.Code)
		case e.Retry != nil:
			retries[keyOf(e)] = e.Retry.Attempt
		case e.Request != nil:
			api.add(&s, e.Request, after(entries, e))
		case e.Model != nil:
			by := modelSource{keyOf(e), e.Model.Agent}
			if heard[by] == e.Model.MessageID {
				continue
			}
			heard[by] = e.Model.MessageID
			if e.Model.Continued {
				s.ContinueResponse(retries[keyOf(e)])
			} else {
				s.Request(scenarios.ModelRequest{Model: e.Model.Model, Retries: retries[keyOf(e)], AfterMS: after(entries, e)})
			}
			delete(retries, keyOf(e))
		}
	}
	api.report(&s)
	return &s
}

// after returns the time of an entry in milliseconds from the first entry.
func after(entries []journal.Entry, e journal.Entry) float64 {
	return float64(e.When.Sub(entries[0].When).Microseconds()) / 1000
}
