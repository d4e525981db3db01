package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// TakeAsyncFrames returns the hook_progress and hook_response events of asynchronous hooks that it has not returned before.
// The events have no ids.
func (r *Runner) TakeAsyncFrames() []*protocol.SystemEvent { return takeAll(&r.mu, &r.asyncFrames) }

// AsyncFrameAdded signals that [Runner.TakeAsyncFrames] has events. Several events may cause one signal.
func (r *Runner) AsyncFrameAdded() <-chan struct{} { return r.asyncFrameAdded }

// TakeAsyncAnswers returns the answers of asynchronous hooks that it has not returned before. The model receives their texts,
// and the transcript the attachment, before the next request (observed with 2.1.330).
func (r *Runner) TakeAsyncAnswers() []*protocol.AttachmentAdded {
	return takeAll(&r.mu, &r.asyncAnswers)
}

// TakeEventStats returns the reports that it has not returned before, in the order in which the hooks finished.
func (r *Runner) TakeEventStats() []protocol.HookEventStats { return takeAll(&r.mu, &r.reports) }

func takeAll[T any](mu *sync.Mutex, list *[]T) []T {
	mu.Lock()
	defer mu.Unlock()
	taken := *list
	*list = nil
	return taken
}

// watchAsyncHookInGoroutine starts to watch a hook in the background until it ends, its timeout expires or the runner is closed.
func (r *Runner) watchAsyncHookInGoroutine(ctx context.Context, c *eventRun, a hookResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		a.detached.process.Stop(ctx)
		return
	}
	r.asyncHooks.Go(func() { r.awaitStopAndRecordAsyncHook(ctx, c, a) }) // returns when the command exits, its timeout expires or Close is called
}

func (r *Runner) awaitStopAndRecordAsyncHook(ctx context.Context, c *eventRun, a hookResult) {
	p, out := a.detached.process, a.detached.output
	defer a.detached.timer.Stop()
	tick := time.NewTicker(max(r.options.ProgressEvery, time.Millisecond))
	defer tick.Stop()
	var last partialOutput
	for {
		select {
		case <-tick.C:
			if now := (partialOutput{out.output(), p.StderrTail()}); now != last && r.options.ProgressEvery > 0 {
				last = now
				r.addAsyncFrameUnlessHidden(c, hookProgressEvent(c, &a, now))
			}
			continue
		case <-p.Done():
			out.waitForOutputEnd(outputDrainTimeout)
		case <-a.detached.timer.C:
		case <-r.closing:
		}
		break
	}
	p.Stop(ctx)
	<-out.ended
	exit, _ := p.ExitStatus()
	a.stdout, a.stderr, a.exitCode = out.output(), p.StderrTail(), &exit.Code
	switch {
	case exit.Signal != "": // a hook that was stopped counts as cancelled, with exit code 1 (observed with 2.1.330)
		exit.Code, a.outcome = 1, outcomeCancelled
	case exit.Code != 0:
		a.outcome = outcomeError
	}
	r.addAsyncFrameUnlessHidden(c, hookResponseEvent(c, &a))
	if answer := asyncAnswerAttachmentOrNil(c, &a, p.PID()); answer != nil {
		r.mu.Lock()
		r.asyncAnswers = append(r.asyncAnswers, answer)
		r.mu.Unlock()
	}
}

func (r *Runner) addAsyncFrameUnlessHidden(c *eventRun, frame *protocol.SystemEvent) {
	if c.event == "SessionEnd" || c.event == "StopFailure" || c.event == "InstructionsLoaded" { // frames of these events are not shown
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asyncFrames = append(r.asyncFrames, frame)
	select {
	case r.asyncFrameAdded <- struct{}{}:
	default: // the channel has a value already
	}
}

// asyncAnswerAttachmentOrNil returns the answer of an ended hook. A hook that was stopped has none, and neither has one that succeeded
// without an answer or an error text.
func asyncAnswerAttachmentOrNil(c *eventRun, a *hookResult, pid int) *protocol.AttachmentAdded {
	answer, hasAnswer := answerAfterAsyncRequest(a.stdout)
	if a.outcome == outcomeCancelled || !hasAnswer && *a.exitCode == 0 && strings.TrimSpace(a.stderr) == "" {
		return nil
	}
	fields := []protocol.Field{{Key: "processId", Value: "async_hook_" + strconv.Itoa(pid)}, {Key: "hookName", Value: c.hookName}, {Key: "hookEvent", Value: c.event}}
	if _, tool, isTool := strings.Cut(c.hookName, ":"); c.event == "SessionStart" {
		fields = append(fields, protocol.Field{Key: "command", Value: a.entry.singleLineLabel()})
	} else if isTool {
		fields = append(fields, protocol.Field{Key: "toolName", Value: tool})
	}
	fields = append(fields, protocol.Field{Key: "response", Value: answer}, protocol.Field{Key: "stdout", Value: a.stdout},
		protocol.Field{Key: "stderr", Value: a.stderr}, protocol.Field{Key: "exitCode", Value: *a.exitCode})
	texts := []string{answer.SystemMessage, cmp.Or(answer.Specific, &protocol.HookSpecificOutput{}).AdditionalContext}
	ev := &protocol.AttachmentAdded{Attachment: protocol.HookAttachment{Type: "async_hook_response", Fields: fields}}
	if ev.Rendered = slices.DeleteFunc(texts, func(text string) bool { return text == "" }); len(ev.Rendered) > 0 {
		ev.Role = "system"
	}
	return ev
}

// answerAfterAsyncRequest returns the answer in the output of an asynchronous hook: one JSON object after the request to run in the
// background, or else the first line with an object.
func answerAfterAsyncRequest(stdout string) (answer protocol.HookOutput, ok bool) {
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	rest := lines
	if isAsyncRequest(lines[0]) {
		rest = lines[1:]
	}
	for _, text := range append([]string{strings.Join(rest, "\n")}, lines...) {
		object, isObject := parseJSONObjectText(text)
		if answer = (protocol.HookOutput{}); isObject && json.Unmarshal(object, &answer) == nil && !answer.Async {
			return answer, answer != protocol.HookOutput{}
		}
	}
	return protocol.HookOutput{}, false
}
