// Package earlysignal receives signals from the moment the program begins, while
// its other packages still initialise: a process that was started with SIGINT ignored,
// as shells start those in the background, would lose a signal until somebody asks for
// it. Only package main imports it, because importing it changes what a signal does.
package earlysignal

import (
	"os"
	"os/signal"
	"syscall"
)

var received = subscribe() // constant: signals wait in it for whoever handles them

func subscribe() chan os.Signal {
	const most = 4
	c := make(chan os.Signal, most)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return c
}

// Received is where the signals are. Whoever takes it over stops it with
// [signal.Stop] and handles what is in it.
func Received() chan os.Signal { return received }
