// Package settings reads settings.json files from their sources and merges
// them.
//
// A faulty user or project file is skipped and reported. A --settings value
// that names no file, and managed settings that are not JSON, are errors.
package settings

import "encoding/json"

// Source says where a setting came from, in the spelling of the SDKs.
type Source string

// The sources in rising precedence.
const (
	User    Source = "userSettings"
	Project Source = "projectSettings"
	Local   Source = "localSettings"
	Flag    Source = "flagSettings"
	Managed Source = "policySettings"
)

// Options says what to read.
type Options struct {
	StateDir string // holds settings.json and .claude.json
	CWD      string // absolute
	// Sources are the file sources to read ("user", "project", "local"); nil =
	// all, empty = none. Flag and managed settings are always read.
	Sources   []string
	FlagValue string // --settings: JSON text or the path of a file; empty = none
	// Host holds settings that came later, by key, to be merged into those of
	// --settings; both are of one source.
	Host map[string]json.RawMessage
	// Managed are the settings that a host imposes, as JSON; nil = none. Of them
	// only what restricts a session counts.
	Managed []byte
	// ManagedDir holds the machine's managed-settings.json and the parts in
	// managed-settings.d; empty = none.
	ManagedDir string
	// GlobalFile is .claude.json, for the trust of a folder; empty = in StateDir.
	GlobalFile string
	// ReadFile reads a file; nil = os.ReadFile.
	ReadFile func(path string) ([]byte, error)
	// Glob lists the files that match a pattern, sorted; nil = filepath.Glob.
	Glob func(pattern string) ([]string, error)
}

// Layer is the settings of one source as they were read.
type Layer struct {
	Source Source
	Path   string // empty = not from a file
	Root   string // directory that rules with one leading slash are relative to
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
	// DefaultMode is empty when it is not set, or asks for what a file of the
	// project cannot give: bypassPermissions, auto.
	DefaultMode   string
	Directories   []Directory
	DisableBypass bool // no bypassPermissions, whoever asks for it
	DisableAuto   bool
	ManagedOnly   bool // rules count only from managed settings
}

// Directory is a further working directory, as written.
type Directory struct {
	Path   string
	Source Source
}

// Hooks is the hooks table of one source, as written.
type Hooks struct {
	Source Source
	Raw    json.RawMessage // object: event → matchers
}

// Fault is what is wrong with a layer, or with one entry of it.
type Fault struct {
	Where string // the file, or what stands for it
	Key   string // "permissions.allow"; empty = the layer as a whole
	Text  string
	Whole bool // nothing of the layer is in effect
}

// name is what stands for a layer in messages.
func (l Layer) name() string {
	switch {
	case l.Path != "":
		return l.Path
	case l.Source == Flag:
		return "--settings (inline JSON)"
	default:
		return string(l.Source)
	}
}

// Settings is what all sources say together.
type Settings struct {
	Layers      []Layer // rising precedence
	Permissions Permissions
	Model       string
	OutputStyle string
	Env         map[string]string
	Hooks       []Hooks // rising precedence; without those that do not count
	Agent       string  // that the session plays
	// AvailableModels are the models that may be used beside the default one;
	// nil = all.
	AvailableModels []string
	MemoryDir       string // where memories are kept; empty = the usual place
	NoMemory        bool

	DisableAllHooks            bool // those of managed settings stay
	AllowedServers             *ServerList
	DeniedServers              *ServerList
	EnableAllProjectMCPServers bool
	EnabledMCPJSONServers      []string
	DisabledMCPJSONServers     []string

	// ManagedFaults are lines for stderr about managed settings.
	ManagedFaults []string
	// Warnings are faulty files and keys in our words.
	Warnings []string
	// Faults are the same as the real CLI tells of them where its output is text.
	Faults []Fault
	// TrustWarning is for stderr: allow rules of the project were left out
	// because the folder is not trusted. Empty = none.
	TrustWarning string
}

// FlagError says, in the real CLI's words, why the value of --settings is of no
// use.
type FlagError struct{ text string }

func (e *FlagError) Error() string { return e.text }

// ManagedError says that a file of managed settings cannot be read, which ends
// a run before it starts.
type ManagedError struct{ Path string }

func (e *ManagedError) Error() string {
	return e.Path + ": Managed settings document could not be parsed as a JSON object; none of its settings are in effect. Fix or remove it."
}
