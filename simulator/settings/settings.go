// Package settings reads settings.json files from their sources and merges them.
//
// An invalid user or project file is skipped and reported. A --settings value that is neither JSON
// nor a file, and a file of managed settings that is not a JSON object, are errors.
package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
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
	StateDir  string // contains settings.json and .claude.json
	CWD       string // absolute
	LocalRoot string // contains the .claude/settings.local.json that is written, and that overrides CWD's; empty means CWD
	TempDir   string // the directory to which path patterns with one leading slash in a JSON text of --settings are relative
	// Sources are the file sources to read ("user", "project", "local"); nil means all, empty means none. Flag and
	// managed settings are always read.
	Sources   []string
	FlagValue string // --settings: JSON text or the path of a file; empty means none
	// HostSettings contains settings that the host sent later, by key. They are merged into --settings as one source.
	HostSettings map[string]json.RawMessage
	// Managed are settings that a host imposes, as JSON; nil means none. Only those that restrict the session are used.
	Managed    []byte
	ManagedDir string                                 // directory of the machine's managed-settings.json and managed-settings.d; empty means none
	GlobalFile string                                 // path of .claude.json, which records trusted folders; empty means the file in StateDir
	ReadFile   func(path string) ([]byte, error)      // reads a file; nil means [plainjson.ReadFileUnlessTooLarge]
	Glob       func(pattern string) ([]string, error) // lists the files that match a pattern, sorted; nil means filepath.Glob
}

// Layer contains the settings of one source.
type Layer struct {
	Source Source
	Path   string // empty means not from a file
	Root   string // directory to which path patterns with one leading slash are relative
	Raw    json.RawMessage
}

// Rule is one permission rule and its source.
type Rule struct {
	Behavior string // "allow", "deny", "ask"
	Text     string
	Source   Source
	Root     string
}

// Permissions contains the merged values of the key "permissions".
type Permissions struct {
	Rules []Rule // allow, deny, ask of each layer, in rising precedence
	// DefaultMode is the mode that the files set; empty means none. If a project file sets bypassPermissions or auto,
	// which it must not, DefaultMode is empty.
	DefaultMode            string
	Directories            []AdditionalWorkingDirectory
	DisableBypass          bool // bypassPermissions is not available at all
	DisableAuto            bool
	NoClassifierInPlanMode bool // no classifier decides in plan mode
	ManagedOnly            bool // only rules of managed settings are used
}

// AdditionalWorkingDirectory is an additional working directory, as the settings contain it.
type AdditionalWorkingDirectory struct {
	Path   string
	Source Source
}

// Hooks is the value of the key "hooks" in one source, without its invalid entries.
type Hooks struct {
	Source Source
	Raw    json.RawMessage // object: event → matchers
}

// Fault is a problem of a layer or of one of its entries.
type Fault struct {
	Location  string // the file, or a name for the layer
	Key       string // such as "permissions.allow"; empty means the layer as a whole
	Text      string
	WholeFile bool // the whole layer is ignored
}

func (l Layer) displayName() string {
	switch {
	case l.Path != "":
		return l.Path
	case l.Source == SourceFlag:
		return "--settings (inline JSON)"
	default:
		return string(l.Source)
	}
}

// Attribution contains the texts that end commit messages and pull requests; nil means the default, "" means no text.
type Attribution struct {
	Commit *string `json:"commit"`
	PR     *string `json:"pr"`
}

// HookRestrictions are the settings that limit hooks.
type HookRestrictions struct {
	DisableAllHooks bool // hooks are switched off, except those of managed settings
	HTTPHooks       protocol.HTTPHookLimits
}

// Settings is the merged result of all sources.
type Settings struct {
	Layers             []Layer // in rising precedence
	Permissions        Permissions
	Model, OutputStyle string
	Attribution        Attribution
	Env                map[string]string
	Hooks              []Hooks  // in rising precedence, without disabled hooks
	Agent              string   // agent of the session
	AvailableModels    []string // the models that may be used in addition to the default model; nil means all models
	MemoryDir          string   // directory of memories; empty means the default
	NoMemory           bool
	NoGitInstructions  bool // true if requests say nothing about git: neither the state of the repository nor how commits end

	HookRestrictions
	AllowedServers, DeniedServers                 *MCPServerSelectors
	EnableAllProjectMCPServers                    bool
	EnabledMCPJSONServers, DisabledMCPJSONServers []string

	ManagedFaults []string // lines for stderr about faults in managed settings
	Warnings      []string // describe invalid files and keys, with texts of claudeless
	Faults        []Fault  // the problems in Warnings, in the form in which the real CLI reports them with text output
	TrustWarning  string   // the warning for stderr that an untrusted project's allow rules were ignored; empty means none
}

// FlagError explains, with the message of the real CLI, why the value of --settings is invalid.
type FlagError struct{ text string }

func (e *FlagError) Error() string { return e.text }

// InvalidManagedSettingsError means that a file of managed settings cannot be read, so that no run is possible.
type InvalidManagedSettingsError struct{ Path string }

