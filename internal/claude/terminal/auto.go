package terminal

import (
	"cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// autoMode is what the session knows about permission mode auto.
type autoMode struct {
	isUnavailable bool // for the model, or because the user has left the mode
	isExplained   bool // the user knows that calls are not checked, and approves them
}

// Texts about calls that mode auto cannot check. Its check runs on the server, which does not answer it here.
const (
	noCheckTitle  = "Auto mode can't check actions in this session"
	noCheckReason = noCheckTitle + ", so this one needs your approval"
)

// needsCheck reports whether a call waits for the check of mode auto. Rules, and tools that need the user, ask in every
// mode.
func (a *prompter) needsCheck(r protocol.PermissionRequest) bool {
	return a.player.session.Policy().Mode() == protocol.ModeAuto && !r.RequiresUser && r.DecisionReasonType != "rule" && r.Safety != protocol.SafetyDangerous
}

// autoDialog explains, once in a session, that calls are not checked: Enter stays in the mode, Shift+Tab leaves it and
// ends the turn, as Esc does.
func (a *prompter) autoDialog(q *pendingQuestion) *dialog {
	d := &dialog{state: StateDialog, kind: "auto", topRule: ruleGlyph, head: []string{
		"  " + noCheckTitle, "", "  The server does not answer the check. Stay, and approve each action that needs it, or leave for accept edits mode.", "",
	}}
	d.foot = []string{"  Enter to stay in auto mode · shift+Tab to leave for accept edits mode and stop · Esc to cancel"}
	notice := cmp.Or(a.screen.labels.pages.paragraph("permission/bash", answerGlyph+" "+noCheckTitle), ". Actions that need the check now ask for your approval. Shift+Tab switches the permission mode.")
	if rows := a.screen.labels.pages.rowsBelowInput("dialog/auto"); rows != nil {
		d.head, d.foot = rows, nil
	}
	d.owner = chooserFunc(func(c choice) *dialog {
		word := "cancelled"
		switch c.key {
		case keyEnter:
			a.player.session.Log().WriteJournal(d.journalLine("Enter", true))
			a.auto.isExplained = true
			a.screen.entries = append(a.screen.entries, entry{glyph: answerGlyph + " ", text: noCheckTitle + notice, isError: true})
			return a.newDialog(q)
		case keyBackTab:
			word, a.auto.isUnavailable = "shift+Tab", true
			_ = a.player.session.Policy().SetMode(protocol.ModeAcceptEdits) // is always allowed
			a.screen.mode = string(protocol.ModeAcceptEdits)
		default: // Esc and Ctrl-C
		}
		a.player.session.Log().WriteJournal(d.journalLine(word, false))
		a.remove(q)
		a.screen.interruptedTurn = a.player.interrupt()
		return nil
	})
	return d
}
