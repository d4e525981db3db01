package task

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCronWords checks descriptions of schedules (observed with 2.1.329).
func TestCronWords(t *testing.T) {
	for expr, want := range map[string]string{
		"* * * * *":      "Every minute",
		"*/1 * * * *":    "Every minute",
		"*/15 * * * *":   "Every 15 minutes",
		"*/90 * * * *":   "Every 90 minutes",
		"0 * * * *":      "Every hour",
		"7 * * * *":      "Every hour at :07",
		"0 */1 * * *":    "Every hour",
		"0 */2 * * *":    "Every 2 hours",
		"30 */3 * * *":   "Every 3 hours at :30",
		"0 0 * * *":      "Every day at 12:00 AM",
		" 15  14 * * * ": "Every day at 2:15 PM",
		"0 9 * * 1":      "Every Monday at 9:00 AM",
		"0 17 * * 7":     "Every Sunday at 5:00 PM",
		"0 9 * * 1-5":    "Weekdays at 9:00 AM",
		"0 9 * * 6,0":    "0 9 * * 6,0",
		"30 9 1 * *":     "30 9 1 * *",
		"5,10 * * * *":   "5,10 * * * *",
		"*/7 3 * * *":    "*/7 3 * * *",
		"00 09 * * 01":   "00 09 * * 01",
		"*/5 * * * 2":    "*/5 * * * 2",
	} {
		c, ok := ParseCron(expr)
		if !ok || c.String() != want {
			t.Errorf("%q is %q, %v, want %q", expr, c, ok, want)
		}
	}
}

func TestBadCron(t *testing.T) {
	for _, expr := range []string{
		"", "bad", "@daily", "0 9 * *", "0 9 * * MON", "0/5 * * * *", "60 * * * *", "0 24 * * *", "0 0 0 * *",
		"0 0 * 13 *", "0 0 * * 8", "a b c d e", "5-1 * * * *", "*/0 * * * *", "1,,2 * * * *", "+1 * * * *", "-1 * * * *",
	} {
		if c, ok := ParseCron(expr); ok {
			t.Errorf("%q is taken as %q", expr, c)
		}
	}
}

func TestCronNext(t *testing.T) {
	for _, tt := range []struct{ expr, after, want string }{
		{"* * * * *", "2026-11-21 11:29:21", "2026-11-21 11:30"},
		{"*/5 * * * *", "2026-11-21 11:30:00", "2026-11-21 11:35"},
		{"1-5/2 * * * *", "2026-11-21 11:29:00", "2026-11-21 12:01"},
		{"*/60 * * * *", "2026-11-21 11:29:00", "2026-11-21 12:00"},
		{"0 9-17 * * *", "2026-11-21 17:00:00", "2026-11-22 09:00"},
		{"0 9 * * 1-5", "2026-11-21 11:29:00", "2026-11-23 09:00"},
		{"0 17 * * 7", "2026-11-21 11:29:00", "2026-11-22 17:00"},
		{"0 9 15 * 1", "2026-11-21 11:29:00", "2026-11-23 09:00"},
		{"0 9 15 * *", "2026-11-21 11:29:00", "2026-12-15 09:00"},
		{"30 14 28 2 *", "2026-11-21 11:29:00", "2027-02-28 14:30"},
		{"29 11 21 11 *", "2026-11-21 11:29:00", "2027-11-21 11:29"},
		{"0 9 31 2 *", "2026-11-21 11:29:00", ""},
		{"0 9 29 2 *", "2026-11-21 11:29:00", ""},
	} {
		c, _ := ParseCron(tt.expr)
		got := ""
		if at, ok := c.NextWithinYear(parseTime(t, tt.after)); ok {
			got = at.Format("2006-01-02 15:04")
		}
		if got != tt.want {
			t.Errorf("%q after %s: %q, want %q", tt.expr, tt.after, got, tt.want)
		}
	}
}

func parseTime(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestJobNext checks the first run of jobs, with ids and times observed with 2.1.329.
func TestJobNext(t *testing.T) {
	created := parseTime(t, "2026-11-21 11:29:18")
	for _, tt := range []struct {
		id, expr  string
		recurring bool
		want      float64
	}{
		{"f74c69ea", "* * * * *", true, 1795260628980.292},
		{"376465d9", "0 * * * *", true, 1795262789476.259},
		{"5c8fd05f", "*/15 * * * *", true, 1795260762706.242},
		{"9347aff3", "0 */2 * * *", true, 1795264200000},
		{"33a4c3de", "*/7 3 * * *", true, 1795316442363.9019},
		{"2fe1a250", "5,10 * * * *", true, 1795262728055.4978},
		{"8c25e548", "0 9-17 * * *", true, 1795263385415.8345},
		{"96d7f83d", "*/5 * * * *", true, unixMillis(created) + 285_000},
		{"b594b0c1", "0 9 * * *", false, 1795337936162.9922},
		{"72b999eb", "30 9 * * *", false, 1795339759666.9905},
		{"54789a0a", "7 9 * * *", false, 1795338420000},
		{"fc3b6225", "0 0 1 1 *", false, 1798761511324.6995},
	} {
		c, _ := ParseCron(tt.expr)
		got := Job{ID: tt.id, Cron: c, Recurring: tt.recurring, Created: created}.FirstRunMillis()
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.id, tt.expr, diff)
		}
	}
}
