package tape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

type stepReasonError string

func (f stepReasonError) Error() string { return string(f) }

func (r *Playback) performAllActionsOfStep(ctx context.Context, s *Step) error {
	err := r.waitForScreen(ctx, s)
	if err == nil && s.SettleMS > 0 && s.Snapshot == "" {
		err = r.settle(ctx, s)
	}
	if err == nil && s.SleepMS > 0 {
		err = r.sleep(ctx, s)
	}
	if err == nil {
		err = r.typePasteSelectAndPressKeys(ctx, s)
	}
	if err == nil && s.Gate != "" {
		err = r.openGate(s.Gate)
	}
	if err == nil && s.Snapshot != "" {
		err = r.settleAndCaptureScreen(ctx, s)
	}
	if err == nil && s.Exit != nil {
		err = r.awaitExpectedExit(ctx, s)
	}
	return err
}

func (s *Step) timeout() time.Duration {
	if s.TimeoutMS > 0 {
		return time.Duration(s.TimeoutMS) * time.Millisecond
	}
	return defaultTimeout
}

func (s *Step) settleTime() time.Duration {
	if s.SettleMS > 0 {
		return time.Duration(s.SettleMS) * time.Millisecond
	}
	return settleTime
}

func (r *Playback) screenText() string { return r.Screen.Screen().TextWithAllRows() }

func (r *Playback) waitForScreen(ctx context.Context, s *Step) error {
	for _, w := range []struct {
		given, what string
		ok          func() bool
	}{
		{s.Wait, "waited for the text " + backquote(s.Wait), func() bool { return strings.Contains(r.screenText(), s.Wait) }},
		{s.WaitRE, "waited for a match of " + backquote(s.WaitRE), func() bool { return s.pattern.MatchString(r.screenText()) }},
		{s.Gone, "waited until the text " + backquote(s.Gone) + " is gone", func() bool { return !strings.Contains(r.screenText(), s.Gone) }},
	} {
		if w.given == "" {
			continue
		}
		if err := r.stepErrorAfterWait(r.waitUntil(ctx, s.timeout(), w.ok), w.what, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *Playback) stepErrorAfterWait(err error, what string, s *Step) error {
	switch {
	case errors.Is(err, errTimeout):
		return stepReasonError(fmt.Sprintf("%s for %s", what, s.timeout()))
	case errors.Is(err, io.EOF):
		<-r.Program.Done() // the program has closed its terminal, so it will exit
		return stepReasonError(fmt.Sprintf("%s, but the program exited: %s", what, r.Program.WaitExit()))
	}
	return err
}

func (r *Playback) sleep(ctx context.Context, s *Step) error {
	select {
	case <-r.Clock.After(time.Duration(s.SleepMS) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Playback) typePasteSelectAndPressKeys(ctx context.Context, s *Step) error {
	if s.Type != "" {
		if err := r.typeTextAndAwaitOptionalEcho(ctx, s.Type); err != nil {
			return err
		}
	}
	if s.Paste != "" {
		text := strings.ReplaceAll(s.Paste, "\n", "\r")
		if r.Screen.Modes().BracketedPaste {
			text = "\x1b[200~" + text + "\x1b[201~"
		}
		if err := r.sendAndWaitUntilQuiet(ctx, text, keyQuietTime, maxKeyWait); err != nil {
			return err
		}
	}
	if s.Select != "" {
		if err := r.pressDownUntilOptionSelected(ctx, s); err != nil {
			return err
		}
	}
	for _, key := range s.keys {
		if r.Screen.Modes().CursorKeys && len(key) == 3 && strings.HasPrefix(key, "\x1b[") && key[2] <= 'H' {
			key = "\x1bO" + key[2:]
		}
		if err := r.sendAndWaitUntilQuiet(ctx, key, keyQuietTime, maxKeyWait); err != nil {
			return err
		}
	}
	return nil
}

func (r *Playback) sendAndWaitUntilQuiet(ctx context.Context, sequence string, quiet, limit time.Duration) error {
	if err := r.sendInputToProgram(sequence); err != nil {
		return err
	}
	return r.waitUntilQuietOrLimit(ctx, quiet, limit)
}

// pressDownUntilOptionSelected presses Down until the step's option is selected. The first option follows the last one.
func (r *Playback) pressDownUntilOptionSelected(ctx context.Context, step *Step) error {
	const most = 20
	for range most {
		if step.option.MatchString(r.screenText()) {
			return nil
		}
		down, _ := KeySequence("Down") // the key is known
		if err := r.sendAndWaitUntilQuiet(ctx, down, settleTime, maxWaitForQuietOutput); err != nil {
			return err
		}
	}
	return stepReasonError("found no option that begins with " + backquote(step.Select))
}

func (r *Playback) typeTextAndAwaitOptionalEcho(ctx context.Context, text string) error {
	const most = 20 // maximum number of runes; a longer echo may be wrapped
	tail := []rune(text)
	tail = tail[max(0, len(tail)-most):]
	before := strings.Count(r.screenText(), string(tail))
	if err := r.sendInputToProgram(text); err != nil {
		return err
	}
	err := r.waitUntil(ctx, echoTimeout, func() bool { return strings.Count(r.screenText(), string(tail)) > before })
	if errors.Is(err, errTimeout) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (r *Playback) openGate(name string) error {
	if r.OpenGate == nil {
		return stepReasonError("the step opens a gate, but no scenario with gates is running")
	}
	return r.OpenGate(name)
}

func (r *Playback) settle(ctx context.Context, s *Step) error {
	return r.waitUntilQuietOrLimit(ctx, s.settleTime(), max(maxWaitForQuietOutput, s.settleTime()))
}

func (r *Playback) settleAndCaptureScreen(ctx context.Context, s *Step) error {
	if err := r.settle(ctx, s); err != nil {
		return err
	}
	r.mu.Lock()
	page := CapturedScreen{Name: s.Snapshot, State: s.State, Enter: s.Enter, Screen: r.Screen.Screen(), Offset: r.outputBytes}
	r.mu.Unlock()
	if r.Page == nil {
		return nil
	}
	return r.Page(page)
}

func (r *Playback) awaitExpectedExit(ctx context.Context, s *Step) error {
	select {
	case <-r.Program.Done():
	case <-r.Clock.After(s.timeout()):
		return stepReasonError(fmt.Sprintf("the program did not exit within %s", s.timeout()))
	case <-ctx.Done():
		return ctx.Err()
	}
	if exit := r.Program.WaitExit(); exit.Code != *s.Exit {
		return stepReasonError(fmt.Sprintf("the program exited with %s, expected exit status %d", exit, *s.Exit))
	}
	return nil
}
