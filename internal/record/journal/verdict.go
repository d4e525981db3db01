package journal

// Expectation is the result of an `[[expect]]` of the scenario, or of the `expect` of a call. An `[[expect]]` is checked at the
// end of `claudeless exec` or, if the process runs without exec, at the end of the process. Its line has no session id.
type Expectation struct {
	File string `json:"file,omitempty"` // File of the expectation.
	Line int    `json:"line,omitempty"` // Line of the expectation.
	Text string `json:"text"`           // Text describes the expectation.
	Met  bool   `json:"met"`            // Met is true if the expectation was met.
	Got  string `json:"got,omitempty"`  // Got describes what happened instead.
}

// Finding is a problem of the run. It is about how the program treats claude (C…), or about the set-up (S…), the guard (G…) or a gate (T…).
type Finding struct {
	ID     string `json:"id"`                           // ID identifies the kind of finding.
	Level  string `json:"level" enum:"error,warn,info"` // Level is the severity: `error`, `warn` or `info`.
	Text   string `json:"text"`                         // Text describes the problem.
	Advice string `json:"advice,omitempty"`             // Advice is how to fix the problem.
	File   string `json:"file,omitempty"`               // File is the file that the finding is about.
	Line   int    `json:"line,omitempty"`               // Line is the line in that file.
	Server string `json:"server,omitempty"`             // Server is the MCP server that the finding is about.
	Time   string `json:"seen,omitempty"`               // Time is when the problem was observed; absent if it is the time of the line.
	// Process is the id of the process in which the problem was observed; absent if that process wrote the line.
	Process int `json:"process,omitempty"`
}

// Gate is a step that waited at a gate of the scenario until another process released the gate, or until the time-out.
type Gate struct {
	Name  string  `json:"name"`                                  // Name of the gate.
	Event string  `json:"event" enum:"reached,released,timeout"` // Event is `reached`, `released` or `timeout`.
	MS    float64 `json:"ms,omitempty"`                          // MS is how long the step waited.
}

// Screen is a dialog of the interactive screen and the answer to it.
type Screen struct {
	State string `json:"state" enum:"permission,question,plan,dialog"` // State is the kind of dialog.
	// Kind is what the dialog is about, such as `bash`, `edit`, `mcp`, `single` or `trust`.
	Kind   string `json:"kind"`
	Answer string `json:"answer" enum:"yes,no"` // Answer is `yes` if the user agreed, otherwise `no`.
	Option string `json:"option"`               // Option is the label that was chosen, or `cancelled`.
}

// Telemetry is the number of data points, events or spans of one name that a collector has accepted.
type Telemetry struct {
	Name  string `json:"name"`  // Name of a metric, an event or a span, such as `claude_code.token.usage`.
	Count int    `json:"count"` // Count is the number of accepted data points, events or spans.
}

func (Telemetry) kind() string   { return "telemetry" }
func (Screen) kind() string      { return "screen" }
func (Expectation) kind() string { return "expectation" }
func (Finding) kind() string     { return "finding" }
func (Gate) kind() string        { return "gate" }

// NewFailedExpressionFinding returns the finding about an expression of a rule that failed at run time.
func NewFailedExpressionFinding(file string, line int, errorText string) Finding {
	return Finding{ID: "S11", Level: "error", Text: "an expression of the scenario failed: " + errorText, File: file, Line: line, Advice: "correct the expression: the prompt got no answer"}
}

// NewMissingTemplateValueFinding returns the finding about a path in a template that has no value.
func NewMissingTemplateValueFinding(file string, line int, templatePath string) Finding {
	return Finding{
		ID: "S15", Level: "error", Text: "`" + templatePath + "` in a template has no value", File: file, Line: line,
		Advice: "correct the path, or give a value to use instead: `" + templatePath + ` ?? ""` + "`",
	}
}

// NewEndlessRuleFinding returns the finding about a rule that could run forever: with tool calls, it answers prompts that the CLI itself
// wrote, and these calls cause the CLI to write the next prompt.
func NewEndlessRuleFinding(ruleName, file string, line int) Finding {
	return Finding{
		ID: "S21", Level: "error", File: file, Line: line,
		Text:   "the run was stopped: without a new prompt from a user, " + ruleName + " kept answering messages of the CLI with tool calls",
		Advice: "limit it with `max_matches`, or leave out `source` to match only the user's prompts",
	}
}

// NewUnstartedServerFinding returns the finding about a configured MCP server that did not start.
func NewUnstartedServerFinding(server, reason string) Finding {
	return Finding{
		ID: "S14", Level: "error", Text: "the MCP server " + server + " did not start: " + reason, Server: server,
		Advice: "correct its configuration or its program; `[[expect]] mcp = { server = \"" + server + "\" }` with `never = true` accepts a server that fails",
	}
}

// NewUnreleasedGateFinding returns the finding about a gate that was not released in time. howToRelease is the command
// or request that releases it.
func NewUnreleasedGateFinding(gate, reason, howToRelease, file string, line int) Finding {
	return Finding{ID: "T01", Level: "error", Text: "the gate " + gate + " was not released: " + reason, File: file, Line: line, Advice: "release it: " + howToRelease}
}
