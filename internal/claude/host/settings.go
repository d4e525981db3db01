package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/slash"
)

// hostedSession is a session with the settings that its host has changed. The plan keeps the settings from the start.
type hostedSession struct {
	session *session.Session

	mu           sync.Mutex                 // guards the following fields
	hostSettings map[string]json.RawMessage // set by the host; they override --settings
	reloaded     *settings.Settings         // all settings after the last reload; nil means unchanged since the start
}

// currentSettings returns the settings as they are now. The caller holds h.mu.
func (h *hostedSession) currentSettings() *settings.Settings {
	return cmp.Or(h.reloaded, &h.session.Plan().Settings.Settings)
}

// reloadSettingsWithoutApplying reads all settings again. The caller holds h.mu.
func (h *hostedSession) reloadSettingsWithoutApplying() error {
	o := h.session.Plan().Settings.Options
	o.HostSettings = h.hostSettings
	loaded, err := settings.Load(o)
	if err == nil {
		h.reloaded = &loaded
	}
	return err
}

// ApplySettings implements settingsUpdater. If keys have invalid values, it returns these keys and applies nothing.
func (h *hostedSession) ApplySettings(in map[string]json.RawMessage) (invalidKeys []string) {
	if invalidKeys = settings.KeysWithInvalidNonNullValue(in); len(invalidKeys) > 0 {
		return invalidKeys
	}
	if raw := in["effortLevel"]; raw != nil && !slices.Contains(claudecode.EffortLevels(), stringOrEmpty(raw)) {
		in["effortLevel"] = json.RawMessage("null")
	}
	h.mu.Lock()
	h.hostSettings = settings.MergeTopLevelKeys(h.hostSettings, in)
	err := h.reloadSettingsWithoutApplying()
	now := *h.currentSettings()
	h.mu.Unlock()
	if err != nil { // for example because the file of --settings no longer exists
		h.session.JournalAndWarningWriter().WarnOnStderr(err.Error())
		return nil
	}
	if in["model"] != nil {
		h.session.SetModel(stringOrEmpty(in["model"]))
	}
	if in["outputStyle"] != nil {
		h.session.State().SetOutputStyle(cmp.Or(now.OutputStyle, "default"))
	}
	if in["effortLevel"] != nil {
		h.session.State().SetReportedEffort(cmp.Or(stringOrEmpty(in["effortLevel"]), h.session.Plan().Model.Effort))
	}
	if in["permissions"] != nil {
		h.session.Policy().ReplaceRules(string(settings.SourceFlag), launch.RulesFrom(now, settings.SourceFlag))
		h.session.Policy().ReplaceDirectories(launch.SourceReportedForDirectoriesFromSettings, h.session.Plan().AbsolutePathsOfExistingDirs(now.Permissions.Directories))
	}
	if in["hooks"] != nil && !now.DisableAllHooks {
		h.session.Hooks().ReplaceSettingsHooks(hook.SettingsHooks{Name: string(settings.SourceFlag), Raw: hooksSettingOfSource(now, settings.SourceFlag)})
	}
	return nil
}

func stringOrEmpty(raw json.RawMessage) string {
	return plainjson.DecodeIgnoringErrors[string](raw) // a value that is not a string results in ""
}

func hooksSettingOfSource(s settings.Settings, source settings.Source) (hooksJSON json.RawMessage) {
	for _, h := range s.Hooks {
		if h.Source == source {
			return h.Raw
		}
	}
	return nil
}

// WriteOutputStyleAndEffort writes settings to the user's or the project's file. A changed output style applies at once.
func (h *hostedSession) WriteOutputStyleAndEffort(source string, valuesByName map[string]string) error {
	path := h.session.Plan().Settings.Options.FileToWrite(settings.Source(source))
	if !h.session.Plan().Settings.IsSourceEnabled(strings.TrimSuffix(source, "Settings")) || h.session.Plan().State == "" {
		return fmt.Errorf("update_settings: the %s source is disabled for this session (--setting-sources)", source)
	}
	file, err := plainjson.ReadFileOrEmpty(path)
	if err != nil {
		return err
	}
	if style, ok := valuesByName["outputStyle"]; ok {
		file = file.Set("outputStyle", json.RawMessage(plainjson.MarshalString(style)))
	}
	if level, ok := valuesByName["effortLevel"]; ok && level != "max" {
		if file, err = withDefaultEffortOfModel(file, h.session.Model(), level); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(file.Indented()+"\n"), 0o644)); err != nil {
		return err
	}
	if style, ok := valuesByName["outputStyle"]; ok {
		h.session.State().SetOutputStyle(style)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reloadSettingsWithoutApplying()
}

