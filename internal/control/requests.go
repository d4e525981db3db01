package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// request is one control request of the host.
type request struct {
	id      json.RawMessage
	subtype string // as the real CLI words it: "undefined" without one
	raw     json.RawMessage
	keys    map[string]json.RawMessage
}

func readRequest(f incoming) request {
	r := request{id: f.RequestID, raw: f.Request}
	_ = json.Unmarshal(f.Request, &r.keys) // what is no object has no keys
	r.subtype = scriptText(r.keys["subtype"])
	return r
}

// text reads a key that must be a string.
func (r request) text(key string) (string, error) {
	value, ok := textIn(r.keys[key])
	if !ok {
		return "", r.wrong(key, "a string")
	}
	return value, nil
}

// flag reads a key that must be a boolean.
func (r request) flag(key string) (bool, error) {
	switch string(r.keys[key]) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, r.wrong(key, "a boolean")
}

// has tells whether a key was sent, null included.
func (r request) has(key string) bool { return r.keys[key] != nil }

func (r request) wrong(key, want string) error {
	return fmt.Errorf("%s: %s must be %s", r.subtype, key, want)
}

// fields reads the keys of a request; those of the wrong type count as absent.
func fields[T any](raw json.RawMessage) T {
	var in T
	_ = json.Unmarshal(raw, &in)
	return in
}

// textIn is the text of a JSON string; false = it is none.
func textIn(raw json.RawMessage) (string, bool) {
	var value *string
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return "", false
	}
	return *value, true
}

// scriptText is a JSON value as JavaScript puts it into a text.
func scriptText(raw json.RawMessage) string {
	if text, ok := textIn(raw); ok {
		return text
	}
	if ordered.TypeOf(raw) == "object" {
		return "[object Object]"
	}
	if len(raw) == 0 {
		return "undefined"
	}
	return string(raw)
}

// falsy tells whether JavaScript takes a JSON value for no.
func falsy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && n == 0
}

func cancelMessage(_ context.Context, p *Peer, in request) (answer, error) {
	id, _ := textIn(in.keys["message_uuid"])
	p.mu.Lock()
	gone := p.queue.remove(id)
	p.mu.Unlock()
	a := answer{payload: cancelled{gone != nil}}
	if gone != nil {
		a.after = lifecycleEvents(gone, "cancelled")
	}
	return a, nil
}

// stopTask answers alike for tasks that there are and that there are not.
func stopTask(_ context.Context, p *Peer, in request) (answer, error) {
	id, err := in.text("task_id")
	if err != nil {
		return answer{}, err
	}
	p.s.StopTask(id)
	return answer{payload: struct{}{}}, nil
}

// endSession lets what was sent so far come to its end, as the end of stdin
// does.
func endSession(_ context.Context, p *Peer, _ request) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.stir()
	return answer{}, nil
}

// rename gives the session a title, on one line.
func rename(_ context.Context, p *Peer, in request) (answer, error) {
	title, err := in.text("title")
	if err != nil {
		return answer{}, err
	}
	title = oneLine(title)
	source, session := in.keys["source"], in.keys["session_id"]
	switch {
	case source != nil && string(source) != `"remote"` && string(source) != `"host"`:
		return answer{}, in.wrong("source", "'remote' or 'host'")
	case title == "":
		return answer{}, &HostError{Text: "title must be non-empty"}
	case given(session) && scriptText(session) != p.o.SessionID():
		return answer{}, &HostError{Text: "session_id is not the current session"}
	}
	p.s.Rename(title)
	return answer{before: []protocol.Event{titleChanged(title)}}, nil
}

// oneLine is a title without line breaks, cut to the length that fits.
func oneLine(title string) string {
	const longest = 200
	runes := []rune(strings.Join(strings.Fields(title), " "))
	return string(runes[:min(len(runes), longest)])
}

func titleChanged(title string) *protocol.System {
	return &protocol.System{Subtype: "session_title_changed", Fields: []protocol.Field{{Key: "title", Value: title}}}
}

func rewind(_ context.Context, p *Peer, in request) (answer, error) {
	id, _ := textIn(in.keys["user_message_id"])
	dryRun := !falsy(in.keys["dry_run"])
	restore := p.s.Rewind
	if dryRun {
		restore = p.s.Preview
	}
	done, err := restore(id)
	switch {
	case errors.Is(err, ErrNoRewind):
		return answer{}, err
	case err != nil && dryRun:
		return answer{payload: struct {
			CanRewind bool   `json:"canRewind"`
			Error     string `json:"error"`
		}{false, err.Error()}}, nil
	case err != nil:
		return answer{}, err
	case dryRun:
		return answer{payload: struct {
			CanRewind    bool     `json:"canRewind"`
			FilesChanged []string `json:"filesChanged"`
			Insertions   int      `json:"insertions"`
			Deletions    int      `json:"deletions"`
		}{true, append([]string{}, done.FilesChanged...), done.Insertions, done.Deletions}}, nil
	default:
		return answer{payload: struct {
			CanRewind    bool `json:"canRewind"`
			SkippedLinks int  `json:"skippedLinks"`
		}{true, done.SkippedLinks}}, nil
	}
}

