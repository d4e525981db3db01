// Package tapes has the tapes that lead the CLI to all of its screens. Their
// captured pages are never part of this repository.
package tapes

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

//go:embed *.toml
var files embed.FS

// Names returns the names of the tapes, sorted.
func Names() []string {
	entries, _ := files.ReadDir(".") // embedded files can be read
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// Load returns a tape.
func Load(name string) (*tape.Tape, error) {
	text, err := files.ReadFile(path.Base(name) + ".toml")
	if err != nil {
		return nil, fmt.Errorf("unknown tape %q: %s", name, diag.NameHint(name, Names()))
	}
	t, list := tape.Parse(name+".toml", text)
	if err := list.Err(); err != nil {
		return nil, err
	}
	return t, nil
}
