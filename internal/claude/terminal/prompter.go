package terminal

import (
	"slices"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type prompter struct {
	screen  *screen
	player  *turnPlayer
	cwd     string
	auto    autoMode
	pending []*pendingQuestion // a shown dialog belongs to the first question
}

// dialogDelayElapsed reports that the dialog for a question may be shown, because the delay that a fault requires has passed.
type dialogDelayElapsed struct{ question *pendingQuestion }

func (a *prompter) handleMessage(message any) {
	switch m := message.(type) {
	case *pendingQuestion:
		a.pending = append(a.pending, m)
		if m.delayOver = !a.screen.faults[faultDialogLate]; !m.delayOver {
			time.AfterFunc(delayOfFaultDialogLate, func() { a.player.inbox.put(dialogDelayElapsed{m}) })
		}
	case dialogDelayElapsed:
		m.question.delayOver = true
	case questionWithdrawn:
		if len(a.pending) > 0 && a.pending[0] == m.question {
			a.screen.dialog = nil
		}
		a.removeQuestion(m.question)
	}
	a.showNextQuestion()
}

func (a *prompter) removeQuestion(q *pendingQuestion) {
	a.pending = slices.DeleteFunc(a.pending, func(p *pendingQuestion) bool { return p == q })
}

func (a *prompter) showNextQuestion() {
	if a.screen.dialog != nil || len(a.pending) == 0 || !a.pending[0].delayOver {
		return
	}
	a.screen.dialog = a.newDialog(a.pending[0])
	a.screen.labels.pages.copyCapturedTextsIntoDialog(a.screen.dialog)
	a.screen.effort = "" // the real CLI shows no effort after a dialog
	if a.screen.progress != nil {
		a.screen.progress.hasReply = true
	}
}

func (a *prompter) recordAndSendAnswer(q *pendingQuestion, d *dialog, chosenOption string, answer protocol.PermissionAnswer) {
	a.removeQuestion(q)
	a.player.session.RunLog().WriteJournal(d.journalLine(chosenOption, answer.Allow))
	if answer.Interrupt && a.screen.progress != nil {
		a.screen.progress.endsWithRefusal = true
	}
	if slices.ContainsFunc(answer.UpdatedPermissions, func(u protocol.PermissionUpdate) bool { return u.Destination != "session" }) {
		answer.Source = "user_permanent"
	}
	q.answers <- answer
}
