package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Explain is the line for people: when, which process, what. Long values are cut.
func (e *Entry) Explain() string {
	when := e.Time
	if !e.When.IsZero() {
		when = e.When.Format("15:04:05.000")
	}
	return fmt.Sprintf("%s %6d  %-11s %s", when, e.PID, e.Type, strings.TrimSpace(e.about()))
}

// about says what a line holds.
func (e *Entry) about() string {
	switch {
	case e.Start != nil:
		return short(strings.Join(e.Start.Argv, " ")) + by(e.Start.Parent)
	case e.Run != nil:
		return fmt.Sprintf("%s, model %s, mode %s", cmp.Or(e.Run.ScenarioFile, e.Run.Scenario, "no scenario"), e.Run.Model, e.Run.PermissionMode)
	case e.Host != nil:
		return strings.TrimSpace(strings.Join([]string{e.Host.What, e.Host.Signal, e.Host.Subtype, e.Host.RequestID}, " "))
	case e.Prompt != nil:
		return short(e.Prompt.Prompt)
	case e.Match != nil:
		return cmp.Or(e.Match.Rule, "no rule") + place(e.Match.File, e.Match.Line)
	case e.Model != nil:
		return short(string(e.Model.Blocks))
	case e.Permission != nil:
		return e.Permission.Decision + " " + e.Permission.Tool + " by " + e.Permission.Source
	case e.Tool != nil:
		return fmt.Sprintf("%s %s -> %s (%.1f ms)", e.Tool.Tool, short(string(e.Tool.Input)), short(e.Tool.Result), e.Tool.MS)
	case e.MCPCall != nil:
		return fmt.Sprintf("%s/%s %s (%d ms)", e.MCPCall.Server, e.MCPCall.RawTool, short(cmp.Or(e.MCPCall.Error, string(e.MCPCall.Result))), e.MCPCall.DurationMS)
	case e.Result != nil:
		return short(fmt.Sprintf("%s, %d turns, $%.6f: %s", e.Result.Subtype, e.Result.NumTurns, e.Result.TotalCostUSD, deref(e.Result.Result)))
	}
	return e.rest()
}

// rest says what the rarer lines hold.
func (e *Entry) rest() string {
	switch {
	case e.Exit != nil:
		return strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Exit.Code, e.Exit.Signal, e.Exit.Refused))
	case e.MCPNotification != nil:
		n := e.MCPNotification
		if n.Level != "" {
			return n.Server + " logs " + n.Level + ": " + short(n.Text)
		}
		return fmt.Sprintf("%s/%s at %g of %g: %s", n.Server, n.RawTool, n.Progress, n.Total, short(n.Text))
	case e.Breakpoint != nil:
		return e.Breakpoint.Phase + " " + e.Breakpoint.Tool + ": " + e.Breakpoint.Action
	case e.Retry != nil:
		return fmt.Sprintf("attempt %d: %s", e.Retry.Attempt, e.Retry.Message)
	case e.Warning != nil:
		return e.Warning.Text
	case e.Unplayed != nil:
		return e.Unplayed.Text + place(e.Unplayed.File, e.Unplayed.Line)
	case e.Gate != nil:
		return e.Gate.Name + " " + e.Gate.Event
	case e.Expectation != nil:
		met := "unmet: "
		if e.Expectation.Met {
			met = "met: "
		}
		return met + e.Expectation.Text + place(e.Expectation.File, e.Expectation.Line)
	case e.Finding != nil:
		return e.Finding.Level + " " + e.Finding.ID + ": " + e.Finding.Text
	case e.Context != nil:
		return short(strings.Join(e.Context.Texts, " "))
	case e.Attachment != nil:
		raw, err := json.Marshal(e.Attachment.Attachment)
		if err != nil {
			return ""
		}
		return short(string(raw))
	}
	return e.overAPI()
}

// overAPI says what the lines about the Messages API hold.
func (e *Entry) overAPI() string {
	switch {
	case e.Request != nil:
		return e.Request.about()
	case e.SideRequest != nil:
		return fmt.Sprintf("%s %s -> %d (%.1f ms)", e.SideRequest.Kind, e.SideRequest.Path, e.SideRequest.Status, e.SideRequest.MS)
	case e.OAuth != nil:
		return e.OAuth.about()
	case e.Exchange != nil:
		return fmt.Sprintf("%s -> %d (%.1f ms)", e.Exchange.Path, e.Exchange.Status, e.Exchange.MS)
	}
	return ""
}

// about says what was asked, by what it was answered, and what was odd.
func (q Request) about() string {
	what := []string{}
	if q.Prompt != "" {
		what = append(what, fmt.Sprintf("prompt %q", short(q.Prompt)))
	}
	for _, c := range q.Calls {
		what = append(what, c.Tool+" gave "+strconv.Quote(short(c.Result)))
	}
	asked := cmp.Or(strings.Join(what, ", "), q.Path)
	if q.Attempt > 1 {
		asked += fmt.Sprintf(", attempt %d", q.Attempt)
	}
	came := fmt.Sprintf("%d (%.1f ms)%s", q.Status, q.MS, place(q.File, q.Line))
	if odd := strings.Join(append(q.Findings, q.Error), " "); odd != "" {
		came += "  " + short(odd)
	}
	return asked + " -> " + cmp.Or(q.Rule, "no rule") + " " + came
}

func short(s string) string {
	const most = 120
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func by(parent string) string {
	if parent == "" {
		return ""
	}
	return "  (started by " + parent + ")"
}

func place(file string, line int) string {
	if file == "" {
		return ""
	}
	return "  " + file + ":" + strconv.Itoa(line)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
