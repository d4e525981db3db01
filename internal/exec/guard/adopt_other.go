//go:build !linux

package guard

import "os"

// AdoptOrphans does nothing on this system.
func AdoptOrphans() {}

// OrphanReaper does nothing on this system.
type OrphanReaper struct{}

// StartReaper does nothing on this system.
func StartReaper(func(chan<- os.Signal, ...os.Signal) func(), []int) *OrphanReaper { return nil }

// ReapOnceMoreAndStop does nothing on this system.
func (*OrphanReaper) ReapOnceMoreAndStop() {}
