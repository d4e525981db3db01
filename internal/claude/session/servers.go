package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// Host is a program that sends prompts to a session and answers its questions.
type Host interface {
	permission.Prompter
	simulator.PromptQueue
	HostCallbacks
}

// HostCallbacks are the requests a session sends to its SDK host: hook callbacks, messages for MCP
// servers inside the host, and questions of servers to the user.
type HostCallbacks interface {
	// CallHook asks the host to run one of its hooks; see [hook.Callback].
	CallHook(ctx context.Context, id string, input json.RawMessage, toolUse string) (json.RawMessage, error)
	// SendToServer sends a message to an MCP server inside the host; see [mcp.Options].SDK.
	SendToServer(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	// Elicit asks the user a question for a server.
	Elicit(ctx context.Context, q mcp.ElicitRequest) mcp.ElicitAnswer
}

type sessionMCPServers struct {
	plan            launch.MCPServers
	inventory       *toolInventory
	records         *recorder
	requestAnswerer serverRequestAnswerer
	resultFiles     mcpResultFilesAndJournal
	progress        io.Writer // shows a line about servers that are still starting; nil means no line
	manager         *mcp.Manager
	callContext     context.Context // like the context of Start, but never cancelled; for requests to servers outside of calls
	lateServers     *lateServers

	warnsOfUnstarted bool // servers that did not start are also reported on stderr
}

// lateServers is the state of servers that connect after the start, such as those inside the host or of its plugins.
type lateServers struct {
	settled        chan struct{} // closed when every server that Start connects has connected or failed
	err            error         // why the start failed; read it only after settled is closed
	hostConnecting atomic.Bool   // servers of the host may still be connecting

	mu            sync.Mutex // guards the following fields
	hostConnected bool       // the host's own servers are connected
	pluginServers []mcp.ServerConfig
}

func newSessionMCPServers(plan launch.Plan, state *simulator.SessionState, host Host, r *recorder) *sessionMCPServers {
	return &sessionMCPServers{
		plan: plan.Servers, inventory: newToolInventory(plan, state), records: r,
		requestAnswerer: serverRequestAnswerer{scenario: plan.Scenario, model: plan.Model.Name, host: host}, resultFiles: mcpResultFilesAndJournal{r, plan.Clock},
		progress: plan.Progress, lateServers: &lateServers{settled: make(chan struct{})},
		warnsOfUnstarted: !plan.AsClaude && !plan.Servers.Required,
	}
}

func (v *sessionMCPServers) createManager(roots []string, recordsCalls bool, elicit func(context.Context, mcp.ElicitRequest) mcp.ElicitAnswer) error {
	o := v.plan.Client
	o.Servers, o.Roots, o.SessionID = v.plan.Configs, roots, v.records.transcript.ID()
	o.Files, o.Elicit, o.Sample = v.resultFiles, elicit, v.requestAnswerer.samplingAnswerer()
	if recordsCalls {
		o.Observer = v.resultFiles
	}
	if host := v.requestAnswerer.host; host != nil {
		o.SDK = host.SendToServer
	}
	var err error
	v.manager, err = mcp.New(o)
	return err
}

func (v *sessionMCPServers) startAndWaitUntilSettled(ctx context.Context) error {
	v.callContext = context.WithoutCancel(ctx)
	if err := mcpcmd.StartManagerShowingProgress(ctx, v.manager, v.progress); err != nil {
		return err
	}
	v.journalAndWarnUnstartedServers()
	return v.checkRequiredServersStarted()
}

// journalAndWarnUnstartedServers writes to the journal which configured servers did not start. It also warns on stderr, except in two
// cases: the program runs under the name claude, or servers are required, so that the error of the run has the same lines.
func (v *sessionMCPServers) journalAndWarnUnstartedServers() {
	for _, m := range v.serversThatDidNotStart() {
		v.records.WriteJournal(journal.NewUnstartedServerFinding(m.name, m.reason))
		if v.warnsOfUnstarted {
			v.records.WarnOnStderr(m.String())
		}
	}
}

func (v *sessionMCPServers) close(ctx context.Context) {
	if err := v.manager.Close(ctx); err != nil {
		v.records.WarnOnStderr("stopping the MCP servers: " + err.Error())
	}
}

// checkRequiredServersStarted returns an error, with one line per server, if servers are required and some did not start.
func (v *sessionMCPServers) checkRequiredServersStarted() error {
	var lines []string
	for _, m := range v.serversThatDidNotStart() {
		lines = append(lines, m.String())
	}
	if !v.plan.Required || len(lines) == 0 {
		return nil
	}
	return process.Verbatimf("%s", v.records.redactSecrets(strings.Join(lines, "\n")))
}

type failedServerStart struct{ name, reason string }

func (m failedServerStart) String() string {
	return fmt.Sprintf("MCP server '%s' failed to start: %s", m.name, m.reason)
}

func (v *sessionMCPServers) serversThatDidNotStart() []failedServerStart {
	var all []failedServerStart
	for _, e := range v.plan.Errors {
		all = append(all, failedServerStart{e.Name, e.Message})
	}
	for _, st := range v.manager.Servers() {
		if st.Status != "connected" && st.Status != "disabled" {
			all = append(all, failedServerStart{st.Name, cmp.Or(st.Error, "no answer in time (set the limit with MCP_TIMEOUT)")})
		}
	}
	return all
}

func (v *sessionMCPServers) failedServersAndServersToLogInTo() (list []transcript.FailedServer, toLogInTo []string) {
	for _, st := range v.manager.Servers() {
		switch st.Status {
		case string(mcp.StateNeedsAuth):
			toLogInTo = append(toLogInTo, st.Name)
		case "failed":
			failed := transcript.FailedServer{Name: st.Name, Error: strings.Join(strings.Fields(strings.ReplaceAll(st.WireError, `"`, " ")), " "), Code: st.WireErrorCode}
			if st.Config.URL != "" && len(st.Config.Headers) == 0 && st.WireErrorCode != "INVALID_CONFIG" && !strings.HasPrefix(st.WireError, "Incompatible auth server") {
				failed.Retry = "on_reach"
			}
			list = append(list, failed)
		}
	}
	slices.SortFunc(list, func(a, b transcript.FailedServer) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(toLogInTo)
	return list, toLogInTo
}

// instructions returns the instructions of the connected servers, by name, each below a heading with the name of its server.
func (v *sessionMCPServers) instructions() (list []transcript.ListedItem) {
	for _, st := range v.manager.Servers() {
		if st.Instructions != "" && st.Status == "connected" {
			list = append(list, transcript.ListedItem{Name: st.Name, Text: "## " + st.Name + "\n" + st.Instructions})
		}
	}
	slices.SortFunc(list, func(a, b transcript.ListedItem) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// toolsAndResourceTools returns the tools of the servers, and the built-in tools for their resources. --tools does not restrict them.
func (v *sessionMCPServers) toolsAndResourceTools() executor.Composite {
	return executor.Composite{
		executor.RemoveTools(v.inventory.isMCPToolDenied)(executor.MCP{Manager: v.manager}),
		executor.RemoveTools(func(t protocol.Tool) bool { return v.inventory.isDisallowedByFlag(t.Name) })(executor.MCPResources{Manager: v.manager, SaveBlob: v.resultFiles.saveResource}),
	}
}

func (v *sessionMCPServers) findTool(name string) (protocol.Tool, bool) {
	if t, err := v.manager.Resolve(name); err == nil && t.Name == name {
		return t, !v.inventory.isMCPToolDenied(t)
	}
	for _, t := range executor.ResourceTools() {
		if t.Name == name && v.manager.HasResources() {
			return t, !v.inventory.isDisallowedByFlag(name)
		}
	}
	return protocol.Tool{}, false
}

// reconnectFailedServerOfCall connects a failed server again if the model calls one of its tools. failureNoteForModel
// says why that was impossible. isToolKnown reports whether the called tool exists afterwards.
func (v *sessionMCPServers) reconnectFailedServerOfCall(ctx context.Context, call protocol.ToolUse) (failureNoteForModel string, isToolKnown bool) {
	failureNoteForModel, _ = v.manager.TryReconnectServerOfTool(ctx, call.Name, call.ID)
	_, isToolKnown = v.findTool(call.Name)
	return failureNoteForModel, isToolKnown
}

func (v *sessionMCPServers) allToolNamesIncludingHidden() []string {
	var names []string
	for _, t := range v.manager.Tools() {
		names = append(names, t.Name)
	}
	return names
}

func (v *sessionMCPServers) isSearchable(t protocol.Tool) bool {
	loaded := v.inventory.plan.NoSearch || slices.ContainsFunc(v.plan.Configs, func(s mcp.ServerConfig) bool { return s.AlwaysLoad && s.Name == t.Server })
	return executor.DeferredByDefault(t) && !loaded
}

// isDeferred reports whether the model sees only the name of a tool until it loads the definition with ToolSearch.
func (v *sessionMCPServers) isDeferred(t protocol.Tool) bool {
	if !v.isSearchable(t) || v.inventory.plan.SearchFrom == 0 {
		return v.isSearchable(t)
	}
	model := claudecode.FactsOfModel(claudecode.ResolveModel(v.inventory.state.NextRequestModel()))
	tokens := model.Context.DeferredTools
	for _, t := range v.manager.Tools() {
		tokens += (len(t.Name) + len(t.Description) + len(t.InputSchema)) / bytesPerToken
	}
	return float64(tokens*100) >= v.inventory.plan.SearchFrom*float64(model.ContextWindow)
}

// bytesPerToken is about the number of bytes of a tool's definition that the API counts as one token.
const bytesPerToken = 4

type serverRequestAnswerer struct {
	scenario launch.Scenario
	model    string // model for sampling if the scenario sets none
	host     Host   // nil means no host
}

// answerFromScenarioOrHost answers a server's question from the scenario, or else from the host. If neither answers, it cancels the question,
// like the real CLI in print mode.
func (a serverRequestAnswerer) answerFromScenarioOrHost(ctx context.Context, q mcp.ElicitRequest) mcp.ElicitAnswer {
	scripted := a.scenario.MCP.Elicitation
	switch {
	case scripted == nil && a.host != nil:
		return a.host.Elicit(ctx, q)
	case scripted == nil:
		return mcp.ElicitAnswer{}
	}
	answer := mcp.ElicitAnswer{Action: cmp.Or(scripted.Action, "decline"), AddDefaults: q.URL == ""}
	if content, err := protocol.Marshal(scripted.Content); err == nil && answer.Action == "accept" && scripted.Content != nil {
		answer.Content = content
	}
	return answer
}

// samplingAnswerer returns a function that answers sampling requests from the scenario; nil means the scenario has no answers.
func (a serverRequestAnswerer) samplingAnswerer() (answerOrNil func(context.Context, string, json.RawMessage) (json.RawMessage, error)) {
	if len(a.scenario.MCP.Sampling) == 0 {
		return nil
	}
	sampler := scenarios.NewEngine(a.scenario.Scenario, a.scenario.Engine)
	return func(ctx context.Context, server string, params json.RawMessage) (json.RawMessage, error) {
		var in struct {
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(params, &in); err != nil {
			return nil, &mcp.RPCError{Code: invalidParamsCode, Message: "sampling: " + err.Error()}
		}
		var prompt string
		if n := len(in.Messages); n > 0 {
			prompt = samplingText(in.Messages[n-1].Content)
		}
		answer, err := sampler.AnswerSamplingRequest(ctx, server, prompt)
		switch {
		case err != nil:
			return nil, err
		case answer == nil:
			return nil, &mcp.RPCError{Code: samplingRefusedErrorCode, Message: "the scenario has no answer to this sampling request"}
		case answer.Error != "":
			return nil, &mcp.RPCError{Code: samplingRefusedErrorCode, Message: answer.Error}
		}
		return protocol.Marshal(map[string]any{
			"role": "assistant", "content": map[string]any{"type": "text", "text": answer.Text},
			"model":      cmp.Or(answer.Model, claudecode.ResolveModel(a.model)),
			"stopReason": cmp.Or(answer.StopReason, "endTurn"),
		})
	}
}

// JSON-RPC codes of answers to sampling requests.
const (
	samplingRefusedErrorCode = -1
	invalidParamsCode        = -32602
)

func samplingText(content json.RawMessage) string {
	type block struct{ Text string }
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		blocks = make([]block, 1)
		_ = json.Unmarshal(content, &blocks[0]) // a block of another type has no text
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n")
}

// mcpResultFilesAndJournal stores large results and binary results of servers in files, and a record of each call in the journal.
type mcpResultFilesAndJournal struct {
	records *recorder
	clock   *clock.TimeAndIDSource
}

// Now, RecordCall and RecordNotification implement mcp.CallRecorder.
func (r mcpResultFilesAndJournal) Now() time.Time { return r.clock.Now() }

func (r mcpResultFilesAndJournal) RecordCall(c mcp.CallRecord) {
	r.records.WriteJournal(journal.MCPCall(c))
}

func (r mcpResultFilesAndJournal) RecordNotification(n mcp.NotificationRecord) {
	r.records.WriteJournal(journal.MCPNotification(n))
}

func (v *sessionMCPServers) callToolForHook(ctx context.Context, server, tool string, input json.RawMessage) (string, error) {
	result, err := v.manager.Call(ctx, mcp.CallRequest{Tool: mcp.CanonicalToolName(server, tool), Input: input})
	switch {
	case err != nil:
		return "", err
	case result.IsError:
		return "", errors.New(result.Content.Plain())
	default:
		return result.Content.Plain(), nil
	}
}

// SaveBlob implements mcp.ResultFileStore. It saves a binary result in the transcript's directory and returns the file's path.
func (r mcpResultFilesAndJournal) SaveBlob(server, mediaType string, data []byte) (string, error) {
	return r.records.saveToolResultFile(r.newResultFileName(server, "blob", extensionOf(mediaType)), data)
}

func (r mcpResultFilesAndJournal) saveResource(index int, mediaType string, data []byte) (string, error) {
	return r.records.saveToolResultFile(fmt.Sprintf("mcp-resource-%d-%d-%s%s", r.clock.Now().UnixMilli(), index, r.newSixCharacterID(), extensionOf(mediaType)), data)
}

func extensionOf(mediaType string) string {
	if known, err := mime.ExtensionsByType(mediaType); err == nil && len(known) > 0 {
		return known[0]
	}
	return ".bin"
}

func (r mcpResultFilesAndJournal) newSixCharacterID() string {
	return strings.ReplaceAll(r.clock.NewID(), "-", "")[:6]
}

// SaveText saves a text result under name and returns the path. If name is empty, it generates one, as SaveBlob does.
func (r mcpResultFilesAndJournal) SaveText(tool protocol.Tool, name, text string) (string, error) {
	if name == "" {
		name = r.newResultFileName(tool.Server, tool.RawName, ".txt")
	}
	return r.records.saveToolResultFile(name, []byte(text))
}

func (r mcpResultFilesAndJournal) newResultFileName(server, kind, ext string) string {
	names := strings.Replace(strings.TrimPrefix(mcp.CanonicalToolName(server, kind), "mcp__"), "__", "-", 1)
	return fmt.Sprintf("mcp-%s-%d-%s%s", names, r.clock.Now().UnixMilli(), r.newSixCharacterID(), ext)
}
