package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func (h *hostedSession) CLIVersion() (version, buildTime string) {
	return h.session.Plan().Version, claudecode.BuildTime
}

func (h *hostedSession) Directory() string { return h.session.Plan().CWD }

// AnswerQueryOrReload handles requests that only read the session's state.
func (h *hostedSession) AnswerQueryOrReload(subtype string) (any, bool) {
	switch subtype {
	case "get_context_usage":
		return contextUsageFor(h.session), true
	case "get_settings":
		return h.describeSettings(), true
	case "get_usage":
		return usageAnswerFor(h.session), true
	case "list_permission_rules":
		return permissionRulesAnswerFor(h.session), true
	case "list_models":
		return answerWithKey{"models", h.modelsToChooseFrom()}, true
	case "get_session_cost":
		return answerWithKey{"text", h.session.CostUntilLastTurnEnd().Text()}, true
	case "get_hooks_listing":
		return h.listConfiguredHooks(), true
	case "reload_skills":
		haveNamesChanged := h.session.Plan().Catalog.ReloadCommands()
		return reloadSkillsAnswer{h.skillsListedForModel(), haveNamesChanged, h.initializeAnswer().Commands}, true
	case "reload_plugins":
		haveNamesChanged := h.session.Plan().Catalog.ReloadCommands()
		return h.newReloadPluginsAnswer(haveNamesChanged), true
	case "get_plan":
		_, plan := h.session.PlanModeFile()
		return answerWithKey{"exists", plan != ""}, true
	case "get_status":
		return answerWithKey{"sections", sessionStatusSections(h.session)}, true
	case "reload_output_styles":
		return answerWithKey{"available_output_styles", h.session.Plan().Catalog.OutputStyleNames()}, true
	}
	return nil, false
}

type reloadSkillsAnswer struct {
	Skills           []protocol.ShownCommand `json:"skills"`
	haveNamesChanged bool
	commands         []protocol.ShownCommand
}

// reloadPluginsAnswer is the answer to reload_plugins. It lists the loaded plugins without reading them again, but reads commands and skills again.
type reloadPluginsAnswer struct {
	Agents   []Agent                 `json:"agents"`
	Commands []protocol.ShownCommand `json:"commands"`
	Errors   int                     `json:"error_count"`
	Servers  []serverStatus          `json:"mcpServers"`
	Plugins  []protocol.Plugin       `json:"plugins"`

	haveNamesChanged bool
}

func (h *hostedSession) newReloadPluginsAnswer(haveNamesChanged bool) reloadPluginsAnswer {
	said := h.session.Plan().Profile.InitEventTemplate()
	h.session.Plan().Catalog.FillInit(&said)
	d := h.initializeAnswer()
	return reloadPluginsAnswer{d.Agents, d.Commands, len(said.PluginErrors), serverStatusesForHost(h.session.ServerStatuses(), h.session.Plan().Profile), said.Plugins, haveNamesChanged}
}

func answerQueryOrReload(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	reply, ok := r.describer.AnswerQueryOrReload(in.Subtype)
	if !ok {
		return control.ResponseWithEvents{}, unsupportedError(in.Subtype)
	}
	answer := control.ResponseWithEvents{Payload: reply}
	skills, _ := reply.(reloadSkillsAnswer)
	plugins, _ := reply.(reloadPluginsAnswer)
	if skills.haveNamesChanged || plugins.haveNamesChanged {
		answer.EventsBefore = []protocol.Event{&protocol.SystemEvent{Subtype: "commands_changed", Fields: []protocol.Field{{Key: "commands", Value: slices.Concat(skills.commands, plugins.Commands)}}}}
	}
	return answer, nil
}

func checkThenRun(check func(controlRequest) error, run serveFunc) serveFunc {
	return func(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
		if err := check(in); err != nil {
			return control.ResponseWithEvents{}, err
		}
		return run(ctx, r, in)
	}
}

