package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Load reads and merges all sources. If it fails, the error is a [*FlagError] or a [*InvalidManagedSettingsError].
func Load(o Options) (Settings, error) {
	if o.ReadFile == nil {
		o.ReadFile = plainjson.ReadFileUnlessTooLarge
	}
	if o.Glob == nil {
		o.Glob = filepath.Glob
	}
	o.GlobalFile = cmp.Or(o.GlobalFile, filepath.Join(o.StateDir, ".claude.json"))
	var s Settings
	for _, f := range o.fileLayers() {
		s.readAndMergeFile(o, f)
	}
	if o.FlagValue != "" || len(o.HostSettings) > 0 {
		layer, err := o.flagAndHostLayer()
		if err != nil {
			return Settings{}, err
		}
		s.mergeLayerIfValid(layer)
	}
	if err := s.addManagedSettings(o); err != nil {
		return Settings{}, err
	}
	s.removeUnmanagedRulesAndDisabledHooks()
	s.dropUntrustedGrantsAndWarn(o)
	return s, nil
}

// fileLayers lists the settings files to read, in rising precedence.
func (o Options) fileLayers() []Layer {
	var out []Layer
	for _, file := range []Layer{
		{Source: SourceUser, Path: o.FileToWrite(SourceUser), Root: o.StateDir},
		{Source: SourceProject, Path: o.FileToWrite(SourceProject), Root: o.CWD},
		{Source: SourceLocal, Path: filepath.Join(o.CWD, ".claude", "settings.local.json"), Root: o.CWD},
		{Source: SourceLocal, Path: o.FileToWrite(SourceLocal), Root: o.CWD},
	} {
		// If the project is the home directory, the project's file is the user's file.
		twice := slices.ContainsFunc(out, func(l Layer) bool { return l.Path == file.Path })
		if !twice && (o.Sources == nil || slices.Contains(o.Sources, strings.TrimSuffix(string(file.Source), "Settings"))) {
			out = append(out, file)
		}
	}
	return out
}

// FileToWrite returns the path of the file to which changes of a source's settings are written, or "" if they cannot be changed.
func (o Options) FileToWrite(source Source) string {
	return map[Source]string{
		SourceUser:    filepath.Join(o.StateDir, "settings.json"),
		SourceProject: filepath.Join(o.CWD, ".claude", "settings.json"),
		SourceLocal:   filepath.Join(cmp.Or(o.LocalRoot, o.CWD), ".claude", "settings.local.json"),
	}[source]
}

func (s *Settings) readAndMergeFile(o Options, file Layer) {
	raw, err := o.ReadFile(file.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		s.addWarning(file, err)
		return
	}
	file.Raw = raw
	s.mergeLayerIfValid(file)
}

func (o Options) flagAndHostLayer() (Layer, error) {
	layer := Layer{Source: SourceFlag, Root: o.CWD, Raw: json.RawMessage("{}")}
	if o.FlagValue != "" {
		var err error
		if layer, err = o.flagValueLayer(); err != nil || len(o.HostSettings) == 0 {
			return layer, err
		}
	}
	var tree map[string]any
	if json.Unmarshal(layer.Raw, &tree) != nil || tree == nil {
		tree = map[string]any{}
	}
	for key, raw := range o.HostSettings {
		var value any
		if err := json.Unmarshal(raw, &value); err == nil {
			mergeSettingsTreeInto(tree, map[string]any{key: value})
		}
	}
	merged, err := protocol.Marshal(tree)
	if err != nil {
		return Layer{}, err
	}
	layer.Raw = merged
	return layer, nil
}

// flagValueLayer reads the value of --settings: a JSON object, or else the path of a file.
func (o Options) flagValueLayer() (Layer, error) {
	value := strings.TrimSpace(o.FlagValue)
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		if !json.Valid([]byte(value)) {
			return Layer{}, &FlagError{"Invalid JSON provided to --settings"}
		}
		return Layer{Source: SourceFlag, Root: o.TempDir, Raw: []byte(value)}, nil
	}
	path := o.FlagValue
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.CWD, path)
	}
	path = filepath.Clean(path)
	raw, err := o.ReadFile(path)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return Layer{}, &FlagError{"Cannot use settings file (EISDIR: illegal operation on a directory, read): " + path}
	case err != nil:
		return Layer{}, &FlagError{"Settings file not found: " + path}
	}
	return Layer{Source: SourceFlag, Path: path, Root: filepath.Dir(path), Raw: raw}, nil
}

