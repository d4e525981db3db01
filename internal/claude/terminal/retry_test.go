package terminal

import (
	"testing"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// The row about a retry counts down the seconds. From the third attempt on, it also shows as much
// of the API's message as fits.
func TestRetryText(t *testing.T) {
	now := time.Unix(0, 0)
	for _, c := range []struct {
		retry protocol.FailedAPIRequestBeforeRetry
		after time.Duration
		cols  int
		want  string
	}{
		{protocol.FailedAPIRequestBeforeRetry{Status: 500, Message: "boom", Attempt: 1, RetryInMS: 500}, 0, 80, "API error · retrying in 1s · attempt 1/10"},
		{protocol.FailedAPIRequestBeforeRetry{Status: 500, Message: "boom", Attempt: 3, RetryInMS: 2100}, 0, 80, "500 boom · retrying in 3s · attempt 3/10"},
		{protocol.FailedAPIRequestBeforeRetry{Status: 500, Message: "boom", Attempt: 3, RetryInMS: 2100}, 1500 * time.Millisecond, 80, "500 boom · retrying in 1s · attempt 3/10"},
		{protocol.FailedAPIRequestBeforeRetry{Status: 500, Message: "boom", Attempt: 3, RetryInMS: 2100}, time.Minute, 80, "500 boom · retrying in 1s · attempt 3/10"},
		{protocol.FailedAPIRequestBeforeRetry{Message: "Connection error.", Attempt: 3, RetryInMS: 2000}, 0, 80, "Connection dropped (ECONNRESET) · retrying in 2s · attempt 3/10"},
		{protocol.FailedAPIRequestBeforeRetry{Status: 503, Message: "too long for this row", Attempt: 4, RetryInMS: 4000}, 0, 45, "503 too long… · retrying in 4s · attempt 4/10"},
	} {
		c.retry.MaxRetries = 10
		p := turnProgress{retry: &c.retry, retryAt: now.Add(time.Duration(c.retry.RetryInMS) * time.Millisecond)}
		if got := p.retryText(now.Add(c.after), c.cols); got != c.want {
			t.Errorf("%+v after %s: %q, want %q", c.retry, c.after, got, c.want)
		}
	}
}
