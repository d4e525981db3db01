//go:build !linux || !(amd64 || arm64)

package guard

import (
	"io"
	"os"
)

func checkStrictSupport() error { return ErrStrictUnsupported }

type syscallWatcher struct{}

// WatchOptions are documented in watch_linux.go.
type WatchOptions struct {
	PID                                int
	Log                                *Log
	OwnFiles                           OwnFiles
	ExpectsReal, OwnNetwork, NoNetwork bool
}

// NewLink always fails with [ErrStrictUnsupported].
func NewLink() (ours, theirs *os.File, err error) { return nil, nil, ErrStrictUnsupported }

// ExecWatched always fails with [ErrStrictUnsupported].
func ExecWatched(int, string, []string, []string) error { return ErrStrictUnsupported }

// ExecInNetwork always fails with [ErrStrictUnsupported].
func ExecInNetwork(int, string, []string, []string) error { return ErrStrictUnsupported }

// StartWatching always fails with [ErrStrictUnsupported].
func StartWatching(*os.File, WatchOptions) (*Network, error) { return nil, ErrStrictUnsupported }

// CanWatchSyscalls returns false on this system.
func CanWatchSyscalls() bool { return false }

// HasNoNetwork returns false on this system.
func HasNoNetwork() bool { return false }

// ReleaseCommand always fails with [ErrStrictUnsupported].
func (n *Network) ReleaseCommand() error { return ErrStrictUnsupported }

// Close does nothing on this system.
func (n *Network) Close() {}

// BringUpLoopback always fails with [ErrStrictUnsupported].
func BringUpLoopback() error { return ErrStrictUnsupported }

// ServeDNSName always fails with [ErrStrictUnsupported].
func ServeDNSName(string) (io.Closer, error) { return nil, ErrStrictUnsupported }
