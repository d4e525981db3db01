// Package guard keeps a command away from a real claude and the vendor's addresses, and reports attempts to reach them.
//
// Every report is based on an observed process, identified by its id. The guard finds mistakes; it is not a security sandbox.
package guard

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// StrictnessLevel says how the guard keeps a command from running a real claude.
type StrictnessLevel string

// The levels, from no protection to the strictest. [ParseLevel] reads them.
const (
	LevelOff          StrictnessLevel = "off"
	LevelPathAndProxy StrictnessLevel = "path"
	LevelStrict       StrictnessLevel = "strict"
)

// ParseLevel parses the name of a level; empty means LevelPathAndProxy.
func ParseLevel(s string) (StrictnessLevel, error) {
	l := StrictnessLevel(cmp.Or(s, string(LevelPathAndProxy)))
	if l != LevelOff && l != LevelPathAndProxy && l != LevelStrict {
		return "", fmt.Errorf("invalid value %q for --guard: use off, path or strict", s)
	}
	if l == LevelStrict {
		return l, checkOSSupportsStrict()
	}
	return l, nil
}

// ErrStrictUnsupported reports that the system does not support --guard=strict.
var ErrStrictUnsupported = errors.New("--guard=strict requires Linux network namespaces; --guard=path works on every system")

// String returns the description of the protection in reports.
func (l StrictnessLevel) String() string {
	switch l {
	case LevelOff:
		return "off"
	case LevelStrict:
		return "strict: loopback network only, other connections are blocked and reported, leftover processes are killed; " + pathLevelDescription
	case LevelPathAndProxy:
	}
	return "path: " + pathLevelDescription
}

const pathLevelDescription = "shims on PATH, a canary key, base URLs and a proxy on loopback, and monitoring of processes; not a sandbox"

// Breach is a forbidden action of a process.
type Breach struct {
	Kind BreachKind
	PID  int
	Text string // description of the action and of the process
}

// BreachKind says in which way a command used, or tried to reach, a real claude or another address.
type BreachKind int

// The kinds of breaches: a real claude ran or sent a request; another program tried to reach a vendor; in a network without external
// connections, any program tried to reach another address.
const (
	BreachRealClaude BreachKind = iota
	BreachVendorAccess
	BreachExternalNonVendorAddress
)

// BreachCollector collects breaches. The zero value is ready to use; its methods are safe for concurrent use.
type BreachCollector struct {
	mu              sync.Mutex
	breaches        []Breach
	connectionTable *os.File // TCP connections of the run's network namespace; nil means those of this program's namespace
}

// setTCPConnectionTable sets the table, in the format of /proc/net/tcp, that findPeer searches.
func (l *BreachCollector) setTCPConnectionTable(table *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connectionTable = table
}

// findPeer returns the process at the other end of a local connection; 0 means not found.
func (l *BreachCollector) findPeer(addr string) process {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, text := cutAtLast(addr, ":")
	port, _ := strconv.Atoi(text) // no connection has the port 0
	if l.connectionTable != nil {
		var b bytes.Buffer
		_, _ = io.Copy(&b, io.NewSectionReader(l.connectionTable, 0, 16<<20)) // a partial table is used
		return socketHolder(socketInode(b.String(), port))
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name) // the file exists only on Linux
		if inode := socketInode(string(table), port); inode != "" {
			return socketHolder(inode)
		}
	}
	return 0
}

// addBreach records a breach, unless it is recorded already or 100 breaches are recorded.
func (l *BreachCollector) addBreach(b Breach) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 100
	if len(l.breaches) < most && !slices.Contains(l.breaches, b) {
		l.breaches = append(l.breaches, b)
	}
}

// Breaches returns the breaches so far, in order.
func (l *BreachCollector) Breaches() []Breach {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.breaches)
}

// RecordRealClaudeRequest records that a real claude sent a request to a loopback address. clientAddr is the address of
// claude's end of the connection, and userAgent the User-Agent of the request.
func (l *BreachCollector) RecordRealClaudeRequest(clientAddr, userAgent string) {
	who := l.findPeer(clientAddr)
	if who == 0 {
		l.addBreach(Breach{Kind: BreachRealClaude, Text: "a real claude sent a request: " + userAgent})
		return
	}
	l.addBreach(Breach{Kind: BreachRealClaude, PID: int(who), Text: "a real claude sent a request: " + who.String()})
}

// recordExternalConnectionAsBreach records that a process tried to connect to an external address. name is empty if it is not known.
func (l *BreachCollector) recordExternalConnectionAsBreach(caller process, name, addr string, ownFiles ClaudelessFiles) {
	to := addr
	if name != "" {
		_, port := cutAtLast(addr, ":")
		to = name + ":" + port
	}
	b := Breach{Kind: BreachExternalNonVendorAddress, PID: int(caller), Text: fmt.Sprintf("%s was blocked when %s tried to reach it", to, caller)}
	switch {
	case caller.isOrDescendsFromRealClaude(ownFiles):
		b.Kind, b.Text = BreachRealClaude, fmt.Sprintf("a real claude tried to reach %s: %s", to, caller)
	case isModelVendorHost(name) || isAnthropicAddrPort(addr):
		b.Kind, b.Text = BreachVendorAccess, fmt.Sprintf("a program tried to reach a model vendor's address %s: %s", to, caller)
	}
	l.addBreach(b)
}

// RealClaudePoller repeatedly scans the descendants of this program for a real claude. It may miss a process that exits at once,
// but a process that sends a request runs long enough to be found.
type RealClaudePoller struct {
	log      *BreachCollector
	ownFiles ClaudelessFiles
	programs realCLIFileCache
	done     chan struct{}
	task     sync.WaitGroup
	once     sync.Once
}

const (
	pollPause                = 10 * time.Millisecond
	extraPollPausePerProcess = time.Millisecond // lengthens the pause for each scanned process, to limit the processor time
)

// StartRealClaudePoller starts a poller. The caller must call ScanOnceMoreAndStop.
func StartRealClaudePoller(log *BreachCollector, ownFiles ClaudelessFiles) *RealClaudePoller {
	p := &RealClaudePoller{log: log, ownFiles: ownFiles, done: make(chan struct{})}
	p.task.Go(func() { p.run() }) // returns after Stop
	return p
}

// ScanOnceMoreAndStop scans once more and stops the poller. A nil poller does nothing.
func (p *RealClaudePoller) ScanOnceMoreAndStop() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		close(p.done)
		p.task.Wait()
		p.scanAndRecordRealClaudes()
	})
}

func (p *RealClaudePoller) run() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-pause.C:
		}
		pause.Reset(pollPause + time.Duration(p.scanAndRecordRealClaudes())*extraPollPausePerProcess)
	}
}

// scanAndRecordRealClaudes looks at every process once and returns how many there are.
func (p *RealClaudePoller) scanAndRecordRealClaudes() (scannedProcessCount int) {
	all := Descendants(os.Getpid())
	for _, pid := range all {
		who := process(pid)
		exe, _ := os.Readlink(who.procFile("exe")) // empty if the process has exited
		dir, _ := os.Readlink(who.procFile("cwd"))
		words := append([]string{exe}, who.argv()...)
		words = slices.Delete(words, 1, min(2, len(words)))
		if file := p.programs.realClaudeOfCommandLine(p.ownFiles, words[:min(len(words), maxExaminedCommandWords)], dir); file != "" {
			p.log.addBreach(Breach{Kind: BreachRealClaude, PID: pid, Text: fmt.Sprintf("a real claude was started: %s: %s", file, who)})
		}
	}
	return len(all)
}
