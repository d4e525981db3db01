package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
)

func setOutputStyleAndAnswer(o Options, name string) string {
	current := o.State.SessionStateSnapshot().OutputStyle
	styles := o.Catalog.OutputStyleNames()
	switch {
	case name != "" && !slices.Contains(styles, name):
		return fmt.Sprintf("Unknown output style %q. Available styles: %s", name, strings.Join(styles, ", "))
	case name != "":
		o.State.SetOutputStyle(name)
		return "Output style set to " + name
	}
	about := map[string]string{}
	for _, s := range claudecode.OutputStyles() {
		about[s.Name] = s.Description
	}
	var b strings.Builder
	b.WriteString("Output style: " + current + "\n\nAvailable styles:")
	for _, s := range styles {
		b.WriteString("\n- " + s)
		if s == current {
			b.WriteString(" (current)")
		}
		if about[s] != "" {
			b.WriteString(": " + about[s])
		}
	}
	return b.String() + "\n\nUsage: /output-style <style>"
}

// setTitleAndAnswer sets the title and returns the answer. If title is empty, it sets nothing and newTitle is empty.
func setTitleAndAnswer(o Options, title string) (text, newTitle string) {
	if title == "" {
		return "Couldn't generate a name: no conversation yet. Usage: /rename <name>", ""
	}
	o.State.SetTitle(title)
	o.Session.SetTitle(title)
	return "Session renamed to: " + title, title
}

// SessionName returns the name by which other sessions address a session.
func SessionName(title, sessionID string) (titleWithShortID string) {
	return fmt.Sprintf("%s [%.6s]", cmp.Or(title, "session"), strings.ReplaceAll(sessionID, "-", ""))
}

// answerAndPromptBarColor returns the answer to /color and the new color of the prompt bar. If name is empty, the color
// does not change; if none was set, it becomes green.
func answerAndPromptBarColor(current, name string) (text, color string) {
	colors := []string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan", "default"}
	switch {
	case name == "":
		name = cmp.Or(current, "green")
	case !slices.Contains(colors, name):
		return fmt.Sprintf("%q isn't an available color. Options: %s", name, strings.Join(colors, ", ")), current
	}
	return "Session color set to: " + name, name
}

// answerAndModelToSet returns the answer to /model and the model to switch to; nil means no change.
func answerAndModelToSet(o Options, name string) (text string, newModel *string) {
	const usage = "Usage: /model <name>. Available: sonnet, opus, haiku, fable, best, sonnet[1m], opus[1m], fable[1m], opusplan, default, or a full model ID."
	switch name {
	case "", "?":
		return "Current model: `" + modelDisplayText(o.State.NextRequestModel()) + "`\n" + usage, nil
	case "help":
		return usage, nil
	case "default":
		name = ""
	}
	text = "Set model to `" + modelDisplayText(name) + "` for this session only"
	if full := claudecode.ResolveModel(name); !strings.HasPrefix(full, "claude-") {
		text += fmt.Sprintf("\nClaude Code doesn't recognize the model %q, so it assumes a context window of 1m tokens. "+
			"Update Claude Code, or see https://code.claude.com/docs/en/model-config#correct-the-window-for-a-gateway-or-custom-model-id to set the window.", name)
	}
	return text, &name
}

func modelDisplayText(name string) string {
	shown := claudecode.ModelDisplayName(claudecode.ResolveModel(name))
	if name == "opusplan" {
		shown = "Opus in plan mode, else Sonnet"
	}
	if name == "" || name == "default" || name == claudecode.DefaultModel {
		shown += " (default)"
	}
	return shown
}

// effortDescriptions returns the first sentence of the real CLI's description of each effort level.
func effortDescriptions() map[string]string {
	return map[string]string{
		"low": "Quick, straightforward implementation with minimal overhead", "medium": "Balanced approach with standard implementation and testing",
		"high": "Comprehensive implementation with extensive testing and documentation", "xhigh": "Deeper reasoning than high, just below maximum (on supported models)",
		"max": "Maximum capability with deepest reasoning.",
	}
}

func setEffortAndAnswer(o Options, level string) string {
	level = strings.ToLower(level)
	current := cmp.Or(o.State.SessionStateSnapshot().Effort, "medium")
	switch description := effortDescriptions()[level]; {
	case level == "":
		return "Usage: /effort <low|medium|high|xhigh|max|auto|ultracode [on|off]>"
	case level == "ultracode", level == "ultracode on":
		return "Ultracode on (this session only): dynamic workflows on every task. Effort stays " + current + "."
	case level == "ultracode off":
		return "Ultracode off. Effort stays " + current + "."
	case level == "auto":
		o.State.SetReportedEffort("")
		return "Effort level set to auto (this session only)"
	case description == "":
		return "Unknown option: " + level + ". Options: low, medium, high, xhigh, max, auto, ultracode [on|off]"
	default:
		o.State.SetReportedEffort(level)
		return "Set effort level to " + level + " (this session only): " + description
	}
}
