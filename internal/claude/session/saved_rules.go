package session

import (
	"fmt"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// settingsFiles are the settings files to which permission updates are saved.
type settingsFiles struct {
	paths   map[string]string // files by destination
	records *recorder
}

func newSettingsFiles(plan launch.Plan, r *recorder) settingsFiles {
	f := settingsFiles{paths: map[string]string{}, records: r}
	for _, file := range []struct{ source, destination, path string }{
		{"user", "userSettings", filepath.Join(plan.State, "settings.json")},
		{"project", "projectSettings", filepath.Join(plan.CWD, ".claude", "settings.json")},
		{"local", "localSettings", filepath.Join(plan.CWD, ".claude", "settings.local.json")},
	} {
		if plan.State != "" && plan.Settings.HasSource(file.source) {
			f.paths[file.destination] = file.path
		}
	}
	return f
}

// Save writes permanent updates to their files. A file that cannot be written causes a warning.
func (f settingsFiles) Save(updates []protocol.PermissionUpdate) {
	for _, u := range updates {
		path := f.paths[u.Destination]
		if path == "" {
			continue
		}
		rules := make([]string, 0, len(u.Rules))
		for _, r := range u.Rules {
			rules = append(rules, permission.FormatRule(r))
		}
		if err := settings.SaveUpdate(path, u, rules); err != nil {
			f.records.Warn(fmt.Sprintf("saving a permission: %v", err))
		}
	}
}
