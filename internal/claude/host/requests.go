package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// requestServer handles the host's requests: it reads the keys, calls a part of the session and builds the answer.
type requestServer struct {
	conn        *control.Conn
	metadata    control.FrameMetadata
	initializer initializer
	session     sessionControls
	identity    sessionModelAndTitle
	settings    settingsUpdater
	files       fileService
	tasks       backgroundTasksAndSideQuestions
	describer   sessionDescriber
}

// sessionControls is the part of a session that handlers use directly.
type sessionControls interface {
	Plan() *launch.Plan
	Policy() *permission.Policy
	State() *simulator.SessionState
	Servers() *mcp.Manager
	// ReplaceHostServers replaces the servers that the host may change with those of an mcpServers object.
	ReplaceHostServers(ctx context.Context, servers json.RawMessage) (mcp.ReplaceServersResult, error)
}

type sessionModelAndTitle interface {
	Model() string // the current model, as the API names it
	SetModel(name string)
	Rename(title string)
}

type initializer interface {
	// Initialize applies the host's settings and describes the session. No turn starts before it returns; a turn that is running continues.
	Initialize(ctx context.Context, in InitializeOptions) (InitializeAnswer, error)
	// ConnectMCPServers connects the servers listed in initialize; the next turn waits for it.
	ConnectMCPServers(ctx context.Context, in InitializeOptions)
	// StopBackgroundAgents stops the background agents, without waiting for them.
	StopBackgroundAgents()
}

// InitializeOptions are the keys of the host's first request (spec: cli-contract 4.2). Absent keys are zero.
type InitializeOptions struct {
	RepeatedOrLate     bool                                      `json:"-"` // of control.InitializeRequest; not sent by the host
	Hooks              map[string][]protocol.HookCallbackMatcher `json:"hooks"`
	SDKMCPServers      []string                                  `json:"sdkMcpServers"`
	SDKMCPConfigs      map[string]SDKServerConfig                `json:"sdkMcpServerConfigs"`
	JSONSchema         json.RawMessage                           `json:"jsonSchema"`
	SystemPrompt       []string                                  `json:"systemPrompt"` // a single string is also accepted
	AppendSystemPrompt string                                    `json:"appendSystemPrompt"`
	Agents             json.RawMessage                           `json:"agents"`      // object: agents by name
	ToolAliases        map[string]string                         `json:"toolAliases"` // keys: aliases that the model uses; values: names of tools
	Title              string                                    `json:"title"`
	Skills             []string                                  `json:"skills"` // nil means all
	ForwardSubagent    bool                                      `json:"forwardSubagentText"`
	Plugins            []json.RawMessage                         `json:"plugins"`
	MCPServers         json.RawMessage                           `json:"mcpServers"`
}

// SDKServerConfig is the configuration of one of the host's own servers.
type SDKServerConfig struct {
	TimeoutMS int `json:"timeout"` // limit of a tool call; 0 means the default
}

type settingsUpdater interface {
	// ApplySettings overrides settings of --settings, key by key; null removes a key. If a setting is invalid,
	// ApplySettings changes nothing and returns the names of the invalid settings.
	ApplySettings(settings map[string]json.RawMessage) (invalidKeys []string)
	// SetThinkingBudget sets the number of thinking tokens for models with a budget; nil means the largest budget.
	SetThinkingBudget(tokens *int)
	// RecordModelChange records a change of the model in the transcript.
	RecordModelChange(arguments string, output protocol.UserEvent)
	// WriteOutputStyleAndEffort writes settings to the file of a source, "localSettings" or "userSettings".
	WriteOutputStyleAndEffort(source string, settings map[string]string) error
	// AddWorkingDirectory adds a working directory and returns its absolute path. The host receives the text of an error.
	AddWorkingDirectory(directory string) (abs string, err error)
}

type fileService interface {
	// rewindFiles restores the files to their state at a prompt. With dryRun it only reports the changes. It returns
	// [errRewindDisabled] if the session keeps no copies.
	rewindFiles(promptUUID string, dryRun bool) (checkpoint.RewindEffect, error)
	// ReadFileIfPermitted returns the contents of a file that the Read tool may read without asking.
	ReadFileIfPermitted(path string) (abs string, contents []byte, err error)
}

var errRewindDisabled error = &control.ResponseError{Text: "File rewinding is not enabled."}

type backgroundTasksAndSideQuestions interface {
	// StopBackgroundTask ends a task and shows its end. If answered is not nil, it must be called after the answer was sent.
	StopBackgroundTask(ctx context.Context, id string) (answered func())
	// ShellTaskOutput returns what a shell command in the background has written so far.
	ShellTaskOutput(id string) ([]byte, bool)
	// AnswerSideQuestion asks the model a question outside the conversation.
	AnswerSideQuestion(ctx context.Context, question string) (sideQuestionAnswer, error)
}

