package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// live are the settings of a session whose host changes them. The run itself
// keeps those that it began with.
type live struct {
	host  map[string]json.RawMessage // given by the host, over --settings
	since *settings.Settings         // all of them as they were last read; nil = as at the start
}

// inForce are the settings as they are now; h.mu is held.
func (h *host) inForce() *settings.Settings {
	if h.live.since != nil {
		return h.live.since
	}
	return &h.Settings.Settings
}

// reread reads all settings again; h.mu is held.
func (h *host) reread() error {
	o := h.Settings.Options
	o.Host = h.live.host
	loaded, err := settings.Load(o)
	if err == nil {
		h.live.since = &loaded
	}
	return err
}

// applySettings puts settings of the host over those of --settings. Model,
// output style, effort, rules, directories and hooks follow at once.
func (h *host) applySettings(in map[string]json.RawMessage) (wrong []string) {
	if wrong = settings.Invalid(in); len(wrong) > 0 {
		return wrong
	}
	if raw := in["effortLevel"]; raw != nil && !slices.Contains(persona.EffortLevels(), stringIn(raw)) {
		in["effortLevel"] = json.RawMessage("null")
	}
	h.mu.Lock()
	h.live.host = settings.Overlay(h.live.host, in)
	err := h.reread()
	now := *h.inForce()
	h.mu.Unlock()
	if err != nil { // what --settings names is no longer there
		h.warn(err.Error())
		return nil
	}
	if in["model"] != nil {
		h.setModel(stringIn(in["model"]))
	}
	if in["outputStyle"] != nil {
		style := cmp.Or(now.OutputStyle, "default")
		h.style.Store(&style)
	}
	if in["effortLevel"] != nil {
		h.current.SetEffort(cmp.Or(stringIn(in["effortLevel"]), h.Model.Effort))
	}
	if in["permissions"] != nil {
		h.policy.Replace(string(settings.Flag), launch.Rules(now, settings.Flag))
		h.policy.ReplaceDirectories(launch.FromSettings, h.Found(now.Permissions.Directories))
	}
	if in["hooks"] != nil && !now.DisableAllHooks {
		h.hooks.Replace(hook.Source{Name: string(settings.Flag), Raw: hooksOf(now, settings.Flag)})
	}
	return nil
}

// stringIn is a JSON string's text; empty = it is none.
func stringIn(raw json.RawMessage) string {
	var value string
	_ = json.Unmarshal(raw, &value) // else the zero value
	return value
}

// fromSession is the source of directories that hosts add.
const fromSession = "session"

func hooksOf(s settings.Settings, source settings.Source) json.RawMessage {
	for _, h := range s.Hooks {
		if h.Source == source {
			return h.Raw
		}
	}
	return nil
}

// updateSettings writes settings to the user's or the project's own file, and
// lets an output style count at once.
func (h *host) updateSettings(source string, in map[string]string) error {
	path, name := filepath.Join(h.CWD, ".claude", "settings.local.json"), "local"
	if source == string(settings.User) {
		path, name = filepath.Join(h.State, "settings.json"), "user"
	}
	if !h.Settings.Reads(name) || h.State == "" {
		return fmt.Errorf("update_settings: the %s source is disabled for this session (--setting-sources)", source)
	}
	file, err := readObject(path)
	if err != nil {
		return err
	}
	if style, ok := in["outputStyle"]; ok {
		file = file.With("outputStyle", quoted(style))
	}
	if level, ok := in["effortLevel"]; ok && level != "max" {
		if file, err = withEffort(file, h.model(), level); err != nil {
			return err
		}
	}
	raw, err := file.MarshalJSON()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, append(b.Bytes(), '\n'), 0o644); err != nil {
		return err
	}
	if style, ok := in["outputStyle"]; ok {
		h.style.Store(&style)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reread()
}

// readObject reads a file that holds a JSON object; one that is not there holds
// an empty one.
func readObject(path string) (ordered.Object, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ordered.Parse(raw)
}

