package guard

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// Poller looks at the processes that descend from this program, again and again, for
// a real claude. It misses one that ends within a moment, and finds every one that
// gets as far as a request.
type Poller struct {
	log      *Log
	own      Own
	programs programs
	done     chan struct{}
	task     sync.WaitGroup
	once     sync.Once
}

const (
	// pollPause is how long a poller waits between two looks.
	pollPause = 10 * time.Millisecond
	// pollEach is how much longer it waits for each process that it looked at, so that
	// many of them do not cost much more than a few.
	pollEach = time.Millisecond
)

// Poll begins to look. The caller must call Stop.
func Poll(log *Log, own Own) *Poller {
	p := &Poller{log: log, own: own, done: make(chan struct{})}
	p.task.Go(func() { p.run() }) // ends with Stop
	return p
}

// Stop ends it after a last look. A nil Poller has nothing to stop.
func (p *Poller) Stop() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		close(p.done)
		p.task.Wait()
		p.look()
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
		pause.Reset(pollPause + time.Duration(p.look())*pollEach)
	}
}

// look looks at every process once and tells how many there are.
func (p *Poller) look() int {
	all := Descendants(os.Getpid())
	for _, pid := range all {
		who := process(pid)
		exe, err := os.Readlink(who.file("exe"))
		if err != nil {
			continue // it has ended
		}
		words := who.argv()
		if len(words) == 0 {
			continue
		}
		dir, _ := os.Readlink(who.file("cwd")) // it may have ended
		words[0] = exe
		if file := p.programs.run(p.own, words[:min(len(words), mostWords)], dir); file != "" {
			p.log.add(Breach{Kind: RealClaude, PID: pid, Text: fmt.Sprintf("a real claude was started: %s: %s", file, who)})
		}
	}
	return len(all)
}
