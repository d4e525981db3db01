package journal

// Expectation is an `[[expect]]` of the scenario as it was judged: at the end of
// the whole run, or of a process that runs by itself; there without a session, as
// an `expect` of a call with one.
type Expectation struct {
	// File of the expectation.
	File string `json:"file,omitempty"`
	// Line of the expectation.
	Line int `json:"line,omitempty"`
	// Text says what is expected.
	Text string `json:"text"`
	// Met says that it was so.
	Met bool `json:"met"`
	// Got says what happened instead.
	Got string `json:"got,omitempty"`
}

// Finding is something that is wrong with the run: how the caller treats claude
// (C…), the set-up (S…), the guard (G…) or a gate (T…).
type Finding struct {
	// ID is that of the kind of finding.
	ID string `json:"id"`
	// Level is `error`, `warn` or `info`.
	Level string `json:"level" enum:"error,warn,info"`
	// Text says what was seen.
	Text string `json:"text"`
	// Advice says what to do about it.
	Advice string `json:"advice,omitempty"`
	// File that the finding is about.
	File string `json:"file,omitempty"`
	// Line in that file.
	Line int `json:"line,omitempty"`
	// Server is the MCP server that the finding is about.
	Server string `json:"server,omitempty"`
	// Time at which it was seen; absent = that of the line.
	Time string `json:"seen,omitempty"`
	// Process that it was seen in; absent = that of the line.
	Process int `json:"process,omitempty"`
}

// Gate is a step that waited at a gate of the scenario.
type Gate struct {
	// Name of the gate.
	Name string `json:"name"`
	// Event is `reached`, `released` or `timeout`.
	Event string `json:"event" enum:"reached,released,timeout"`
	// MS is how long the step has waited.
	MS float64 `json:"ms,omitempty"`
}

func (Expectation) kind() string { return "expectation" }
func (Finding) kind() string     { return "finding" }
func (Gate) kind() string        { return "gate" }