// withEffort keeps a level as the default one of a model.
func withEffort(file ordered.Object, model, level string) (ordered.Object, error) {
	models, _ := ordered.Parse(file.Get("modelSettings")) // nothing, or what is no object, is replaced
	one, _ := ordered.Parse(models.Get(model))
	raw, err := one.With("effortLevel", quoted(level)).MarshalJSON()
	if err != nil {
		return nil, err
	}
	if raw, err = models.With(model, raw).MarshalJSON(); err != nil {
		return nil, err
	}
	return file.With("modelSettings", raw), nil
}

func quoted(text string) json.RawMessage {
	raw, err := protocol.Marshal(text)
	if err != nil { // strings cannot fail
		return json.RawMessage(`""`)
	}
	return raw
}

// settingsInForce answers get_settings.
func (h *host) settingsInForce() any {
	type source struct {
		Source   settings.Source `json:"source"`
		Settings json.RawMessage `json:"settings"`
	}
	h.mu.Lock()
	now := h.inForce()
	sources := []source{}
	for _, layer := range now.Layers {
		if strings.TrimSpace(string(layer.Raw)) != "{}" {
			sources = append(sources, source{layer.Source, layer.Raw})
		}
	}
	effective := now.Merged()
	h.mu.Unlock()
	return map[string]any{
		"effective": effective, "sources": sources, "served_settings_state": "ineligible",
		"applied": map[string]any{
			"model": h.model(), "effort": h.effort(), "advisor": nil, "ultracode": false, "ultracodeAvailable": true,
			"ultracodeRequested": false, "ultrathinkAvailable": false, "launchEnvLeftOwnFilesInPlace": true,
			"outsideBlocksCountLaunchFoldersOnly": false, "outsideFileToolReadsBlocked": false, "outsideFileToolWritesBlocked": false,
		},
	}
}

// ruleRow is one rule as list_permission_rules shows it.
type ruleRow struct {
	Behavior    string    `json:"behavior"`
	Source      string    `json:"source"`
	Rule        string    `json:"rule"`
	About       *ruleText `json:"description,omitempty"`
	Editability string    `json:"editability"` // persistent, readonly, session
}

type ruleText struct {
	Prefix   string `json:"prefix"`
	Emphasis string `json:"emphasis,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
}

// rules answers list_permission_rules: what allows, asks and denies, each by
// source.
func (h *host) rules() any {
	list := []ruleRow{}
	for _, r := range h.policy.Rules() {
		parts := r.Parts()
		row := ruleRow{Behavior: r.Behavior, Source: r.Source, Rule: permission.FormatRule(parts), About: about(parts), Editability: "session"}
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
	slices.SortStableFunc(list, func(a, b ruleRow) int {
		return cmp.Or(
			slices.Index(behaviors, a.Behavior)-slices.Index(behaviors, b.Behavior),
			slices.Index(sources, a.Source)-slices.Index(sources, b.Source))
	})
	return map[string]any{"state": map[string]any{
		"rules": list, "workspaceDirectories": h.policy.Added(), "originalCwd": h.CWD, "managedOnly": false,
	}}
}

// about says in words what a rule covers; nil = the rule says it itself.
func about(r protocol.PermissionRule) *ruleText {
	switch {
	case r.RuleContent == "" && r.ToolName == "Bash":
		return &ruleText{Prefix: "Any Bash command"}
	case r.RuleContent == "":
		return &ruleText{Prefix: "Any use of the ", Emphasis: r.ToolName, Suffix: " tool"}
	case r.ToolName != "Bash":
		return nil
	}
	for _, wildcard := range []string{":*", " *"} {
		if start, ok := strings.CutSuffix(r.RuleContent, wildcard); ok {
			return &ruleText{Prefix: "Any Bash command starting with ", Emphasis: start}
		}
	}
	return &ruleText{Prefix: "The Bash command ", Emphasis: r.RuleContent}
}
