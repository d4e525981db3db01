package capture

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

//go:embed tapes/*.toml
var tapeFiles embed.FS

// TapeNames returns the sorted names of the tapes, which are scripts of keys.
func TapeNames() []string {
	entries, _ := tapeFiles.ReadDir("tapes") // embedded files can be read
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// LoadEmbeddedTape loads the script of keys with the given name.
func LoadEmbeddedTape(name string) (*tape.Tape, error) {
	text, err := tapeFiles.ReadFile("tapes/" + path.Base(name) + ".toml")
	if err != nil {
		return nil, fmt.Errorf("unknown tape (script of key presses) %q: %s", name, diag.NameHint(name, TapeNames()))
	}
	t, list := tape.Parse(name+".toml", text)
	if err := list.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

type castWriter struct {
	mu          sync.Mutex
	cols, rows  int
	events, raw bytes.Buffer
	partial     []byte // incomplete bytes of a character
	lastTime    float64
}

func (c *castWriter) Record(e tape.IOEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastTime = float64(e.At.Milliseconds()) / 1000
	if e.Input {
		c.addEvent("i", string(e.Data))
		return
	}
	c.raw.Write(e.Data)
	data := append(c.partial, e.Data...)
	end := len(data)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(data[i]) && !utf8.FullRune(data[i:]) {
			end = i
		}
	}
	c.partial = bytes.Clone(data[end:])
	c.addEvent("o", string(data[:end]))
}

func (c *castWriter) addMarker(label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addEvent("m", label)
}

func (c *castWriter) addEvent(kind, data string) {
	enc := json.NewEncoder(&c.events)
	enc.SetEscapeHTML(false)
	_ = enc.Encode([]any{c.lastTime, kind, data}) // writing to a buffer cannot fail
}

func (c *castWriter) contents() (cast, raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	header, _ := json.Marshal(map[string]int{"version": 2, "width": c.cols, "height": c.rows}) // numbers always marshal
	return append(append(header, '\n'), c.events.Bytes()...), c.raw.Bytes()
}
