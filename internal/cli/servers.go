package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/cas"
	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/mcp/record"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// readResources reads the resources of servers that a prompt mentions.
func (r *run) readResources(ctx context.Context, prompt string) []simulator.Mentioned {
	if r.manager == nil {
		return nil
	}
	var all []simulator.Mentioned
	for _, m := range (executor.Resources{Manager: r.manager, SaveBlob: r.saveResource}).Mentions(ctx, prompt) {
		attachment := map[string]any{"type": "mcp_resource", "server": m.Server, "uri": m.URI, "name": m.Name, "content": m.Content}
		if m.Description != "" {
			attachment["description"] = m.Description
		}
		all = append(all, simulator.Mentioned{Text: m.Text, Attachment: attachment})
	}
	return all
}

// elicit answers what a server asks the user: as the scenario says, else as
// the host says, else as the real CLI does in print mode, by cancelling.
func (r *run) elicit(ctx context.Context, q mcp.ElicitRequest) mcp.ElicitAnswer {
	scripted := r.Scenario.MCP.Elicitation
	if scripted == nil && r.peer != nil {
		action, content := r.peer.Elicit(ctx, control.Question{Server: q.Server, Message: q.Message, Schema: q.Schema, URL: q.URL, ID: q.ID})
		return mcp.ElicitAnswer{Action: action, Content: content}
	}
	if scripted == nil {
		return mcp.ElicitAnswer{}
	}
	answer := mcp.ElicitAnswer{Action: scripted.Action}
	if answer.Action == "" {
		answer.Action = "decline"
	}
	if content, err := protocol.Marshal(scripted.Content); err == nil && answer.Action == "accept" && scripted.Content != nil {
		answer.Content = content
	}
	return answer
}

// strict refuses a run whose servers are not all there, if it is to.
func (r *run) strict() error {
	if !r.Servers.Required {
		return nil
	}
	return r.failedServers()
}

// statuses are the servers that were tried.
func (r *run) statuses() []mcp.ServerStatus {
	if r.manager == nil {
		return nil
	}
	return r.manager.Servers()
}

// failedServers is one line for each server that is not there.
func (r *run) failedServers() error {
	var lines []string
	for _, e := range r.Servers.Errors {
		lines = append(lines, fmt.Sprintf("MCP server '%s' failed to start: %s", e.Name, e.Message))
	}
	for _, st := range r.statuses() {
		if st.Status != "connected" && st.Status != "disabled" {
			reason := st.Error
			if reason == "" {
				reason = "no answer in time"
			}
			lines = append(lines, fmt.Sprintf("MCP server '%s' failed to start: %s", st.Name, reason))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return process.Verbatimf("%s", strings.Join(lines, "\n"))
}

// setRoots tells the servers that the working directories are others now.
func (r *run) setRoots(dirs []string) {
	if r.manager != nil {
		r.manager.SetRoots(context.Background(), dirs)
	}
}

// sampler answers what servers ask the model as the scenario says; nil = it says nothing.
func (r *run) sampler() func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	sampler := scenarios.NewSampler(r.Scenario.Scenario, r.Scenario.Engine)
	if sampler == nil {
		return nil
	}
	return func(ctx context.Context, server string, params json.RawMessage) (json.RawMessage, error) {
		var in struct {
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(params, &in); err != nil {
			return nil, &mcp.RPCError{Code: invalidParams, Message: "sampling: " + err.Error()}
		}
		var prompt string
		if n := len(in.Messages); n > 0 {
			prompt = sampleText(in.Messages[n-1].Content)
		}
		answer, err := sampler.Answer(ctx, server, prompt)
		switch {
		case err != nil:
			return nil, err
		case answer == nil:
			return nil, &mcp.RPCError{Code: refusedByUser, Message: "the scenario has no answer to this sampling request"}
		case answer.Error != "":
			return nil, &mcp.RPCError{Code: refusedByUser, Message: answer.Error}
		}
		return protocol.Marshal(map[string]any{
			"role": "assistant", "content": map[string]any{"type": "text", "text": answer.Text},
			"model":      cmp.Or(answer.Model, model.Resolve(r.Model.Name)),
			"stopReason": cmp.Or(answer.StopReason, "endTurn"),
		})
	}
}

// JSON-RPC codes of answers to sampling requests.
const (
	refusedByUser = -1
	invalidParams = -32602
)

// sampleText is the text of a message, whose content is one block or a list of them.
func sampleText(content json.RawMessage) string {
	type block struct {
		Text string `json:"text"`
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		blocks = make([]block, 1)
		_ = json.Unmarshal(content, &blocks[0]) // no text is an empty one
	}
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n")
}

// callLog keeps what is asked of servers, for --capture; nil = nobody looks.
func (r *run) callLog() *record.Log {
	if r.Records.Capture == "" {
		return nil
	}
	store := cas.New(cas.Options{MaxBytes: 64 << 20}) // what is there is written at once
	return record.New(record.Options{Store: store, Max: 1, Now: r.Clock.Now, Observe: func(c record.Call) {
		if r.journal == nil {
			return
		}
		whole := func(value json.RawMessage, cid string) json.RawMessage {
			if data, ok := store.Get(cid); ok && value == nil { // too large for the record, not for the file
				return data
			}
			return value
		}
		c.Input, c.Result = whole(c.Input, c.InputCID), whole(c.Result, c.ResultCID)
		r.journal.Write(journal.MCPCall(c))
	}})
}
