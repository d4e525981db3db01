package executor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func TestComposite(t *testing.T) {
	unknown := &fakeTools{err: executor.ErrUnknownTool}
	first, second := &fakeTools{}, &fakeTools{}
	call := protocol.ToolUse{Name: "Read"}
	got, err := executor.Composite{unknown, first, second}.Execute(t.Context(), call)
	if err != nil || got.Content.Text != "ran Read" {
		t.Errorf("Execute = %+v, %v", got, err)
	}
	if unknown.calls != 1 || first.calls != 1 || second.calls != 0 {
		t.Errorf("calls = %d, %d, %d; want 1, 1, 0", unknown.calls, first.calls, second.calls)
	}
	if _, err := (executor.Composite{unknown}).Execute(t.Context(), call); !errors.Is(err, executor.ErrUnknownTool) {
		t.Errorf("err = %v, want ErrUnknownTool", err)
	}
	broken := &fakeTools{err: errors.New("broken")}
	if _, err := (executor.Composite{broken, first}).Execute(t.Context(), call); err == nil || errors.Is(err, executor.ErrUnknownTool) {
		t.Errorf("err = %v, want the member's own error", err)
	}
	if _, err := (executor.Composite{broken}).Tools(t.Context()); err == nil {
		t.Error("Tools of a broken member gave no error")
	}
}

func TestCompositeTools(t *testing.T) {
	a := &fakeTools{tools: []protocol.Tool{{Name: "x", Title: "a"}, {Name: "y"}}}
	b := &fakeTools{tools: []protocol.Tool{{Name: "x", Title: "b"}, {Name: "z"}}}
	got, err := executor.Composite{a, b}.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []protocol.Tool{{Name: "x", Title: "a"}, {Name: "y"}, {Name: "z"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestChainOrder(t *testing.T) {
	var order []string
	layer := func(name string) executor.Middleware {
		return executor.Func(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
			order = append(order, name)
			return next.Execute(ctx, call)
		})
	}
	_, err := executor.Chain(&fakeTools{}, layer("outer"), layer("inner")).Execute(t.Context(), protocol.ToolUse{})
	if diff := cmp.Diff([]string{"outer", "inner"}, order); diff != "" || err != nil {
		t.Errorf("order (-want +got), err %v:\n%s", err, diff)
	}
}
