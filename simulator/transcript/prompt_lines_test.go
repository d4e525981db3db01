package transcript_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

type tempDirContext struct {
	movedContext
	dir string
}

func (c *tempDirContext) SessionContext(string) transcript.SessionContext {
	return transcript.SessionContext{TempDir: c.dir}
}

// A change of the model by a host is recorded as a command before the next prompt. The images of a prompt
// are stored in files, and a line after the prompt names the files (issue 26, observed with 2.1.330).
func TestLinesAroundPrompt(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	s := w.mustOpen(t, transcript.Options{Context: &tempDirContext{dir: dir}})
	image := protocol.ImageBlock{Type: "image", Source: protocol.ImageSource{Type: "base64", MediaType: "image/../../png", Data: "aGk="}}
	text := func(s string) protocol.UserContent {
		return protocol.UserContent{Role: "user", Content: protocol.Content{Text: s}}
	}
	record(
		t, s,
		&protocol.PromptAccepted{UUID: "u1", PromptID: "p1", Content: protocol.Content{Blocks: []protocol.Block{image}}},
		&protocol.HostCommandRan{Command: &protocol.PromptAccepted{UUID: "c1", LocalCommand: true, Content: protocol.Content{Text: "/model"}}, Output: &protocol.UserEvent{UUID: "o1", Message: text("Set")}},
		&protocol.PromptAccepted{UUID: "u2", PromptID: "p2", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text("see"), image}}},
	)
	closeAll(t, s)
	var got []string
	for _, line := range readLines(t, s.Path()) {
		if line["type"] != "user" {
			continue
		}
		id, _ := line["promptId"].(string)
		switch content := line["message"].(map[string]any)["content"].(type) {
		case string:
			got = append(got, id+" "+content[:min(len(content), 22)])
		case []any:
			last := content[len(content)-1].(map[string]any)
			name, _ := last["text"].(string)
			got = append(got, id+" "+last["type"].(string)+" "+name)
		}
	}
	want := []string{
		"p1 image ", "p1 text [Image: source: " + dir + "/images/1.png]", "p2 <local-command-caveat>", "p2 /model", "p2 Set",
		"p2 image ", "p2 text [Image: source: " + dir + "/images/2.png]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "images", "2.png")); err != nil || string(data) != "hi" {
		t.Errorf("%q, %v", data, err)
	}
}
