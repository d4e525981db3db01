package host

import (
	"context"

	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claudecode/clientinfo"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Build is the version of the CLI and when it was built.
func (h *hostedSession) Build() (version, built string) {
	return h.Plan().Version, clientinfo.BuildTime
}

// Tell answers requests that only want to know something.
func (h *hostedSession) Tell(subtype string) (any, bool) {
	switch subtype {
	case "get_context_usage":
		return contextOf(h.Session), true
	case "get_settings":
		return h.settings(), true
	case "get_usage":
		return usageOf(h.Session), true
	case "list_permission_rules":
		return rulesOf(h.Session), true
	case "list_models":
		return models{clientinfo.Models()}, true
	case "get_session_cost":
		return costs{h.Cost().Text()}, true
	case "get_hooks_listing":
		return h.hooks(), true
	case "reload_skills":
		return skills{h.skillCommands()}, true
	case "reload_plugins":
		return h.reloadPlugins(), true
	case "reload_output_styles":
		return styles{h.Plan().Catalog.Styles()}, true
	}
	return nil, false
}

type costs struct {
	Text string `json:"text"`
}

type models struct {
	Models []clientinfo.Model `json:"models"`
}

type skills struct {
	Skills []Command `json:"skills"`
}

type styles struct {
	Styles []string `json:"available_output_styles"`
}

// reloaded is the answer to reload_plugins: what there is; nothing is read again.
type reloaded struct {
	Agents   []Agent           `json:"agents"`
	Commands []Command         `json:"commands"`
	Errors   int               `json:"error_count"`
	Servers  []serverState     `json:"mcpServers"`
	Plugins  []protocol.Plugin `json:"plugins"`
}

type serverState struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

func (h *hostedSession) reloadPlugins() reloaded {
	said := clientinfo.Init(h.Plan().Version)
	h.Plan().Catalog.Fill(&said)
	d := h.describe()
	servers := []serverState{}
	for _, st := range h.Statuses() {
		servers = append(servers, serverState{st.Name, st.Status})
	}
	return reloaded{Agents: d.Agents, Commands: d.Commands, Errors: len(said.PluginErrors), Servers: servers, Plugins: said.Plugins}
}

// tell answers a request that only wants to know something.
func tell(_ context.Context, r *requests, in request) (control.Answer, error) {
	reply, ok := r.facts.Tell(in.Subtype)
	if !ok {
		return control.Answer{}, unsupported(in.Subtype)
	}
	return control.Answer{Payload: reply}, nil
}

// checked puts a check of the request's keys before a handler.
func checked(check func(request) error, run serveFunc) serveFunc {
	return func(ctx context.Context, r *requests, in request) (control.Answer, error) {
		if err := check(in); err != nil {
			return control.Answer{}, err
		}
		return run(ctx, r, in)
	}
}

func knownDetail(in request) error {
	switch string(in.keys["detail"]) {
	case "", `"summary"`, `"full"`:
		return nil
	}
	return in.wrong("detail", "'summary' or 'full'")
}

func skipBehaviors(in request) error {
	if !in.has("skip_behaviors") {
		return nil
	}
	_, err := in.flag("skip_behaviors")
	return err
}

func binaryVersion(_ context.Context, r *requests, _ request) (control.Answer, error) {
	version, built := r.facts.Build()
	return control.Answer{Payload: struct {
		Version          string `json:"version"`
		BuildTime        string `json:"buildTime"`
		OldestDesktopSDK string `json:"oldestDesktopSdk"`
	}{version, built, "0.3.280"}}, nil
}
