package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func setPermissionMode(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	name, _ := plainjson.StringValue(in.keys["mode"])
	mode := protocol.PermissionMode(name)
	if mode == "manual" {
		mode = protocol.ModeDefault
	}
	before := r.session.Policy().Mode()
	if err := r.session.Policy().SetMode(mode); err != nil {
		if refused, ok := errors.AsType[*permission.ModeError](err); ok {
			err = &control.RefusalError{Code: refused.Code, Text: err.Error()}
		}
		return control.Answer{}, err
	}
	a := control.Answer{Payload: map[string]protocol.PermissionMode{"mode": mode}}
	if mode != before {
		a.EventsAfter = []protocol.Event{protocol.ModeChanged(mode)}
	}
	return a, nil
}

// setModel switches the model. A missing key, null and "default" select the default. If the model is refused, the error
// names the model that stays in use.
func setModel(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	name := ""
	if raw := in.keys["model"]; plainjson.IsSet(raw) {
		var ok bool
		if name, ok = plainjson.StringValue(raw); !ok {
			return control.Answer{}, &control.RefusalError{Code: "invalid_request", Text: in.typeError("model", "a string").Error(), Model: r.identity.Model()}
		}
		if code, text := modelNameError(name); code != "" {
			return control.Answer{}, &control.RefusalError{Code: code, Text: text, Model: r.identity.Model()}
		}
	}
	before := r.identity.Model()
	r.identity.SetModel(name)
	r.reportAndRecordModelChange(before, claudecode.RequestedModelLabel(name), cmp.Or(name, "default"))
	return control.Answer{Payload: map[string]string{"model": r.identity.Model()}}, nil
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

// reportAndRecordModelChange writes the message that the model has changed. It writes nothing before the first turn
// (spec: cli-observed 5). requested is the name that the host sent, such as opus: the message shows it before the name
// of the model. It may be empty. The transcript shows the change as a command with commandArguments.
func (r *requestServer) reportAndRecordModelChange(previousModel, requestedModel, commandArguments string) {
	now := r.identity.Model()
	if !r.conn.HasTurnStarted() || now == previousModel {
		return
	}
	shown := now
	if requestedModel != "" && requestedModel != now {
		shown = requestedModel + " (" + now + ")"
	}
	yes, text := true, "<local-command-stdout>Set model to `"+strings.ReplaceAll(shown, "`", "")+"`</local-command-stdout>"
	output := protocol.User{Type: "user", Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}}, UUID: r.metadata.NewID()}
	r.settings.RecordModelChange(commandArguments, output)
	output.IsReplay = &yes
	r.conn.WriteEvent(&output)
}

// setThinking validates a thinking budget and display mode. Neither affects a scripted model.
func setThinking(_ context.Context, _ *requestServer, in request) (control.Answer, error) {
	whole := true
	if tokens := in.keys["max_thinking_tokens"]; plainjson.IsSet(tokens) {
		_, err := strconv.ParseInt(string(tokens), 10, 64)
		whole = err == nil
	}
	switch string(in.keys["thinking_display"]) {
	case "", "null", `"summarized"`, `"omitted"`, `"highlights"`:
		if whole {
			return control.Answer{}, nil
		}
	}
	return control.Answer{}, fmt.Errorf(`%s: max_thinking_tokens must be an integer or null and thinking_display must be "summarized", "omitted", "highlights", or null`, in.Subtype)
}

// validateMCPPermissionModeOverride validates one server's permission mode. It is not stored, because it changes no decision.
func validateMCPPermissionModeOverride(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	name, err := in.stringKey("serverName")
	if err != nil {
		return control.Answer{}, err
	}
	raw := in.keys["mode"]
	mode, _ := plainjson.StringValue(raw)
	switch string(raw) {
	case "null", `"default"`, `"auto"`:
	default:
		if _, err := permission.ParseMode(mode); err != nil || mode == "" {
			return control.Answer{}, &control.HostError{Text: "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"}
		}
		return control.Answer{}, &control.HostError{Text: "Permission mode override over the control channel is tighten-only ('default', 'auto', or null); rejected '" + mode + "'"}
	}
	if _, err := r.findServer(name); err == nil {
		return control.Answer{}, nil
	}
	warning := "MCP server '" + name + "' is not yet known; override stored but will not apply until a server with that exact name connects."
	if mode == "" {
		warning = "MCP server '" + name + "' is not known; its stored override was cleared."
	}
	return control.Answer{Payload: map[string]string{"warning": warning}}, nil
}