// background is to move work of the running turn to the background. Nothing is
// moved: commands go there only when their time is over.
func background(_ context.Context, _ *Peer, in request) (answer, error) {
	if !in.has("tool_use_id") {
		return answer{payload: struct{}{}}, nil
	}
	if _, err := in.text("tool_use_id"); err != nil {
		return answer{}, err
	}
	return answer{payload: backgrounded{}}, nil
}

// noTitle is the answer of a model that has no title to propose.
func noTitle(_ context.Context, _ *Peer, in request) (answer, error) {
	if _, err := in.text("description"); err != nil {
		return answer{}, err
	}
	if in.has("persist") {
		if _, err := in.flag("persist"); err != nil {
			return answer{}, err
		}
	}
	return answer{payload: proposed{}}, nil
}

// subscribers says whether anybody watches; events are written either way.
func subscribers(_ context.Context, _ *Peer, in request) (answer, error) {
	switch string(in.keys["has_subscribers"]) {
	case "true", "false", "null":
		return answer{}, nil
	}
	return answer{}, errors.New("Invalid set_has_subscribers: has_subscribers must be true, false or null") //nolint:staticcheck // the text hosts see
}

func unsupported(subtype string) error {
	return &RefusalError{Code: "unsupported_request", Text: fmt.Sprintf("Unsupported control request subtype: %s", subtype)}
}

// sideQuestion asks the model something beside the conversation.
func sideQuestion(ctx context.Context, p *Peer, in request) (answer, error) {
	question, err := in.text("question")
	if err != nil {
		return answer{}, err
	}
	p.show(&protocol.System{Subtype: "control_request_progress", Fields: []protocol.Field{
		{Key: "request_id", Value: in.id}, {Key: "status", Value: "started"},
	}})
	said, err := p.s.SideQuestion(ctx, question)
	return answer{payload: said}, err
}

// overrideMode takes a permission mode for one server's tools and keeps none:
// where those are asked about anyhow it would change nothing.
func overrideMode(_ context.Context, p *Peer, in request) (answer, error) {
	name, err := in.text("serverName")
	if err != nil {
		return answer{}, err
	}
	raw := in.keys["mode"]
	mode, _ := textIn(raw)
	switch string(raw) {
	case "null", `"default"`, `"auto"`:
	default:
		if _, err := permission.ParseMode(mode); err != nil || mode == "" {
			return answer{}, errors.New("Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan") //nolint:staticcheck // the text hosts see
		}
		return answer{}, &HostError{Text: "Permission mode override over the control channel is tighten-only ('default', 'auto', or null); rejected '" + mode + "'"}
	}
	if _, err := p.server(name); err == nil {
		return answer{}, nil
	}
	warning := "MCP server '" + name + "' is not yet known; override stored but will not apply until a server with that exact name connects."
	if mode == "" {
		warning = "MCP server '" + name + "' is not known; its stored override was cleared."
	}
	return answer{payload: warned{warning}}, nil
}

// registerRoot adds a working directory below those of the launch.
func registerRoot(_ context.Context, p *Peer, in request) (answer, error) {
	given, ok := textIn(in.keys["directory"])
	if !ok {
		return answer{}, errors.New(in.subtype + ": target path could not be resolved")
	}
	dir, err := p.s.RegisterRoot(given)
	if err != nil {
		return answer{}, err
	}
	return answer{payload: registered{dir}}, nil
}

// claim is refused: a session that waits to be claimed is one of another kind.
func claim(context.Context, *Peer, request) (answer, error) {
	return answer{}, errors.New("not_a_spare: claim_session is only accepted by a process started with --await-claim that has not been claimed yet")
}

// feedback goes nowhere: nothing leaves the machine.
func feedback(context.Context, *Peer, request) (answer, error) {
	return answer{payload: struct {
		ID     json.RawMessage `json:"feedback_id"`
		Reason string          `json:"unavailable_reason"`
	}{json.RawMessage("null"), "/feedback has been disabled via the CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC environment variable"}}, nil
}

// The answers to requests, where they are small; larger ones stand with what they describe.
type (
	cancelled struct {
		Cancelled bool `json:"cancelled"`
	}
	backgrounded struct {
		Backgrounded bool `json:"backgrounded"`
	}
	proposed struct {
		Title *string `json:"title"` // nil = none
	}
	warned struct {
		Warning string `json:"warning"`
	}
	registered struct {
		Directory string `json:"directory"`
	}
	modeSet struct {
		Mode protocol.PermissionMode `json:"mode"`
	}
	modelSet struct {
		Model string `json:"model"`
	}
	serverList struct {
		Servers []serverStatus `json:"mcpServers"`
	}
)