func (e *InvalidManagedSettingsError) Error() string {
	return e.Path + ": Managed settings document could not be parsed as a JSON object; none of its settings are in effect. Fix or remove it."
}

// EnabledAndDisabledPlugins lists the plugins that the files enable and disable, as "name@marketplace", in the order of first mention.
func (s *Settings) EnabledAndDisabledPlugins() (enabled, disabled []string) {
	var all plainjson.Object
	for _, layer := range s.Layers {
		file, _ := plainjson.Parse(layer.Raw) // the layer was validated when it was loaded
		plugins, _ := plainjson.Parse(file.Get("enabledPlugins"))
		for _, p := range plugins {
			all = all.Set(p.Key, p.Value)
		}
	}
	for _, p := range all {
		if string(p.Value) == "false" {
			disabled = append(disabled, p.Key)
		} else {
			enabled = append(enabled, p.Key)
		}
	}
	return enabled, disabled
}

// DeclaredMarketplaceDirs returns the marketplaces of extraKnownMarketplaces that are directories: an absolute path by name. o says
// where the session is and which projects are trusted: the files of other projects declare nothing (observed with 2.1.330).
func (s *Settings) DeclaredMarketplaceDirs(o Options) (dirByName map[string]string) {
	type marketplace struct{ Source struct{ Source, Path string } }
	dirByName = map[string]string{}
	for _, layer := range s.Layers {
		file, _ := plainjson.Parse(layer.Raw) // the layer was validated when it was loaded
		declared, _ := plainjson.Parse(file.Get("extraKnownMarketplaces"))
		if ofProject := layer.Source == SourceProject || layer.Source == SourceLocal; len(declared) == 0 || ofProject && !o.isDirOrParentTrusted() {
			continue
		}
		for _, d := range declared {
			dir := plainjson.DecodeIgnoringErrors[marketplace](d.Value).Source
			if !filepath.IsAbs(dir.Path) {
				dir.Path = filepath.Join(o.CWD, dir.Path)
			}
			if dir.Source == "directory" {
				dirByName[d.Key] = dir.Path
			}
		}
	}
	return dirByName
}

// Merged returns all layers as one object. Objects are merged key by key. Lists are joined without duplicates. Any
// other value replaces the value of a layer with lower precedence.
func (s *Settings) Merged() map[string]any {
	merged := map[string]any{}
	for _, layer := range s.Layers {
		var tree map[string]any
		if err := json.Unmarshal(layer.Raw, &tree); err == nil {
			mergeSettingsTreeInto(merged, tree)
		}
	}
	return merged
}

func mergeSettingsTreeInto(target, source map[string]any) {
	for key, value := range source {
		switch value := value.(type) {
		case map[string]any:
			sub, ok := target[key].(map[string]any)
			if !ok {
				sub = map[string]any{}
				target[key] = sub
			}
			mergeSettingsTreeInto(sub, value)
		case []any:
			list, _ := target[key].([]any)
			target[key] = appendMissing(list, value)
		default:
			target[key] = value
		}
	}
}

func appendMissing(list, added []any) []any {
	out := slices.Clone(list)
	for _, v := range added {
		if !slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, v) }) {
			out = append(out, v)
		}
	}
	return out
}

// MCPServerSelectors selects MCP servers that are allowed or denied. Nil means that no list is set.
type MCPServerSelectors struct{ entries []mcpServerSelector }

// mcpServerSelector selects servers by name, by the command line that starts them, or by URL, in which * matches any text.
type mcpServerSelector struct {
	Name    string   `json:"serverName"`
	Command []string `json:"serverCommand"`
	URL     string   `json:"serverUrl"`
}

// MCPServer contains the properties of a server that a [MCPServerSelectors] checks.
type MCPServer struct {
	Name    string
	Command []string // command and arguments; empty means that it is not a stdio server
	URL     string
}

// withEntriesAppended returns l followed by the entries of rawEntryList, which comes from another file. It ignores a value that
// is not a list.
func (l *MCPServerSelectors) withEntriesAppended(rawEntryList json.RawMessage) *MCPServerSelectors {
	var entries []mcpServerSelector
	if rawEntryList == nil || json.Unmarshal(rawEntryList, &entries) != nil {
		return l
	}
	out := &MCPServerSelectors{entries: entries}
	if l != nil {
		out.entries = append(slices.Clone(l.entries), entries...)
	}
	return out
}

// Denies reports whether an entry of the list matches the server.
func (l *MCPServerSelectors) Denies(s MCPServer) bool {
	return l != nil && slices.ContainsFunc(l.entries, func(e mcpServerSelector) bool { return e.matchesName(s) || e.matchesCommand(s) || e.matchesURL(s) })
}

// Allows reports whether the server may be used. If the list contains command lines, a stdio server must match one of them. If
// the list contains URLs, a remote server must match one of them. In all other cases, the name of the server must match.
func (l *MCPServerSelectors) Allows(s MCPServer) bool {
	if l == nil {
		return true
	}
	has := mcpServerSelector.matchesName
	switch {
	case len(s.Command) > 0 && slices.ContainsFunc(l.entries, func(e mcpServerSelector) bool { return len(e.Command) > 0 }):
		has = mcpServerSelector.matchesCommand
	case s.URL != "" && slices.ContainsFunc(l.entries, func(e mcpServerSelector) bool { return e.URL != "" }):
		has = mcpServerSelector.matchesURL
	}
	return slices.ContainsFunc(l.entries, func(e mcpServerSelector) bool { return has(e, s) })
}

