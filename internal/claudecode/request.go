package claudecode

import "slices"

// RequestFeatures are what the beta headers of a request depend on.
type RequestFeatures struct {
	Model       string // without date and provider
	Thinking    bool   // the model may think
	PerTurn     bool   // its effort can change from turn to turn
	SystemTurns bool   // it takes reminders as separate messages
	ToolSearch  bool   // there are tools to look up
	Effort      bool   // it has effort levels
	Updates     bool   // its thinking is reported as it is written
}

// UsesVendorAPI reports whether requests go to the vendor's own address.
func (p Profile) UsesVendorAPI() bool { return p.env.usesVendorAPI() }

// RequestBetas returns the beta headers of requests to the model (observed with 2.1.330).
func (p Profile) RequestBetas(f RequestFeatures) []string {
	if !f.Thinking {
		return []string{"claude-code-20250219"}
	}
	betas := []string{"claude-code-20250219", "interleaved-thinking-2025-05-14", "context-management-2025-06-27"}
	if f.Model == "claude-haiku-4-5" || f.Model == "claude-haiku-5-5" {
		betas = slices.Concat(betas[1:], betas[:1])
	}
	for _, row := range []struct {
		applies bool
		name    string
	}{
		{p.env.usesVendorAPI(), "prompt-caching-scope-2026-01-05"},
		{f.PerTurn, "per-turn-control-2026-07-01"},
		{f.SystemTurns && f.Model != "claude-sonnet-5", "mid-conversation-tool-changes-2026-07-01"},
		{true, "thinking-token-count-2026-05-13"},
		{f.ToolSearch, "advanced-tool-use-2025-11-20"},
		{p.env.usesVendorAPI(), "mid-conversation-system-clear-at-2026-08-21"},
		{f.Effort, "effort-2025-11-24"},
		{p.env.usesVendorAPI(), "thinking-binding-controls-2026-08-01"},
		{f.Updates, "thinking-display-updates-2026-08-18"},
		{p.env.usesVendorAPI(), "cache-diagnosis-2026-04-07"},
	} {
		if row.applies {
			betas = append(betas, row.name)
		}
	}
	return betas
}
