package terminal

import (
	"maps"
	"sync"
	"time"
)

// faultSet contains the names of the active faults.
type faultSet map[string]bool

const (
	faultDialogLate      = "dialog-late"  // a dialog appears after [dialogLateDelay]; until then the input field is shown
	faultOptionsSwapped  = "option-order" // the first and the last option are swapped
	faultNumbersHidden   = "numbers-gone"
	faultExtraModeOption = "mode-option" // an additional option switches the permission mode
	faultDraftStays      = "draft-back"  // a prompt stays in the input field after it was sent
	faultFooterHidden    = "footer-gone" // the row of hints is empty
	faultTitleOnly       = "title-only"  // only the window title shows that a turn is running
	faultSmallPane       = "small-pane"  // only 80 columns and 11 rows are used
	faultLongRetry       = "retry-long"  // the message about a retry fills several rows
	faultEchoLate        = "echo-late"   // keys have no effect before [echoLateDelay] has passed

	dialogLateDelay = 3 * time.Second
	echoLateDelay   = time.Second
)

// Faults are the simulated defects of a screen. More of them can be armed while the session runs. A scenario arms
// faults through stdout; therefore Faults is also the stdout of an interactive session. It discards all output.
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
	active := faultSet{name: true}
	maps.Copy(active, f.active)
	f.active = active
}

func (f *Faults) activeFaults() faultSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}
