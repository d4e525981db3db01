package journal

// FailedExpression returns the finding about an expression of a rule that failed at run time.
func FailedExpression(file string, line int, text string) Finding {
	return Finding{
		ID: "S11", Level: "error", Text: "an expression of the scenario failed: " + text, File: file, Line: line,
		Advice: "correct the expression: the prompt got no answer",
	}
}

// MissingValue returns the finding about a path in a template that has no value.
func MissingValue(file string, line int, path string) Finding {
	return Finding{
		ID: "S15", Level: "error", Text: "`" + path + "` in a template has no value", File: file, Line: line,
		Advice: "correct the path, or give a value to use instead: `" + path + ` ?? ""` + "`",
	}
}

// EndlessRule returns the finding about a rule that answers texts of the CLI with
// calls that cause the next such text.
func EndlessRule(rule, file string, line int) Finding {
	return Finding{
		ID: "S21", Level: "error", File: file, Line: line,
		Text:   "the run was stopped: without a new prompt from a user, " + rule + " kept answering messages of the CLI with tool calls",
		Advice: "limit it with `max_matches`, or match the prompts of the user only (without `source`)",
	}
}

// MissingServer returns the finding about a configured MCP server that did not
// start.
func MissingServer(server, reason string) Finding {
	return Finding{
		ID: "S14", Level: "error", Text: "the MCP server " + server + " did not start: " + reason, Server: server,
		Advice: "correct its configuration or its program; `[[expect]] mcp = { server = \"" + server + "\" }` with `never = true` accepts a server that fails",
	}
}

// UnreleasedGate returns the finding about a gate at which a step waited in vain; release says how it is released.
func UnreleasedGate(gate, reason, release, file string, line int) Finding {
	return Finding{
		ID: "T01", Level: "error", Text: "the gate " + gate + " was not released: " + reason, File: file, Line: line,
		Advice: "release it: " + release,
	}
}