func (e mcpServerSelector) matchesName(s MCPServer) bool { return e.Name != "" && e.Name == s.Name }

func (e mcpServerSelector) matchesCommand(s MCPServer) bool {
	return len(e.Command) > 0 && slices.Equal(e.Command, s.Command)
}

func (e mcpServerSelector) matchesURL(s MCPServer) bool {
	if e.URL == "" || s.URL == "" {
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(e.URL), `\*`, `.*`)
	matched, err := regexp.MatchString("^"+pattern+"$", s.URL)
	return err == nil && matched
}

// addManagedSettings adds the settings that the machine and the host impose, which override all others. Individual faults are
// reported and otherwise ignored (observed with 2.1.329).
func (s *Settings) addManagedSettings(o Options) error {
	if o.ManagedDir != "" {
		parts, err := o.Glob(filepath.Join(o.ManagedDir, "managed-settings.d", "*.json"))
		if err != nil {
			return &InvalidManagedSettingsError{o.ManagedDir}
		}
		for _, path := range append([]string{filepath.Join(o.ManagedDir, "managed-settings.json")}, parts...) {
			raw, err := o.ReadFile(path)
			if err != nil {
				continue // the file is optional
			}
			if !s.mergeManagedLayer(Layer{Source: SourceManaged, Path: path, Root: o.CWD, Raw: raw}, path, func(string) bool { return true }) {
				return &InvalidManagedSettingsError{path}
			}
		}
	}
	if len(bytes.TrimSpace(o.Managed)) > 0 && !s.mergeManagedLayer(Layer{Source: SourceManaged, Root: o.CWD, Raw: o.Managed}, "parent managed settings", isKeyAllowedInHostManagedSettings) {
		s.Warnings = append(s.Warnings, "managed settings: not a JSON object")
	}
	return nil
}

// mergeManagedLayer merges a managed layer. It omits keys with invalid values, which it reports, and keys for which
// isWantedKey returns false. The result is false if the layer is not a JSON object.
func (s *Settings) mergeManagedLayer(layer Layer, nameInFaults string, isWantedKey func(key string) bool) (isJSONObject bool) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(layer.Raw, &file); err != nil || file == nil {
		return false
	}
	bad := keysWithInvalidValues(file)
	for _, key := range bad {
		s.ManagedFaults = append(s.ManagedFaults, nameInFaults+" ("+key+"): Failed schema validation. This field was ignored.")
	}
	maps.DeleteFunc(file, func(key string, _ json.RawMessage) bool { return slices.Contains(bad, key) || !isWantedKey(key) })
	if permissions, err := plainjson.Parse(file["permissions"]); err == nil && !isWantedKey("permissions.defaultMode") {
		file["permissions"] = permissions.Delete("defaultMode").Raw()
	}
	raw, err := json.Marshal(file)
	if err != nil {
		return false
	}
	layer.Raw = raw
	s.mergeLayer(layer)
	return true
}

// isKeyAllowedInHostManagedSettings reports whether a host's managed settings may set a key. Other keys are ignored.
func isKeyAllowedInHostManagedSettings(key string) bool {
	return slices.Contains([]string{"allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly", "allowedMcpServers", "availableModels", "deniedMcpServers", "disableAllHooks", "disableAutoMode", "env", "permissions", "sandbox"}, key)
}

// removeUnmanagedRulesAndDisabledHooks removes the rules and hooks that settings disable as a whole. disableAllHooks in managed
// settings removes all hooks. In other settings, it removes all hooks except those of managed settings.
func (s *Settings) removeUnmanagedRulesAndDisabledHooks() {
	hooksOnly, all := false, false
	for _, layer := range s.Layers {
		var file struct {
			HooksOnly  bool `json:"allowManagedHooksOnly"`
			RulesOnly  bool `json:"allowManagedPermissionRulesOnly"`
			DisableAll bool `json:"disableAllHooks"`
		}
		if layer.Source != SourceManaged || json.Unmarshal(layer.Raw, &file) != nil {
			continue
		}
		hooksOnly, all = hooksOnly || file.HooksOnly, all || file.DisableAll
		s.Permissions.ManagedOnly = s.Permissions.ManagedOnly || file.RulesOnly
	}
	s.Hooks = slices.DeleteFunc(s.Hooks, func(h Hooks) bool {
		return all || (hooksOnly || s.DisableAllHooks) && h.Source != SourceManaged
	})
	s.DisableAllHooks = s.DisableAllHooks || hooksOnly
	if s.Permissions.ManagedOnly {
		s.Permissions.Rules = slices.DeleteFunc(s.Permissions.Rules, func(r Rule) bool { return r.Source != SourceManaged })
	}
}
