package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// openMention reads what a prompt mentions as the Read tool would: it asks
// nobody, but what a rule denies stays closed (spec: cli-shapes,
// attachment:file).
func (r *run) openMention(ctx context.Context, m simulator.Mention) (simulator.Mentioned, bool) {
	path := m.Path
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(r.sys.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.cwd, path)
	}
	path = filepath.Clean(path)
	raw, err := protocol.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return simulator.Mentioned{}, false
	}
	use := protocol.ToolUse{Type: "tool_use", Name: "Read", Input: raw}
	info, err := os.Stat(path)
	if err != nil || r.policy.Decide(use).Behavior == permission.Deny {
		return simulator.Mentioned{}, false
	}
	shown, err := filepath.Rel(r.cwd, path)
	if err != nil {
		shown = path
	}
	if info.IsDir() {
		return mentionedDir(path, shown)
	}
	result := r.tools.Open(ctx, path, m.First, m.Lines)
	if result.IsError {
		return simulator.Mentioned{}, false
	}
	return simulator.Mentioned{Text: result.Content.Plain(), Attachment: map[string]any{
		"type": "file", "filename": path, "content": result.Output, "displayPath": shown,
		"savedCopyFraming": map[string]any{"enveloped": false},
	}}, true
}

func mentionedDir(path, shown string) (simulator.Mentioned, bool) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return simulator.Mentioned{}, false
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	list := strings.Join(names, "\n")
	return simulator.Mentioned{Text: list, Attachment: map[string]any{
		"type": "directory", "path": path, "content": list, "displayPath": shown,
	}}, true
}
