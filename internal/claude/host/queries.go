package host

import (
	"context"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func (h *hostedSession) CLIVersion() (version, built string) {
	return h.session.Plan().Version, claudecode.BuildTime
}

func (h *hostedSession) Directory() string { return h.session.Plan().CWD }

// Describe handles requests that only read the session's state.
func (h *hostedSession) Describe(subtype string) (any, bool) {
	switch subtype {
	case "get_context_usage":
		return contextUsageFor(h.session), true
	case "get_settings":
		return h.describeSettings(), true
	case "get_usage":
		return usageFor(h.session), true
	case "list_permission_rules":
		return permissionRules(h.session), true
	case "list_models":
		return modelsAnswer{h.session.Plan().Profile.Environment().Models()}, true
	case "get_session_cost":
		return costAnswer{h.session.Cost().Text()}, true
	case "get_hooks_listing":
		return h.describeHooks(), true
	case "reload_skills":
		return skillsAnswer{h.skillCommands()}, true
	case "reload_plugins":
		return h.reloadPlugins(), true
	case "get_plan":
		_, plan := h.session.PlanFile()
		return planAnswer{plan != ""}, true
	case "get_status":
		return statusAnswer{statusSections(h.session)}, true
	case "reload_output_styles":
		return stylesAnswer{h.session.Plan().Catalog.OutputStyles()}, true
	}
	return nil, false
}

type costAnswer struct {
	Text string `json:"text"`
}

type modelsAnswer struct {
	Models []claudecode.Model `json:"models"`
}

type skillsAnswer struct {
	Skills []Command `json:"skills"`
}

type stylesAnswer struct {
	Styles []string `json:"available_output_styles"`
}

// reloadAnswer is the answer to reload_plugins. It lists the loaded plugins without reading them again.
type reloadAnswer struct {
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

func (h *hostedSession) reloadPlugins() reloadAnswer {
	said := h.session.Plan().Profile.Init()
	h.session.Plan().Catalog.FillInit(&said)
	d := h.describe()
	servers := []serverState{}
	for _, st := range h.session.ServerStatuses() {
		servers = append(servers, serverState{st.Name, st.Status})
	}
	return reloadAnswer{Agents: d.Agents, Commands: d.Commands, Errors: len(said.PluginErrors), Servers: servers, Plugins: said.Plugins}
}

func describeSession(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	reply, ok := r.describer.Describe(in.Subtype)
	if !ok {
		return control.Answer{}, unsupported(in.Subtype)
	}
	return control.Answer{Payload: reply}, nil
}

func withCheck(check func(request) error, run serveFunc) serveFunc {
	return func(ctx context.Context, r *requestServer, in request) (control.Answer, error) {
		if err := check(in); err != nil {
			return control.Answer{}, err
		}
		return run(ctx, r, in)
	}
}

func checkDetail(in request) error {
	switch string(in.keys["detail"]) {
	case "", "null", `"summary"`, `"full"`:
		return nil
	}
	return in.typeError("detail", "'summary' or 'full'")
}

func checkSkipBehaviors(in request) error {
	if !plainjson.IsSet(in.keys["skip_behaviors"]) {
		return nil
	}
	_, err := in.boolKey("skip_behaviors")
	return err
}

func binaryVersion(_ context.Context, r *requestServer, _ request) (control.Answer, error) {
	version, built := r.describer.CLIVersion()
	return control.Answer{Payload: struct {
		Version          string `json:"version"`
		BuildTime        string `json:"buildTime"`
		OldestDesktopSDK string `json:"oldestDesktopSdk"`
	}{version, built, "0.3.280"}}, nil
}
