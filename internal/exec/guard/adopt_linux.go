package guard

import (
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// AdoptOrphans makes this program the parent of all descendants whose parent has exited. Otherwise it could not find
// them. The program must also call [StartReaper].
func AdoptOrphans() { setChildSubreaperFlag(1) }

// setChildSubreaperFlag switches adoption on or off; if the system refuses, orphans become children of init as usual.
func setChildSubreaperFlag(on uintptr) { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) }

// OrphanReaper collects the exit status of adopted processes. Otherwise they would remain zombies and appear to be running.
type OrphanReaper struct {
	ownProcesses []int
	done         chan struct{}
	task         sync.WaitGroup
	once         sync.Once
}

// StartReaper starts to collect the exit status of adopted processes. It leaves out ownPIDs, because this program waits for them itself.
// notify subscribes to a signal, as signal.Notify does, and returns a function that ends the subscription; StartReaper uses it to learn
// when a process exits. If notify is nil, processes are collected only when the reaper stops. The caller must call ReapOnceMoreAndStop.
func StartReaper(notify func(chan<- os.Signal, ...os.Signal) func(), ownPIDs []int) *OrphanReaper {
	r := &OrphanReaper{ownProcesses: ownPIDs, done: make(chan struct{})}
	if notify == nil {
		return r
	}
	ended := make(chan os.Signal, 1)
	unsubscribe := notify(ended, syscall.SIGCHLD)
	r.task.Go(func() { // returns after Stop
		defer unsubscribe()
		for {
			select {
			case <-ended:
				reap(ownPIDs)
			case <-r.done:
				return
			}
		}
	})
	return r
}

// ReapOnceMoreAndStop collects exited processes once more and stops the reaper. A nil reaper does nothing.
func (r *OrphanReaper) ReapOnceMoreAndStop() {
	if r == nil {
		return
	}
	r.once.Do(func() {
		setChildSubreaperFlag(0)
		close(r.done)
		r.task.Wait()
		reap(r.ownProcesses)
	})
}

func reap(ownPIDs []int) {
	for _, pid := range childrenOf(os.Getpid()) {
		if !slices.Contains(ownPIDs, pid) && HasEnded(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // another goroutine may have collected the process
		}
	}
}
