package flags

import "strings"

// Support says how far a flag of the real CLI is supported.
type Support struct {
	Flag   string // as shown in help
	Status string // full, partial or accepted (parsed and validated, without effect)
	Note   string // what is missing, or why; "" for full
}

// Table lists every flag of the real CLI in the order of its groups.
// docs/compatibility.md is generated from it.
func Table() []Support {
	less := supportLimits()
	var table []Support
	for _, o := range claudeOptions(&Flags{}) {
		row := Support{Flag: o.Flags, Status: "full"}
		if limit, ok := less[o.Name()]; ok {
			row.Status, row.Note, _ = strings.Cut(limit, ": ")
		}
		table = append(table, row)
	}
	return table
}

// supportLimits holds every flag with limited support: "status: note" by its long name.
func supportLimits() map[string]string {
	const (
		outside = "accepted: belongs to a feature outside the process that is not simulated"
		debug   = "partial: lines in the real CLI's form with texts of our own; the categories are not distinguished"
		screen  = "accepted: belongs to a part of the interactive terminal that is not simulated"
	)
	return map[string]string{
		"await-claim":                            outside,
		"ax-screen-reader":                       screen,
		"betas":                                  "partial: init lists them, but no request contains them",
		"bg":                                     outside,
		"brief":                                  "accepted: the scenario decides how long an answer is",
		"channels":                               outside,
		"chrome":                                 outside,
		"cloud":                                  outside,
		"desktop":                                outside,
		"environment":                            outside,
		"debug":                                  debug,
		"debug-file":                             debug,
		"debug-to-stderr":                        debug,
		"effort":                                 "partial: hooks receive the value; the scenario decides what the model does",
		"exclude-dynamic-system-prompt-sections": "accepted: there is no default system prompt",
		"file":                                   outside,
		"from-pr":                                outside,
		"ide":                                    outside,
		"initialize-fields":                      "accepted: all fields of initialize that have an effect are read, whatever this flag lists",
		"managed-settings-in-initialize":         "accepted: managed settings of initialize are not read",
		"max-thinking-tokens":                    "accepted: the scenario decides what the model thinks",
		"thinking":                               "accepted: the scenario decides what the model thinks",
		"thinking-display":                       "partial: summarized marks the events; thinking is shown as the scenario has it",
		"bare":                                   "partial: offers the short list of tools and those of --tools; hooks of a host run",
		"safe-mode":                              "partial: customizations that a host sends with initialize are loaded",
		"restricted":                             "partial: restricts files and tools, nothing else",
		"no-chrome":                              outside,
		"plugin-url":                             outside,
		"prompt-suggestions":                     screen,
		"remote-control":                         outside,
		"remote-control-session-name-prefix":     outside,
		"system-prompt-snapshot":                 "accepted: there is no default system prompt",
		"task-budget":                            "accepted: a scripted model does not plan by a budget",
		"teleport":                               outside,
		"tmux":                                   screen,
		"worktree":                               "partial: hooks of WorktreeCreate are not run, and the settings of worktrees are not read",
	}
}