func withDefaultEffortOfModel(file plainjson.Object, model, level string) (plainjson.Object, error) {
	models, _ := plainjson.Parse(file.Get("modelSettings")) // a missing or invalid value is replaced
	one, _ := plainjson.Parse(models.Get(model))
	raw, err := one.Set("effortLevel", json.RawMessage(plainjson.MarshalString(level))).MarshalJSON()
	if err != nil {
		return nil, err
	}
	if raw, err = models.Set(model, raw).MarshalJSON(); err != nil {
		return nil, err
	}
	return file.Set("modelSettings", raw), nil
}

// AddWorkingDirectory adds a directory to the working directories (error texts as in Claude Code 2.1.329). The directory must
// be below the session's working directory or below a directory of --add-dir.
func (h *hostedSession) AddWorkingDirectory(givenPath string) (absPath string, _ error) {
	refuse := func(text string) (string, error) { return "", errors.New("register_repo_root: " + text) }
	path := givenPath
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.session.Plan().CWD, path)
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return refuse("target path could not be resolved")
	}
	below := h.session.Plan().CWD != dir && strings.HasPrefix(dir, h.session.Plan().CWD+string(filepath.Separator))
	for _, d := range h.session.Policy().AdditionalDirectories() {
		if d.Path == dir {
			return refuse(givenPath + " is already a registered working directory")
		}
		below = below || d.Source == "cliArg" && strings.HasPrefix(dir, d.Path+string(filepath.Separator))
	}
	info, err := os.Stat(dir)
	switch {
	case dir == h.session.Plan().CWD:
		return refuse(givenPath + " is the session's working directory, which is already registered; pass the cloned repo's own directory instead")
	case !below:
		return refuse(givenPath + " is not a subdirectory of the session's working directory or of a launch-time --add-dir root that still leads where it first did")
	case err != nil || !info.IsDir():
		return refuse(givenPath + " is not a directory")
	}
	h.session.Policy().Apply([]protocol.PermissionUpdate{{Type: "addDirectories", Directories: []string{dir}, Destination: session.HostAddedDirSource}})
	return dir, nil
}

// SetThinkingBudget implements settingsUpdater.
func (h *hostedSession) SetThinkingBudget(tokens *int) {
	thinking := h.session.State().SessionStateSnapshot().Thinking
	thinking.Budget = tokens
	h.session.State().SetThinking(thinking)
}

// RecordModelChange implements settingsUpdater. It records the command /model with arguments.
func (h *hostedSession) RecordModelChange(arguments string, output protocol.UserEvent) {
	command := protocol.Content{Text: slash.Call{Args: arguments}.LocalCommandTags("model")}
	session.RecordAtNextTurnBoundary(h.session, &protocol.HostCommandRan{Command: &protocol.PromptAccepted{UUID: h.session.Plan().Clock.NewID(), LocalCommand: true, Content: command}, Output: &output})
}

// overrideFlagSettings applies settings that override --settings for the rest of the session: all of them or none.
func overrideFlagSettings(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	settings, err := in.settingsObject()
	if err != nil {
		return control.ResponseWithEvents{}, err
	}
	before := r.identity.Model()
	if wrong := r.settings.ApplySettings(settings); len(wrong) > 0 {
		return control.ResponseWithEvents{}, fmt.Errorf("%s: nothing in this request was applied and earlier settings stay in force. "+
			"Fix or remove these invalid settings and send it again: %s", in.Subtype, strings.Join(wrong, ", "))
	}
	r.reportAndRecordModelChange(before, "", stringOrEmpty(settings["model"]))
	return control.ResponseWithEvents{}, nil
}

func (r controlRequest) settingsObject() (valuesByName map[string]json.RawMessage, _ error) {
	raw := r.keys["settings"]
	var settings map[string]json.RawMessage
	if json.Unmarshal(raw, &settings) == nil && settings != nil {
		return settings, nil
	}
	kind := plainjson.TypeOf(raw)
	if kind == "array" {
		kind = "an array"
	}
	return nil, fmt.Errorf("%s requires `settings` to be an object, got %s", r.Subtype, kind)
}