func checkDetailIsSummaryOrFull(in controlRequest) error {
	switch string(in.keys["detail"]) {
	case "", "null", `"summary"`, `"full"`:
		return nil
	}
	return in.typeError("detail", "'summary' or 'full'")
}

func checkSkipBehaviorsIsBoolean(in controlRequest) error {
	if !plainjson.IsSet(in.keys["skip_behaviors"]) {
		return nil
	}
	_, err := in.requiredBoolKey("skip_behaviors")
	return err
}

func answerBinaryVersion(_ context.Context, r *requestServer, _ controlRequest) (control.ResponseWithEvents, error) {
	version, built := r.describer.CLIVersion()
	return control.ResponseWithEvents{Payload: struct {
		Version          string `json:"version"`
		BuildTime        string `json:"buildTime"`
		OldestDesktopSDK string `json:"oldestDesktopSdk"`
	}{version, built, "0.3.280"}}, nil
}

type listedPermissionRule struct {
	Behavior    string                `json:"behavior"`
	Source      string                `json:"source"`
	Rule        string                `json:"rule"`
	Description *ruleTextWithEmphasis `json:"description,omitempty"`
	Editability string                `json:"editability"` // persistent, readonly, session
}

type ruleTextWithEmphasis struct {
	Prefix   string `json:"prefix"`
	Emphasis string `json:"emphasis,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
}

type permissionRulesAnswer struct {
	State permissionRulesAndDirectories `json:"state"`
}

type permissionRulesAndDirectories struct {
	ManagedOnly bool                          `json:"managedOnly"`
	CWD         string                        `json:"originalCwd"`
	Rules       []listedPermissionRule        `json:"rules"`
	Directories []permission.WorkingDirectory `json:"workspaceDirectories"`
}

// permissionRulesAnswerFor handles list_permission_rules: allow, ask and deny rules, grouped by source.
func permissionRulesAnswerFor(s *session.Session) permissionRulesAnswer {
	list := []listedPermissionRule{}
	for _, r := range s.Policy().Rules() {
		parts := r.Parts()
		row := listedPermissionRule{Behavior: r.Behavior, Source: r.Source, Rule: permission.FormatRule(parts), Description: ruleDescriptionIfNeeded(parts), Editability: "session"}
		switch r.Source {
		case "userSettings", "projectSettings", "localSettings":
			row.Editability = "persistent"
		case "flagSettings", "policySettings":
			row.Editability = "readonly"
		}
		list = append(list, row)
	}
	behaviors := []string{permission.BehaviorAllow, permission.BehaviorAsk, permission.BehaviorDeny}
	sources := []string{"userSettings", "projectSettings", "localSettings", "flagSettings", "policySettings", "cliArg", "command", "session"}
	slices.SortStableFunc(list, func(a, b listedPermissionRule) int {
		return cmp.Or(slices.Index(behaviors, a.Behavior)-slices.Index(behaviors, b.Behavior), slices.Index(sources, a.Source)-slices.Index(sources, b.Source))
	})
	return permissionRulesAnswer{permissionRulesAndDirectories{CWD: s.Plan().CWD, Rules: list, Directories: s.Policy().AdditionalDirectories()}}
}

// ruleDescriptionIfNeeded describes in words what a rule covers. It returns nil if the rule needs no explanation.
func ruleDescriptionIfNeeded(r protocol.PermissionRule) *ruleTextWithEmphasis {
	switch {
	case r.RuleContent == "" && r.ToolName == "Bash":
		return &ruleTextWithEmphasis{Prefix: "Any Bash command"}
	case r.RuleContent == "":
		return &ruleTextWithEmphasis{Prefix: "Any use of the ", Emphasis: r.ToolName, Suffix: " tool"}
	case r.ToolName != "Bash":
		return nil
	}
	for _, wildcard := range []string{":*", " *"} {
		if start, ok := strings.CutSuffix(r.RuleContent, wildcard); ok {
			return &ruleTextWithEmphasis{Prefix: "Any Bash command starting with ", Emphasis: start}
		}
	}
	return &ruleTextWithEmphasis{Prefix: "The Bash command ", Emphasis: r.RuleContent}
}

type statusSection struct {
	Title string      `json:"title"`
	Rows  []statusRow `json:"rows"`
}

type statusRow struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// sessionStatusSections describes the session and its environment (observed with 2.1.330).
func sessionStatusSections(s *session.Session) []statusSection {
	plan := s.Plan()
	rows := []statusRow{{"Version", plan.Version}, {"Session ID", s.State().SessionID()}, {"Session kind", "interactive"}}
	if socket := session.RealCLIMessagingSocketPath(*plan); socket != "" {
		rows = append(rows, statusRow{"Peer address", "uds:" + socket})
	}
	rows = append(rows, statusRow{"cwd", plan.CWD})
	if plan.APIKeySource != "none" {
		rows = append(rows, statusRow{"API key", plan.APIKeySource})
	}
	environment := []statusRow{{"Model", claudecode.ResolveModel(s.State().NextRequestModel())}}
	if url := anthropicBaseURLFromEnv(plan.Environ); url != "" {
		rows = append(rows, statusRow{"Anthropic base URL", url})
		environment = append(environment, statusRow{"Managed settings (remote)", "not fetched — not available with a custom ANTHROPIC_BASE_URL"},
			statusRow{"Organization policy", "not fetched with a custom ANTHROPIC_BASE_URL"})
	}
	return []statusSection{{"Session", rows}, {"Environment", append(environment, statusRow{"Auto mode server", "Disabled"})}}
}

func anthropicBaseURLFromEnv(environ []string) string {
	url := ""
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, "ANTHROPIC_BASE_URL="); ok {
			url = value
		}
	}
	return url
}

type fileSuggestionsAnswer struct {
	Suggestions []fileSuggestion `json:"suggestions"`
	CWD         string           `json:"cwd"`
}

type fileSuggestion struct {
	Path string `json:"path"`
}

// answerFileSuggestions lists the files whose path begins with the query. A name without a directory matches
// no file, because the real CLI looks it up in an index that is empty right after the start.
func answerFileSuggestions(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	cwd := r.describer.Directory()
	answer := fileSuggestionsAnswer{Suggestions: []fileSuggestion{}, CWD: cwd}
	query, ok := plainjson.StringValue(in.keys["query"])
	dir, prefix := filepath.Split(strings.TrimPrefix(query, "./"))
	if !ok || dir == "" && prefix != "" || dir != "" && prefix == "" {
		return control.ResponseWithEvents{Payload: answer}, nil
	}
	entries, _ := os.ReadDir(filepath.Join(cwd, dir)) // a directory that cannot be read has no files
	for _, files := range []bool{false, true} {
		for _, e := range entries {
			path := dir + e.Name()
			if !strings.HasPrefix(e.Name(), prefix) || e.IsDir() == files {
				continue
			}
			if e.IsDir() {
				path += "/"
			}
			answer.Suggestions = append(answer.Suggestions, fileSuggestion{path})
		}
	}
	return control.ResponseWithEvents{Payload: answer}, nil
}

// validateMessageRating checks the user's rating of a message. The rating is not stored.
func validateMessageRating(_ context.Context, _ *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	_, named := plainjson.StringValue(in.keys["messageUuid"])
	sentiment, _ := plainjson.StringValue(in.keys["sentiment"])
	surface, _ := plainjson.StringValue(in.keys["surface"])
	var cleared bool
	switch {
	case !named, sentiment != "positive" && sentiment != "negative",
		in.hasKey("surface") && surface != "tool_use" && surface != "assistant_text",
		in.hasKey("cleared") && json.Unmarshal(in.keys["cleared"], &cleared) != nil:
		return control.ResponseWithEvents{}, errors.New(`message_rated: messageUuid must be a string, sentiment "positive" or "negative", ` +
			`surface "tool_use" or "assistant_text", and cleared a boolean`)
	}
	return control.ResponseWithEvents{Payload: struct{}{}}, nil
}
