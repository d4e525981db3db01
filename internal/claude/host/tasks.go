package host

import (
	"context"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

func (h *hostedSession) StopTask(id string) { h.session.Tasks().Stop(id, task.KilledByUser) }

// TaskOutput returns what a command in the background has written so far.
func (h *hostedSession) TaskOutput(id string) ([]byte, bool) {
	if work, ok := h.session.Tasks().Find(id); !ok || work.Kind != task.KindBash {
		return nil, false
	}
	data, err := h.session.Tasks().Output(id)
	return data, err == nil
}

// SideQuestion asks the model outside the conversation and converts its reply to text.
func (h *hostedSession) SideQuestion(ctx context.Context, question string) (sideQuestionAnswer, error) {
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

// stopTask stops a task. The answer does not depend on whether the task exists.
func stopTask(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	id, err := in.stringKey("task_id")
	if err != nil {
		return control.Answer{}, err
	}
	r.tasks.StopTask(id)
	return control.Answer{Payload: struct{}{}}, nil
}

// moveTaskToBackground handles a request to move work of the running turn to the background. It moves no work, because
// commands move there only after their timeout.
func moveTaskToBackground(_ context.Context, _ *requestServer, in request) (control.Answer, error) {
	if id := in.keys["tool_use_id"]; !plainjson.IsSet(id) || string(id) == `""` {
		return control.Answer{Payload: struct{}{}}, nil
	}
	if _, err := in.stringKey("tool_use_id"); err != nil {
		return control.Answer{}, err
	}
	return control.Answer{Payload: map[string]bool{"backgrounded": false}}, nil
}

func sideQuestion(ctx context.Context, r *requestServer, in request) (control.Answer, error) {
	question, err := in.stringKey("question")
	if err != nil {
		return control.Answer{}, err
	}
	r.conn.WriteEvent(&protocol.System{Subtype: "control_request_progress", Fields: []protocol.Field{
		{Key: "request_id", Value: in.ID}, {Key: "status", Value: "started"},
	}})
	said, err := r.tasks.SideQuestion(ctx, question)
	return control.Answer{Payload: said}, err
}

// maxTaskOutputBytes limits the output of a task in an answer. Of a longer output, only the last bytes are sent.
const maxTaskOutputBytes = 8 << 10

func taskOutput(_ context.Context, r *requestServer, in request) (control.Answer, error) {
	id, err := in.stringKey("task_id")
	if err != nil {
		return control.Answer{}, err
	}
	output, known := r.tasks.TaskOutput(id)
	switch {
	case known:
	case isShellTaskID(id):
		output = nil
	default:
		return control.Answer{}, &control.HostError{Text: "get_task_output: no shell or Monitor task with that task_id in this session"}
	}
	cut := max(0, len(output)-maxTaskOutputBytes)
	return control.Answer{Payload: struct {
		Output    string `json:"output"`
		Total     int    `json:"total_bytes"`
		Truncated bool   `json:"truncated"`
	}{string(output[cut:]), len(output), cut > 0}}, nil
}

// isShellTaskID reports whether an id has the form of a shell task's id; the task may belong to an earlier process.
func isShellTaskID(id string) bool {
	rest, ok := strings.CutPrefix(id, "b")
	return ok && len(rest) == 8 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}
