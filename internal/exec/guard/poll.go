package guard

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Poller repeatedly scans the descendants of this program for a real claude. It may miss a process that exits
// immediately, but finds every process that runs long enough to send a request.
type Poller struct {
	log      *Log
	ownFiles OwnFiles
	programs programCache
	done     chan struct{}
	task     sync.WaitGroup
	once     sync.Once
}

const (
	pollPause = 10 * time.Millisecond
	// pausePerProcess is added to the pause for each process scanned, so that scanning many processes needs little more
	// processor time than scanning a few.
	pausePerProcess = time.Millisecond
)

// StartPoller starts a poller. The caller must call Stop.
func StartPoller(log *Log, own OwnFiles) *Poller {
	p := &Poller{log: log, ownFiles: own, done: make(chan struct{})}
	p.task.Go(func() { p.run() }) // returns after Stop
	return p
}

// Stop scans once more and stops the poller. It may be called on a nil Poller.
func (p *Poller) Stop() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		close(p.done)
		p.task.Wait()
		p.scan()
	})
}

func (p *Poller) run() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-pause.C:
		}
		pause.Reset(pollPause + time.Duration(p.scan())*pausePerProcess)
	}
}

// scan looks at every process once and returns how many there are.
func (p *Poller) scan() int {
	all := Descendants(os.Getpid())
	for _, pid := range all {
		who := process(pid)
		exe, _ := os.Readlink(who.procFile("exe")) // empty if the process has exited
		dir, _ := os.Readlink(who.procFile("cwd"))
		words := append([]string{exe}, who.argv()...)
		words = slices.Delete(words, 1, min(2, len(words)))
		if file := p.programs.realProgram(p.ownFiles, words[:min(len(words), maxCommandWords)], dir); file != "" {
			p.log.add(Breach{Kind: KindRealClaude, PID: pid, Text: fmt.Sprintf("a real claude was started: %s: %s", file, who)})
		}
	}
	return len(all)
}
