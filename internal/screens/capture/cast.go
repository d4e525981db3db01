package capture

import (
	"bytes"
	"encoding/json"
	"sync"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/screens/tape"
)

type castWriter struct {
	mu         sync.Mutex
	cols, rows int
	events     bytes.Buffer
	raw        bytes.Buffer
	partial    []byte // incomplete bytes of a character
	lastTime   float64
}

func (c *castWriter) Record(e tape.Event) {
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
	_ = enc.Encode([]any{c.lastTime, kind, data}) // a buffer takes everything
}

func (c *castWriter) contents() (cast, raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	header, _ := json.Marshal(map[string]int{"version": 2, "width": c.cols, "height": c.rows}) // numbers always marshal
	return append(append(header, '\n'), c.events.Bytes()...), c.raw.Bytes()
}
