// Package settings reads settings.json files by source and merges them.
//
// Its one invariant: a faulty file never ends a run, it is left out and
// reported; only a --settings value that names no file is an error. It must
// not know what the settings are used for.
package settings

import (
	"encoding/json"
	"strings"
)

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
	Host    map[string]json.RawMessage
	Managed []byte // managed settings as JSON; nil = none
	// GlobalFile is .claude.json, for the trust of a folder; empty = in StateDir.
	GlobalFile string
	// ReadFile reads a file; nil = os.ReadFile.
	ReadFile func(path string) ([]byte, error)
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
	Rules                 []Rule // allow, deny, ask of each layer, in rising precedence
	DefaultMode           string // empty = not set
	AdditionalDirectories []string
}

// Hooks is the hooks table of one source, as written.
type Hooks struct {
	Source Source
	Raw    json.RawMessage // object: event → matchers
}

// Settings is what all sources say together.
type Settings struct {
	Layers      []Layer // rising precedence
	Permissions Permissions
	Model       string
	OutputStyle string
	Env         map[string]string
	Hooks       []Hooks // rising precedence

	DisableAllHooks            bool
	EnableAllProjectMCPServers bool
	EnabledMCPJSONServers      []string
	DisabledMCPJSONServers     []string

	// Warnings are faulty files and keys; the real CLI is silent about them.
	Warnings []string
	// TrustWarning is for stderr: allow rules of the project were left out
	// because the folder is not trusted. Empty = none.
	TrustWarning string
}

// NotFoundError says that --settings is neither JSON nor the path of a file.
type NotFoundError struct{ Path string } // absolute

func (e *NotFoundError) Error() string { return "Settings file not found: " + e.Path }

// SourceError says that --setting-sources names a source that is none.
type SourceError struct{ Name string }

func (e *SourceError) Error() string {
	return "Invalid setting source: " + e.Name + ". Valid options are: user, project, local"
}

// ParseSources reads the value of --setting-sources. The empty value means no
// source at all, which is an empty list, not nil. The error is a [*SourceError].
func ParseSources(value string) ([]string, error) {
	out := []string{}
	for name := range strings.SplitSeq(value, ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "user", "project", "local":
			out = append(out, name)
		default:
			return nil, &SourceError{Name: name}
		}
	}
	return out, nil
}
