package claudecode

import (
	"fmt"
	"slices"
	"strings"
)

// CredentialKind is the kind of authentication of a session.
type CredentialKind string

// The credentials.
const (
	CredentialAPIKey CredentialKind = "key"   // ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN
	CredentialOAuth  CredentialKind = "oauth" // CLAUDE_CODE_OAUTH_TOKEN, of a subscription
	CredentialNone   CredentialKind = "none"
)

// Environment is what the environment variables of a session specify about account and network. The zero value describes the
// environment in which the real CLI is recorded: an API key, a non-default base URL, and no traffic other than requests to the model.
type Environment struct {
	Credential      CredentialKind // empty means CredentialAPIKey
	UsesDefaultURL  bool           // requests go to the vendor
	AllowsTelemetry bool           // neither DISABLE_TELEMETRY nor a variable that disables all traffic is set
	AllowsTraffic   bool           // CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC is not set
	TokenSource     string         // variable that contains the token; empty means none

	RequestsFastMode bool // --settings have "fastMode": true

	NoPromptCache, ShortPromptCache, LongPromptCache, NoFastMode bool // variables about the prompt cache and fast mode
}

// PromptCacheTTL returns how long requests ask the API to cache their prompts: "off", "5m" or "1h" (observed with 2.1.330).
func (e Environment) PromptCacheTTL() (ttl string) {
	switch {
	case e.NoPromptCache:
		return "off"
	case !e.ShortPromptCache && (e.LongPromptCache || e.Credential == CredentialOAuth):
		return "1h"
	}
	return "5m"
}

// EnvironmentOverrideVariable is a variable of claudeless that takes precedence over the variables of the real CLI in
// [ReadEnvironment]. Its value is a list of words, separated by commas, such as "oauth,no-traffic".
const EnvironmentOverrideVariable = "CLAUDELESS_ENVIRONMENT"

// ReadEnvironment returns the environment that variables describe. If they contain no credential, it assumes an API
// key, because most scripted runs have none. With the word login in [EnvironmentOverrideVariable], it assumes none: as in the
// real CLI, the session is then not logged in. An unknown word is an error.
func ReadEnvironment(getenv func(string) string) (Environment, error) {
	e := Environment{
		UsesDefaultURL: getenv("ANTHROPIC_BASE_URL") == "" || strings.Contains(getenv("ANTHROPIC_BASE_URL"), "//api.anthropic.com"),
		AllowsTraffic:  getenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC") == "",
	}
	e.AllowsTelemetry = e.AllowsTraffic && getenv("DISABLE_TELEMETRY") == ""
	isOn := func(name string) bool {
		return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(getenv(name))))
	}
	e.NoPromptCache, e.NoFastMode, e.ShortPromptCache, e.LongPromptCache = isOn("DISABLE_PROMPT_CACHING"), isOn("CLAUDE_CODE_DISABLE_FAST_MODE"), isOn("FORCE_PROMPT_CACHING_5M"), isOn("ENABLE_PROMPT_CACHING_1H")
	switch {
	case getenv("ANTHROPIC_AUTH_TOKEN") != "":
		e.TokenSource = "ANTHROPIC_AUTH_TOKEN"
	case getenv("CLAUDE_CODE_OAUTH_TOKEN") != "":
		e.TokenSource = "CLAUDE_CODE_OAUTH_TOKEN"
		if getenv("ANTHROPIC_API_KEY") == "" {
			e.Credential = CredentialOAuth
		}
	}
	var unknown error
	for word := range strings.SplitSeq(getenv(EnvironmentOverrideVariable), ",") {
		switch word {
		case "":
		case "login":
			if e.TokenSource == "" && getenv("ANTHROPIC_API_KEY") == "" {
				e.Credential = CredentialNone
			}
		case string(CredentialAPIKey), string(CredentialOAuth), string(CredentialNone):
			e.Credential = CredentialKind(word)
		case "default-url", "base-url":
			e.UsesDefaultURL = word == "default-url"
		case "traffic", "no-traffic":
			e.AllowsTraffic, e.AllowsTelemetry = word == "traffic", word == "traffic"
		case "no-telemetry":
			e.AllowsTelemetry = false
		default:
			unknown = fmt.Errorf("%s: unknown value %q: expected key, oauth, none, login, default-url, base-url, traffic, no-traffic or no-telemetry",
				EnvironmentOverrideVariable, word)
		}
	}
	return e, unknown
}

