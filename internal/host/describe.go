package host

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/session"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// describe answers initialize (spec: cli-contract 4.2).
func (h *Host) describe() control.Description {
	said := persona.Init()
	h.plan.Catalog.Fill(&said)
	d := control.Description{
		Commands: []control.Command{}, Agents: []control.Agent{},
		OutputStyle: said.OutputStyle, AvailableOutputStyles: h.plan.Catalog.Styles(),
		Models: persona.Models(), PID: h.plan.PID, ClaudeCodeVersion: h.plan.Version,
		Account:           control.Account{TokenSource: "none", APIKeySource: h.plan.APIKeySource, APIProvider: "firstParty"},
		FeedbackMode:      control.Kind{Kind: "disabled"},
		AnalyticsDisabled: true, FastModeState: said.FastModeState, FastModeDisabledReason: said.FastModeDisabledReason,
		Capabilities: persona.HostCapabilities(),
	}
	if h.plan.State != "" {
		d.UserOutputStylesDir = filepath.Join(h.plan.State, "output-styles")
	}
	d.OutputStyle = h.s.Live().Now().Style
	for _, name := range said.SlashCommands {
		if c, ok := h.plan.Catalog.Command(name); ok {
			listed := control.Command{Name: c.Name, Description: c.Description, ArgumentHint: c.Hint}
			if short := c.Alias(); short != "" {
				listed.Aliases = []string{short}
			}
			d.Commands = append(d.Commands, listed)
		} else if b, ok := persona.BuiltinNamed(name); ok {
			d.Commands = append(d.Commands, control.Command{
				Name: b.Name, Description: b.Description, ArgumentHint: b.Hint, Aliases: b.Aliases, Builtin: true,
			})
		}
	}
	for _, a := range h.plan.Catalog.Agents() {
		d.Agents = append(d.Agents, control.Agent{Name: a.Name, Description: a.Description, Model: a.Model})
	}
	return d
}

// reloaded is the answer to reload_plugins: what there is; nothing is read again.
type reloaded struct {
	Agents   []control.Agent   `json:"agents"`
	Commands []control.Command `json:"commands"`
	Errors   int               `json:"error_count"`
	Servers  []serverState     `json:"mcpServers"`
	Plugins  []protocol.Plugin `json:"plugins"`
}

type serverState struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

func (h *Host) reloadPlugins() reloaded {
	said := persona.Init()
	h.plan.Catalog.Fill(&said)
	d := h.describe()
	servers := []serverState{}
	for _, st := range h.s.Statuses() {
		servers = append(servers, serverState{st.Name, st.Status})
	}
	return reloaded{Agents: d.Agents, Commands: d.Commands, Errors: len(said.PluginErrors), Servers: servers, Plugins: said.Plugins}
}

// TaskOutput reads what a command in the background has written so far.
func (h *Host) TaskOutput(id string) ([]byte, bool) {
	if t, ok := h.s.Tasks().Find(id); !ok || t.Kind != task.Bash {
		return nil, false
	}
	data, err := h.s.Tasks().Output(id)
	return data, err == nil
}

// skillCommands are the skills that reload_skills lists.
func (h *Host) skillCommands() []control.Command {
	list := []control.Command{}
	for _, c := range h.describe().Commands {
		b, builtin := persona.BuiltinNamed(c.Name)
		k, custom := h.plan.Catalog.Command(c.Name)
		if custom && k.Skill || builtin && !custom && b.Skill {
			list = append(list, c)
		}
	}
	return list
}

// ReadFile reads a file that the Read tool could read without asking.
func (h *Host) ReadFile(path string) (string, []byte, error) {
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(h.plan.CWD, abs)
	}
	input, err := protocol.Marshal(struct {
		Path string `json:"file_path"`
	}{abs})
	if err != nil {
		return "", nil, err
	}
	if h.s.Policy().Decide(protocol.ToolUse{Type: "tool_use", Name: "Read", Input: input}).Behavior != permission.Allow {
		return "", nil, fs.ErrPermission
	}
	// Requests are read behind this one: what may never end is not opened.
	if info, err := os.Stat(abs); err != nil || !info.Mode().IsRegular() {
		return "", nil, cmp.Or(err, fs.ErrInvalid)
	}
	data, err := os.ReadFile(abs)
	return abs, data, err
}

// SideQuestion words what the model says beside the conversation.
func (h *Host) SideQuestion(ctx context.Context, question string) (control.Aside, error) {
	reply, failed, err := h.s.Ask(ctx, question)
	if err != nil {
		return control.Aside{}, err
	}
	if reply.Failure != nil {
		return control.Aside{Text: "(API error: " + strings.TrimPrefix(failed, "API Error: ") + ")", Synthetic: true}, nil
	}
	var said strings.Builder
	for _, block := range reply.Blocks {
		switch block := block.(type) {
		case protocol.TextBlock:
			said.WriteString(block.Text)
		case protocol.ToolUse:
			return control.Aside{Text: "(The model tried to call " + block.Name +
				" instead of answering directly. Try rephrasing or ask in the main conversation.)", Synthetic: true}, nil
		}
	}
	return control.Aside{Text: said.String()}, nil
}

// RegisterRoot makes a directory below the working directory, or below one of
// --add-dir, a working directory of its own (texts: 2.1.329).
func (h *Host) RegisterRoot(given string) (string, error) {
	refuse := func(text string) (string, error) { return "", errors.New("register_repo_root: " + text) }
	path := given
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.plan.CWD, path)
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return refuse("target path could not be resolved")
	}
	below := h.plan.CWD != dir && strings.HasPrefix(dir, h.plan.CWD+string(filepath.Separator))
	for _, d := range h.s.Policy().Added() {
		if d.Path == dir {
			return refuse(given + " is already a registered working directory")
		}
		below = below || d.Source == "cliArg" && strings.HasPrefix(dir, d.Path+string(filepath.Separator))
	}
	switch {
	case dir == h.plan.CWD:
		return refuse(given + " is the session's working directory, which is already registered; pass the cloned repo's own directory instead")
	case !below:
		return refuse(given + " is not a subdirectory of the session's working directory or of a launch-time --add-dir root that still leads where it first did")
	case !directory(dir):
		return refuse(given + " is not a directory")
	}
	h.s.Policy().Apply([]protocol.PermissionUpdate{{Type: "addDirectories", Directories: []string{dir}, Destination: session.FromSession}})
	return dir, nil
}

// hooksListing answers get_hooks_listing.
func (h *Host) hooksListing() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.inForce()
	var sources []hook.Source
	for _, s := range now.Hooks {
		sources = append(sources, hook.Source{Name: string(s.Source), Raw: s.Raw})
	}
	return hook.List(sources, hook.Policy{AllDisabled: now.DisableAllHooks})
}

func directory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
