package session

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// changedFile is the transcript attachment for a file that was changed after the session wrote it.
type changedFile struct {
	Type     string            `json:"type"` // "edited_text_file"
	FileName string            `json:"filename"`
	Snippet  string            `json:"snippet"`
	Reread   rereadChangedFile `json:"rereadEntry"`
}

// rereadChangedFile describes the new content of a changed file, which the session has read again.
type rereadChangedFile struct {
	Timestamp int64  `json:"timestamp"` // time of the change, in Unix milliseconds
	Hash      string `json:"contentHash"`
	Length    int    `json:"contentLength"` // length in bytes
}

// changedFilesContext returns context about files that were changed after the session, or an agent, wrote them.
func changedFilesContext(changes []builtin.ChangedFile) []simulator.ContextFile {
	var all []simulator.ContextFile
	for _, file := range changes {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(file.Content))
		reread := rereadChangedFile{Timestamp: file.Modified.UnixMilli(), Hash: strconv.FormatUint(hash.Sum64(), 36), Length: len(file.Content)}
		all = append(all, simulator.ContextFile{
			Role: "system", Tool: "Read", Text: "The file " + file.Path + " was changed after you wrote it. These are the changed lines with their numbers:\n" + file.Snippet,
			Attachment: changedFile{Type: "edited_text_file", FileName: file.Path, Snippet: file.Snippet, Reread: reread},
		})
	}
	return all
}

// mentionedFileReader reads the files that prompts mention with @.
type mentionedFileReader struct {
	tools     *toolbox
	tasks     *task.Set
	cwd, home string
}

// Open reads a mentioned file as the Read tool would. It asks no permission question, but deny
// rules apply (spec: cli-shapes, attachment:file).
func (m mentionedFileReader) Open(ctx context.Context, mention simulator.Mention) (simulator.MentionContent, bool) {
	path := mention.Path
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(m.home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.cwd, path)
	}
	path = filepath.Clean(path)
	raw, err := protocol.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return simulator.MentionContent{}, false
	}
	use := protocol.ToolUse{Type: "tool_use", Name: "Read", Input: raw}
	info, err := os.Stat(path)
	if err != nil || m.tools.policy.Decide(use).Behavior == permission.Deny {
		return simulator.MentionContent{}, false
	}
	shown, err := filepath.Rel(m.cwd, path)
	if err != nil {
		shown = path
	}
	if info.IsDir() {
		return readMentionedDir(path, shown)
	}
	result, wasSeen := m.tools.builtin.ReadFile(ctx, path, mention.FirstLine, mention.Lines)
	switch {
	case result.IsError && info.Size() > builtin.MaxWholeFileBytes:
		text := "The prompt mentions " + path + ", which is too large to be attached. Read parts of it."
		return reminderOfSystem(text, map[string]any{
			"type": "at_mention_reference", "displayPath": shown, "fileSize": info.Size(), "mentions": []string{path}, "unread": "too_large",
		}), true
	case result.IsError:
		return simulator.MentionContent{}, false
	case wasSeen:
		return simulator.MentionContent{Attachment: map[string]any{"type": "already_read_file", "filename": path, "content": result.Output, "displayPath": shown}}, true
	}
	content := mentionAsCall("Read", raw, result.Content.Plain(), map[string]any{
		"type": "file", "filename": path, "content": result.Output, "displayPath": shown,
		"savedCopyFraming": map[string]any{"enveloped": false},
	})
	var blocks []any // of a notebook
	for _, b := range result.Content.Blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			blocks = append(blocks, map[string]string{"text": b.Text, "type": "text"})
		case protocol.ImageBlock: // the request contains the image instead of the texts
			content.Text, content.Rendered = "", nil
			return content, true
		}
	}
	if raw, err := protocol.Marshal(blocks); err == nil && strings.EqualFold(filepath.Ext(path), ".ipynb") {
		content.Rendered[1] = "Result of calling the Read tool:\n" + string(raw)
	}
	return content, true
}

// mentionAsCall describes a mentioned file to the model as the result of a call.
func mentionAsCall(tool string, input []byte, result string, attachment map[string]any) simulator.MentionContent {
	rendered := []string{"Called the " + tool + " tool with the following input: " + string(input), "Result of calling the " + tool + " tool:\n" + result}
	return simulator.MentionContent{Text: result, Role: "user", Rendered: rendered, Attachment: attachment}
}

func readMentionedDir(path, shown string) (simulator.MentionContent, bool) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return simulator.MentionContent{}, false
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	list := strings.Join(names, "\n")
	input, err := protocol.Marshal(map[string]string{"command": "ls " + path, "description": "Lists files in " + path})
	return mentionAsCall("Bash", input, list, map[string]any{"type": "directory", "path": path, "content": list, "displayPath": shown}), err == nil
}

// ForgetAndRereadAfterCompaction returns the five seen files that were modified last, the running tasks and the loaded skills.
func (m mentionedFileReader) ForgetAndRereadAfterCompaction(ctx context.Context) (all []simulator.MentionContent) {
	for _, path := range m.tools.builtin.ForgetSeenFiles() {
		if len(all) == 5 {
			break
		}
		if content, ok := m.Open(ctx, simulator.Mention{Path: path}); ok {
			all = append(all, content)
		}
	}
	running := m.tasks.RunningInBackground()
	slices.SortStableFunc(running, func(a, b task.Info) int { return cmp.Compare(a.Kind, b.Kind) })
	for _, t := range running {
		status := map[string]any{"type": "task_status", "taskId": t.ID, "taskType": t.Kind, "description": t.Description, "status": "running", "deltaSummary": nil, "outputFilePath": t.OutputFile}
		if t.Kind == task.KindAgent {
			status["canContinueAgent"] = true
		} else {
			status["shell"] = map[string]string{"command": t.Command, "kind": "bash", "toolUseId": t.ToolUseID}
		}
		all = append(all, reminderOfSystem("The background task "+t.ID+" ("+t.Description+") is still running: "+cmp.Or(t.Command, t.Prompt)+"\nDo not start it again. Its output is in "+t.OutputFile+".", status))
	}
	texts, skills, reminder := m.tools.skills.state.MarkSkillsCompactedReturnTexts(), []map[string]string(nil), "These skills were loaded earlier in this session. Their instructions still apply, but do not run them again."
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if skill, ok := m.tools.skills.findCommand(name); ok { // false for skills of agents
			skills = append(skills, map[string]string{"name": name, "path": skill.Source + ":" + name, "content": texts[name]})
			reminder += "\n\n### " + name + "\n" + texts[name]
		}
	}
	if skills != nil {
		all = append(all, reminderOfSystem(reminder, map[string]any{"type": "invoked_skills", "skills": skills}))
	}
	return all
}

func reminderOfSystem(text string, attachment map[string]any) simulator.MentionContent {
	return simulator.MentionContent{Text: text, Role: "system", Rendered: []string{text}, Attachment: attachment}
}
