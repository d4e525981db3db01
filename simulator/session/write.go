package session

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// writer appends lines. After the first failure it writes nothing more: a
// transcript with a gap is worse than one that ends.
type writer struct {
	off    bool
	onLine func(path string, line []byte)
}

// line appends one line to the file at path.
func (w *writer) line(path string, value any) error {
	if w.off {
		return nil
	}
	data, err := protocol.Marshal(value)
	if err != nil {
		return w.failed(err)
	}
	if err := w.bytes(path, append(data, '\n')); err != nil {
		return err
	}
	if w.onLine != nil {
		w.onLine(path, data)
	}
	return nil
}

// bytes appends in one write, so that lines of several processes do not mix.
func (w *writer) bytes(path string, data []byte) error {
	if w.off {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return w.failed(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return w.failed(err)
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// replace writes a whole file in one step.
func (w *writer) replace(path string, data []byte) error {
	if w.off {
		return nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return w.failed(err)
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return w.failed(err)
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort: the failure is reported below
		return w.failed(err)
	}
	return nil
}

func (w *writer) failed(err error) error {
	w.off = true
	return fmt.Errorf("saving the session: %w", err)
}
