package terminal

import (
	"slices"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type prompter struct {
	screen          *screen
	player          *turnPlayer
	cwd             string
	auto            autoModeState
	pendingRequests []*pendingPermissionRequest // a shown dialog belongs to the first question
}

// dialogMayBeShown reports that the dialog for a question may be shown, because the delay that a fault requires has passed.
type dialogMayBeShown struct{ request *pendingPermissionRequest }

func (a *prompter) updatePendingRequests(message any) {
	switch m := message.(type) {
	case *pendingPermissionRequest:
		a.pendingRequests = append(a.pendingRequests, m)
		if m.delayOver = !a.screen.faults[faultDialogLate]; !m.delayOver {
			time.AfterFunc(delayOfFaultDialogLate, func() { a.player.screenMailbox.addMessage(dialogMayBeShown{m}) })
		}
	case dialogMayBeShown:
		m.request.delayOver = true
	case permissionRequestWithdrawn:
		if len(a.pendingRequests) > 0 && a.pendingRequests[0] == m.request {
			a.screen.dialog = nil
		}
		a.removeFromPending(m.request)
	}
	a.showNextPermissionRequest()
}

func (a *prompter) removeFromPending(q *pendingPermissionRequest) {
	a.pendingRequests = slices.DeleteFunc(a.pendingRequests, func(p *pendingPermissionRequest) bool { return p == q })
}

func (a *prompter) showNextPermissionRequest() {
	if a.screen.dialog != nil || len(a.pendingRequests) == 0 || !a.pendingRequests[0].delayOver {
		return
	}
	a.screen.dialog = a.dialogForPermissionRequest(a.pendingRequests[0])
	a.screen.labels.pages.copyCapturedTextsIntoDialog(a.screen.dialog)
	a.screen.effort = "" // the real CLI shows no effort after a dialog
	if p := a.screen.progress; p != nil {
		p.hasReply, p.dialogShownAt = true, a.player.session.Plan().Clock.Now()
	}
}

func (a *prompter) recordAndSendAnswer(q *pendingPermissionRequest, d *dialog, chosenOption string, answer protocol.PermissionAnswer) {
	a.removeFromPending(q)
	a.player.session.JournalAndWarningWriter().WriteJournal(d.journalLine(chosenOption, answer.Allow))
	if p := a.screen.progress; p != nil {
		shown := a.player.session.Plan().Clock.Now().Sub(p.dialogShownAt)
		p.startedAt = p.startedAt.Add(shown) // the real CLI does not count the time of dialogs
		a.player.session.State().AddTimeOfDialog(shown)
		p.endsWithRefusal = p.endsWithRefusal || answer.Interrupt
	}
	if slices.ContainsFunc(answer.UpdatedPermissions, func(u protocol.PermissionUpdate) bool { return u.Destination != "session" }) {
		answer.Source = "user_permanent"
	}
	q.answers <- answer
}
