package terminal

import "time"

// faultSet are the defects of screens that programs which read them have met.
type faultSet struct {
	dialogLate  time.Duration // a dialog appears so late, and the input field is shown meanwhile
	optionOrder bool          // the options are in another order
	numbersGone bool          // options have no numbers
	modeOption  bool          // there is one more option that switches the mode
	draftBack   bool          // a prompt that was sent returns to the input field
	footerGone  bool          // the row of hints is empty
	titleOnly   bool          // only the title tells that a turn is running
	smallPane   bool          // only 80 columns and 11 rows are used
	retryLong   bool          // the line about a retry fills several rows
	echoLate    time.Duration // typed text appears so late
}
