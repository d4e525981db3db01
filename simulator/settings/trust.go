package settings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
)

// dropUntrusted removes the allow rules of the project's file unless the
// folder, or one above it, is trusted (spec: cli-contract 6.1).
func (s *Settings) dropUntrusted(o Options) {
	fromProject := func(r Rule) bool { return r.Source == Project && r.Behavior == "allow" }
	if !slices.ContainsFunc(s.Permissions.Rules, fromProject) || o.trusted() {
		return
	}
	before := len(s.Permissions.Rules)
	s.Permissions.Rules = slices.DeleteFunc(s.Permissions.Rules, fromProject)
	n := before - len(s.Permissions.Rules)
	s.TrustWarning = fmt.Sprintf("Ignoring %d permissions.allow %s from %s: this folder is not trusted. Set hasTrustDialogAccepted for it in %s to use them.",
		n, plural(n, "entry", "entries"), filepath.Join(".claude", "settings.json"), o.GlobalFile)
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
