package executor_test

import (
	"context"
	"errors"
	"fmt"
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
		return executor.NewMiddleware(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
			order = append(order, name)
			return next.Execute(ctx, call)
		})
	}
	_, err := executor.Chain(&fakeTools{}, layer("outer"), layer("inner")).Execute(t.Context(), protocol.ToolUse{})
	if diff := cmp.Diff([]string{"outer", "inner"}, order); diff != "" || err != nil {
		t.Errorf("order (-want +got), err %v:\n%s", err, diff)
	}
}

// Every request of a session lists the tools, so the number of allocations does not grow with the number of tools (D1).
func TestListingToolsIsCheap(t *testing.T) {
	list := func(n int) float64 {
		members := executor.Composite{&fakeTools{}, &fakeTools{}}
		for i := range n {
			member := members[i%2].(*fakeTools)
			member.tools = append(member.tools, protocol.Tool{Name: fmt.Sprintf("tool%d", i)})
		}
		return testing.AllocsPerRun(10, func() {
			if got, err := members.Tools(t.Context()); err != nil || len(got) != n {
				t.Fatal(len(got), err)
			}
		})
	}
	if few, many := list(64), list(1024); many > few+3 {
		t.Errorf("%.0f allocations for 64 tools, %.0f for 1,024", few, many)
	}
}
