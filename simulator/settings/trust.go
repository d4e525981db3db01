package settings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// dropUntrusted removes what the project's file allows (rules, directories,
// bypassPermissions) unless the folder, or one above it, is trusted (spec:
// cli-contract 6.1).
func (s *Settings) dropUntrusted(o Options) {
	fromProject := func(r Rule) bool { return r.Source == Project && r.Behavior == "allow" }
	p := &s.Permissions
	dirs, bypass := s.grants()
	if !bypass && len(dirs) == 0 && !slices.ContainsFunc(p.Rules, fromProject) || o.trusted() {
		return
	}
	before := len(p.Rules)
	p.Rules = slices.DeleteFunc(p.Rules, fromProject)
	p.AdditionalDirectories = slices.DeleteFunc(p.AdditionalDirectories, func(dir string) bool { return slices.Contains(dirs, dir) })
	if bypass {
		p.DefaultMode = ""
	}
	var lines []string
	for _, ignored := range []struct {
		n   int
		key string
	}{{before - len(p.Rules), "allow"}, {len(dirs), "additionalDirectories"}} {
		if ignored.n > 0 {
			lines = append(lines, o.untrusted(ignored.n, ignored.key))
		}
	}
	s.TrustWarning = strings.Join(lines, "\n")
}

// grants are the directories that the project's file adds, and whether the
// mode in force is its bypassPermissions.
func (s *Settings) grants() (dirs []string, bypass bool) {
	for _, layer := range s.Layers {
		var file struct {
			Permissions struct {
				Mode string   `json:"defaultMode"`
				Dirs []string `json:"additionalDirectories"`
			} `json:"permissions"`
		}
		if json.Unmarshal(layer.Raw, &file) != nil {
			continue // reported where it was read
		}
		if layer.Source == Project {
			dirs = file.Permissions.Dirs
		}
		if file.Permissions.Mode != "" {
			bypass = layer.Source == Project && file.Permissions.Mode == "bypassPermissions"
		}
	}
	return dirs, bypass
}

func (o Options) untrusted(n int, key string) string {
	return fmt.Sprintf("Ignoring %d permissions.%s %s from %s: this workspace has not been trusted. Run Claude Code interactively here once and accept the trust dialog, or set projects[%q].hasTrustDialogAccepted: true in %s.",
		n, key, plural(n, "entry", "entries"), filepath.Join(".claude", "settings.json"), o.CWD, o.GlobalFile)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// trusted looks the working directory and its parents up in .claude.json.
func (o Options) trusted() bool {
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
