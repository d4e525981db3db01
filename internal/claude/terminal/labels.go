package terminal

// Labels that programs look for on the screen of claude 2.1.330: option labels, footer
// hints and glyphs. Everything else on the screen is worded here.
const (
	promptGlyph   = "❯"
	noBreakSpace  = "\u00a0"
	answerGlyph   = "●"
	resultGlyph   = "⎿"
	waitingTitle  = "✳ Claude Code"
	ruleGlyph     = "─"
	thinRuleGlyph = "╌"

	labelYes            = "Yes"
	labelNo             = "No"
	labelAutoMode       = "Yes, and switch to auto mode · auto mode handles these prompts for you"
	labelAcceptEdits    = "Yes, and switch to accept edits (auto-approve file edits and common file commands) for this session (shift+tab)"
	labelTellDifferent  = "No, and tell Claude what to do differently (esc)"
	labelProceed        = "Do you want to proceed?"
	labelFetch          = "Do you want to allow Claude to fetch this content?"
	labelTrustYes       = "Yes, I trust this folder"
	labelExit           = "No, exit"
	labelAccept         = "Yes, I accept"
	labelKeyNo          = "No (recommended)"
	labelUseServer      = "Use this MCP server"
	labelUseServers     = "Use this and all future MCP servers in this project"
	labelSkipServer     = "Continue without using this MCP server"
	labelEnableSelected = "Enable selected"
	labelPlanQuestion   = "Would you like to proceed?"
	labelPlanAuto       = "Yes, and use auto mode"
	labelPlanManual     = "Yes, manually approve edits"
	labelPlanFeedback   = "Tell Claude what to change"
	labelTypeSomething  = "Type something"
	labelChat           = "Chat about this"
	labelNext           = "Next"
	labelSubmit         = "Submit"
	labelReview         = "Review your answers"
	labelSubmitAnswers  = "Submit answers"
	labelCancel         = "Cancel"

	footPermission = "Esc to cancel · Tab to amend"
	footConfirm    = "Enter to confirm · Esc to cancel"
	footServers    = "Space to select · Esc to reject all"
	footQuestion   = "Enter to select · ↑/↓ to navigate · Esc to cancel"
	footQuestions  = "Enter to select · Tab/Arrow keys to navigate · Esc to cancel"

	hintShortcuts   = "? for shortcuts"
	hintInterrupt   = "esc to interrupt"
	hintCycle       = "(shift+tab to cycle)"
	hintQueue       = "Press up to edit queued messages"
	hintResend      = "Resend your message to try again"
	textInterrupted = "Interrupted · What should Claude do instead?"
	textCompacted   = "Compacted (ctrl+o to see full summary)"
)

// modeLabels are the footer's words for the permission modes.
func modeLabel(mode string) string {
	switch mode {
	case "acceptEdits":
		return "⏵⏵ accept edits on " + hintCycle
	case "plan":
		return "⏸ plan mode on " + hintCycle
	case "bypassPermissions":
		return "⏵⏵ bypass permissions on " + hintCycle
	case "auto":
		return "⏵⏵ auto mode on " + hintCycle
	case "dontAsk":
		return "⏵⏵ don't ask on " + hintCycle
	}
	return "⏸ manual mode on"
}

// spinnerGlyphs are shown one after the other while a turn runs.
func spinnerGlyphs() []string { return []string{"✢", "✳", "✶", "✻", "✽", "*", "·"} }

// verbs are the words for a running turn and one that has ended. The seed of a run
// chooses among them.
func verbs() [][2]string {
	return [][2]string{{"Thinking", "Thought"}, {"Working", "Worked"}, {"Brewing", "Brewed"}, {"Cooking", "Cooked"}, {"Baking", "Baked"}, {"Churning", "Churned"}}
}
