package process

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is the terminal on which an interactive run reads keys and draws its screen.
type Terminal interface {
	io.Reader
	io.Writer
	// Raw switches off echo, line editing and keys that send signals. The returned function restores the modes.
	Raw() (restore func() error, err error)
	// Size returns the numbers of columns and rows; zeros means unknown.
	Size() (cols, rows int)
}

type standardTerminal struct{ in, out *os.File }

// openTerminal returns the terminal of the standard streams, or nil if one of them is something else.
func openTerminal() Terminal {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return nil
	}
	return standardTerminal{os.Stdin, os.Stdout}
}

func (t standardTerminal) Read(p []byte) (int, error)  { return t.in.Read(p) }
func (t standardTerminal) Write(p []byte) (int, error) { return t.out.Write(p) }

func (t standardTerminal) Raw() (func() error, error) {
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(int(t.in.Fd()), state) }, nil
}

func (t standardTerminal) Size() (cols, rows int) {
	cols, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return 0, 0
	}
	return cols, rows
}
