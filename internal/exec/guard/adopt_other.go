//go:build !linux

package guard

import "os"

// Adopt does nothing here.
func Adopt() {}

// Reaper does nothing here.
type Reaper struct{}

// Reap does nothing here.
func Reap(func(chan<- os.Signal, ...os.Signal) func(), []int) *Reaper { return nil }

// Stop does nothing here.
func (*Reaper) Stop() {}
