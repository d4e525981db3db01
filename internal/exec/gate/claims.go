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

// Claims are what processes of a run have taken for themselves, by name, as files
// in the directory of the run's gates.
type Claims struct {
	Dir string // made when something is taken
}

// Take takes a name for good; false = somebody was first.
func (c Claims) Take(name string) (bool, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return false, fmt.Errorf("taking %s: %w", name, err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never an error
	f, err := os.OpenFile(filepath.Join(c.Dir, fmt.Sprintf("%016x.taken", sum.Sum64())), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("taking %s: %w", name, err)
	}
	return true, f.Close()
}

// Next takes the first number above after that nobody has taken for a name.
func (c Claims) Next(name string, after int) (int, error) {
	for n := after + 1; ; n++ {
		if taken, err := c.Take(name + "#" + strconv.Itoa(n)); taken || err != nil {
			return n, err
		}
	}
}
