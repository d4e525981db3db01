// Package host implements the requests of an SDK host: running prompts, and describing and changing the session.
//
// It uses the public methods of the session and keeps no session state except the settings that came from the host.
// Package control implements the wire format.
package host

import (
	"context"
	"errors"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/output"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// ErrInterrupted is the error of a run that ends because SIGINT interrupted a turn.
var ErrInterrupted = errors.New("interrupted")

// SessionServer serves a session to an SDK host over stdin and stdout.
type SessionServer struct {
	session *session.Session
	conn    *control.Conn
	driver  combinedControlSession
}

// Open builds the session of a plan and connects it to the host on the streams of sys. It starts nothing.
func Open(plan launch.Plan, sys *process.System, signals *process.SignalHandler) (*SessionServer, error) {
	marks := &frameMetadataSource{plan: plan}
	peer := control.New(controlOptions(plan, sys, marks))
	s, err := session.Open(plan, peer)
	if err != nil {
		return nil, err
	}
	marks.session = s
	h := &hostedSession{session: s}
	p := promptPlayer{s, peer, signals}
	return &SessionServer{session: s, conn: peer, driver: combinedControlSession{TurnRunner: p, BackgroundWork: p, requestServer: &requestServer{
		conn: peer, metadata: marks, session: s, identity: s, initializer: h, settings: h, files: h, tasks: h, describer: h,
	}}}, nil
}

func controlOptions(plan launch.Plan, sys *process.System, metadata control.FrameMetadata) control.Options {
	o := control.Options{
		In: sys.Stdin, Out: sys.Stdout, Metadata: metadata,
		AwaitInitialize: plan.Host.AwaitInitialize, BackgroundLimit: plan.Limits.BackgroundLimit, Replay: plan.Output.ReplayPrompts, SeparateTurns: plan.Host.SeparateTurns,
	}
	switch {
	case plan.Host.StateEvents:
		o.StateEvents = control.SessionStateEventsUnmarked
	case plan.Host.StateEventsHostOnly:
		o.StateEvents = control.SessionStateEventsMarkedHostOnly
	}
	return o
}

type frameMetadataSource struct {
	plan    launch.Plan
	session *session.Session // nil until the session is open; no output is written before that
}

func (m *frameMetadataSource) NewID() string     { return m.plan.Clock.NewID() }
func (m *frameMetadataSource) SessionID() string { return m.session.ID() }
func (m *frameMetadataSource) CurrentUTCTimestamp() string {
	return m.plan.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
}

// Session returns the session that the host controls. The caller of Open closes it.
func (h *SessionServer) Session() *session.Session { return h.session }

// Serve runs the host's prompts until none are left and handles its requests. It starts but does not close the session.
func (h *SessionServer) Serve(ctx context.Context) error {
	if err := h.session.Start(ctx); err != nil {
		return err
	}
	err := h.conn.Serve(ctx, h.driver)
	if err == nil {
		err = output.StreamJSON(h.conn.EventWriter(), session.TakeDelayedResultsAtSessionEnd(h.session))
	}
	h.session.WaitUntilServersSettled()
	if bad, ok := errors.AsType[*control.InvalidStdinLineError](err); ok {
		return process.Verbatimf("%s", bad.Text)
	}
	return err
}

type combinedControlSession struct {
	control.TurnRunner
	control.BackgroundWork
	*requestServer
}

var _ control.Session = combinedControlSession{}

// IsSlow reports whether requests of a subtype may block.
func (d combinedControlSession) IsSlow(subtype string) bool {
	h, _ := handlerFor(subtype)
	return h.slow
}

func (d combinedControlSession) Serve(ctx context.Context, r control.HostRequest) (control.ResponseWithEvents, error) {
	h, ok := handlerFor(r.Subtype)
	if !ok {
		return control.ResponseWithEvents{}, unsupportedError(r.Subtype)
	}
	in := decodeRequestKeys(r)
	for key := range strings.FieldsSeq(h.stringKeys) {
		if err := in.checkString(key); err != nil {
			return control.ResponseWithEvents{}, err
		}
	}
	return h.run(ctx, d.requestServer, in)
}

// requestHandler serves one request subtype. A slow handler may block; see [control.RequestServer]. The keys in stringKeys must
// be strings; they are checked before run is called.
type requestHandler struct {
	run        serveFunc
	slow       bool
	stringKeys string
}

// handlerFor returns the handler of a request subtype. requests_test.go lists the subtypes that have no handler.
func handlerFor(subtype string) (requestHandler, bool) {
	table := map[string]requestHandler{
		"set_permission_mode":     {run: setPermissionMode},
		"set_model":               {run: setModelAndRecordChange},
		"set_max_thinking_tokens": {run: setThinkingBudget},
		"apply_flag_settings":     {run: overrideFlagSettings},
		"update_settings":         {run: writeOutputStyleOrEffortSetting},
		"side_question":           {run: reportStartAndAskSideQuestion, slow: true, stringKeys: "question"},
		"register_repo_root":      {run: addWorkingDirectory},
		"claim_session":           {run: refuseSessionClaim},
		"submit_feedback":         {run: answerFeedbackIsDisabled},
		"get_hooks_listing":       {run: answerQueryOrReload},

		"set_mcp_permission_mode_override": {run: validateMCPPermissionModeOverride, stringKeys: "serverName"},

		"cancel_async_message":   {run: cancelQueuedMessage},
		"stop_task":              {run: stopBackgroundTask, slow: true, stringKeys: "task_id"},
		"end_session":            {run: endSessionAfterQueuedPrompts},
		"rename_session":         {run: renameSession, stringKeys: "title"},
		"rewind_files":           {run: rewindOrPreviewFiles},
		"read_file":              {run: answerFileContents},
		"get_context_usage":      {run: checkThenRun(checkDetailIsSummaryOrFull, answerQueryOrReload)},
		"get_settings":           {run: answerQueryOrReload},
		"get_usage":              {run: checkThenRun(checkSkipBehaviorsIsBoolean, answerQueryOrReload)},
		"list_permission_rules":  {run: answerQueryOrReload},
		"list_models":            {run: answerQueryOrReload},
		"reload_skills":          {run: answerQueryOrReload},
		"reload_plugins":         {run: answerQueryOrReload},
		"reload_output_styles":   {run: answerQueryOrReload},
		"get_task_output":        {run: answerShellTaskOutput, stringKeys: "task_id"},
		"background_tasks":       {run: answerNothingBackgrounded},
		"generate_session_title": {run: answerNoTitle, stringKeys: "description"},
		"set_has_subscribers":    {run: validateSetHasSubscribers},
		"get_binary_version":     {run: answerBinaryVersion},
		"get_session_cost":       {run: answerQueryOrReload},
		"get_plan":               {run: answerQueryOrReload},
		"get_status":             {run: answerQueryOrReload},
		"file_suggestions":       {run: answerFileSuggestions},
		"message_rated":          {run: validateMessageRating},
		"mcp_status":             {run: answerMCPStatus},
		"mcp_message":            {run: deliverHostServerMessage},
		"mcp_reconnect":          {run: reconnectMCPServer, slow: true, stringKeys: "serverName"},
		"mcp_toggle":             {run: connectOrDisableMCPServer, slow: true, stringKeys: "serverName"},
		"mcp_set_servers":        {run: replaceMCPServersOfHost, slow: true},
		"mcp_call":               {run: callMCPTool, slow: true, stringKeys: "tool"},
		"mcp_read_resource":      {run: readMCPUIResource, slow: true, stringKeys: "serverName uri"},
		"mcp_authenticate":       {run: handleMCPAuthenticate, slow: true},
		"mcp_clear_auth":         {run: handleMCPClearAuthAndReconnect, slow: true},
		"mcp_oauth_callback_url": {run: handleMCPCallbackURL, slow: true},
		"seed_read_state": {run: func(context.Context, *requestServer, controlRequest) (control.ResponseWithEvents, error) {
			return control.ResponseWithEvents{}, nil
		}}, // no effect: only NotebookEdit requires a Read
	}
	h, ok := table[subtype]
	return h, ok
}

// promptPlayer runs the host's prompts in a session and streams its background work between turns.
type promptPlayer struct {
	*session.Session
	conn    *control.Conn
	signals *process.SignalHandler
}

// PromptForDeferredCall returns the prompt that continues a tool call which an earlier process deferred.
func (p promptPlayer) PromptForDeferredCall() *protocol.UserMessage {
	if in, ok := p.PromptToRunDeferredCall(); ok {
		return &in
	}
	return nil
}

// Turn runs one prompt. SIGINT interrupts it: the turn ends with a result, and the run ends after it.
func (p promptPlayer) Turn(_, interrupt context.Context, in protocol.UserMessage) (completed bool, err error) {
	ctx, cancel := context.WithCancelCause(interrupt)
	defer cancel(nil)
	interrupted := p.signals.CancelOnInterrupt(func() { cancel(simulator.ErrSignalled) })
	err = output.StreamJSON(p.conn.EventWriter(), p.Session.Turn(ctx, in))
	if interrupted() && err == nil {
		return false, ErrInterrupted
	}
	last := p.LastResult()
	return last != nil && simulator.CountsPromptsAsCompleted(last), err
}

func (p promptPlayer) AsyncHookFrameAdded() <-chan struct{} {
	return session.AsyncHookFrameAdded(p.Session)
}

func (p promptPlayer) StreamBackgroundEvents(_, untilCancelled context.Context) error {
	if err := output.StreamJSON(p.conn.EventWriter(), p.BackgroundEventsUntilTurnNeeded(untilCancelled)); err != nil {
		return err
	}
	return output.StreamJSON(p.conn.EventWriter(), p.TakeRemainingFrames())
}

// StopBackgroundTask stops a task and waits until its end is shown. notifyModelAfterAnswer is nil if the task is unknown.
func (h *hostedSession) StopBackgroundTask(ctx context.Context, taskID string) (notifyModelAfterAnswer func()) {
	t := h.session.Tasks().Stop(taskID, task.KilledByUserOrHost)
	if t == nil {
		return nil
	}
	t.WaitUntilPostedEventsShown(ctx)
	return t.NotifyModelOfAgentStopByUser
}

// ShellTaskOutput returns the output so far of a background command, or false if the id does not belong to a background command.
func (h *hostedSession) ShellTaskOutput(id string) ([]byte, bool) {
	if work, ok := h.session.Tasks().Find(id); !ok || work.Kind != task.KindBash {
		return nil, false
	}
	data, err := h.session.Tasks().Output(id)
	return data, err == nil
}

// AnswerSideQuestion asks the model outside the conversation and converts its reply to text.
func (h *hostedSession) AnswerSideQuestion(ctx context.Context, question string) (sideQuestionAnswer, error) {
	reply, failed, err := h.session.AskSideQuestion(ctx, question)
	if err != nil {
		return sideQuestionAnswer{}, err
	}
	if reply.Failure != nil {
		return sideQuestionAnswer{Text: "(API error: " + strings.TrimPrefix(failed, "API Error: ") + ")", Synthetic: true}, nil
	}
	var said strings.Builder
	for _, block := range reply.Blocks {
		switch block := block.(type) {
		case protocol.TextBlock:
			said.WriteString(block.Text)
		case protocol.ToolUse:
			return sideQuestionAnswer{Text: "(The model tried to call " + block.Name +
				" instead of answering directly. Try rephrasing or ask in the main conversation.)", Synthetic: true}, nil
		}
	}
	return sideQuestionAnswer{Text: said.String()}, nil
}

// stopBackgroundTask stops a task. The answer does not depend on whether the task exists.
func stopBackgroundTask(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	return control.ResponseWithEvents{Payload: struct{}{}, AfterWrite: r.tasks.StopBackgroundTask(ctx, stringOrEmpty(in.keys["task_id"]))}, nil
}

// answerNothingBackgrounded handles a request to move work of the running turn to the background. It moves no work, because
// commands move there only after their timeout.
func answerNothingBackgrounded(_ context.Context, _ *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	if id := in.keys["tool_use_id"]; !plainjson.IsSet(id) || string(id) == `""` {
		return control.ResponseWithEvents{Payload: struct{}{}}, nil
	}
	return control.ResponseWithEvents{Payload: map[string]bool{"backgrounded": false}}, in.checkString("tool_use_id")
}

func reportStartAndAskSideQuestion(ctx context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	r.conn.WriteEventOutsideTurn(&protocol.SystemEvent{Subtype: "control_request_progress", Fields: []protocol.Field{{Key: "request_id", Value: in.ID}, {Key: "status", Value: "started"}}})
	said, err := r.tasks.AnswerSideQuestion(ctx, stringOrEmpty(in.keys["question"]))
	return control.ResponseWithEvents{Payload: said}, err
}

// maxTaskOutputTailBytesInAnswer limits the output of a task in an answer. Of a longer output, only the last bytes are sent.
const maxTaskOutputTailBytesInAnswer = 8 << 10

func answerShellTaskOutput(_ context.Context, r *requestServer, in controlRequest) (control.ResponseWithEvents, error) {
	id := stringOrEmpty(in.keys["task_id"])
	output, known := r.tasks.ShellTaskOutput(id)
	switch {
	case known:
	case looksLikeShellTaskID(id):
		output = nil
	default:
		return control.ResponseWithEvents{}, &control.ResponseError{Text: "get_task_output: no shell or Monitor task with that task_id in this session"}
	}
	cut := max(0, len(output)-maxTaskOutputTailBytesInAnswer)
	return control.ResponseWithEvents{Payload: struct {
		Output    string `json:"output"`
		Total     int    `json:"total_bytes"`
		Truncated bool   `json:"truncated"`
	}{string(output[cut:]), len(output), cut > 0}}, nil
}

// looksLikeShellTaskID reports whether an id looks like that of a shell task. Such an id may come from an earlier process,
// whose tasks this process does not know.
func looksLikeShellTaskID(id string) bool {
	rest, ok := strings.CutPrefix(id, "b")
	return ok && len(rest) == 8 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}