// writeOutputStyleOrEffortSetting writes a setting to a file: the output style to the project's local settings, and the default
// effort of the current model to the user's settings.
func writeOutputStyleOrEffortSetting(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	settings, err := in.settingsObject()
	if err != nil {
		return control.ResponseWithEvents{}, err
	}
	source := plainjson.JSString(in.keys["source"])
	key, ok := map[string]string{"localSettings": "outputStyle", "userSettings": "effortLevel"}[source]
	switch {
	case !ok:
		return control.ResponseWithEvents{}, fmt.Errorf("%s: unsupported source %s", in.Subtype, source)
	case len(settings) == 0:
		return control.ResponseWithEvents{}, fmt.Errorf("%s requires at least one key", in.Subtype)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != key {
			return control.ResponseWithEvents{}, fmt.Errorf("%s keys not allowed: %s", in.Subtype, name)
		}
	}
	value, ok := plainjson.StringValue(settings[key])
	switch {
	case !ok:
		return control.ResponseWithEvents{}, fmt.Errorf("%s values must be strings (deletion is not supported): %s", in.Subtype, key)
	case key == "effortLevel" && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, value):
		return control.ResponseWithEvents{}, fmt.Errorf("%s: effortLevel must be one of low, medium, high, xhigh, max", in.Subtype)
	}
	return control.ResponseWithEvents{Payload: struct{}{}}, r.settings.WriteOutputStyleAndEffort(source, map[string]string{key: value})
}

// addWorkingDirectory adds a working directory. The directory must be below one of the initial working directories.
func addWorkingDirectory(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	given, ok := plainjson.StringValue(in.keys["directory"])
	if !ok {
		return control.ResponseWithEvents{}, errors.New(in.Subtype + ": target path could not be resolved")
	}
	dir, err := r.settings.AddWorkingDirectory(given)
	return control.ResponseWithEvents{Payload: map[string]string{"directory": dir}}, err
}

type settingsAnswer struct {
	Applied   appliedSettings  `json:"applied"`
	Effective json.RawMessage  `json:"effective"`
	Served    string           `json:"served_settings_state"`
	Sources   []settingsSource `json:"sources"`
}

type settingsSource struct {
	Source   settings.Source `json:"source"`
	Settings json.RawMessage `json:"settings"`
}

// appliedSettings is the part of the answer that reports the effect of the settings.
type appliedSettings struct {
	Advisor             *string `json:"advisor"` // nil means none
	Effort              *string `json:"effort"`  // nil means the model has no effort levels
	LaunchEnvLeft       bool    `json:"launchEnvLeftOwnFilesInPlace"`
	Model               string  `json:"model"`
	CountLaunchFolders  bool    `json:"outsideBlocksCountLaunchFoldersOnly"`
	ReadsBlocked        bool    `json:"outsideFileToolReadsBlocked"`
	WritesBlocked       bool    `json:"outsideFileToolWritesBlocked"`
	Ultracode           bool    `json:"ultracode"`
	UltracodeAvailable  bool    `json:"ultracodeAvailable"`
	UltracodeRequested  bool    `json:"ultracodeRequested"`
	UltrathinkAvailable bool    `json:"ultrathinkAvailable"`
}

func (h *hostedSession) describeSettings() settingsAnswer {
	live := h.session.State().SessionStateSnapshot()
	out := settingsAnswer{Served: "ineligible", Sources: []settingsSource{}, Applied: appliedSettings{Model: h.session.Model(), UltracodeAvailable: claudecode.FactsOfModel(h.session.Model()).HasUltracode}}
	if live.Effort != "" {
		out.Applied.Effort = &live.Effort
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.currentSettings()
	merged := now.Merged()
	out.Applied.UltracodeRequested = merged["ultracode"] == true
	out.Applied.Ultracode = out.Applied.UltracodeRequested && out.Applied.UltracodeAvailable
	for _, layer := range now.Layers {
		if strings.TrimSpace(string(layer.Raw)) != "{}" {
			out.Sources = append(out.Sources, settingsSource{layer.Source, layer.Raw})
		}
	}
	if raw, err := protocol.Marshal(merged); err == nil { // the settings were parsed from JSON, so they can be encoded
		out.Effective = raw
	}
	return out
}

func (h *hostedSession) listConfiguredHooks() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.currentSettings()
	var sources []hook.SettingsHooks
	for _, s := range now.Hooks {
		sources = append(sources, hook.SettingsHooks{Name: string(s.Source), Raw: s.Raw})
	}
	return hook.List(sources, hook.Policy{AllDisabled: now.DisableAllHooks})
}

func setPermissionMode(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name, _ := plainjson.StringValue(in.keys["mode"])
	mode := protocol.PermissionMode(name)
	if mode == "manual" {
		mode = protocol.ModeDefault
	}
	before := r.session.Policy().Mode()
	if err := r.session.Policy().SetMode(mode); err != nil {
		if refused, ok := errors.AsType[*permission.ModeError](err); ok {
			err = &control.CodedResponseError{Code: refused.Code, Text: err.Error()}
		}
		return control.ResponseWithEvents{}, err
	}
	a := control.ResponseWithEvents{Payload: map[string]protocol.PermissionMode{"mode": mode}}
	if mode != before {
		a.EventsAfter = []protocol.Event{protocol.ModeChangedEvent(mode)}
	}
	return a, nil
}

