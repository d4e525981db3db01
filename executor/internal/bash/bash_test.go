package bash

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/task"
)

func TestTimeoutBounds(t *testing.T) {
	n := func(i int) *tool.IntFromJSONNumber { v := tool.IntFromJSONNumber(i); return &v }
	for _, tt := range []struct {
		environ []string
		given   *tool.IntFromJSONNumber
		want    time.Duration
	}{
		{nil, nil, 120 * time.Second},
		{nil, n(5), 5 * time.Millisecond},
		{nil, n(10_000_000), 600 * time.Second},
		{nil, n(-1), 120 * time.Second},
		{[]string{"BASH_DEFAULT_TIMEOUT_MS=7"}, nil, 7 * time.Millisecond},
		{[]string{"BASH_MAX_TIMEOUT_MS=900000"}, n(10_000_000), 900 * time.Second},
		{[]string{"BASH_MAX_TIMEOUT_MS=x"}, n(10_000_000), 600 * time.Second},
	} {
		c := New(Options{Shell: tool.NewShell(tool.ShellOptions{Environ: tt.environ})})
		if got := c.timeoutOfCall(bashInput{Timeout: tt.given}); got != tt.want {
			t.Errorf("%v %v: %v, want %v", tt.environ, tt.given, got, tt.want)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 1500 * time.Millisecond: "1s", 2 * time.Minute: "2m 0s", 3661 * time.Second: "1h 1m 1s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("duration(%v) = %q, want %q", d, got, want)
		}
	}
}

// A foreground command becomes a task for hosts after 3 s, as observed with CLI 2.1.329.
func TestLongCommandIsShown(t *testing.T) {
	tests := []struct {
		name  string
		ends  time.Duration // 0 means never
		limit time.Duration
		want  foregroundWaitOutcome
		shown bool
	}{
		{"short", delayBeforeShowingForegroundCommandAsTask - time.Millisecond, time.Minute, outcomeFinished, false},
		{"long", delayBeforeShowingForegroundCommandAsTask + time.Second, time.Minute, outcomeFinished, true},
		{"too long", 0, delayBeforeShowingForegroundCommandAsTask + time.Second, outcomeTimedOut, true},
		{"too long soon", 0, time.Second, outcomeTimedOut, false},
		{"stopped", 0, time.Hour, outcomeInterrupted, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				done := make(chan struct{})
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, func() { close(done) })
				}
				r := &runningCommand{commands: New(Options{Tasks: task.New(task.Options{NewID: func() string { return "00000000-0000-4000-8000-000000000001" }})}), timeout: tt.limit, done: done}
				if got := r.waitForExitOrTimeout(ctx); got != tt.want {
					t.Errorf("outcome %d, want %d", got, tt.want)
				}
				if (r.task != nil) != tt.shown {
					t.Errorf("shown as a task: %v", r.task != nil)
				}
			})
		})
	}
}

// TestPreview: a preview is measured in UTF-16 units and ends at a line end of its second half.
func TestPreview(t *testing.T) {
	for _, tt := range []struct{ name, output, want string }{
		{"short", strings.Repeat("é", 2000), strings.Repeat("é", 2000)},
		{"one line", strings.Repeat("é", 2001), strings.Repeat("é", 2000) + "\n..."},
		{"two units", strings.Repeat("😀", 1500), strings.Repeat("😀", 1000) + "\n..."},
		{"middle of a character", "a" + strings.Repeat("😀", 1500), "a" + strings.Repeat("😀", 999) + "\n..."},
		{"before a character", strings.Repeat("é", 2000) + "😀", strings.Repeat("é", 2000) + "\n..."},
		{"early line end", strings.Repeat("é", 1000) + "\n" + strings.Repeat("x", 2000), strings.Repeat("é", 1000) + "\n" + strings.Repeat("x", 999) + "\n..."},
		{"late line end", strings.Repeat("é", 1001) + "\n" + strings.Repeat("x", 2000), strings.Repeat("é", 1001) + "\n..."},
	} {
		if diff := cmp.Diff(tt.want, outputPreview(tt.output)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
