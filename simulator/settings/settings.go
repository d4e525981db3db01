// Package settings reads settings.json files from their sources and merges them.
//
// An invalid user or project file is skipped and reported. A --settings value without a file, and managed settings that
// are not JSON, are errors.
package settings

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Source is the source of a setting, in the spelling of the SDKs.
type Source string

// The sources in rising precedence.
const (
	SourceUser    Source = "userSettings"
	SourceProject Source = "projectSettings"
	SourceLocal   Source = "localSettings"
	SourceFlag    Source = "flagSettings"
	SourceManaged Source = "policySettings"
)

// Options specify which sources to read.
type Options struct {
	StateDir string // contains settings.json and .claude.json
	CWD      string // absolute
	// Sources are the file sources to read ("user", "project", "local"); nil means all, empty means none. Flag and
	// managed settings are always read.
	Sources   []string
	FlagValue string // --settings: JSON text or the path of a file; empty means none
	// HostSettings contains settings that the host sent later, by key. They are merged into those of --settings and
	// form one source with them.
	HostSettings map[string]json.RawMessage
	// Managed are settings that a host imposes, as JSON; nil means none. Only settings that restrict the session are
	// used.
	Managed []byte
	// ManagedDir is the directory of the machine's managed-settings.json and managed-settings.d; empty means none.
	ManagedDir string
	// GlobalFile is .claude.json, which records trusted folders; empty means in StateDir.
	GlobalFile string
	// ReadFile reads a file; nil means os.ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Glob lists the files that match a pattern, sorted; nil means filepath.Glob.
	Glob func(pattern string) ([]string, error)
}

// Layer contains the settings of one source.
type Layer struct {
	Source Source
	Path   string // empty means not from a file
	Root   string // base directory of rules with one leading slash
	Raw    json.RawMessage
}

// Rule is one permission rule and its source.
type Rule struct {
	Behavior string // "allow", "deny", "ask"
	Text     string
	Source   Source
	Root     string
}

// Permissions is the merged permissions table.
type Permissions struct {
	Rules []Rule // allow, deny, ask of each layer, in rising precedence
	// DefaultMode is empty if no file sets it, or if a project file sets a mode that project files must not set:
	// bypassPermissions, auto.
	DefaultMode   string
	Directories   []Directory
	DisableBypass bool // bypassPermissions is not available at all
	DisableAuto   bool
	ManagedOnly   bool // only rules of managed settings are used
}

// Directory is an additional working directory, as written.
type Directory struct {
	Path   string
	Source Source
}

// Hooks is the hooks table of one source, as written.
type Hooks struct {
	Source Source
	Raw    json.RawMessage // object: event → matchers
}

// Fault is a problem of a layer, or of one entry.
type Fault struct {
	Location  string // the file, or a name for the layer
	Key       string // "permissions.allow"; empty means the layer as a whole
	Text      string
	WholeFile bool // the whole layer is ignored
}

func (l Layer) name() string {
	switch {
	case l.Path != "":
		return l.Path
	case l.Source == SourceFlag:
		return "--settings (inline JSON)"
	default:
		return string(l.Source)
	}
}

// Attribution has the texts that end commits and pull requests; nil means the default text, empty means no text.
type Attribution struct {
	Commit *string `json:"commit"`
	PR     *string `json:"pr"`
}

// Settings is the merged result of all sources.
type Settings struct {
	Layers      []Layer // in rising precedence
	Permissions Permissions
	Model       string
	OutputStyle string
	Attribution Attribution
	Env         map[string]string
	Hooks       []Hooks // in rising precedence, without disabled hooks
	Agent       string  // agent of the session
	// AvailableModels are the models that may be used in addition to the default model; nil means all models.
	AvailableModels []string
	MemoryDir       string // directory of memories; empty means the default
	NoMemory        bool

	DisableAllHooks            bool // hooks are switched off, except those of managed settings
	AllowedServers             *ServerList
	DeniedServers              *ServerList
	EnableAllProjectMCPServers bool
	EnabledMCPJSONServers      []string
	DisabledMCPJSONServers     []string

	// ManagedFaults are lines for stderr about managed settings.
	ManagedFaults []string
	// Warnings describe invalid files and keys, with texts of claudeless.
	Warnings []string
	// Faults are the problems in Warnings, in the form in which the real CLI reports them with text output.
	Faults []Fault
	// TrustWarning is a message for stderr: allow rules of the project were ignored because the folder is not trusted.
	// Empty means none.
	TrustWarning string
}

// FlagError explains, with the message of the real CLI, why the value of --settings is invalid.
type FlagError struct{ text string }

func (e *FlagError) Error() string { return e.text }

// ManagedError means that no run is possible, because a file of managed settings cannot be read.
type ManagedError struct{ Path string }

func (e *ManagedError) Error() string {
	return e.Path + ": Managed settings document could not be parsed as a JSON object; none of its settings are in effect. Fix or remove it."
}

// EnabledPlugins lists the plugins that the files enable, as "name@marketplace", in the order of first mention.
func (s *Settings) EnabledPlugins() (ids []string) {
	var all plainjson.Object
	for _, layer := range s.Layers {
		file, _ := plainjson.Parse(layer.Raw) // its form was validated before
		plugins, _ := plainjson.Parse(file.Get("enabledPlugins"))
		for _, p := range plugins {
			all = all.With(p.Key, p.Value)
		}
	}
	for _, p := range all {
		if string(p.Value) != "false" {
			ids = append(ids, p.Key)
		}
	}
	return ids
}

// Merged returns all layers as one object: objects by key, lists joined without duplicates, other values by precedence.
func (s *Settings) Merged() map[string]any {
	merged := map[string]any{}
	for _, layer := range s.Layers {
		var tree map[string]any
		if err := json.Unmarshal(layer.Raw, &tree); err == nil {
			mergeInto(merged, tree)
		}
	}
	return merged
}

func mergeInto(target, source map[string]any) {
	for key, value := range source {
		switch value := value.(type) {
		case map[string]any:
			sub, ok := target[key].(map[string]any)
			if !ok {
				sub = map[string]any{}
				target[key] = sub
			}
			mergeInto(sub, value)
		case []any:
			list, _ := target[key].([]any)
			target[key] = joinLists(list, value)
		default:
			target[key] = value
		}
	}
}

func joinLists(list, added []any) []any {
	out := slices.Clone(list)
	for _, v := range added {
		if !slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, v) }) {
			out = append(out, v)
		}
	}
	return out
}
