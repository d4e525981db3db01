//go:build !linux || !(amd64 || arm64)

package guard

import "os"

func supported() error { return ErrSystem }

type watch struct{}

// WatchOptions say what is done with what is seen.
type WatchOptions struct {
	PID             int
	Log             *Log
	Own             Own
	Real            bool
	OwnNetwork, Cut bool
}

// Link fails: see [ErrSystem].
func Link() (ours, theirs *os.File, err error) { return nil, nil, ErrSystem }

// Enter fails: see [ErrSystem].
func Enter(int, string, []string, []string) error { return ErrSystem }

// EnterNetwork fails: see [ErrSystem].
func EnterNetwork(int, string, []string, []string) error { return ErrSystem }

// Join fails: see [ErrSystem].
func Join(*os.File, WatchOptions) (*Network, error) { return nil, ErrSystem }

// MayWatch is false here.
func MayWatch() bool { return false }

// Cut is false here.
func Cut() bool { return false }

// Go fails: see [ErrSystem].
func (n *Network) Go() error { return ErrSystem }

// Close does nothing here.
func (n *Network) Close() {}

// Loopback fails: see [ErrSystem].
func Loopback() error { return ErrSystem }
