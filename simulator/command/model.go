package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
)

// chooseModel returns the answer to /model and the model that it changes to; nil means no change.
func chooseModel(o Options, name string) (text string, change *string) {
	const usage = "Usage: /model <name>. Available: sonnet, opus, haiku, fable, best, sonnet[1m], opus[1m], fable[1m], opusplan, default, or a full model ID."
	switch name {
	case "", "?":
		return "Current model: `" + modelText(o.State.Model()) + "`\n" + usage, nil
	case "help":
		return usage, nil
	case "default":
		name = ""
	}
	text = "Set model to `" + modelText(name) + "` for this session only"
	if full := claudecode.ResolveModel(name); !strings.HasPrefix(full, "claude-") {
		text += fmt.Sprintf("\nClaude Code doesn't recognize the model %q, so it assumes a context window of 1m tokens. "+
			"Update Claude Code, or see https://code.claude.com/docs/en/model-config#correct-the-window-for-a-gateway-or-custom-model-id to set the window.", name)
	}
	return text, &name
}

// modelText formats a model name as /model does.
func modelText(name string) string {
	shown := claudecode.DisplayModel(claudecode.ResolveModel(name))
	if name == "opusplan" {
		shown = "Opus in plan mode, else Sonnet"
	}
	if name == "" || name == "default" || name == claudecode.DefaultModel {
		shown += " (default)"
	}
	return shown
}

func chooseEffort(o Options, level string) string {
	const options = "low, medium, high, xhigh, max, auto, ultracode [on|off]"
	switch {
	case level == "":
		return "Usage: /effort <low|medium|high|xhigh|max|auto|ultracode [on|off]>"
	case !slices.Contains(strings.Split(options, ", ")[:6], level):
		return "Unknown option: " + level + ". Options: " + options
	}
	o.State.SetEffort(level)
	text := "Set effort level to " + level + " (this session only)"
	if level == "high" {
		text += ": Comprehensive implementation with extensive testing and documentation"
	}
	return text
}
