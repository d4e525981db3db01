package simulator

import (
	"context"
	"errors"
)

// interrupted yields what an interrupt shows and tells how the turn ends
// (spec: cli-contract 4.4). From here on the turn no longer listens to its ctx.
func (t *turn) interrupted() (finish, error) {
	superseded := errors.Is(context.Cause(t.ctx), ErrSuperseded)
	t.ctx = context.WithoutCancel(t.ctx)
	open := t.current
	if open != nil {
		if err := open.abort(); err != nil {
			return finish{}, err
		}
	}
	switch {
	case t.inTools && superseded:
		empty := ""
		return finish{subtype: "success", terminal: "aborted_tools", stop: "tool_use", result: &empty}, nil
	case t.inTools:
		return t.abortedTools()
	case !superseded:
		if err := t.inject("[Request interrupted by user]", false); err != nil {
			return finish{}, err
		}
	}
	if open != nil {
		if err := open.abandon(); err != nil {
			return finish{}, err
		}
	}
	stop := "null"
	if t.stopReason != nil {
		stop = *t.stopReason
	}
	return finish{
		subtype: "error_during_execution", terminal: "aborted_streaming", isError: true,
		errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=" + stop},
	}, nil
}

// abortedTools ends a turn whose tool was interrupted or refused for good; the
// refused calls have had their results.
func (t *turn) abortedTools() (finish, error) {
	if err := t.inject("[Request interrupted by user for tool use]", false); err != nil {
		return finish{}, err
	}
	return finish{
		subtype: "error_during_execution", terminal: "aborted_tools", isError: true, stop: "tool_use",
		errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use"},
	}, nil
}
