package cli

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// mirror repeats every transcript line on stdout (--session-mirror; spec:
// cli-contract 8.5). Lines are written to disk before the event that made them
// is yielded, so taking them just before each event puts all lines of a turn
// before its result.
type mirror struct {
	mu    sync.Mutex
	files []*mirrored // in the order of their first line
}

// mirrored are the lines of one file that were not shown yet.
type mirrored struct {
	path    string
	entries []json.RawMessage
}

// line takes note of a line that was written to the file at path.
func (m *mirror) line(path string, line []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := json.RawMessage(bytes.Clone(line))
	if n := len(m.files); n > 0 && m.files[n-1].path == path {
		m.files[n-1].entries = append(m.files[n-1].entries, entry)
		return
	}
	m.files = append(m.files, &mirrored{path: path, entries: []json.RawMessage{entry}})
}

// take returns the frames of all lines since the last call. A nil mirror has
// none.
func (m *mirror) take() []protocol.Event {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var frames []protocol.Event
	for _, f := range m.files {
		frames = append(frames, &protocol.Frame{Type: "transcript_mirror", Fields: []protocol.Field{
			{Key: "filePath", Value: f.path}, {Key: "entries", Value: f.entries},
		}})
	}
	m.files = nil
	return frames
}
