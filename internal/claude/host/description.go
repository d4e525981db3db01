package host

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// InitializeAnswer is the answer to initialize. Its first keys are those in the SDK's types, in the same order.
type InitializeAnswer struct {
	startFrames           []protocol.Event        // of SessionStart hooks; written before the answer
	firstPrompt           string                  // of the main agent
	Commands              []protocol.ShownCommand `json:"commands"`
	Agents                []Agent                 `json:"agents"`
	OutputStyle           string                  `json:"output_style"`
	AvailableOutputStyles []string                `json:"available_output_styles"`
	UserOutputStylesDir   string                  `json:"user_output_styles_dir,omitempty"`
	Models                any                     `json:"models"`
	Account               CredentialSources       `json:"account"`
	PID                   int                     `json:"pid"`
	ClaudeCodeVersion     string                  `json:"claude_code_version"`
	PermissionMode        string                  `json:"current_permission_mode"`
	HooksApplied          bool                    `json:"hooks_applied,omitempty"`
	PluginsApplied        *bool                   `json:"plugins_applied,omitempty"`     // nil means that the request listed no plugins
	MCPServersApplied     *bool                   `json:"mcp_servers_applied,omitempty"` // nil means that the request listed no servers

	// ManifestsParked has the outcome of each handshake in the request, by server: "parked" if it was stored, otherwise
	// the reason why it was not.
	ManifestsParked map[string]string `json:"sdk_mcp_manifests_parked,omitempty"`

	AuthConflict *AuthConflict `json:"auth_conflict,omitempty"` // nil means none

	OnFailureSupported  bool                `json:"hook_on_failure_supported"`
	HooksKept           int                 `json:"hooks_when_unanswered_kept"`
	AskOutranksHost     bool                `json:"other_hook_ask_outranks_host"`
	SandboxEnabled      bool                `json:"sandbox_enabled"`
	FeedbackMode        FeedbackSendingMode `json:"feedback_mode"`
	AnalyticsDisabled   bool                `json:"analytics_disabled"`
	RemoteAutoEnable    bool                `json:"remote_control_auto_enable"`
	RemoteAutoConnect   bool                `json:"remote_control_auto_connect_default"`
	RemoteAvailable     bool                `json:"remote_control_available"`
	RemoteAutoOn        bool                `json:"remote_control_auto_on_by_default"`
	IDERemoteAutoEnable bool                `json:"ide_rc_auto_enable_gate"`

	FastModeState          string   `json:"fast_mode_state"`
	FastModeDisabledReason string   `json:"fast_mode_disabled_reason,omitempty"`
	SessionState           string   `json:"session_state"`
	Capabilities           []string `json:"capabilities"`
}

// Agent describes a type of sub-agent to the host.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"` // "inherit" or an alias
}

// CredentialSources describes the credentials of the session.
type CredentialSources struct {
	TokenSource  string `json:"tokenSource"`
	APIKeySource string `json:"apiKeySource,omitempty"`
	APIProvider  string `json:"apiProvider"`
}

// AuthConflict names two credentials, of which the API key is used.
type AuthConflict struct {
	APIKeySource string `json:"api_key_source"`
	TokenSource  string `json:"token_source"`
}

// FeedbackSendingMode tells the host how /feedback sends its text: Kind is "disabled", "post" or "bundle".
type FeedbackSendingMode struct {
	Kind string `json:"kind"`
}

// initializeAnswer builds the answer to initialize (spec: cli-contract 4.2).
func (h *hostedSession) initializeAnswer() InitializeAnswer {
	plan := h.session.Plan()
	said := plan.Profile.InitEventTemplate()
	plan.Catalog.FillInit(&said)
	env := plan.Profile.Environment()
	d := InitializeAnswer{
		Commands: plan.Catalog.DescribeCommands(plan.Profile, said.SlashCommands), Agents: []Agent{},
		OutputStyle: said.OutputStyle, AvailableOutputStyles: plan.Catalog.OutputStyleNames(),
		Models: h.modelsToChooseFrom(), PID: plan.PID, ClaudeCodeVersion: plan.Version,
		Account:           CredentialSources{TokenSource: cmp.Or(env.TokenSource, "none"), APIKeySource: strings.TrimPrefix(plan.APIKeySource, "none"), APIProvider: "firstParty"},
		FeedbackMode:      FeedbackSendingMode{Kind: env.FeedbackCommandDelivery()},
		AnalyticsDisabled: said.AnalyticsDisabled, RemoteAvailable: env.UsesDefaultURL,
		Capabilities: plan.Profile.CapabilitiesToldToHost(),
	}
	d.FastModeState, d.FastModeDisabledReason = plan.Profile.FastMode(plan.Model.Name)
	if env.UsesAPIKeyDespiteSubscriptionToken() {
		d.AuthConflict = &AuthConflict{plan.APIKeySource, env.TokenSource}
	}
	if plan.State != "" {
		d.UserOutputStylesDir = filepath.Join(plan.State, "output-styles")
	}
	d.OutputStyle = h.session.State().SessionStateSnapshot().OutputStyle
	for _, a := range plan.Catalog.Agents() {
		d.Agents = append(d.Agents, Agent{Name: a.Name, Description: a.Description, Model: a.Model})
	}
	return d
}

func (h *hostedSession) modelsToChooseFrom() []claudecode.SelectableModel {
	return h.session.Plan().Profile.Environment().Models(h.session.State().NextRequestModel(), h.session.Plan().Settings.AvailableModels)
}

// skillsListedForModel describes the skills and commands that the context of the model lists.
func (h *hostedSession) skillsListedForModel() []protocol.ShownCommand {
	var names []string
	for _, k := range h.session.Plan().Catalog.Commands() {
		if k.IsListedForModel() {
			names = append(names, k.Name)
		}
	}
	return h.session.Plan().Catalog.DescribeCommands(h.session.Plan().Profile, names, h.session.Plan().Profile.BuiltInSkillsListedForModel()...)
}
