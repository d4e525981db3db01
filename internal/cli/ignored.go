package cli

import "strings"

// FlagSupport says how much of a flag of the real CLI works here.
type FlagSupport struct {
	Flag   string // as help shows it
	Status string // full, partial or accepted (read and checked, without effect)
	Note   string // what is missing, or why; "" for full
}

// FlagTable lists every flag of the real CLI in the order of its groups. docs/compatibility.md is made from it.
func FlagTable() []FlagSupport {
	limits := flagLimits()
	var table []FlagSupport
	for _, o := range claudeOptions(&Flags{}) {
		row := FlagSupport{Flag: o.Flags, Status: "full"}
		if limit, ok := limits[o.Name()]; ok {
			row.Status, row.Note, _ = strings.Cut(limit, ": ")
		}
		table = append(table, row)
	}
	return table
}

// flagLimits holds every flag that does less here than in the real CLI: "status: note" by its long name.
func flagLimits() map[string]string {
	const (
		outside = "accepted: belongs to a feature outside the process that is not simulated"
		screen  = "accepted: belongs to the interactive terminal, which is not simulated"
	)
	return map[string]string{
		"autocompact":                            "accepted: a scripted model never fills its context",
		"ax-screen-reader":                       screen,
		"betas":                                  "accepted: there are no requests whose headers could carry them; unknown ones are warned about",
		"bg":                                     outside,
		"brief":                                  "accepted: the scenario decides how long an answer is",
		"channels":                               outside,
		"chrome":                                 outside,
		"cloud":                                  outside,
		"desktop":                                outside,
		"environment":                            outside,
		"exclude-dynamic-system-prompt-sections": "accepted: there is no default system prompt",
		"file":                                   outside,
		"from-pr":                                outside,
		"ide":                                    outside,
		"init":                                   "accepted: no set-up step is run",
		"no-chrome":                              outside,
		"plugin-url":                             outside,
		"prompt-suggestions":                     screen,
		"remote-control":                         outside,
		"remote-control-session-name-prefix":     outside,
		"system-prompt-snapshot":                 "accepted: there is no default system prompt",
		"task-budget":                            "accepted: a scripted model does not plan by a budget",
		"teleport":                               outside,
		"tmux":                                   screen,
		"worktree":                               "accepted: the run stays in its directory",
	}
}