type sideQuestionAnswer struct {
	Text      string `json:"response"`
	Synthetic bool   `json:"synthetic"` // the text comes from the CLI, not from the model
}

type sessionDescriber interface {
	// AnswerQueryOrReload handles requests that only read the session's state. It returns false for all other requests.
	AnswerQueryOrReload(subtype string) (reply any, ok bool)
	// CLIVersion returns the version of the CLI and its build time.
	CLIVersion() (version, built string)
	// Directory returns the directory of the session.
	Directory() string
}

type serveFunc func(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error)

type controlRequest struct {
	control.HostRequest
	keys map[string]json.RawMessage
}

func decodeRequestKeys(r control.HostRequest) controlRequest {
	return controlRequest{r, plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](r.Body)} // a value that is not an object has no keys
}

func (r controlRequest) checkString(key string) error {
	if _, ok := plainjson.StringValue(r.keys[key]); !ok {
		return r.typeError(key, "a string")
	}
	return nil
}

func (r controlRequest) requiredBoolKey(key string) (bool, error) {
	raw := string(r.keys[key])
	if raw != "true" && raw != "false" {
		return false, r.typeError(key, "a boolean")
	}
	return raw == "true", nil
}

// hasKey reports whether a key was sent, even with the value null.
func (r controlRequest) hasKey(key string) bool { return r.keys[key] != nil }

func (r controlRequest) typeError(key, want string) error {
	return fmt.Errorf("%s: %s must be %s", r.Subtype, key, want)
}

func unsupportedError(subtype string) error {
	return &control.CodedResponseError{Code: "unsupported_request", Text: fmt.Sprintf("Unsupported control request subtype: %s", subtype)}
}

func cancelQueuedMessage(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	id, _ := plainjson.StringValue(in.keys["message_uuid"])
	shown, gone := r.conn.CancelQueuedPrompt(id)
	answer := struct {
		Cancelled bool   `json:"cancelled"`
		UUID      string `json:"message_uuid,omitempty"`
	}{Cancelled: gone}
	if gone {
		answer.UUID = id
	}
	return control.ResponseWithEvents{Payload: answer, EventsBefore: shown}, nil
}

// endSessionAfterQueuedPrompts runs the prompts received so far and then ends the session.
func endSessionAfterQueuedPrompts(_ context.Context, r *requestServer, _ controlRequest) (control.ResponseWithEvents, error) {
	r.conn.StopAcceptingNewPrompts()
	return control.ResponseWithEvents{}, nil
}

// answerNoTitle responds that the model proposes no title.
func answerNoTitle(_ context.Context, _ *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	var err error
	if plainjson.IsSet(in.keys["persist"]) {
		_, err = in.requiredBoolKey("persist")
	}
	return control.ResponseWithEvents{Payload: map[string]*string{"title": nil}}, err
}

// validateSetHasSubscribers validates the request. Events are written whether or not the host has subscribed to them.
func validateSetHasSubscribers(_ context.Context, _ *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	switch string(in.keys["has_subscribers"]) {
	case "true", "false", "null":
		return control.ResponseWithEvents{}, nil
	}
	return control.ResponseWithEvents{}, &control.ResponseError{Text: "Invalid set_has_subscribers: has_subscribers must be true, false or null"}
}

// refuseSessionClaim refuses the request claim_session, because only a process started with --await-claim accepts it.
func refuseSessionClaim(context.Context, *requestServer, controlRequest) (control.ResponseWithEvents, error) {
	return control.ResponseWithEvents{}, errors.New("not_a_spare: claim_session is only accepted by a process started with --await-claim that has not been claimed yet")
}

func answerFeedbackIsDisabled(context.Context, *requestServer, controlRequest) (control.ResponseWithEvents, error) {
	return control.ResponseWithEvents{Payload: struct {
		ID     json.RawMessage `json:"feedback_id"`
		Reason string          `json:"unavailable_reason"`
	}{json.RawMessage("null"), "/feedback has been disabled via the CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC environment variable"}}, nil
}

func renameSession(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	runes := []rune(strings.Join(strings.Fields(stringOrEmpty(in.keys["title"])), " "))
	title := string(runes[:min(len(runes), 200)])
	source, session := in.keys["source"], in.keys["session_id"]
	switch {
	case source != nil && string(source) != `"remote"` && string(source) != `"host"`:
		return control.ResponseWithEvents{}, in.typeError("source", "'remote' or 'host'")
	case title == "":
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "title must be non-empty"}
	case plainjson.IsSet(session) && plainjson.JSString(session) != r.metadata.SessionID():
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "session_id is not the current session"}
	}
	r.identity.Rename(title)
	return control.ResponseWithEvents{EventsBefore: []protocol.Event{titleChangedEvent(title)}}, nil
}

func titleChangedEvent(title string) *protocol.SystemEvent {
	return &protocol.SystemEvent{Subtype: "session_title_changed", Fields: []protocol.Field{{Key: "title", Value: title}}}
}
