package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/parity"
)

type host struct {
	ctx    context.Context // context of the run, which outlives the host
	child  *proc.Process
	output *programOutput

	position     int    // number of lines processed so far
	id           string // id of the request that the last wait received
	rpc          string // id of the MCP message in the request that the last wait received
	input        json.RawMessage
	requestCount int
}

// executeStep executes one step. It returns a description of the expected event that did not happen, or "" after
// success.
func (h *host) executeStep(s parity.CaseStep, text string) string {
	switch s.Verb {
	case "prompt":
		h.send(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
	case "send":
		_, _ = h.child.Stdin().Write([]byte(strings.ReplaceAll(text, "$id", h.id) + "\n"))
	case "ask", "request":
		h.requestCount++
		id := fmt.Sprintf("ask-%d", h.requestCount)
		h.send(map[string]any{"type": "control_request", "request_id": id, "request": json.RawMessage(text)})
		if s.Verb == "request" && !h.waitForEvent("control_response", "response.request_id="+id) {
			return "no answer to " + text
		}
	case "wait":
		if !h.waitForEvent(text, s.Where...) {
			return "no " + text + " " + strings.Join(s.Where, " ")
		}
	case "allow", "deny":
		if !h.waitForEvent("control_request/can_use_tool") {
			return "claude requested no permission within the time limit"
		}
		h.respond(h.permissionAnswer(s.Verb, text))
	case "refuse":
		if !h.denyAll() {
			return "no result"
		}
	case "answer":
		h.respond(json.RawMessage(strings.ReplaceAll(text, "$rpc", h.rpc)))
	case "signal":
		h.child.Signal(map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[text])
	}
	return ""
}

// denyAll denies every permission request until a result arrives. It returns false if no result arrives.
func (h *host) denyAll() bool {
	for {
		next, line, ok := h.output.waitForLine(h.ctx, h.position, func(line string) bool {
			kind := parity.KindOf(json.RawMessage(line))
			return strings.HasPrefix(kind, "result") || kind == "control_request/can_use_tool"
		})
		h.position = next
		if !ok {
			return false
		}
		id, asks := stringField(line, "request_id")
		if !asks {
			return true
		}
		h.id = id
		h.respond(h.permissionAnswer("deny", ""))
	}
}

// permissionAnswer is the answer to a permission request: "deny" with text as the message, or "allow" with text as the
// input of the tool, by default the input of the request.
func (h *host) permissionAnswer(verb, text string) any {
	switch {
	case verb == "deny" && text == "":
		return map[string]any{"behavior": "deny", "message": "no"}
	case verb == "deny":
		return map[string]any{"behavior": "deny", "message": text}
	case text == "":
		return map[string]any{"behavior": "allow", "updatedInput": h.input}
	}
	return map[string]any{"behavior": "allow", "updatedInput": json.RawMessage(text)}
}

func (h *host) respond(body any) {
	h.send(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": h.id, "response": body}})
}

func (h *host) send(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: v contains only strings and valid JSON
	}
	_, _ = h.child.Stdin().Write(append(raw, '\n')) // an error shows as missing output
}

// waitForEvent waits for an event whose kind has this prefix and which meets the conditions.
func (h *host) waitForEvent(kind string, where ...string) bool {
	next, line, ok := h.output.waitForLine(h.ctx, h.position, func(line string) bool {
		if !strings.HasPrefix(parity.KindOf(json.RawMessage(line)), kind) {
			return false
		}
		for _, w := range where {
			path, want, _ := strings.Cut(w, "=")
			if got, _ := stringField(line, path); got != want {
				return false
			}
		}
		return true
	})
	h.position = next
	if !ok {
		return false
	}
	if id, asks := stringField(line, "request_id"); asks {
		h.id = id
		input, _ := stringField(line, "request.input")
		h.input = json.RawMessage(input)
		h.rpc, _ = stringField(line, "request.message.id")
	}
	return true
}
