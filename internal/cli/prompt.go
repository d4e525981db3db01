package cli

import (
	"context"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// readPrompt returns the prompt of a text run: the argument, the content of stdin, or both separated by a newline.
// Do not call it for stream-json input. If ctx ends first, the error is its cause.
func readPrompt(ctx context.Context, s *process.System, f *flags.Flags) (string, error) {
	prompt, err := readOptionalPrompt(ctx, s, f)
	switch {
	case err != nil:
		return "", err
	case prompt == "" && (f.Continue || f.Resume != ""):
		return "", process.Verbatimf("Error: No deferred tool marker found in the resumed session. Either the session was not deferred, the marker is " +
			"stale (tool already ran), or it exceeds the tail-scan window. Provide a prompt to continue the conversation.")
	case prompt == "":
		return "", process.Verbatimf("%sError: Input must be provided either through stdin or as a prompt argument when using --print", f.SwallowedPromptHint())
	case strings.TrimSpace(prompt) == "":
		return "", process.Verbatimf("Error: Input contained only whitespace. Provide a prompt with text through stdin or as a prompt argument when using --print")
	}
	return prompt, nil
}

// readOptionalPrompt is like readPrompt, but the prompt may be empty.
func readOptionalPrompt(ctx context.Context, s *process.System, f *flags.Flags) (string, error) {
	piped, err := s.ReadStdin(ctx)
	switch {
	case err != nil:
		return "", err
	case f.Prompt == "":
		return piped, nil
	case piped == "":
		return f.Prompt, nil
	}
	return f.Prompt + "\n" + piped, nil
}

// prompts returns the prompts of the run. If an earlier run deferred a call, the first prompt continues that call, and
// the user need not give a prompt.
func prompts(ctx context.Context, sys *process.System, f *flags.Flags, s *session.Session) ([]protocol.UserMessage, error) {
	deferred, ok := s.DeferredPrompt()
	if !ok {
		prompt, err := readPrompt(ctx, sys, f)
		return []protocol.UserMessage{{Content: protocol.Content{Text: prompt}}}, err
	}
	prompt, err := readOptionalPrompt(ctx, sys, f)
	if err != nil || prompt == "" {
		return []protocol.UserMessage{deferred}, err
	}
	return []protocol.UserMessage{deferred, {Content: protocol.Content{Text: prompt}}}, nil
}
