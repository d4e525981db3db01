// Package guard keeps a command away from a real claude and the vendor's
// addresses, and reports the process that tried to reach them.
//
// Every report is based on an observed process, identified by its id. The guard
// finds mistakes; it is not a security sandbox.
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
)

// Level is how closely a command is watched.
type Level string

// The levels. The zero value is Path.
const (
	Off    Level = "off"
	Path   Level = "path"
	Strict Level = "strict"
)

// Parse reads the name of a level; empty = Path.
func Parse(s string) (Level, error) {
	l := Level(cmp.Or(s, string(Path)))
	if l != Off && l != Path && l != Strict {
		return "", fmt.Errorf("invalid value %q for --guard: use off, path or strict", s)
	}
	if l == Strict {
		return l, supported()
	}
	return l, nil
}

// ErrSystem says that the system cannot guard strictly.
var ErrSystem = errors.New("--guard=strict needs Linux, where a process may have a network of its own")

// String is what a report says of the protection.
func (l Level) String() string {
	switch l {
	case Off:
		return "off"
	case Strict:
		return "strict: loopback network only, other connections are blocked and reported, leftover processes are ended; " + pathGuard
	case Path:
	}
	return "path: " + pathGuard
}

const pathGuard = "shims on PATH, a canary key, base URLs and proxy on loopback, started programs watched; not a sandbox"

// Breach is something that a process did and should not have been able to.
type Breach struct {
	Kind Kind
	PID  int
	// Text says what was done, and by whom.
	Text string
}

// Kind is a kind of breach.
type Kind int

// The kinds: a real claude ran or asked, a vendor's address was asked for by
// somebody else, and any other address was out of reach.
const (
	RealClaude Kind = iota
	Vendor
	Unreachable
)

// Log gathers breaches. The zero value is ready; its methods may be called from
// many goroutines.
type Log struct {
	mu    sync.Mutex
	list  []Breach
	table *os.File // connections of a network of its own; nil = those of this program's
}

// connections takes a table in the form of /proc/net/tcp.
func (l *Log) connections(table *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.table = table
}

// peer finds the process that holds the other end of a local connection; 0 = it
// is not to be found.
func (l *Log) peer(addr string) process {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, text := cutLast(addr, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	if l.table != nil {
		var b bytes.Buffer
		_, _ = io.Copy(&b, io.NewSectionReader(l.table, 0, 16<<20)) // what there is of it
		return holder(inodeOf(b.String(), port))
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name) // elsewhere there is none
		if inode := inodeOf(string(table), port); inode != "" {
			return holder(inode)
		}
	}
	return 0
}

// add notes a breach, once.
func (l *Log) add(b Breach) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 100
	if len(l.list) < most && !slices.Contains(l.list, b) {
		l.list = append(l.list, b)
	}
}

// Breaches are those so far, in their order.
func (l *Log) Breaches() []Breach {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Asked notes that a real claude has sent a request to a loopback address: addr
// is its end of the connection, agent what it calls itself.
func (l *Log) Asked(addr, agent string) {
	who := l.peer(addr)
	if who == 0 {
		l.add(Breach{Kind: RealClaude, Text: "a real claude was reached: " + agent})
		return
	}
	l.add(Breach{Kind: RealClaude, PID: int(who), Text: "a real claude was reached: " + who.String()})
}

// dialled notes that a process was on its way to an address beyond loopback; of
// the name it is empty when only the address is known. Own tells a shim from a
// real claude.
func (l *Log) dialled(who process, name, addr string, own Own) {
	to := addr
	if name != "" {
		_, port := cutLast(addr, ":")
		to = name + ":" + port
	}
	b := Breach{Kind: Unreachable, PID: int(who), Text: fmt.Sprintf("%s was out of reach for %s", to, who)}
	switch {
	case who.claude(own):
		b.Kind, b.Text = RealClaude, fmt.Sprintf("a real claude was reached, and asked for %s: %s", to, who)
	case vendor(name) || vendorAddr(addr):
		b.Kind, b.Text = Vendor, fmt.Sprintf("a vendor's address was asked for, %s: %s", to, who)
	}
	l.add(b)
}
