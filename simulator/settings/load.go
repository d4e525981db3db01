package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Load reads and merges. The only error is a [*NotFoundError].
func Load(o Options) (Settings, error) {
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if o.GlobalFile == "" {
		o.GlobalFile = filepath.Join(o.StateDir, ".claude.json")
	}
	var s Settings
	for _, f := range o.files() {
		s.addFile(o, f)
	}
	if o.FlagValue != "" || len(o.Host) > 0 {
		layer, err := o.flagLayer()
		if err != nil {
			return Settings{}, err
		}
		s.add(layer)
	}
	if len(bytes.TrimSpace(o.Managed)) > 0 {
		s.add(Layer{Source: Managed, Root: o.CWD, Raw: o.Managed})
	}
	s.dropUntrusted(o)
	return s, nil
}

// files lists the settings files to read, in rising precedence.
func (o Options) files() []Layer {
	all := []struct {
		name string
		file Layer
	}{
		{"user", Layer{Source: User, Path: filepath.Join(o.StateDir, "settings.json"), Root: o.StateDir}},
		{"project", Layer{Source: Project, Path: filepath.Join(o.CWD, ".claude", "settings.json"), Root: o.CWD}},
		{"local", Layer{Source: Local, Path: filepath.Join(o.CWD, ".claude", "settings.local.json"), Root: o.CWD}},
	}
	var out []Layer
	for _, f := range all {
		// In the home directory the user's file is the project's as well.
		twice := slices.ContainsFunc(out, func(l Layer) bool { return l.Path == f.file.Path })
		if !twice && (o.Sources == nil || slices.Contains(o.Sources, f.name)) {
			out = append(out, f.file)
		}
	}
	return out
}

func (s *Settings) addFile(o Options, file Layer) {
	raw, err := o.ReadFile(file.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		s.warn(file, err)
		return
	}
	file.Raw = raw
	s.add(file)
}

// flagLayer is --settings with the settings of the host merged into it.
func (o Options) flagLayer() (Layer, error) {
	layer := Layer{Source: Flag, Root: o.CWD, Raw: json.RawMessage("{}")}
	if o.FlagValue != "" {
		var err error
		if layer, err = o.flagFile(); err != nil || len(o.Host) == 0 {
			return layer, err
		}
	}
	var tree map[string]any
	if json.Unmarshal(layer.Raw, &tree) != nil || tree == nil {
		tree = map[string]any{}
	}
	for key, raw := range o.Host {
		var value any
		if err := json.Unmarshal(raw, &value); err == nil {
			mergeInto(tree, map[string]any{key: value})
		}
	}
	merged, err := protocol.Marshal(tree)
	if err != nil {
		return Layer{}, err
	}
	layer.Raw = merged
	return layer, nil
}

// flagFile reads --settings: text that parses as JSON is taken as such,
// everything else is a path.
func (o Options) flagFile() (Layer, error) {
	layer := Layer{Source: Flag, Root: o.CWD}
	if value := []byte(o.FlagValue); json.Valid(value) {
		layer.Raw = value
		return layer, nil
	}
	path := o.FlagValue
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.CWD, path)
	}
	raw, err := o.ReadFile(path)
	if err != nil {
		return Layer{}, &NotFoundError{Path: filepath.Clean(path)}
	}
	layer.Path, layer.Raw = path, raw
	return layer, nil
}

// add merges one layer over the ones before it.
func (s *Settings) add(layer Layer) {
	layer.Raw = bytes.TrimPrefix(bytes.TrimSpace(layer.Raw), []byte("\xef\xbb\xbf"))
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(layer.Raw, &keys); err != nil {
		s.warn(layer, err)
		return
	}
	if keys == nil {
		s.warn(layer, errors.New("settings are not a JSON object"))
		return
	}
	s.Layers = append(s.Layers, layer)
	d := decoder{settings: s, layer: layer, keys: keys}
	decode(d, "model", &s.Model)
	decode(d, "outputStyle", &s.OutputStyle)
	decode(d, "disableAllHooks", &s.DisableAllHooks)
	decode(d, "enableAllProjectMcpServers", &s.EnableAllProjectMCPServers)
	s.EnabledMCPJSONServers = d.strings(s.EnabledMCPJSONServers, "enabledMcpjsonServers")
	s.DisabledMCPJSONServers = d.strings(s.DisabledMCPJSONServers, "disabledMcpjsonServers")
	d.env()
	if raw, found := keys["hooks"]; found {
		s.Hooks = append(s.Hooks, Hooks{Source: layer.Source, Raw: raw})
	}
	if raw, found := keys["permissions"]; found {
		s.addPermissions(layer, raw)
	}
}

func (s *Settings) addPermissions(layer Layer, raw json.RawMessage) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		s.warn(layer, fmt.Errorf("permissions: %w", err))
		return
	}
	d := decoder{settings: s, layer: layer, keys: keys}
	for _, behavior := range []string{"allow", "deny", "ask"} {
		for _, text := range d.strings(nil, behavior) {
			s.Permissions.Rules = append(s.Permissions.Rules, Rule{Behavior: behavior, Text: text, Source: layer.Source, Root: layer.Root})
		}
	}
	decode(d, "defaultMode", &s.Permissions.DefaultMode)
	s.Permissions.AdditionalDirectories = d.strings(s.Permissions.AdditionalDirectories, "additionalDirectories")
}

func (s *Settings) warn(layer Layer, err error) {
	name := layer.Path
	if name == "" {
		name = string(layer.Source)
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %v", name, err))
}

// decoder reads the known keys of one layer; a value of the wrong type is
// reported and left out.
type decoder struct {
	settings *Settings
	layer    Layer
	keys     map[string]json.RawMessage
}

func decode[T any](d decoder, key string, into *T) {
	raw, found := d.keys[key]
	if !found {
		return
	}
	var value *T
	if err := json.Unmarshal(raw, &value); err != nil {
		d.settings.warn(d.layer, fmt.Errorf("%s: %w", key, err))
		return
	}
	if value != nil {
		*into = *value
	}
}

// strings appends the strings of a list that are not there yet.
func (d decoder) strings(have []string, key string) []string {
	var list []any
	decode(d, key, &list)
	for _, v := range list {
		text, ok := v.(string)
		switch {
		case !ok:
			d.settings.warn(d.layer, fmt.Errorf("%s: %v is not a string", key, v))
		case !slices.Contains(have, text):
			have = append(have, text)
		}
	}
	return have
}

func (d decoder) env() {
	var vars map[string]any
	decode(d, "env", &vars)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if d.settings.Env == nil {
			d.settings.Env = map[string]string{}
		}
		switch v := vars[name].(type) {
		case string:
			d.settings.Env[name] = v
		case float64, bool:
			d.settings.Env[name] = fmt.Sprint(v)
		default:
			d.settings.warn(d.layer, fmt.Errorf("env.%s is not a string", name))
		}
	}
}
