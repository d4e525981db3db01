package capture

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

//go:embed tapes/*.toml
var tapeFiles embed.FS

// TapeNames returns the names of the tapes, sorted.
func TapeNames() []string {
	entries, _ := tapeFiles.ReadDir("tapes") // embedded files can be read
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// LoadTape returns a tape.
func LoadTape(name string) (*tape.Tape, error) {
	text, err := tapeFiles.ReadFile("tapes/" + path.Base(name) + ".toml")
	if err != nil {
		return nil, fmt.Errorf("unknown tape %q: %s", name, diag.NameHint(name, TapeNames()))
	}
	t, list := tape.Parse(name+".toml", text)
	if err := list.Err(); err != nil {
		return nil, err
	}
	return t, nil
}
