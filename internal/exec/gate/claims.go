package gate

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Claims records names that processes of a run have claimed, as files in the gate directory of the run.
type Claims struct {
	Dir string // created at the first claim
}

// Take claims a name permanently; it returns false if another process was first.
func (c Claims) Take(name string) (bool, error) {
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

// Next claims the first unclaimed number above after for a name.
func (c Claims) Next(name string, after int) (int, error) {
	for n := after + 1; ; n++ {
		if taken, err := c.Take(name + "#" + strconv.Itoa(n)); taken || err != nil {
			return n, err
		}
	}
}
