package terminal

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/claudeless/claudeless/internal/claude/launch"
)

// sessionDialog returns the list of the saved sessions of a project other than the current one. choose is called with the
// id of a session, or with "" if the user selects none.
func sessionDialog(plan *launch.Plan, current string, rows int, choose func(id string)) *dialog {
	list := &searchList{room: rows, hint: "Search…", head: "    " + filepath.Base(plan.CWD), empty: "  No sessions in this project yet"}
	list.foot = [2]string{"  Type to search · Enter to resume · Esc to close", "  Type to search · Enter to select · Esc to clear"}
	for _, s := range launch.SavedSessions(plan) {
		if s.ID != current {
			about := fmt.Sprintf("%s · %s · %.1fKB", timeAgo(plan.Clock.Now().Sub(s.Changed)), s.Branch, float64(s.Size)/1024)
			list.all = append(list.all, option{label: s.Title, detail: about, note: " ", value: s.ID, truncate: true})
		}
	}
	if len(list.all) == 0 {
		list.foot[0] = "  Esc to close"
	}
	d := &dialog{state: StateMenu, kind: "resume", indent: 2, topRule: ruleGlyph, head: []string{"  Resume session"}, options: list.all, search: list}
	d.owner = chooserFunc(func(c choice) *dialog {
		id := ""
		if !c.cancelled && c.key == 0 {
			id = d.options[c.index].value
		}
		choose(id)
		return nil
	})
	return d
}

// timeAgo returns how long ago something happened, such as "5 minutes ago".
func timeAgo(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		noun   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= unit.length {
			return countWithNoun(int(d/unit.length), unit.noun) + " ago"
		}
	}
	return "now"
}

// ChooseSession asks, on a screen of its own, which saved session to continue, for --resume without a value. The error is
// [ErrQuit] if the user selects none.
func ChooseSession(ctx context.Context, c *Console, plan *launch.Plan) (id string, err error) {
	if err := c.painter.enterFull(); err != nil {
		return "", err
	}
	if err := c.ask(ctx, sessionDialog(plan, "", c.screen.rows, func(chosen string) { id = chosen })); err != nil {
		return "", err
	}
	if id == "" {
		return "", ErrQuit
	}
	return id, c.painter.leaveFull()
}