// mergeLayerIfValid validates a layer and merges it over the layers before it. An invalid layer is reported, but not merged.
func (s *Settings) mergeLayerIfValid(layer Layer) {
	layer.Raw = bytes.TrimPrefix(bytes.TrimSpace(layer.Raw), []byte("\xef\xbb\xbf"))
	if len(layer.Raw) == 0 {
		return
	}
	if !json.Valid(layer.Raw) {
		s.addWarning(layer, json.Unmarshal(layer.Raw, new(any)))
		s.addFaultsOfLayer(layer, true, Fault{Text: "Invalid or malformed JSON"})
		return
	}
	if got := plainjson.TypeOf(layer.Raw); got != "object" {
		s.addWarning(layer, errors.New("settings must be a JSON object"))
		s.addFaultsOfLayer(layer, true, Fault{Text: "Expected object, but received " + got})
		return
	}
	file := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](layer.Raw)
	if bad := keysWithInvalidValues(file); len(bad) > 0 {
		s.addWarning(layer, fmt.Errorf("the whole file is ignored, because the value of %s is invalid", strings.Join(bad, ", ")))
		s.addFaultsOfLayer(layer, true, faultsOfKeysWithInvalidValues(bad, file)...)
		return
	}
	s.mergeLayer(layer)
}

func (s *Settings) mergeLayer(layer Layer) {
	d := layerDecoder{settings: s, layer: layer}
	if err := json.Unmarshal(layer.Raw, &d.keys); err != nil {
		s.addWarning(layer, err)
		return
	}
	s.Layers = append(s.Layers, layer)
	decodeKey(d, "model", &s.Model)
	decodeKey(d, "outputStyle", &s.OutputStyle)
	_ = json.Unmarshal(d.keys["attribution"], &s.Attribution) // attribution may be a boolean, which has no texts; the schema reports other values
	attributed := string(d.keys["attribution"]) != "false"
	if decodeKey(d, "includeCoAuthoredBy", &attributed); !attributed {
		s.Attribution = Attribution{new(""), new("")}
	}
	decodeKey(d, "agent", &s.Agent)
	decodeKey(d, "autoMemoryDirectory", &s.MemoryDir)
	decodeKey(d, "disableAllHooks", &s.DisableAllHooks)
	decodeKey(d, "enableAllProjectMcpServers", &s.EnableAllProjectMCPServers)
	for key, list := range map[string]*[]string{"availableModels": &s.AvailableModels, "allowedHttpHookUrls": &s.HTTPHooks.URLs, "httpHookAllowedEnvVars": &s.HTTPHooks.EnvVars} {
		if _, found := d.keys[key]; found {
			*list = d.appendDecodedStrings(append([]string{}, *list...), key)
		}
	}
	s.EnabledMCPJSONServers = d.appendDecodedStrings(s.EnabledMCPJSONServers, "enabledMcpjsonServers")
	s.DisabledMCPJSONServers = d.appendDecodedStrings(s.DisabledMCPJSONServers, "disabledMcpjsonServers")
	s.AllowedServers = s.AllowedServers.withEntriesAppended(d.keys["allowedMcpServers"])
	s.DeniedServers = s.DeniedServers.withEntriesAppended(d.keys["deniedMcpServers"])
	decodeNegatedKey(d, "autoMemoryEnabled", &s.NoMemory)
	decodeNegatedKey(d, "includeGitInstructions", &s.NoGitInstructions)
	d.setIfValueIsDisable("disableAutoMode", &s.Permissions.DisableAuto)
	decodeNegatedKey(d, "useAutoModeDuringPlan", &s.Permissions.NoClassifierInPlanMode)
	d.decodeEnv()
	if raw, found := d.keys["permissions"]; found {
		s.addPermissions(layer, raw)
	}
	if raw, found := d.keys["hooks"]; found {
		raw, faults := withoutInvalidHooks(raw)
		for _, f := range faults {
			s.addWarning(layer, errors.New(f.Text))
		}
		s.addFaultsOfLayer(layer, false, faults...)
		s.Hooks = append(s.Hooks, Hooks{Source: layer.Source, Raw: raw})
	}
}

