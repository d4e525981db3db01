package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/connection"
)

// connectionLoop is the part of the state of a server that only runUntilCancelled uses.
type connectionLoop struct {
	*server
	conn                *connection.Conn // current connection, which may be closing
	stopDial            context.CancelFunc
	dialResults         chan dialResult    // nil means not connecting
	retryTimer          *time.Timer        // nil means no attempt to connect is scheduled
	refreshResults      chan refreshResult // nil means no refresh in progress
	nextRefresh         *time.Timer        // nil means a refresh may start immediately
	wasDialed           bool
	reconnectAttempts   int              // number of attempts to reconnect in a row
	stableAfter         <-chan time.Time // fires when the connection has lasted long enough that losing it is not a failed attempt
	firstConnectRetries int              // number of retries of the first connect after temporary errors
}

// runUntilCancelled connects, reconnects and refreshes the server until ctx ends.
func (l *connectionLoop) runUntilCancelled(ctx context.Context) {
	defer close(l.done)
	defer l.shutdown(ctx)
	if l.cfg.Disabled {
		l.setStateDisabled()
	} else {
		l.setConnectingAndStartDial(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-l.stateChanges:
			l.applyRequestedStateChange(ctx, o)
			close(o.accepted)
		case r := <-l.dialResults:
			l.useConnectionOrScheduleRetry(ctx, r)
		case <-l.connectionLost():
			l.closeLostAndReconnectOrFail(ctx)
		case <-timerChannel(l.retryTimer):
			l.retryTimer = nil
			l.startDialInBackground(ctx)
		case <-l.refreshMayStart():
			l.startListRefresh(ctx)
		case <-timerChannel(l.nextRefresh):
			l.nextRefresh = nil
		case fresh := <-l.refreshResults:
			l.refreshResults = nil
			l.storeRefreshedLists(fresh)
		}
	}
}