// setModelAndRecordChange switches the model. A missing key, null and "default" select the default. If the model is refused, the error
// names the model that stays in use.
func setModelAndRecordChange(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name := ""
	if raw := in.keys["model"]; plainjson.IsSet(raw) {
		var ok bool
		if name, ok = plainjson.StringValue(raw); !ok {
			return control.ResponseWithEvents{}, &control.CodedResponseError{Code: "invalid_request", Text: in.typeError("model", "a string").Error(), ModelInUse: r.identity.Model()}
		}
		if code, text := modelNameError(name); code != "" {
			return control.ResponseWithEvents{}, &control.CodedResponseError{Code: code, Text: text, ModelInUse: r.identity.Model()}
		}
	}
	before := r.identity.Model()
	r.identity.SetModel(name)
	r.reportAndRecordModelChange(before, claudecode.RequestedNameUnlessDefault(name), cmp.Or(name, "default"))
	answer := control.ResponseWithEvents{Payload: map[string]string{"model": r.identity.Model()}}
	if in.IsBehindPrompt {
		r.session.State().SetTurnModel(before)
	}
	return answer, nil
}

// modelNameError returns the error code and text for an impossible model name. An empty code means it is acceptable.
func modelNameError(name string) (code, text string) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "":
		return "catalog_unknown", `Model "(unrecognized model name)" is not a recognized model id. Run /model to see available models.`
	case "haiku[1m]":
		return "alias_1m_unsupported", "'haiku[1m]' isn't available: the haiku setting switches models in plan mode and has no 1M form. " +
			"Run /model haiku, or /model sonnet[1m] for a 1M context window."
	}
	return "", ""
}

// reportAndRecordModelChange writes the message that the model has changed, but nothing before the first turn
// (spec: cli-observed 5). requestedModel is the name that the host sent, such as opus, or empty. The message shows it
// before the name of the model. The transcript shows the change as a command with commandArguments.
func (r *requestServer) reportAndRecordModelChange(previousModel, requestedModel, commandArguments string) {
	now := r.identity.Model()
	if !r.conn.HasAnyTurnStarted() || now == previousModel {
		return
	}
	shown := now
	if requestedModel != "" && requestedModel != now {
		shown = requestedModel + " (" + now + ")"
	}
	yes, text := true, "<local-command-stdout>Set model to `"+strings.ReplaceAll(shown, "`", "")+"`</local-command-stdout>"
	output := protocol.UserEvent{Type: "user", Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}}, UUID: r.metadata.NewID()}
	r.settings.RecordModelChange(commandArguments, output)
	output.IsReplay = &yes
	r.conn.WriteEventOutsideTurn(&output)
}

// setThinkingBudget sets the thinking budget; null means the largest one. The display mode is validated, but has no effect.
func setThinkingBudget(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	whole := true
	var budget *int
	if tokens := in.keys["max_thinking_tokens"]; plainjson.IsSet(tokens) {
		n, err := strconv.Atoi(string(tokens))
		budget, whole = &n, err == nil
	}
	switch string(in.keys["thinking_display"]) {
	case "", "null", `"summarized"`, `"omitted"`, `"highlights"`:
		if whole {
			r.settings.SetThinkingBudget(budget)
			return control.ResponseWithEvents{}, nil
		}
	}
	return control.ResponseWithEvents{}, fmt.Errorf(`%s: max_thinking_tokens must be an integer or null and thinking_display must be "summarized", "omitted", "highlights", or null`, in.Subtype)
}

// validateMCPPermissionModeOverride validates a permission mode for one server. The mode is not stored and has no effect.
func validateMCPPermissionModeOverride(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	name, raw := stringOrEmpty(in.keys["serverName"]), in.keys["mode"]
	mode, _ := plainjson.StringValue(raw)
	switch string(raw) {
	case "null", `"default"`, `"auto"`:
	default:
		if _, err := permission.ParseMode(mode); err != nil || mode == "" {
			return control.ResponseWithEvents{}, &control.ResponseError{Text: "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"}
		}
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "Permission mode override over the control channel is tighten-only ('default', 'auto', or null); rejected '" + mode + "'"}
	}
	if _, err := r.findServer(name); err == nil {
		return control.ResponseWithEvents{}, nil
	}
	warning := "MCP server '" + name + "' is not yet known; override stored but will not apply until a server with that exact name connects."
	if mode == "" {
		warning = "MCP server '" + name + "' is not known; its stored override was cleared."
	}
	return control.ResponseWithEvents{Payload: map[string]string{"warning": warning}}, nil
}
