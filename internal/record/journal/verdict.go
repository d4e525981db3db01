package journal

// Expectation is the result of an `[[expect]]` of the scenario, judged at the end of the run (or of a process that
// runs without exec), or the result of an `expect` of a call, which has a session.
type Expectation struct {
	// File of the expectation.
	File string `json:"file,omitempty"`
	// Line of the expectation.
	Line int `json:"line,omitempty"`
	// Text describes the expectation.
	Text string `json:"text"`
	// Met says whether the expectation was met.
	Met bool `json:"met"`
	// Got describes what happened instead.
	Got string `json:"got,omitempty"`
}

// Finding is a problem of the run: how the caller treats claude (C…), the set-up
// (S…), the guard (G…) or a gate (T…).
type Finding struct {
	// ID identifies the kind of finding.
	ID string `json:"id"`
	// Level is `error`, `warn` or `info`.
	Level string `json:"level" enum:"error,warn,info"`
	// Text describes the problem.
	Text string `json:"text"`
	// Advice says how to fix it.
	Advice string `json:"advice,omitempty"`
	// File is the file that the finding is about.
	File string `json:"file,omitempty"`
	// Line is the line in that file.
	Line int `json:"line,omitempty"`
	// Server is the MCP server that the finding is about.
	Server string `json:"server,omitempty"`
	// Time is when it was observed; absent = the time of the line.
	Time string `json:"seen,omitempty"`
	// Process is the process in which it was observed; absent = that of the line.
	Process int `json:"process,omitempty"`
}

// Gate is a step that waited at a gate of the scenario.
type Gate struct {
	// Name of the gate.
	Name string `json:"name"`
	// Event is `reached`, `released` or `timeout`.
	Event string `json:"event" enum:"reached,released,timeout"`
	// MS is how long the step waited.
	MS float64 `json:"ms,omitempty"`
}

// Screen is a state of the interactive screen that waited for the user, and was answered.
type Screen struct {
	// State of the screen.
	State string `json:"state" enum:"permission,question,plan,dialog"`
	// Kind of the state: `bash`, `edit`, `mcp`, `single`, `trust`.
	Kind string `json:"kind"`
	// Answer says whether the user has agreed.
	Answer string `json:"answer" enum:"yes,no"`
	// Option is the label that was chosen, or `cancelled`.
	Option string `json:"option"`
}

// Telemetry is what a collector has accepted from the session, by name.
type Telemetry struct {
	// Name of a metric, an event or a span: `claude_code.token.usage`.
	Name string `json:"name"`
	// Count of the data points, events or spans.
	Count int `json:"count"`
}

func (Telemetry) kind() string   { return "telemetry" }
func (Screen) kind() string      { return "screen" }
func (Expectation) kind() string { return "expectation" }
func (Finding) kind() string     { return "finding" }
func (Gate) kind() string        { return "gate" }
