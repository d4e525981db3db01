package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
)

// FirstStart specifies which dialogs claude shows when it starts on a terminal. The zero value shows none, except
// that no directory is trusted.
type FirstStart struct {
	// Dialogs names the dialogs that appear: trust, key, mcp, bypass, auto, all.
	Dialogs []string
	// TrustedDirs lists the directories that are trusted.
	TrustedDirs []string
	// Inline selects the renderer that prints below the shell's prompt; false selects the renderer that fills the
	// screen.
	Inline bool
}

// FirstStartDialogs returns the names of the dialogs of the first start.
func FirstStartDialogs() []string { return []string{"trust", "key", "mcp", "bypass", "auto"} }

// CheckDialogs returns an error if a name of a dialog is invalid.
func CheckDialogs(names []string) error {
	known := append(FirstStartDialogs(), "all")
	for _, name := range names {
		if name == "onboarding" {
			return process.WithHint("--fresh cannot include onboarding", "claude would contact the vendor and exit with 1; choose other dialogs")
		}
		if !slices.Contains(known, name) {
			return process.WithHint(fmt.Sprintf("--fresh: unknown dialog %q", name), "dialogs: "+strings.Join(known, ", "))
		}
	}
	return nil
}

func (f FirstStart) shows(dialog string) bool {
	return slices.Contains(f.Dialogs, dialog) || slices.Contains(f.Dialogs, "all")
}

// Write writes .claude.json and settings.json for a claude with this API key.
func (f FirstStart) Write(dir, key string) error {
	config := map[string]any{"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark"}
	settings := map[string]any{"tui": "fullscreen"}
	if f.Inline {
		settings["tui"] = "default"
	}
	if !f.shows("auto") {
		config["hasSeenAutoDefaultNotice"] = true
	}
	if !f.shows("bypass") {
		config["bypassPermissionsModeAccepted"] = true
	}
	if !f.shows("mcp") {
		settings["enableAllProjectMcpServers"] = true
	}
	if !f.shows("key") {
		config["customApiKeyResponses"] = map[string]any{"approved": []string{key[max(0, len(key)-20):]}, "rejected": []string{}}
	}
	if !f.shows("trust") {
		projects := map[string]any{}
		for _, dir := range f.TrustedDirs {
			projects[dir] = map[string]any{"hasTrustDialogAccepted": true}
			if resolved, err := filepath.EvalSymlinks(dir); err == nil {
				projects[resolved] = projects[dir]
			}
		}
		config["projects"] = projects
	}
	return errors.Join(writeJSON(filepath.Join(dir, ".claude.json"), config), writeJSON(filepath.Join(dir, "settings.json"), settings))
}

func writeJSON(file string, value any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