func (s *Settings) addPermissions(layer Layer, raw json.RawMessage) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		s.addWarning(layer, fmt.Errorf("permissions: %w", err))
		return
	}
	d := layerDecoder{settings: s, layer: layer, keys: keys}
	for _, behavior := range []string{"allow", "deny", "ask"} {
		for _, text := range s.decodeValidRules(d, behavior) {
			s.Permissions.Rules = append(s.Permissions.Rules, Rule{Behavior: behavior, Text: text, Source: layer.Source, Root: layer.Root})
		}
	}
	decodeKey(d, "defaultMode", &s.Permissions.DefaultMode)
	// Files that came with a repository must not enable these modes.
	if _, found := d.keys["defaultMode"]; found && (layer.Source == SourceProject || layer.Source == SourceLocal) && (s.Permissions.DefaultMode == "bypassPermissions" || s.Permissions.DefaultMode == "auto") {
		s.Permissions.DefaultMode = ""
	}
	for _, path := range d.appendDecodedStrings(nil, "additionalDirectories") {
		s.Permissions.Directories = append(s.Permissions.Directories, AdditionalWorkingDirectory{Path: path, Source: layer.Source})
	}
	d.setIfValueIsDisable("disableBypassPermissionsMode", &s.Permissions.DisableBypass)
	d.setIfValueIsDisable("disableAutoMode", &s.Permissions.DisableAuto)
}

func (s *Settings) decodeValidRules(d layerDecoder, behavior string) []string {
	var list []any
	decodeKey(d, behavior, &list)
	var rules []string
	for _, v := range list {
		text, ok := v.(string)
		why := ""
		if ok {
			why = ruleSyntaxError(text, behavior)
		}
		switch {
		case !ok:
			d.settings.addWarning(d.layer, fmt.Errorf("permissions.%s: the rule %v must be a string", behavior, v))
			s.addFaultsOfLayer(d.layer, false, Fault{Key: "permissions." + behavior, Text: "Non-string value in " + behavior + " array was removed"})
		case why != "":
			d.settings.addWarning(d.layer, fmt.Errorf("%s: %q: %s", behavior, text, why))
			s.addFaultsOfLayer(d.layer, false, Fault{Key: "permissions." + behavior, Text: fmt.Sprintf("Invalid permission rule %q was skipped: %s", text, why)})
		case !slices.Contains(rules, text):
			rules = append(rules, text)
		}
	}
	return rules
}

func (s *Settings) addFaultsOfLayer(layer Layer, isWholeLayerIgnored bool, faults ...Fault) {
	for _, f := range faults {
		f.Location, f.WholeFile = layer.displayName(), isWholeLayerIgnored
		s.Faults = append(s.Faults, f)
	}
}

func (s *Settings) addWarning(layer Layer, err error) {
	name := cmp.Or(layer.Path, string(layer.Source))
	s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %v", name, err))
}

// layerDecoder decodes the known keys of one layer. An entry of the wrong type is reported and ignored.
type layerDecoder struct {
	settings *Settings
	layer    Layer
	keys     map[string]json.RawMessage
}

func decodeKey[T any](d layerDecoder, key string, target *T) {
	raw, found := d.keys[key]
	if !found {
		return
	}
	var value *T
	if err := json.Unmarshal(raw, &value); err != nil {
		d.settings.addWarning(d.layer, fmt.Errorf("%s: %w", key, err))
		return
	}
	if value != nil {
		*target = *value
	}
}

// decodeNegatedKey sets negated to the opposite of the key's value.
func decodeNegatedKey(d layerDecoder, key string, negated *bool) {
	value := !*negated
	decodeKey(d, key, &value)
	*negated = !value
}

func (d layerDecoder) appendDecodedStrings(have []string, key string) []string {
	var list []any
	decodeKey(d, key, &list)
	for _, v := range list {
		text, ok := v.(string)
		switch {
		case !ok:
			d.settings.addWarning(d.layer, fmt.Errorf("%s: the entry %v must be a string", key, v))
		case !slices.Contains(have, text):
			have = append(have, text)
		}
	}
	return have
}

func (d layerDecoder) setIfValueIsDisable(key string, target *bool) {
	var value string
	decodeKey(d, key, &value)
	*target = *target || value == "disable"
}

func (d layerDecoder) decodeEnv() {
	var vars map[string]any
	decodeKey(d, "env", &vars)
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
			d.settings.addWarning(d.layer, fmt.Errorf("env.%s must be a string, a number or a boolean", name))
		}
	}
}

