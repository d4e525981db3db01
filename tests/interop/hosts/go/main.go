// Command go drives claudeless with the public API of a Go SDK for Claude Code. It is a separate module so that the
// SDK does not become a dependency of the main module.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dotcommander/agent-sdk-go/claude"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, check := range []struct {
		name string
		run  func(context.Context, *place) error
	}{
		{"a prompt and its messages", oneShot},
		{"a tool that is allowed, one that is not", tools},
		{"a session goes on", resumed},
		{"an API that refuses", refused},
		{"requests of a host", requests},
	} {
		p := &place{}
		err := p.enter()
		if err == nil {
			err = check.run(ctx, p)
		}
		if err == nil && p.stderr.Len() > 0 {
			err = errors.New("on stderr: " + p.stderr.String())
		}
		if err != nil {
			log.Fatalf("%s: %v", check.name, err)
		}
		fmt.Println("ok", check.name)
	}
}

// place is the directory and the environment variables in which one check runs.
type place struct {
	dir    string
	stderr strings.Builder
}

func (p *place) enter() (err error) {
	if p.dir, err = os.MkdirTemp("", "interop-"); err != nil {
		return err
	}
	return os.Chdir(p.dir)
}

func (p *place) options(more ...claude.ClientOption) []claude.ClientOption {
	return append([]claude.ClientOption{
		claude.WithCLIPath(os.Getenv("CLAUDELESS_BIN")),
		claude.WithModel("claude-sonnet-5-5"),
		claude.WithEnv(map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(p.dir, "config")}),
		claude.WithStderrCallback(func(line string) { p.stderr.WriteString(line + "\n") }),
	}, more...)
}

// turn is the outcome of a prompt.
type turn struct {
	texts, tools []string
	result       *claude.ResultMessage
}

func (p *place) ask(ctx context.Context, prompt string, more ...claude.ClientOption) (turn, error) {
	var t turn
	messages, err := claude.Query(ctx, prompt, p.options(more...)...)
	if err != nil {
		return t, err
	}
	defer messages.Close()
	for {
		message, err := messages.Next(ctx)
		if errors.Is(err, claude.ErrNoMoreMessages) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		switch m := message.(type) {
		case *claude.AssistantMessage:
			for _, block := range m.Content {
				switch b := block.(type) {
				case *claude.TextBlock:
					t.texts = append(t.texts, b.Text)
				case *claude.ToolUseBlock:
					t.tools = append(t.tools, b.Name)
				}
			}
		case *claude.ResultMessage:
			t.result = m
		}
	}
}

func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}

func oneShot(ctx context.Context, p *place) error {
	t, err := p.ask(ctx, "say hello")
	if err != nil {
		return err
	}
	if t.result == nil || t.result.Result == nil || t.result.TotalCostUSD == nil || t.result.Usage == nil {
		return fmt.Errorf("the result is %+v", t.result)
	}
	_, counted := (*t.result.Usage)["output_tokens"]
	return errors.Join(
		equal("the text", strings.Join(t.texts, "|"), "hello"),
		equal("the result", *t.result.Result, "hello"),
		equal("its kind", t.result.Subtype, "success"),
		equal("turns", t.result.NumTurns, 1),
		equal("output tokens are counted", counted, true),
		equal("models", len(t.result.ModelUsage), 1),
	)
}

func tools(ctx context.Context, p *place) error {
	allowed, err := p.ask(ctx, "write a.txt kept", claude.WithCustomArgs("--allowedTools", "Write", "--"))
	if err != nil {
		return err
	}
	text, _ := os.ReadFile(filepath.Join(p.dir, "a.txt")) // compared
	denied, err := p.ask(ctx, "write b.txt lost")
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(p.dir, "b.txt"))
	return errors.Join(
		equal("what was written", string(text), "kept\n"),
		equal("calls", strings.Join(allowed.tools, "|"), "Write"),
		equal("it is not there", os.IsNotExist(err), true),
		equal("denials", len(denied.result.PermissionDenials), 1),
	)
}

func resumed(ctx context.Context, p *place) error {
	first, err := p.ask(ctx, "say one")
	if err != nil {
		return err
	}
	second, err := p.ask(ctx, "say two", claude.WithResume(first.result.SessionID))
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "config", "projects", "*", first.result.SessionID+".jsonl"))
	return errors.Join(err, equal("the session", second.result.SessionID, first.result.SessionID), equal("transcripts", len(files), 1))
}

func refused(ctx context.Context, p *place) error {
	t, err := p.ask(ctx, "break")
	if t.result == nil {
		return fmt.Errorf("no result: %w", err)
	}
	return equal("it failed", t.result.IsError, true)
}

func requests(ctx context.Context, p *place) error {
	allow := func(context.Context, string, map[string]any, claude.CanUseToolOptions) (claude.PermissionResult, error) {
		return claude.NewPermissionResultAllow(), nil
	}
	client, err := claude.NewClient(p.options(claude.WithCanUseTool(allow), claude.WithCustomArgs("--verbose"))...)
	if err != nil {
		return err
	}
	if err := client.Connect(ctx); err != nil {
		return err
	}
	defer client.Disconnect()
	model := "claude-opus-4-6"
	return errors.Join(client.SetModel(ctx, &model), client.SetPermissionMode(ctx, "acceptEdits"), client.InterruptGraceful(ctx))
}
