package host

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
func (h *Host) inForce() *settings.Settings {
	if h.live.since != nil {
		return h.live.since
	}
	return &h.plan.Settings.Settings
}

// reread reads all settings again; h.mu is held.
func (h *Host) reread() error {
	o := h.plan.Settings.Options
	o.Host = h.live.host
	loaded, err := settings.Load(o)
	if err == nil {
		h.live.since = &loaded
	}
	return err
}

// ApplySettings puts settings of the host over those of --settings. Model,
// output style, effort, rules, directories and hooks follow at once.
func (h *Host) ApplySettings(in map[string]json.RawMessage) (wrong []string) {
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
		h.s.Warn(err.Error())
		return nil
	}
	if in["model"] != nil {
		h.s.SetModel(stringIn(in["model"]))
	}
	if in["outputStyle"] != nil {
		style := cmp.Or(now.OutputStyle, "default")
		h.s.Live().SetStyle(style)
	}
	if in["effortLevel"] != nil {
		h.s.Live().SetEffort(cmp.Or(stringIn(in["effortLevel"]), h.plan.Model.Effort))
	}
	if in["permissions"] != nil {
		h.s.Policy().Replace(string(settings.Flag), launch.Rules(now, settings.Flag))
		h.s.Policy().ReplaceDirectories(launch.FromSettings, h.plan.Found(now.Permissions.Directories))
	}
	if in["hooks"] != nil && !now.DisableAllHooks {
		h.s.Hooks().Replace(hook.Source{Name: string(settings.Flag), Raw: hooksOf(now, settings.Flag)})
	}
	return nil
}

// stringIn is a JSON string's text; empty = it is none.
func stringIn(raw json.RawMessage) string {
	var value string
	_ = json.Unmarshal(raw, &value) // else the zero value
	return value
}

func hooksOf(s settings.Settings, source settings.Source) json.RawMessage {
	for _, h := range s.Hooks {
		if h.Source == source {
			return h.Raw
		}
	}
	return nil
}

// UpdateSettings writes settings to the user's or the project's own file, and
// lets an output style count at once.
func (h *Host) UpdateSettings(source string, in map[string]string) error {
	path, name := filepath.Join(h.plan.CWD, ".claude", "settings.local.json"), "local"
	if source == string(settings.User) {
		path, name = filepath.Join(h.plan.State, "settings.json"), "user"
	}
	if !h.plan.Settings.Reads(name) || h.plan.State == "" {
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
		if file, err = withEffort(file, h.s.Model(), level); err != nil {
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
		h.s.Live().SetStyle(style)
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

// settingsAnswer is the answer to get_settings.
type settingsAnswer struct {
	Applied   applied          `json:"applied"`
	Effective json.RawMessage  `json:"effective"`
	Served    string           `json:"served_settings_state"`
	Sources   []settingsSource `json:"sources"`
}

type settingsSource struct {
	Source   settings.Source `json:"source"`
	Settings json.RawMessage `json:"settings"`
}

// applied is what came of the settings.
type applied struct {
	Advisor             *string `json:"advisor"` // nil = none
	Effort              string  `json:"effort"`
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

func (h *Host) settingsInForce() settingsAnswer {
	out := settingsAnswer{
		Served: "ineligible", Sources: []settingsSource{},
		Applied: applied{Model: h.s.Model(), Effort: h.s.Live().Now().Effort, UltracodeAvailable: true, LaunchEnvLeft: true},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.inForce()
	for _, layer := range now.Layers {
		if strings.TrimSpace(string(layer.Raw)) != "{}" {
			out.Sources = append(out.Sources, settingsSource{layer.Source, layer.Raw})
		}
	}
	if raw, err := protocol.Marshal(now.Merged()); err == nil { // it was JSON before
		out.Effective = raw
	}
	return out
}
