package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

func (r *run) openSession() error {
	o := r.Transcript
	o.Surroundings, o.Effort = r.surroundings, r.modelEffort
	if r.Output.Mirror {
		r.mirror = &mirror{}
		o.OnLine = r.mirror.line
	}
	opened, err := transcript.Open(o)
	r.session = opened
	return sessionError(err)
}

// closeSession writes the end of the transcript, which --session-mirror shows
// after the last result.
func (r *run) closeSession() {
	if err := r.session.Close(); err != nil {
		r.warn("the session is not saved: " + err.Error())
	}
	if r.mirror == nil || r.Output.Format != "stream-json" {
		return
	}
	w := r.sys.Stdout
	if r.peer != nil {
		w = r.peer.Events()
	}
	// Nobody may be left to read it.
	_ = output.StreamJSON(w, func(yield func(protocol.Event, error) bool) {
		for _, frame := range r.mirror.take() {
			if !yield(frame, nil) {
				return
			}
		}
	})
}

// surroundings is what the model is told beside the first prompt.
func (r *run) surroundings() transcript.Surroundings {
	name := model.Resolve(r.current.Model())
	now := transcript.Surroundings{Model: name, Deferred: r.deferredTools()}
	if shown := model.Display(name); shown != name {
		now.ModelName = shown
	}
	listed := persona.Tools(r.toolOptions(false))
	if slices.Contains(listed, "Task") {
		for _, a := range r.Catalog.Agents() {
			now.Agents = append(now.Agents, transcript.Listed{
				Name: a.Name, Text: "- " + a.Name + ": " + a.Description + " (Tools: " + toolsOf(a) + ")", BuiltIn: a.Source == "built-in",
			})
		}
	}
	if slices.Contains(listed, "Skill") {
		for _, k := range persona.BuiltInSkills() {
			now.Skills = append(now.Skills, transcript.Listed{Name: k.Name, Text: "- " + k.Name, BuiltIn: true})
		}
		for _, k := range r.Catalog.Commands() {
			if k.Skill {
				now.Skills = append(now.Skills, transcript.Listed{Name: k.Name, Text: "- " + k.Name + ": " + k.Description})
			}
		}
	}
	return now
}

// toolsOf words the tools of an agent.
func toolsOf(a catalog.Agent) string {
	switch {
	case a.Tools != nil:
		return strings.Join(a.Tools, ", ")
	case len(a.Disallowed) > 0:
		return "All tools except " + strings.Join(a.Disallowed, ", ")
	}
	return "*"
}

// deferredTools names the tools that the model has to search for. Of two that a
// search finds it is not told.
func (r *run) deferredTools() []string {
	tools, err := r.listed(context.Background())
	if err != nil {
		return nil
	}
	exists := persona.Tools(r.toolOptions(false))
	names := []string{}
	for _, t := range tools {
		untold := t.Name == "ListAgents" || t.Name == "ScheduleWakeup"
		if r.isDeferred(t) && !untold && (t.Server != "" || slices.Contains(exists, t.Name)) {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// modelEffort is the level of the model's effort; empty = it knows none.
func (r *run) modelEffort() string {
	if !model.Of(model.Resolve(r.current.Model())).Effort {
		return ""
	}
	return r.effort()
}

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
