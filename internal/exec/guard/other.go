//go:build !linux || !(amd64 || arm64)

package guard

import (
	"io"
	"os"
)

func checkSupport() error { return ErrSystem }

type watch struct{}

// WatchOptions are documented in watch_linux.go.
type WatchOptions struct {
	PID                   int
	Log                   *Log
	OwnFiles              OwnFiles
	ExpectsReal           bool
	OwnNetwork, NoNetwork bool
}

// NewLink always fails with [ErrSystem].
func NewLink() (ours, theirs *os.File, err error) { return nil, nil, ErrSystem }

// Enter always fails with [ErrSystem].
func Enter(int, string, []string, []string) error { return ErrSystem }

// EnterNetwork always fails with [ErrSystem].
func EnterNetwork(int, string, []string, []string) error { return ErrSystem }

// Join always fails with [ErrSystem].
func Join(*os.File, WatchOptions) (*Network, error) { return nil, ErrSystem }

// CanWatch returns false on this system.
func CanWatch() bool { return false }

// HasNoNetwork returns false on this system.
func HasNoNetwork() bool { return false }

// Release always fails with [ErrSystem].
func (n *Network) Release() error { return ErrSystem }

// Close does nothing on this system.
func (n *Network) Close() {}

// BringUpLoopback always fails with [ErrSystem].
func BringUpLoopback() error { return ErrSystem }

// ServeName always fails with [ErrSystem].
func ServeName(string) (io.Closer, error) { return nil, ErrSystem }
