package hook

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// envEvents are the events whose hooks may write shell code for later
// commands, in the order in which it runs.
var envEvents = [...]string{"Setup", "SessionStart", "CwdChanged", "FileChanged"}

// envFile is the file in which a hook of the event finds CLAUDE_ENV_FILE; empty
// = none. What an earlier run of a repeatable event wrote is gone.
func (r *Runner) envFile(c *call, place int) string {
	if r.o.EnvDir == "" || !slices.Contains(envEvents[:], c.event) || os.MkdirAll(r.o.EnvDir, 0o700) != nil {
		return ""
	}
	return filepath.Join(r.o.EnvDir, envPrefix(c.event)+strconv.Itoa(place)+".sh")
}

func envPrefix(event string) string { return strings.ToLower(event) + "-hook-" }

// forgetEnv drops what hooks wrote when the event came last.
func (r *Runner) forgetEnv(event string) {
	if event != "CwdChanged" && event != "FileChanged" {
		return
	}
	for _, f := range r.envFiles(event) {
		_ = os.Remove(f) // of a file that cannot be removed the old code runs
	}
}

// envFiles are the files that hooks of the event wrote, in configured order.
func (r *Runner) envFiles(event string) []string {
	files, err := filepath.Glob(filepath.Join(r.o.EnvDir, envPrefix(event)+"*.sh"))
	if err != nil {
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return files
}

// Script is the shell code that hooks left for later commands; empty = none.
func (r *Runner) Script() string {
	if r.o.EnvDir == "" {
		return ""
	}
	var parts []string
	for _, event := range envEvents {
		for _, f := range r.envFiles(event) {
			if code, err := os.ReadFile(f); err == nil && len(strings.TrimSpace(string(code))) > 0 {
				parts = append(parts, strings.TrimSpace(string(code)))
			}
		}
	}
	return strings.Join(parts, "\n")
}
