package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestFlagTable checks that the flag table of docs/compatibility.md lists the options of the program, and that every flag
// without effect has a remark.
func TestFlagTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| flag | state | remarks |\n|---|---|---|\n")
	limits := supportLimits()
	for _, f := range flags.RealCLIOptions() {
		status, note, _ := strings.Cut(limits[f.Name()], ": ")
		switch {
		case status == "" && f.Set != nil:
			status = "full"
		case status != "partial" && status != "accepted" || note == "":
			t.Errorf("--%s has no effect or a bad remark %q", f.Name(), limits[f.Name()])
		}
		delete(limits, f.Name())
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Flags, status, note)
	}
	for name := range limits {
		t.Errorf("--%s is listed and no flag", name)
	}
	tree.ReplaceSection(t, "docs/compatibility.md", "<!-- flags:begin -->\n", "<!-- flags:end -->", b.String())
}

// supportLimits holds every flag with limited support: "status: note" by its long name.
func supportLimits() map[string]string {
	const (
		outside = "accepted: for a feature outside the claude process, which claudeless does not simulate"
		debug   = "partial: the lines have the format of the real CLI, but other texts; a filter by category has no effect"
		refused = "partial: refused, with -p with the message of the real CLI, otherwise as not simulated"
		screen  = "accepted: for a part of the interactive terminal that claudeless does not simulate"
	)
	return map[string]string{
		"await-claim":                            outside,
		"ax-screen-reader":                       screen,
		"betas":                                  "partial: init lists them, but no request contains them",
		"bg":                                     refused,
		"brief":                                  "accepted: the scenario decides how long an answer is",
		"channels":                               outside,
		"chrome":                                 outside,
		"cloud":                                  refused,
		"desktop":                                refused,
		"environment":                            outside,
		"debug":                                  debug,
		"debug-file":                             debug,
		"debug-to-stderr":                        debug,
		"effort":                                 "partial: hooks receive the value; the scenario decides what the model does",
		"exclude-dynamic-system-prompt-sections": "accepted: there is no default system prompt",
		"file":                                   refused,
		"from-pr":                                outside,
		"ide":                                    outside,
		"initialize-fields":                      "accepted: claudeless reads all fields of initialize, not only those in this list",
		"managed-settings-in-initialize":         "accepted: managed settings of initialize are not read",
		"max-thinking-tokens":                    "partial: events and requests show the setting; the scenario decides what the model thinks",
		"thinking":                               "partial: events and requests show the setting; the scenario decides what the model thinks",
		"thinking-display":                       "partial: thinking is shown as written in the scenario; with the value summarized, events are only marked",
		"bare":                                   "partial: offers only the short list of tools and the tools of --tools; a host's hooks do run",
		"safe-mode":                              "partial: claudeless still loads customizations that a host sends with initialize",
		"restricted":                             "partial: only ignores settings files and leaves out some tools",
		"no-chrome":                              outside,
		"plugin-url":                             outside,
		"prompt-suggestions":                     screen,
		"remote-control":                         outside,
		"remote-control-session-name-prefix":     outside,
		"system-prompt-snapshot":                 "accepted: there is no default system prompt",
		"task-budget":                            "accepted: a scripted model does not plan by a budget",
		"teleport":                               refused,
		"tmux":                                   screen,
		"worktree":                               "partial: hooks of WorktreeCreate are not run, and the settings of worktrees are not read",
	}
}
