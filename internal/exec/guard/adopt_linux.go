package guard

import (
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Adopt has this program be the parent of processes whose own is gone, so that
// they are found. Whoever adopts also has to [Reap].
func Adopt() { adopt(1) }

// adopt switches it on or off; where that cannot be done orphans go elsewhere.
func adopt(on uintptr) { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) }

// Reaper waits for adopted processes as they end: whoever looks whether one of
// them is gone would find it there for ever.
type Reaper struct {
	own  []int
	done chan struct{}
	task sync.WaitGroup
	once sync.Once
}

// Reap begins to wait for adopted processes, but not for the program's own
// children. Notify relays signals until what it returns is called; nil = there
// are none. The caller must call Stop.
func Reap(notify func(chan<- os.Signal, ...os.Signal) func(), own []int) *Reaper {
	r := &Reaper{own: own, done: make(chan struct{})}
	if notify == nil {
		return r
	}
	ended := make(chan os.Signal, 1)
	unsubscribe := notify(ended, syscall.SIGCHLD)
	r.task.Go(func() { // ends with Stop
		defer unsubscribe()
		for {
			select {
			case <-ended:
				reap(own)
			case <-r.done:
				return
			}
		}
	})
	return r
}

// Stop ends the adopting, after a last look. A nil Reaper has nothing to stop.
func (r *Reaper) Stop() {
	if r == nil {
		return
	}
	r.once.Do(func() {
		adopt(0)
		close(r.done)
		r.task.Wait()
		reap(r.own)
	})
}

// reap waits for children that have ended and are not our own.
func reap(own []int) {
	for _, pid := range children(os.Getpid()) {
		if !slices.Contains(own, pid) && Ended(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // somebody may have done so
		}
	}
}
