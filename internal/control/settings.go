package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func setPermissionMode(_ context.Context, p *Peer, in request) (answer, error) {
	name, _ := textIn(in.keys["mode"])
	mode := protocol.PermissionMode(name)
	if mode == "manual" {
		mode = protocol.ModeDefault
	}
	before := p.s.Policy().Mode()
	if err := p.s.Policy().SetMode(mode); err != nil {
		return answer{}, err
	}
	a := answer{payload: modeSet{mode}}
	if mode != before {
		a.after = []protocol.Event{protocol.ModeStatus(mode)}
	}
	return a, nil
}

// setModel switches the model; none, null and "default" mean the default one.
// An error tells which one stays in force.
func setModel(_ context.Context, p *Peer, in request) (answer, error) {
	name := ""
	if raw := in.keys["model"]; given(raw) {
		var ok bool
		if name, ok = textIn(raw); !ok {
			return answer{}, &RefusalError{Code: "invalid_request", Text: in.wrong("model", "a string").Error(), Model: p.s.Model()}
		}
		if code, text := refusedModel(name); code != "" {
			return answer{}, &RefusalError{Code: code, Text: text, Model: p.s.Model()}
		}
	}
	p.changeModel(name, model.Asked(name))
	return answer{payload: modelSet{p.s.Model()}}, nil
}

// refusedModel tells why a name cannot be a model; an empty code = it can.
func refusedModel(name string) (code, text string) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "":
		return "catalog_unknown", `Model "(unrecognized model name)" is not a recognized model id. Run /model to see available models.`
	case "haiku[1m]":
		return "alias_1m_unsupported", "'haiku[1m]' isn't available: the haiku setting switches models in plan mode and has no 1M form. " +
			"Run /model haiku, or /model sonnet[1m] for a 1M context window."
	}
	return "", ""
}

// changeModel tells about a change inside a conversation; before the first turn
// there is nothing to tell (spec: cli-observed 5). Asked is the name to show
// beside that of the model; empty = none.
func (p *Peer) changeModel(name, asked string) {
	before := p.s.Model()
	p.s.SetModel(name)
	p.modelChanged(before, asked)
}

func (p *Peer) modelChanged(before, asked string) {
	now := p.s.Model()
	p.mu.Lock()
	begun := p.turns > 0
	p.mu.Unlock()
	if !begun || now == before {
		return
	}
	shown := now
	if asked != "" && asked != now {
		shown = asked + " (" + now + ")"
	}
	yes, text := true, "<local-command-stdout>Set model to `"+strings.ReplaceAll(shown, "`", "")+"`</local-command-stdout>"
	p.show(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}},
		UUID: p.o.NewID(), IsReplay: &yes,
	})
}

// applySettings puts settings over those of --settings for the rest of the
// session. Either all of them count or none.
func applySettings(_ context.Context, p *Peer, in request) (answer, error) {
	settings, err := in.settings()
	if err != nil {
		return answer{}, err
	}
	before := p.s.Model()
	if wrong := p.s.ApplySettings(settings); len(wrong) > 0 {
		return answer{}, fmt.Errorf("%s: nothing in this request was applied and earlier settings stay in force. "+
			"Fix or remove these invalid settings and send it again: %s", in.subtype, strings.Join(wrong, ", "))
	}
	p.modelChanged(before, "")
	return answer{}, nil
}

// settings reads the settings that a request brings.
func (r request) settings() (map[string]json.RawMessage, error) {
	raw := r.keys["settings"]
	var settings map[string]json.RawMessage
	if json.Unmarshal(raw, &settings) == nil && settings != nil {
		return settings, nil
	}
	kind := ordered.TypeOf(raw)
	if kind == "array" {
		kind = "an array"
	}
	return nil, fmt.Errorf("%s requires `settings` to be an object, got %s", r.subtype, kind)
}

// updateSettings writes settings to a file: an output style to the project's
// local one, the default effort of the model in force to the user's.
func updateSettings(_ context.Context, p *Peer, in request) (answer, error) {
	settings, err := in.settings()
	if err != nil {
		return answer{}, err
	}
	source := scriptText(in.keys["source"])
	key, ok := map[string]string{"localSettings": "outputStyle", "userSettings": "effortLevel"}[source]
	switch {
	case !ok:
		return answer{}, fmt.Errorf("%s: unsupported source %s", in.subtype, source)
	case len(settings) == 0:
		return answer{}, fmt.Errorf("%s requires at least one key", in.subtype)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != key {
			return answer{}, fmt.Errorf("%s keys not allowed: %s", in.subtype, name)
		}
	}
	value, ok := textIn(settings[key])
	switch {
	case !ok:
		return answer{}, fmt.Errorf("%s values must be strings (deletion is not supported): %s", in.subtype, key)
	case key == "effortLevel" && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, value):
		return answer{}, fmt.Errorf("%s: effortLevel must be one of low, medium, high, xhigh, max", in.subtype)
	}
	if err := p.s.UpdateSettings(source, map[string]string{key: value}); err != nil {
		return answer{}, err
	}
	return answer{payload: struct{}{}}, nil
}

// setThinking takes a thinking budget and how thinking is shown. Neither has an
// effect on a scripted model.
func setThinking(_ context.Context, _ *Peer, in request) (answer, error) {
	whole := true
	if tokens := in.keys["max_thinking_tokens"]; given(tokens) {
		_, err := strconv.ParseInt(string(tokens), 10, 64)
		whole = err == nil
	}
	switch string(in.keys["thinking_display"]) {
	case "", "null", `"summarized"`, `"omitted"`, `"highlights"`:
		if whole {
			return answer{}, nil
		}
	}
	return answer{}, fmt.Errorf(`%s: max_thinking_tokens must be an integer or null and thinking_display must be "summarized", "omitted", "highlights", or null`, in.subtype)
}
