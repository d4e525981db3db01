//go:build !linux || !(amd64 || arm64)

package guard

import (
	"io"
	"os"
)

func checkOSSupportsStrict() error { return ErrStrictUnsupported }

type syscallWatcher struct{}

// WatchOptions are documented in watch_linux.go.
type WatchOptions struct {
	PID                                int
	Log                                *BreachCollector
	OwnFiles                           ClaudelessFiles
	ExpectsReal, OwnNetwork, NoNetwork bool
}

// NewWatchLink always fails with [ErrStrictUnsupported].
func NewWatchLink() (ours, theirs *os.File, err error) { return nil, nil, ErrStrictUnsupported }

// ExecWithSyscallWatch always fails with [ErrStrictUnsupported].
func ExecWithSyscallWatch(int, string, []string, []string) error { return ErrStrictUnsupported }

// ExecWatchedInOwnNetwork always fails with [ErrStrictUnsupported].
func ExecWatchedInOwnNetwork(int, string, []string, []string) error { return ErrStrictUnsupported }

// StartWatching always fails with [ErrStrictUnsupported].
func StartWatching(*os.File, WatchOptions) (*CommandWatch, error) { return nil, ErrStrictUnsupported }

// HasSyscallWatchPrivilege returns false on this system.
func HasSyscallWatchPrivilege() bool { return false }

// HasOnlyLoopbackInterfaces returns false on this system.
func HasOnlyLoopbackInterfaces() bool { return false }

// StartWaitingCommand always fails with [ErrStrictUnsupported].
func (n *CommandWatch) StartWaitingCommand() error { return ErrStrictUnsupported }

// Close does nothing on this system.
func (n *CommandWatch) Close() {}

// BringUpLoopback always fails with [ErrStrictUnsupported].
func BringUpLoopback() error { return ErrStrictUnsupported }

// ServeDNSNameAsLoopback always fails with [ErrStrictUnsupported].
func ServeDNSNameAsLoopback(string) (io.Closer, error) { return nil, ErrStrictUnsupported }
