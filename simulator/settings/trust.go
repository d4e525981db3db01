package settings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// dropUntrusted removes the permissions of the project's file (rules, directories)
// unless the folder or a parent is trusted (spec: cli-contract 6.1).
func (s *Settings) dropUntrusted(o Options) {
	p := &s.Permissions
	rule := func(r Rule) bool { return r.Source == SourceProject && r.Behavior == "allow" }
	dir := func(d Directory) bool { return d.Source == SourceProject }
	if !slices.ContainsFunc(p.Rules, rule) && !slices.ContainsFunc(p.Directories, dir) || o.isTrusted() {
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
			lines = append(lines, fmt.Sprintf("Ignoring %d permissions.%s %s from %s: this workspace has not been trusted. Run Claude Code interactively here once and accept the trust dialog, or set projects[%q].hasTrustDialogAccepted: true in %s.",
				ignored.n, ignored.key, plural(ignored.n, "entry", "entries"), filepath.Join(".claude", "settings.json"), o.CWD, o.GlobalFile))
		}
	}
	s.TrustWarning = strings.Join(lines, "\n")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// isTrusted looks up the working directory and its parents in .claude.json.
func (o Options) isTrusted() bool {
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