func timerChannel(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func (l *connectionLoop) connectionLost() <-chan struct{} {
	if l.conn == nil {
		return nil
	}
	return l.conn.Lost()
}

// refreshMayStart returns a channel that is ready when the server's lists have changed; nil while no refresh may start.
func (l *connectionLoop) refreshMayStart() <-chan struct{} {
	if l.conn == nil || l.refreshResults != nil || l.nextRefresh != nil {
		return nil
	}
	return l.conn.ListsChanged()
}

func (l *connectionLoop) applyRequestedStateChange(ctx context.Context, requested stateChangeRequest) {
	switch requested.target {
	case StateConnected:
		if l.conn == nil && l.dialResults == nil {
			if requested.singleAttempt {
				l.firstConnectRetries = maxFirstConnectOrListRetries
			} else {
				l.reconnectAttempts, l.firstConnectRetries = 0, 0
				l.updateStatusAndNotify(func(st *status) { st.cannotLogIn = false })
			}
			l.setConnectingAndStartDial(ctx)
		}
	case StateDisabled:
		l.dropConnectionAndAttempts(ctx)
		l.setStateDisabled()
	default:
		l.dropConnectionAndAttempts(ctx)
		l.updateStatusAndNotify(func(st *status) { st.state = StateDisconnected })
	}
}

func (l *connectionLoop) setStateDisabled() {
	l.updateStatusAndNotify(func(st *status) { st.state = StateDisabled })
}

func (l *connectionLoop) setConnectingAndStartDial(ctx context.Context) {
	l.updateStatusAndNotify(func(st *status) { st.state = StateConnecting })
	l.startDialInBackground(ctx)
}

func (l *connectionLoop) startDialInBackground(ctx context.Context) {
	l.cancelScheduledRetry()
	dialCtx, stop := context.WithCancel(ctx)
	result := make(chan dialResult, 1)
	isFirst, skipsLogin := !l.wasDialed, l.current.cannotLogIn
	l.dialResults, l.stopDial, l.wasDialed = result, stop, true
	l.goroutines.Go(func() { // returns after the attempt, which has a time limit
		result <- l.connectOnce(ctx, dialCtx, isFirst, skipsLogin)
	})
}

func (l *connectionLoop) useConnectionOrScheduleRetry(ctx context.Context, r dialResult) {
	l.stopDial()
	l.dialResults, l.stopDial = nil, nil
	if r.err != nil {
		l.scheduleRetryOrMarkFailed(r.err)
		return
	}
	l.firstConnectRetries, l.stableAfter = 0, time.After(l.options.Pauses.Reconnect)
	l.conn = r.conn
	if !r.conn.IsModern() { // the real CLI ignores changes that were reported earlier
		r.conn.ForgetChanges()
	}
	l.updateStatusAndNotify(func(st *status) {
		st.state, st.conn, st.initResult, st.lists = StateConnected, r.conn, r.conn.InitializeResult(), r.lists
	})
	if errors.Is(r.lists.err, ErrConnectionClosed) {
		l.conn = nil
		l.updateStatusAndNotify(func(st *status) { st.conn = nil })
		l.closeInBackground(ctx, r.conn)
		return
	}
	if r.conn.IsConnectionLostOrClosed() {
		l.closeLostAndReconnectOrFail(ctx)
		return
	}
	l.renewResourceSubscriptions(ctx, r.conn)
}

func (l *connectionLoop) scheduleRetryOrMarkFailed(dialErr error) {
	var d *connection.DialError
	if !errors.As(dialErr, &d) {
		d = &connection.DialError{Reason: dialErr.Error(), CLIText: connection.CLIStartErrorText(dialErr), CLICode: connection.CLIErrorCode(dialErr)}
	}
	if (l.reconnectAttempts > 0 || d.IsLossAfterHandshake) && l.reconnectAttempts < maxReconnectsBeforeFailed && !d.NeedsAuth {
		l.scheduleReconnectAttempt()
		l.updateStatusAndNotify(func(st *status) {
			st.state, st.attempt, st.connectError, st.cliErrorText, st.cliErrorCode = StateReconnecting, l.reconnectAttempts, d.Reason, d.CLIText, d.CLICode
		})
		return
	}
	wasConnected := l.reconnectAttempts > 0
	if wasConnected && d.IsTransient {
		l.scheduleReconnectAttempt()
	} else {
		l.reconnectAttempts = 0
	}
	isRetried := d.IsTransient && !wasConnected && l.firstConnectRetries < maxFirstConnectOrListRetries
	if isRetried {
		l.retryTimer = time.NewTimer(l.options.Pauses.Retry * connectPauseFactors[l.firstConnectRetries])
		l.firstConnectRetries++
	}
	l.updateStatusAndNotify(func(st *status) {
		st.state, st.connectError, st.cliErrorText, st.cliErrorCode = StateFailed, d.Reason, d.CLIText, d.CLICode
		st.isRetried, st.isFinal = isRetried, d.IsFinal || d.Status == http.StatusTooManyRequests
		st.cannotLogIn = st.cannotLogIn || d.CannotLogIn
		st.failedAttempts++
		switch {
		case d.NeedsAuth:
			st.state = StateNeedsAuth
		case wasConnected && !l.isHTTPOrSSE():
			st.state = StateLost
		}
	})
}

// connectPauseFactors are the pauses before a first connect is retried, as multiples of [RetryPauses.Retry]. With the default of
// 250 ms they are 0.5, 1.5 and 4 s (observed with 2.1.330). During a pause the server counts as failed.
var connectPauseFactors = [maxFirstConnectOrListRetries]time.Duration{2, 6, 16} // never changed

// maxReconnectsBeforeFailed is the number of attempts to reconnect before a server counts as failed. If the error is temporary, the
// attempts go on even then.
const maxReconnectsBeforeFailed = 5

// reconnectPause returns the pause after a number of attempts to reconnect. The real CLI 2.1.330 pauses for random times around
// 0, 1, 2, 4 and 8 s, then between 15 s and a limit that doubles from 30 s to 5 min. The result is the mean value.
func reconnectPause(attempts int, unit time.Duration) time.Duration {
	const shortest, first, longest = 15, 30, 300
	switch {
	case attempts == 0:
		return 0
	case attempts < maxReconnectsBeforeFailed:
		return unit << (attempts - 1)
	}
	return unit * time.Duration(shortest+min(first<<min(attempts-maxReconnectsBeforeFailed, 10), longest)) / 2
}

func (l *connectionLoop) scheduleReconnectAttempt() {
	l.retryTimer = time.NewTimer(reconnectPause(l.reconnectAttempts, l.options.Pauses.Reconnect))
	l.reconnectAttempts++
}

func (l *connectionLoop) cancelScheduledRetry() {
	if l.retryTimer != nil {
		l.retryTimer.Stop()
		l.retryTimer = nil
	}
}

func (l *connectionLoop) closeLostAndReconnectOrFail(ctx context.Context) {
	c := l.conn
	l.conn = nil
	reason := string(c.GivenUpReason())
	if reason == "" {
		reason = cmp.Or(c.ProcessExitReason(connection.ExitWait), ErrConnectionClosed.Error())
	}
	if c.PID() != 0 {
		tail := c.RedactedStderrTail()
		l.updateStatusAndNotify(func(st *status) { st.stderrTail = tail })
	}
	l.closeInBackground(ctx, c)
	if c.GivenUpReason() == connection.LostNeedsAuth { // another attempt would also be refused
		l.scheduleRetryOrMarkFailed(&connection.DialError{Reason: reason, CLIText: reason, NeedsAuth: true})
		return
	}
	wasUsed := c.WasAnyToolCalled()
	select {
	case <-l.stableAfter:
		wasUsed = true
	default:
	}
	if l.reconnectAttempts > 0 && l.isHTTPOrSSE() && !wasUsed {
		l.scheduleRetryOrMarkFailed(&connection.DialError{Reason: reason, CLIText: connection.ClosedAgainText, IsTransient: true, IsLossAfterHandshake: true})
		return
	}
	l.reconnectAttempts = 0
	if auto := l.cfg.AutoReconnect; auto == nil && l.isHTTPOrSSE() || auto != nil && *auto {
		l.reconnectAttempts = 1
		l.setConnectingAndStartDial(ctx)
		return
	}
	l.updateStatusAndNotify(func(st *status) {
		st.state, st.connectError, st.cliErrorText, st.cliErrorCode = StateFailed, reason, ErrConnectionClosed.Error(), connection.ClosedCode
		if l.cfg.Type == typeStdio || l.cfg.Type == "" {
			st.state = StateLost
		}
	})
}

func (l *connectionLoop) closeInBackground(ctx context.Context, c *connection.Conn) {
	l.goroutines.Go(func() { c.Close(context.WithoutCancel(ctx)) }) // returns soon, because Close has a time limit
}

func (l *connectionLoop) dropConnectionAndAttempts(ctx context.Context) {
	l.cancelScheduledRetry()
	l.reconnectAttempts = 0
	if l.dialResults != nil {
		l.stopDial()
		if r := <-l.dialResults; r.conn != nil {
			l.closeInBackground(ctx, r.conn)
		}
		l.dialResults = nil
	}
	if l.conn != nil {
		l.closeInBackground(ctx, l.conn)
		l.conn = nil
	}
}

// shutdown closes everything and returns when all processes and connections of the server have ended.
func (l *connectionLoop) shutdown(ctx context.Context) {
	l.cancelScheduledRetry()
	if l.nextRefresh != nil {
		l.nextRefresh.Stop()
	}
	if l.dialResults != nil { // ctx is cancelled, so the attempt fails soon
		if r := <-l.dialResults; r.conn != nil {
			l.conn = r.conn
		}
	}
	if l.conn != nil {
		l.updateStatusAndNotify(func(st *status) { st.state = StateClosing })
		l.conn.Close(context.WithoutCancel(ctx))
	}
	l.updateStatusAndNotify(func(st *status) { st.state = StateDisconnected })
}

type refreshResult struct {
	conn            *connection.Conn
	listChangesSeen int64 // number of list changes that the server had reported before the fetch, so the lists contain them
	lists           serverLists
	err             error
}

// startListRefresh fetches the changed lists, at most once per minPauseBetweenListRefreshes.
func (l *connectionLoop) startListRefresh(ctx context.Context) {
	c := l.conn
	result := make(chan refreshResult, 1)
	l.refreshResults = result
	l.nextRefresh = time.NewTimer(minPauseBetweenListRefreshes)
	changed, seen := c.TakeChanges()
	st, _ := l.statusAndChangeSignal()
	l.goroutines.Go(func() { // returns within the connect timeout
		limit, stop := context.WithTimeout(ctx, l.connectTimeout())
		defer stop()
		fresh, err := listFetcher{c, l.cfg, l.options.Pauses.Retry, l.options.Listing}.fetchListsWithRetries(limit, st.lists, changed)
		err = cmp.Or(err, fresh.err)
		result <- refreshResult{c, seen, fresh, err}
	})
}

// storeRefreshedLists replaces the lists of a server by newly fetched lists. If fetching failed, the old lists stay.
func (l *connectionLoop) storeRefreshedLists(r refreshResult) {
	if r.conn != l.conn {
		return
	}
	l.updateStatusAndNotify(func(st *status) {
		r.conn.MarkFetched(r.listChangesSeen)
		if r.err != nil {
			st.warnings = []string{fmt.Sprintf("refreshing the lists failed: %v", r.err)}
			return
		}
		st.lists = r.lists
	})
}

const minPauseBetweenListRefreshes = 100 * time.Millisecond

// renewResourceSubscriptions renews, in the background, an earlier connection's subscriptions. It drops those that the server refuses.
func (l *connectionLoop) renewResourceSubscriptions(ctx context.Context, c *connection.Conn) {
	l.mu.Lock()
	uris := slices.Sorted(maps.Keys(l.subscriptions))
	l.mu.Unlock()
	if len(uris) == 0 {
		return
	}
	l.goroutines.Go(func() { // returns within the connect timeout
		limit, stop := context.WithTimeout(ctx, l.connectTimeout())
		defer stop()
		for _, uri := range uris {
			if err := c.Subscribe(limit, uri); err != nil {
				c.Log().Printf("subscribing again failed: %v", err)
				l.mu.Lock()
				delete(l.subscriptions, uri)
				l.mu.Unlock()
			}
		}
	})
}
