//go:build !linux || !(amd64 || arm64)

package guard

import (
	"io"
	"os"
)

func checkStrictSupport() error { return ErrStrictUnsupported }

type callWatch struct{}

// WatchOptions are documented in watch_linux.go.
type WatchOptions struct {
	PID                   int
	Log                   *Log
	OwnFiles              OwnFiles
	ExpectsReal           bool
	OwnNetwork, NoNetwork bool
}

// NewLink always fails with [ErrStrictUnsupported].
func NewLink() (ours, theirs *os.File, err error) { return nil, nil, ErrStrictUnsupported }

// ExecWatched always fails with [ErrStrictUnsupported].
func ExecWatched(int, string, []string, []string) error { return ErrStrictUnsupported }

// ExecInNetwork always fails with [ErrStrictUnsupported].
func ExecInNetwork(int, string, []string, []string) error { return ErrStrictUnsupported }

// Join always fails with [ErrStrictUnsupported].
func Join(*os.File, WatchOptions) (*Network, error) { return nil, ErrStrictUnsupported }

// CanWatch returns false on this system.
func CanWatch() bool { return false }

// HasNoNetwork returns false on this system.
func HasNoNetwork() bool { return false }

// Release always fails with [ErrStrictUnsupported].
func (n *Network) Release() error { return ErrStrictUnsupported }

// Close does nothing on this system.
func (n *Network) Close() {}

// BringUpLoopback always fails with [ErrStrictUnsupported].
func BringUpLoopback() error { return ErrStrictUnsupported }

// ServeDNSName always fails with [ErrStrictUnsupported].
func ServeDNSName(string) (io.Closer, error) { return nil, ErrStrictUnsupported }
