// Package gate synchronizes steps of several processes: a step waits at a named gate in a shared directory until the
// gate is released. The directory also holds claims, which only one process can take.
//
// Gates stay reached or released for processes that arrive later.
package gate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// DefaultMaxWaitAtGate is how long a step waits until its gate is released.
const DefaultMaxWaitAtGate = 30 * time.Second

const pollInterval = 5 * time.Millisecond

// ErrGateWaitTimedOut reports that the time limit passed before the gate was reached or released.
var ErrGateWaitTimedOut = errors.New("the wait timed out")

// Dir returns the gate directory of a run: CLAUDELESS_GATES, or else a directory next to the journal; empty means none.
func Dir(environ []string) string {
	if dir := proc.Getenv(environ, "CLAUDELESS_GATES"); dir != "" {
		return dir
	}
	if journal := proc.Getenv(environ, "CLAUDELESS_CAPTURE"); journal != "" {
		return journal + ".gates"
	}
	return ""
}

// State says whether a step has reached a gate and whether another process has released it.
type State struct {
	Name              string
	Reached, Released bool
}

// MarkGateReached records that a step has reached a gate.
func MarkGateReached(gateDir, gateName string) error {
	return createMarker(gateDir, gateName, "reached")
}

// Release opens a gate permanently, whether a step waits at it or not.
func Release(dir, name string) error { return createMarker(dir, name, "released") }

func createMarker(dir, name, kind string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("marking the gate %s as %s: %w", name, kind, err)
	}
	return os.WriteFile(filepath.Join(dir, name+"."+kind), nil, 0o600)
}

// CheckName reports invalid gate names.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`).MatchString(name) {
		return fmt.Errorf(`invalid gate name %q: use letters, digits, ".", "-" and "_"`, name)
	}
	return nil
}

// AwaitReached waits until a step has reached a gate. The error is that of ctx, or [ErrGateWaitTimedOut].
func AwaitReached(ctx context.Context, dir, name string, timeout time.Duration) error {
	return awaitFile(ctx, timeout, filepath.Join(dir, name+".reached"))
}

// AwaitReleased waits until a gate is open. The error is that of ctx, or [ErrGateWaitTimedOut].
func AwaitReleased(ctx context.Context, dir, name string, timeout time.Duration) error {
	return awaitFile(ctx, timeout, filepath.Join(dir, name+".released"))
}

// awaitFile waits for a file to appear. It returns the error of ctx, or [ErrGateWaitTimedOut].
func awaitFile(ctx context.Context, maxWait time.Duration, file string) error {
	over := time.NewTimer(maxWait)
	defer over.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-over.C:
			return ErrGateWaitTimedOut
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// List returns the gates that were reached or released, sorted by name.
func List(dir string) ([]State, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing gates: %w", err)
	}
	var list []State
	for _, e := range entries {
		name, what := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
		if what != ".reached" && what != ".released" {
			continue
		}
		i := slices.IndexFunc(list, func(s State) bool { return s.Name == name })
		if i < 0 {
			list, i = append(list, State{Name: name}), len(list)
		}
		list[i].Reached = list[i].Reached || what == ".reached"
		list[i].Released = list[i].Released || what == ".released"
	}
	return list, nil
}

// ExclusiveNameClaimsOfProcesses lets processes of a run claim names; only one process gets each name. The claims are files in Dir.
type ExclusiveNameClaimsOfProcesses struct {
	Dir string // created at the first claim
}

// ClaimNameIfFree claims a name permanently; it returns false if another process was first.
func (c ExclusiveNameClaimsOfProcesses) ClaimNameIfFree(name string) (bool, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return false, fmt.Errorf("claiming %s: %w", name, err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never fails
	f, err := os.OpenFile(filepath.Join(c.Dir, fmt.Sprintf("%016x.taken", sum.Sum64())), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claiming %s: %w", name, err)
	}
	return true, f.Close()
}

// Next claims and returns the smallest number above previousNumber that no process has claimed for claimedName yet.
func (c ExclusiveNameClaimsOfProcesses) Next(claimedName string, previousNumber int) (int, error) {
	for n := previousNumber + 1; ; n++ {
		if taken, err := c.ClaimNameIfFree(claimedName + "#" + strconv.Itoa(n)); taken || err != nil {
			return n, err
		}
	}
}
