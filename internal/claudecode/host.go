package claudecode

import (
	_ "embed" // for picker_models.json
	"slices"
	"strings"
	"time"
)

// BuildTime is when the simulated CLI was built.
const BuildTime = "2026-11-19T16:23:05Z"

// SelectableModel is one entry in the list of models that a host can choose from.
type SelectableModel struct {
	Value                    string   `json:"value"`
	ResolvedModel            string   `json:"resolvedModel"`
	DisplayName              string   `json:"displayName"`
	Description              string   `json:"description"`
	SupportsEffort           bool     `json:"supportsEffort,omitempty"`
	EffortLevels             []string `json:"supportedEffortLevels,omitempty"`
	SupportsAdaptiveThinking bool     `json:"supportsAdaptiveThinking,omitempty"`
	SupportsFastMode         bool     `json:"supportsFastMode,omitempty"`
	SupportsAutoMode         bool     `json:"supportsAutoMode,omitempty"`
	SupportsThinkingOff      bool     `json:"supportsThinkingOff"`
}

// EffortLevels returns the effort levels, lowest first.
func EffortLevels() []string { return []string{"low", "medium", "high", "xhigh", "max"} }

//go:embed picker_models.json
var pickerModelTable string

// pickerModels lists the models in the order of the real CLI's picker.
var pickerModels = tableFromJSON[SelectableModel](pickerModelTable)

// selectableModelNamed describes a model that the picker does not list under its full name.
func selectableModelNamed(name string) SelectableModel {
	resolved := ResolveModel(name)
	facts := FactsOfModel(resolved)
	m := SelectableModel{
		Value: name, ResolvedModel: resolved, DisplayName: ModelDisplayName(facts.Name), Description: "Model of this session",
		SupportsEffort: facts.DefaultEffort != "", SupportsAdaptiveThinking: facts.HasAutoMode(), SupportsAutoMode: facts.HasAutoMode(),
		SupportsFastMode: facts.HasFastMode, SupportsThinkingOff: !facts.EffortPerTurn && !strings.Contains(resolved, "fable"),
	}
	m.EffortLevels = slices.DeleteFunc(EffortLevels(), func(level string) bool {
		return !m.SupportsEffort || level == "xhigh" && !facts.HasUltracode || level == "max" && !m.SupportsAdaptiveThinking
	})
	if name == "opusplan" {
		m.DisplayName = "Opus Plan Mode"
	}
	return m
}

// Delays before a screen appears, measured with Claude Code 2.1.330 on an idle machine of two cores. Until then, typed
// text is kept for the first draft, and no key answers a dialog.
const (
	DelayFromStartToFirstDialog           = 480 * time.Millisecond // from the start to the first dialog before the session
	DelayFromDialogAnswerToNextDialog     = 100 * time.Millisecond // from answering a dialog until the next dialog
	DelayFromLastDialogAnswerToInputField = 350 * time.Millisecond // from answering the last dialog until the input field appears
	DelayFromAutoModeToItsExplanation     = 800 * time.Millisecond // from the start of auto mode until the text about it appears

	// DialogExitConfirmWindow is the time within which a second Ctrl-C or Ctrl-D ends a dialog before the session.
	DialogExitConfirmWindow = 800 * time.Millisecond
)

// DialogInputLockout specifies which key presses a dialog ignores right after it has appeared, and for how long.
type DialogInputLockout struct {
	Length time.Duration
	AnyKey bool // every key is ignored, not only Enter and digits
}

// InputLockoutOfDialog returns which keys a dialog ignores at first, and how long. dialog is "permission", "question", "plan",
// or "dialog/KIND" for a dialog before the session. The time was measured with Claude Code 2.1.330: keys were sent 0 to
// 600 ms after the text of the dialog. Enter had no effect during the first 80 to 150 ms in dialogs before the session,
// and during the first 140 to 160 ms in others.
func InputLockoutOfDialog(dialog string) DialogInputLockout {
	const length = 150 * time.Millisecond
	return map[string]DialogInputLockout{
		"dialog/trust": {length, true}, "dialog/mcp": {length, true},
		"permission": {length, false}, "question": {length, false}, "plan": {length, false},
	}[dialog]
}
