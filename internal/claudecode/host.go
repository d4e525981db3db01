package claudecode

// BuildTime is when the simulated CLI was built.
const BuildTime = "2026-11-19T16:23:05Z"

// Model is one line of the models that a host can choose from.
type Model struct {
	Value                    string   `json:"value"`
	ResolvedModel            string   `json:"resolvedModel"`
	DisplayName              string   `json:"displayName"`
	Description              string   `json:"description"`
	SupportsEffort           bool     `json:"supportsEffort"`
	EffortLevels             []string `json:"supportedEffortLevels"`
	SupportsAdaptiveThinking bool     `json:"supportsAdaptiveThinking"`
	SupportsFastMode         bool     `json:"supportsFastMode,omitempty"`
	SupportsAutoMode         bool     `json:"supportsAutoMode"`
	SupportsThinkingOff      bool     `json:"supportsThinkingOff"`
}

// EffortLevels returns the effort levels, lowest first.
func EffortLevels() []string { return []string{"low", "medium", "high", "xhigh", "max"} }

// models lists the models in the order of the real CLI's picker.
func models() []Model {
	levels := EffortLevels()
	return []Model{
		{"default", "claude-opus-5-5", "Default (recommended)", "Opus 5.5, for complex work", true, levels, true, true, true, false},
		{"opus", "claude-opus-5-5", "Opus", "Opus 5.5, for complex work", true, levels, true, true, true, false},
		{"fable", "claude-fable-5-2", "Fable", "Fable 5.2, for the hardest and longest work", true, levels, true, true, true, false},
		{"sonnet", "claude-sonnet-5-5", "Sonnet", "Sonnet 5.5, for everyday work", true, levels, true, false, true, false},
		{"haiku", "claude-haiku-5-5", "Haiku", "Haiku 5.5, for quick answers", true, levels, true, false, true, false},
	}
}
