package layer_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/layer"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fixedPrompter is a prompter with one answer.
type fixedPrompter func(context.Context) (protocol.PermissionAnswer, error)

func (a fixedPrompter) Ask(ctx context.Context, _ protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	return a(ctx)
}

// clock has the time of the test and one id.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }
func (clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
func (clock) NewID() string { return "00000001-0000-4000-8000-000000000000" }

// echo is a tool that returns its input.
type echo struct{}

func (echo) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

func (echo) Execute(_ context.Context, use protocol.ToolUse) (executor.Result, error) {
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: string(use.Input)}}), nil
}

// fivesValidator rejects inputs that contain a five.
type fivesValidator struct{}

func (fivesValidator) Precheck(_ context.Context, use protocol.ToolUse) simulator.PrecheckResult {
	if !strings.Contains(string(use.Input), "5") {
		return simulator.PrecheckResult{}
	}
	bad := executor.ResultOf(protocol.UsageErrorResult("InputValidationError: Bash failed due to the following issue:\nbad"))
	return simulator.PrecheckResult{Refusal: &bad}
}

// The effect of each answer to a permission question (observed with 2.1.329).
func TestAnswers(t *testing.T) {
	reject := func(source, reason string) *protocol.PermissionDecision {
		return &protocol.PermissionDecision{Decision: "reject", Source: source, ReasonType: reason}
	}
	ruled := func(d protocol.PermissionDecision) *protocol.PermissionDecision {
		d.ReasonCode, d.RuleSource = "rule:session", "session"
		return &d
	}
	accepted := func() *protocol.PermissionDecision {
		return ruled(protocol.PermissionDecision{Decision: "accept", Source: "user_temporary", GrantScope: "once"})
	}
	tests := []struct {
		name     string
		answer   protocol.PermissionAnswer
		text     string // beginning of the text of the result
		decision *protocol.PermissionDecision
		denial   bool
	}{
		{"allow", protocol.PermissionAnswer{Allow: true}, `{"command":"ls"}`, accepted(), false},
		{
			"keys that the tool does not have are left out",
			protocol.PermissionAnswer{Allow: true, UpdatedInput: json.RawMessage(`{"command":"pwd","x":1}`)},
			`{"command":"pwd"}`, accepted(), false,
		},
		{
			"an input that the tool does not take",
			protocol.PermissionAnswer{Allow: true, UpdatedInput: json.RawMessage(`{"command":5}`)},
			"<tool_use_error>The permission handler returned updatedInput for Bash that failed schema validation: Bash failed due to the following issue:\nbad\nThis is a configuration issue",
			reject("permission_updated_input_invalid", ""), false,
		},
		{"deny", protocol.PermissionAnswer{Message: "no"}, "no", ruled(*reject("user_reject", "")), true},
		{"failure", protocol.PermissionAnswer{AskFailure: "broken"}, "broken", &protocol.PermissionDecision{Decision: "reject", Source: "config", ReasonType: "other", ReasonCode: "unknown"}, true},
		{"deny and interrupt", protocol.PermissionAnswer{Message: "no", Interrupt: true}, "The user doesn't want to proceed", nil, true},
	}
	bash := protocol.Tool{Name: "Bash", InputSchema: json.RawMessage(`{"properties":{"command":{"type":"string"}}}`)}
	policy, err := permission.New(permission.Options{CWD: "/w", Tool: func(string) (protocol.Tool, bool) { return bash, true }, AsksPerson: true})
	if err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context, ask fixedPrompter) (executor.Result, error) {
		chain := executor.Chain(echo{}, layer.Permission(layer.PermissionOptions{Policy: policy, Ask: ask, Tools: fivesValidator{}, Clock: clock{}}))
		return chain.Execute(ctx, protocol.ToolUse{ID: "toolu-1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
	}
	policyAsks(t, policy)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := call(t.Context(), func(context.Context) (protocol.PermissionAnswer, error) { return tt.answer, nil })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.decision, got.Decision); diff != "" || !strings.HasPrefix(got.Content.Plain(), tt.text) || got.CountDenial != tt.denial {
				t.Errorf("text %q, denial %v, decision (-want +got):\n%s", got.Content.Plain(), got.CountDenial, diff)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = call(ctx, func(ctx context.Context) (protocol.PermissionAnswer, error) {
		cancel()
		return protocol.PermissionAnswer{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a turn that ends while it asks: %v", err)
	}
}

// A question about an MCP tool shows the tool's name in readable form, not its title.
func TestQuestionNamesTool(t *testing.T) {
	policy, err := permission.New(permission.Options{CWD: "/w", AsksPerson: true, Tool: func(name string) (protocol.Tool, bool) {
		return protocol.Tool{Name: name, Server: "s", RawName: "make_it", Title: "A title"}, true
	}})
	if err != nil {
		t.Fatal(err)
	}
	var asked protocol.PermissionRequest
	chain := executor.Chain(echo{}, layer.Permission(layer.PermissionOptions{Policy: policy, Ask: recordingPrompter{&asked}, Clock: clock{}}))
	if _, err := chain.Execute(t.Context(), protocol.ToolUse{Name: "mcp__s__make_it", Input: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
	if asked.DisplayName != "Make It" {
		t.Errorf("got %q", asked.DisplayName)
	}
}

// recordingPrompter allows every call and stores the last question.
type recordingPrompter struct{ asked *protocol.PermissionRequest }

func (n recordingPrompter) Ask(_ context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	*n.asked = r
	return protocol.PermissionAnswer{Allow: true}, nil
}

// A question shows an absolute path. The call keeps the path that the model wrote, even if the
// answer changes other parts of the input (observed with 2.1.329).
func TestShownPath(t *testing.T) {
	policy, err := permission.New(permission.Options{CWD: "/w", AsksPerson: true})
	if err != nil {
		t.Fatal(err)
	}
	for answered, want := range map[string]string{
		`null`:                               `{"file_path":"a"}`,
		`{"file_path":"/w/a","content":"<"}`: `{"file_path":"a","content":"<"}`,
		`{"file_path":"/w/b"}`:               `{"file_path":"/w/b"}`,
		`{"content":"x"}`:                    `{"content":"x"}`,
	} {
		ask := fixedPrompter(func(context.Context) (protocol.PermissionAnswer, error) {
			answer := protocol.PermissionAnswer{Allow: true}
			if answered != "null" {
				answer.UpdatedInput = json.RawMessage(answered)
			}
			return answer, nil
		})
		got, err := executor.Chain(echo{}, layer.Permission(layer.PermissionOptions{Policy: policy, Ask: ask, Clock: clock{}})).Execute(t.Context(), protocol.ToolUse{
			Name: "Write", Input: json.RawMessage(`{"file_path":"a"}`), ObservedInput: json.RawMessage(`{"file_path":"/w/a"}`),
		})
		if err != nil || got.Content.Plain() != want {
			t.Errorf("after %s the tool gets %s, want %s (%v)", answered, got.Content.Plain(), want, err)
		}
	}
}

// A call is marked if the answer changes more than the path of the file, and the version reports it (observed with 2.1.331). A hook
// marks nothing (observed with 2.1.332).
func TestChangeOfContentIsMarked(t *testing.T) {
	policy, err := permission.New(permission.Options{CWD: "/w", AsksPerson: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answered, source string
		reports, want    bool
	}{
		{`{"file_path":"/w/a","content":"y"}`, "", true, true},
		{`{"file_path":"/w/a","content":"y"}`, "hook", true, false},
		{`{"file_path":"/w/a","content":"y"}`, "", false, false},
		{`{"file_path":"/w/a","content":"x"}`, "", true, false},
		{`{"file_path":"/w/b","content":"x"}`, "", true, false},
	} {
		ask := fixedPrompter(func(context.Context) (protocol.PermissionAnswer, error) {
			return protocol.PermissionAnswer{Allow: true, Source: tt.source, UpdatedInput: json.RawMessage(tt.answered)}, nil
		})
		var got protocol.ToolUse
		permit := layer.Permission(layer.PermissionOptions{Policy: policy, Ask: ask, Clock: clock{}, ReportChanges: tt.reports})
		_, err := executor.Chain(executedCall{&got}, permit).Execute(t.Context(), protocol.ToolUse{
			Name: "Write", Input: json.RawMessage(`{"file_path":"a","content":"x"}`),
		})
		if err != nil || got.UserModified != tt.want {
			t.Errorf("after %s (reported: %t) UserModified is %t (%v)", tt.answered, tt.reports, got.UserModified, err)
		}
	}
}

// executedCall keeps the call that reaches the tool.
type executedCall struct{ call *protocol.ToolUse }

func (executedCall) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

func (e executedCall) Execute(_ context.Context, use protocol.ToolUse) (executor.Result, error) {
	*e.call = use
	return executor.Result{}, nil
}

// policyAsks checks that the policy asks about the calls of the test.
func policyAsks(t *testing.T, p *permission.Policy) {
	t.Helper()
	p.Apply([]protocol.PermissionUpdate{{Type: "addRules", Behavior: "ask", Rules: []protocol.PermissionRule{{ToolName: "Bash"}}}})
}

// If a question is interrupted, the error contains the id of its call.
func TestInterruptQuestion(t *testing.T) {
	policy, err := permission.New(permission.Options{CWD: "/w", AsksPerson: true})
	if err != nil {
		t.Fatal(err)
	}
	policyAsks(t, policy)
	ctx, cancel := context.WithCancel(t.Context())
	ask := fixedPrompter(func(ctx context.Context) (protocol.PermissionAnswer, error) {
		cancel()
		<-ctx.Done()
		return protocol.PermissionAnswer{}, ctx.Err()
	})
	chain := executor.Chain(echo{}, layer.Permission(layer.PermissionOptions{Policy: policy, Ask: ask, Clock: clock{}}))
	_, err = chain.Execute(ctx, protocol.ToolUse{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
	if got, ok := errors.AsType[*simulator.InterruptedPermissionError](err); !ok || got.Call != "toolu_1" || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