type environmentCondition func(Environment) bool

func hasOAuthCredential(e Environment) bool { return e.Credential == CredentialOAuth }

func hasDesignTools(e Environment) bool {
	return e.AllowsTraffic && (e.Credential != CredentialOAuth || !e.UsesDefaultURL)
}

// environmentConditionsByToolOrPlugin lists the tools and plugins that depend on the environment. Others are always available.
func environmentConditionsByToolOrPlugin() map[string]environmentCondition {
	return map[string]environmentCondition{
		"cc-plugin-telemetry": func(e Environment) bool { return e.AllowsTelemetry },
		"DesignSync":          hasDesignTools,
		"RemoteTrigger":       hasOAuthCredential,
		"WebFetch":            func(e Environment) bool { return e.Credential != CredentialOAuth || !e.UsesDefaultURL },
	}
}

func (e Environment) hasToolOrPlugin(name string) bool {
	s := environmentConditionsByToolOrPlugin()[name]
	return s == nil || s(e)
}

// usesAnthropicAPI reports whether requests go to the vendor's own API, with a key or a subscription.
func (e Environment) usesAnthropicAPI() bool {
	return e.UsesDefaultURL && e.Credential != CredentialNone && e.TokenSource != "ANTHROPIC_AUTH_TOKEN"
}

// FeedbackCommandDelivery returns how /feedback sends its text.
func (e Environment) FeedbackCommandDelivery() (disabledPostOrBundle string) {
	switch {
	case !e.AllowsTraffic:
		return "disabled"
	case e.Credential == CredentialOAuth, e.UsesDefaultURL && e.Credential != CredentialNone:
		return "post"
	}
	return "bundle"
}

// UsesAPIKeyDespiteSubscriptionToken reports whether an API key is used although a subscription token is set.
func (e Environment) UsesAPIKeyDespiteSubscriptionToken() bool {
	return e.TokenSource == "CLAUDE_CODE_OAUTH_TOKEN" && e.Credential != CredentialOAuth
}

// SubscriptionDefaultModel returns the default model of a subscription; empty means that the general default applies.
func (e Environment) SubscriptionDefaultModel() string {
	if e.Credential == CredentialOAuth {
		return "claude-sonnet-5-5"
	}
	return ""
}

// Models returns the available models that a host can choose from, in the order of the real CLI's picker, and at the end the current
// model if it is another one (observed with 2.1.330).
func (e Environment) Models(current string, available AvailableModels) []SelectableModel {
	list := slices.Clone(pickerModels())
	if e.Credential == CredentialOAuth { // A subscription prefers Sonnet and lists it before the larger models.
		sonnet := slices.IndexFunc(list, func(m SelectableModel) bool { return m.Value == "sonnet" })
		opus := slices.IndexFunc(list, func(m SelectableModel) bool { return m.Value == "opus" })
		first := list[sonnet]
		first.Value, first.DisplayName = list[0].Value, list[0].DisplayName
		list[0] = first
		list[sonnet], list[opus] = list[opus], list[sonnet]
	}
	list = slices.DeleteFunc(list, func(m SelectableModel) bool {
		return available != nil && m.Value != "default" && !available.includes(m.ResolvedModel)
	})
	resolved := WireModel(ResolveModel(current))
	if current == "opusplan" || !slices.ContainsFunc(list, func(m SelectableModel) bool { return m.ResolvedModel == resolved }) {
		list = append(list, selectableModelNamed(current))
	}
	return list
}
