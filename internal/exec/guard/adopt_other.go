//go:build !linux

package guard

import "os"

// AdoptOrphans does nothing on this system.
func AdoptOrphans() {}

// Reaper does nothing on this system.
type Reaper struct{}

// StartReaper does nothing on this system.
func StartReaper(func(chan<- os.Signal, ...os.Signal) func(), []int) *Reaper { return nil }

// Stop does nothing on this system.
func (*Reaper) Stop() {}