// MergeTopLevelKeys returns a copy of base in which each key of patch replaces the key of base. A null value removes the key.
func MergeTopLevelKeys(base, patch map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	for key, value := range patch {
		if string(value) == "null" {
			delete(out, key)
			continue
		}
		out[key] = value
	}
	return out
}

// KeysWithInvalidNonNullValue returns the keys with invalid values. Null is always valid (observed with 2.1.329).
func KeysWithInvalidNonNullValue(settings map[string]json.RawMessage) []string {
	known := maps.Clone(settings)
	maps.DeleteFunc(known, func(_ string, value json.RawMessage) bool { return !plainjson.IsSet(value) })
	return keysWithInvalidValues(known)
}

// dropUntrustedGrantsAndWarn removes allow rules and directories of untrusted projects' files (spec: cli-contract 6.1).
func (s *Settings) dropUntrustedGrantsAndWarn(o Options) {
	p := &s.Permissions
	rule := func(r Rule) bool { return r.Source == SourceProject && r.Behavior == "allow" }
	dir := func(d AdditionalWorkingDirectory) bool { return d.Source == SourceProject }
	if !slices.ContainsFunc(p.Rules, rule) && !slices.ContainsFunc(p.Directories, dir) || o.isDirOrParentTrusted() {
		return
	}
	rules, dirs := len(p.Rules), len(p.Directories)
	p.Rules = slices.DeleteFunc(p.Rules, rule)
	p.Directories = slices.DeleteFunc(p.Directories, dir)
	var lines []string
	for _, ignored := range []struct {
		n   int
		key string
	}{{rules - len(p.Rules), "allow"}, {dirs - len(p.Directories), "additionalDirectories"}} {
		if ignored.n > 0 {
			noun := "entries"
			if ignored.n == 1 {
				noun = "entry"
			}
			lines = append(lines, fmt.Sprintf("Ignoring %d permissions.%s %s from %s: this workspace has not been trusted. Run Claude Code interactively here once and accept the trust dialog, or set projects[%q].hasTrustDialogAccepted: true in %s.",
				ignored.n, ignored.key, noun, filepath.Join(".claude", "settings.json"), o.CWD, o.GlobalFile))
		}
	}
	s.TrustWarning = strings.Join(lines, "\n")
}

func (o Options) isDirOrParentTrusted() bool {
	raw, err := o.ReadFile(o.GlobalFile)
	if err != nil {
		return false
	}
	var global struct {
		Projects map[string]struct {
			Accepted bool `json:"hasTrustDialogAccepted"`
		} `json:"projects"`
	}
	if err := json.Unmarshal(raw, &global); err != nil {
		return false
	}
	for dir := filepath.Clean(o.CWD); ; dir = filepath.Dir(dir) {
		if global.Projects[dir].Accepted {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// SaveUpdate writes a permission update to a settings file and keeps the rest of the file. rules are the rules of the
// update as written in settings files.
func SaveUpdate(path string, u protocol.PermissionUpdate, rules []string) error {
	file, err := plainjson.ReadFileOrEmpty(path)
	if err != nil {
		return err
	}
	var permissions plainjson.Object
	if old := file.Get("permissions"); old != nil {
		permissions, err = plainjson.Parse(old)
	}
	if err == nil {
		permissions, err = withPermissionUpdate(permissions, u, rules)
	}
	if err != nil {
		return fmt.Errorf("%s: permissions: %w", path, err)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(file.Set("permissions", permissions.Raw()).Indented()+"\n"), 0o644))
}

func withPermissionUpdate(permissions plainjson.Object, u protocol.PermissionUpdate, rules []string) (plainjson.Object, error) {
	key, values := u.Behavior, rules
	switch u.Type {
	case "setMode":
		mode, err := protocol.Marshal(u.Mode)
		return permissions.Set("defaultMode", mode), err
	case "addDirectories", "removeDirectories":
		key, values = "additionalDirectories", u.Directories
	}
	var list []string
	if old := permissions.Get(key); old != nil {
		if err := json.Unmarshal(old, &list); err != nil {
			return permissions, err
		}
	}
	switch u.Type {
	case "removeRules", "removeDirectories":
		list = slices.DeleteFunc(list, func(v string) bool { return slices.Contains(values, v) })
	case "replaceRules":
		list = values
	default:
		for _, v := range values {
			if !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	raw, err := protocol.Marshal(list)
	return permissions.Set(key, raw), err
}
