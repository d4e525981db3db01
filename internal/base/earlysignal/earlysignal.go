// Package earlysignal receives signals from the start of the program, while its other packages are initialised. A process that was started
// with SIGINT ignored (shells do this to background processes) would otherwise lose signals until a handler is registered. Only package
// main imports it, because importing it changes the effect of signals.
package earlysignal

import (
	"os"
	"os/signal"
	"syscall"
)

var terminationSignalsSinceProgramStart = subscribeToTerminationSignals() // never reassigned; queues signals until they are handled

func subscribeToTerminationSignals() chan os.Signal {
	const most = 4
	c := make(chan os.Signal, most)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return c
}

// TerminationSignals returns the channel of signals. The caller must pass it to [signal.Stop] and handle the queued signals.
func TerminationSignals() chan os.Signal { return terminationSignalsSinceProgramStart }
