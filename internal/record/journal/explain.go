package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// SummaryLine formats the line for people: time, process, content. Long values are truncated.
func (e *Entry) SummaryLine() string {
	when := e.Time
	if !e.When.IsZero() {
		when = e.When.Format("15:04:05.000")
	}
	return fmt.Sprintf("%s %6d  %-11s %s", when, e.PID, e.Type, e.Summary())
}

// Summary returns the content of the line in one line of text, without its time and process. Long values are cut.
func (e *Entry) Summary() string { return strings.TrimSpace(e.describe()) }

// describe returns the content of a line in one line of text, or "" if the line has no summary.
func (e *Entry) describe() string {
	switch {
	case e.Start != nil:
		text := shortenToOneLine(strings.Join(e.Start.Argv, " "))
		if e.Start.Parent != "" {
			text += "  (started by " + e.Start.Parent + ")"
		}
		return text
	case e.Run != nil:
		return fmt.Sprintf("%s, model %s, mode %s", cmp.Or(e.Run.ScenarioFile, e.Run.Scenario, "no scenario"), e.Run.Model, e.Run.PermissionMode)
	case e.Host != nil:
		return strings.TrimSpace(strings.Join([]string{e.Host.What, e.Host.Signal, e.Host.Subtype, e.Host.RequestID}, " "))
	case e.Prompt != nil:
		return shortenToOneLine(e.Prompt.Prompt)
	case e.Match != nil:
		return cmp.Or(e.Match.Rule, "no rule") + indentedFileAndLine(e.Match.File, e.Match.Line)
	case e.Model != nil:
		return shortenToOneLine(string(e.Model.Blocks))
	case e.Permission != nil:
		return e.Permission.Decision + " " + e.Permission.Tool + " by " + e.Permission.Source
	case e.Tool != nil:
		return fmt.Sprintf("%s %s -> %s (%.1f ms)", e.Tool.Tool, shortenToOneLine(string(e.Tool.Input)), shortenToOneLine(e.Tool.Result), e.Tool.MS)
	case e.MCPCall != nil:
		return fmt.Sprintf("%s/%s %s (%d ms)", e.MCPCall.Server, e.MCPCall.RawTool, shortenToOneLine(cmp.Or(e.MCPCall.Error, string(e.MCPCall.Result))), e.MCPCall.DurationMS)
	case e.Result != nil:
		return shortenToOneLine(fmt.Sprintf("%s, %d turns, $%.6f: %s", e.Result.Subtype, e.Result.NumTurns, e.Result.TotalCostUSD, *cmp.Or(e.Result.Result, new(string))))
	}
	return e.describeLessCommonKinds()
}

func (e *Entry) describeLessCommonKinds() string {
	switch {
	case e.Exit != nil:
		return strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Exit.Code, e.Exit.Signal, e.Exit.Rejection))
	case e.MCPNotification != nil:
		n := e.MCPNotification
		if n.Level != "" {
			return n.Server + " logs " + n.Level + ": " + shortenToOneLine(n.Text)
		}
		return fmt.Sprintf("%s/%s at %g of %g: %s", n.Server, n.RawTool, n.Progress, n.Total, shortenToOneLine(n.Text))
	case e.Output != nil:
		return e.Output.Stream + ": " + shortenToOneLine(e.Output.Text)
	case e.Breakpoint != nil:
		return e.Breakpoint.Phase + " " + e.Breakpoint.Tool + ": " + e.Breakpoint.Action
	case e.Retry != nil:
		return fmt.Sprintf("attempt %d: %s", e.Retry.Attempt, e.Retry.Message)
	case e.Warning != nil:
		return e.Warning.Text
	case e.Unplayed != nil:
		return e.Unplayed.Text + indentedFileAndLine(e.Unplayed.File, e.Unplayed.Line)
	case e.Screen != nil:
		return e.Screen.State + "/" + e.Screen.Kind + " " + e.Screen.Answer + ": " + shortenToOneLine(e.Screen.Option)
	case e.Telemetry != nil:
		return fmt.Sprintf("%s ×%d", e.Telemetry.Name, e.Telemetry.Count)
	case e.Gate != nil:
		return e.Gate.Name + " " + e.Gate.Event
	case e.Expectation != nil:
		met := "unmet: "
		if e.Expectation.Met {
			met = "met: "
		}
		return met + e.Expectation.Text + indentedFileAndLine(e.Expectation.File, e.Expectation.Line)
	case e.Finding != nil:
		return e.Finding.Level + " " + e.Finding.ID + ": " + e.Finding.Text
	case e.Context != nil:
		return shortenToOneLine(strings.Join(e.Context.Texts, " "))
	case e.Attachment != nil:
		raw, err := json.Marshal(e.Attachment.Attachment)
		if err != nil {
			return ""
		}
		return shortenToOneLine(string(raw))
	}
	return e.describeAPI()
}

func (e *Entry) describeAPI() string {
	switch {
	case e.Request != nil:
		return e.Request.describe()
	case e.SideRequest != nil:
		return fmt.Sprintf("%s %s -> %d (%.1f ms)", e.SideRequest.Kind, e.SideRequest.Path, e.SideRequest.Status, e.SideRequest.MS)
	case e.OAuth != nil:
		return e.OAuth.describe()
	case e.Exchange != nil:
		return fmt.Sprintf("%s -> %d (%.1f ms)", e.Exchange.Path, e.Exchange.Status, e.Exchange.MS)
	}
	return ""
}

func (q Request) describe() string {
	what := []string{}
	if q.Prompt != "" {
		what = append(what, fmt.Sprintf("prompt %q", shortenToOneLine(q.Prompt)))
	}
	for _, c := range q.Calls {
		what = append(what, c.Tool+" gave "+strconv.Quote(shortenToOneLine(c.Result)))
	}
	asked := cmp.Or(strings.Join(what, ", "), q.Path)
	if q.Attempt > 1 {
		asked += fmt.Sprintf(", attempt %d", q.Attempt)
	}
	came := fmt.Sprintf("%d (%.1f ms)%s", q.Status, q.MS, indentedFileAndLine(q.File, q.Line))
	if odd := strings.Join(append(q.Findings, q.Error), " "); odd != "" {
		came += "  " + shortenToOneLine(odd)
	}
	return asked + " -> " + cmp.Or(q.Rule, "no rule") + " " + came
}

func shortenToOneLine(s string) string {
	const most = 120
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func indentedFileAndLine(file string, line int) string {
	if file == "" {
		return ""
	}
	return "  " + file + ":" + strconv.Itoa(line)
}
