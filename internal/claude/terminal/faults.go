package terminal

import (
	"maps"
	"sync"
	"time"
)

// faultSet contains the names of the active faults.
type faultSet map[string]bool

const (
	faultDialogLate             = "dialog-late"  // dialogs appear after [delayOfFaultDialogLate]; before, the input field is shown
	faultOptionsSwapped         = "option-order" // the first and the last option are swapped
	faultOptionNumbersHidden    = "numbers-gone"
	faultExtraBypassModeOption  = "mode-option" // an additional option switches the permission mode
	faultSentPromptStaysInInput = "draft-back"  // a prompt stays in the input field after it was sent
	faultFooterHintsHidden      = "footer-gone" // the row of hints is empty
	faultTurnShownOnlyInTitle   = "title-only"  // only the window title shows that a turn is running
	faultSmallPane              = "small-pane"  // only 80 columns and 11 rows are used
	faultMultiRowRetryMessage   = "retry-long"  // the message about a retry fills several rows
	faultEchoLate               = "echo-late"   // keys have no effect before [delayOfFaultEchoLate] has passed

	delayOfFaultDialogLate = 3 * time.Second
	delayOfFaultEchoLate   = time.Second
)

// Faults are the simulated defects of a screen. More of them can be armed while the session runs. A scenario arms
// faults through stdout; therefore Faults is also the stdout of an interactive session. It discards all output.
type Faults struct {
	mu     sync.Mutex
	active faultSet
}

// Write discards the bytes: faults of the screen do not change a stream.
func (f *Faults) Write(p []byte) (int, error) { return len(p), nil }

// ArmFault arms the fault with this name. Other names are ignored.
func (f *Faults) ArmFault(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	active := faultSet{name: true}
	maps.Copy(active, f.active)
	f.active = active
}

func (f *Faults) armedFaultNames() faultSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}
