package transcript

import (
	"bytes"
	"os"
	"path/filepath"
)

// ScenarioState returns what [Transcript.SetScenarioState] last kept for this
// session, by this process or an earlier one; nil = nothing. A fork starts with
// the state of its source. The caller must not change it.
func (s *Transcript) ScenarioState() []byte {
	if s.state == nil && s.resumed {
		for _, id := range []string{s.id, s.source} {
			if data, err := os.ReadFile(s.statePath(id)); err == nil {
				s.state = data
				break
			}
		}
	}
	return s.state
}

// SetScenarioState keeps the scenario's state beside the transcripts, so that
// a resumed session goes on with it. A failure to write is returned once per
// session, here or by [Transcript.Record].
func (s *Transcript) SetScenarioState(state []byte) error {
	s.state = bytes.Clone(state)
	return s.writer.replace(s.statePath(s.id), state, 0o600)
}

func (s *Transcript) statePath(id string) string {
	return filepath.Join(s.opts.StateDir, "claudeless", id+".json")
}
