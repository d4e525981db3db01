package terminal

import (
	"sync"
	"time"
)

type faultSet struct {
	dialogDelay         time.Duration // a dialog appears after this delay; until then the input field is shown
	optionsSwapped      bool          // the first and the last option are swapped
	numbersHidden       bool
	extraModeOption     bool // an additional option switches the permission mode
	draftStays          bool // a prompt stays in the input field after it was sent
	footerHidden        bool // the row of hints is empty
	activityInTitleOnly bool // only the window title shows that a turn is running
	smallPane           bool // only 80 columns and 11 rows are used
	longRetryLine       bool // the message about a retry fills several rows
	keyDelay            time.Duration
}

// Faults are the simulated defects of a screen. More of them can be armed while the session runs. A scenario arms
// faults through stdout; therefore Faults is also the stdout of an interactive session. It discards what is written to
// it.
type Faults struct {
	mu     sync.Mutex
	active faultSet
}

// Write discards p.
func (f *Faults) Write(p []byte) (int, error) { return len(p), nil }

// ArmFault arms the fault with this name. Other names are ignored.
func (f *Faults) ArmFault(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &f.active
	flags := map[string]*bool{
		"option-order": &a.optionsSwapped, "numbers-gone": &a.numbersHidden, "mode-option": &a.extraModeOption, "draft-back": &a.draftStays,
		"footer-gone": &a.footerHidden, "title-only": &a.activityInTitleOnly, "small-pane": &a.smallPane, "retry-long": &a.longRetryLine,
	}
	switch flag := flags[name]; {
	case flag != nil:
		*flag = true
	case name == "dialog-late":
		a.dialogDelay = 3 * time.Second
	case name == "echo-late":
		a.keyDelay = time.Second
	}
}

func (f *Faults) current() faultSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}
