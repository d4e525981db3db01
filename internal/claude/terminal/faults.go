package terminal

import (
	"sync"
	"time"
)

// faultSet contains the screen defects to simulate.
type faultSet struct {
	dialogLate  time.Duration // a dialog appears with this delay; the input field is shown until then
	optionOrder bool          // the first and the last option have changed places
	numbersGone bool          // options have no numbers
	modeOption  bool          // an additional option switches the mode
	draftBack   bool          // a prompt that was sent stays in the input field
	footerGone  bool          // the row of hints is empty
	titleOnly   bool          // only the title shows that a turn is running
	smallPane   bool          // only 80 columns and 11 rows are used
	retryLong   bool          // the line about a retry fills several rows
	echoLate    time.Duration // keys have their effect so late
}

// Faults are the faults of a screen. They may be armed while the session runs. As a writer
// they take the place of stdout, which an interactive session does not write to.
type Faults struct {
	mu  sync.Mutex
	set faultSet
}

// Write discards p.
func (f *Faults) Write(p []byte) (int, error) { return len(p), nil }

// ArmFault arms the fault with this name. Other names are ignored.
func (f *Faults) ArmFault(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch name {
	case "dialog-late":
		f.set.dialogLate = 3 * time.Second
	case "option-order":
		f.set.optionOrder = true
	case "numbers-gone":
		f.set.numbersGone = true
	case "mode-option":
		f.set.modeOption = true
	case "draft-back":
		f.set.draftBack = true
	case "footer-gone":
		f.set.footerGone = true
	case "title-only":
		f.set.titleOnly = true
	case "small-pane":
		f.set.smallPane = true
	case "retry-long":
		f.set.retryLong = true
	case "echo-late":
		f.set.echoLate = time.Second
	}
}

func (f *Faults) armed() faultSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set
}
