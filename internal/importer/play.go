package importer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/importer/session"
	"github.com/claudeless/claudeless/internal/parity"
)

// CompareOptions select the parts to compare.
type CompareOptions struct {
	Thinking       bool // compare the model's reasoning
	MaxResultBytes int  // number of bytes of a result to compare; 0 means all
}

// ScenarioPlayer plays an imported scenario with claudeless and compares the result with the recording.
type ScenarioPlayer struct {
	Executable string   // the binary, run under the name claude
	Environ    []string // only PATH is passed on
}

// CopyFilesToTemporaryPlayDirs copies a file set to a temporary directory; removeDirs removes it.
func (p *ScenarioPlayer) CopyFilesToTemporaryPlayDirs(fileSet *FileSetWriter) (playDirs PlayDirs, removeDirs func(), err error) {
	tmp, err := proc.MakeTempDir("claudeless-import-")
	if err != nil {
		return playDirs, nil, err
	}
	removeDirs = func() { _ = tmp.Remove() } // best effort: a leftover directory is removed later
	dir, err := filepath.EvalSymlinks(tmp.Path)
	if err == nil {
		playDirs = PlayDirs{dir: dir, scenario: filepath.Join(dir, "kit"), home: filepath.Join(dir, "home"), claudePath: filepath.Join(dir, "claude")}
		err = errors.Join(fileSet.CopyTo(playDirs.scenario), os.MkdirAll(playDirs.home, 0o755), os.Symlink(p.Executable, playDirs.claudePath))
	}
	if err != nil {
		removeDirs()
	}
	return playDirs, removeDirs, err
}

// PlayAndFindDifferences plays the scenario with the recorded prompts and returns the differences from the recording; nil means none.
func (p *ScenarioPlayer) PlayAndFindDifferences(ctx context.Context, at PlayDirs, sessions []*session.Session, o CompareOptions) ([]string, error) {
	log, err := p.playAndReturnLog(ctx, at, sessions)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(at.dir, "log.jsonl")
	if err := os.WriteFile(name, log, 0o600); err != nil {
		return nil, err
	}
	played, err := session.Read([]string{name}, session.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the output of the scenario's run: %w", err)
	}
	placeholders := map[string]string{at.scenario + "/files": "<cwd>", at.scenario: "<cwd>", at.home: "<home>", "REDACTED_CWD_1": "<cwd>", "REDACTED_HOME_1": "<home>"}
	return compareEvents(collectComparableSessionEvents(sessions, placeholdersByRecordedPath(sessions), o), collectComparableSessionEvents(played, placeholders, CompareOptions{Thinking: o.Thinking})), nil
}

// PlayDirs are the directories in which an imported scenario is played.
type PlayDirs struct{ dir, scenario, home, claudePath string }

func placeholdersByRecordedPath(sessions []*session.Session) map[string]string {
	paths := map[string]string{CWDPlaceholder: "<cwd>", HomePlaceholder: "<home>"}
	for _, s := range sessions {
		paths[s.CWD] = "<cwd>"
	}
	return paths
}

func (p *ScenarioPlayer) playAndReturnLog(ctx context.Context, playDirs PlayDirs, sessions []*session.Session) ([]byte, error) {
	env := []string{"CLAUDELESS_SCENARIO=scenario.toml", "HOME=" + playDirs.home, "CLAUDELESS_RETRY_SCALE=0", "ANTHROPIC_API_KEY=none"}
	for _, kv := range p.Environ {
		if strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "GORACE=") || strings.HasPrefix(kv, "GOCOVERDIR=") {
			env = append(env, kv)
		}
	}
	child, err := proc.Start(ctx, proc.Options{Command: proc.Command{Path: playDirs.claudePath, Env: env, Dir: playDirs.scenario, Args: []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--mcp-config", "mcp.json", "--strict-mcp-config",
	}}})
	if err != nil {
		return nil, err
	}
	limit := time.Minute
	for _, s := range sessions {
		limit += time.Duration(len(s.Prompts)) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { child.Stop(context.WithoutCancel(ctx)) })
	defer stop()
	defer child.Stop(context.WithoutCancel(ctx))
	log, err := sendPromptsCollectingOutput(child.Stdin(), child.Stdout(), playDirs, sessions)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("running the scenario: it did not finish within %v", limit)
	}
	if tail := strings.TrimSpace(child.StderrTail()); err == nil && len(log) == 0 && tail != "" {
		return nil, fmt.Errorf("running the scenario: %s", session.EscapeControls(tail))
	}
	return log, err
}

// sendPromptsCollectingOutput sends each prompt and waits for its result, and at the end for background work.
func sendPromptsCollectingOutput(programInput io.WriteCloser, programOutput io.Reader, playDirs PlayDirs, sessions []*session.Session) ([]byte, error) {
	r := &replayOutputCollector{unreadLines: make(chan []byte)}
	done := make(chan struct{})
	defer close(done)
	go r.sendOutputLinesToChannel(bufio.NewReaderSize(programOutput, 1<<20), done) // returns at EOF or the next line
	expand := strings.NewReplacer(CWDPlaceholder, playDirs.scenario, HomePlaceholder, playDirs.home)
	for _, s := range sessions {
		for _, p := range s.Prompts {
			if p.IsNotice {
				const patience = 3 * time.Second // a notice that was answered in the previous turn has no result
				r.collectLinesUntilResult(patience)
				continue
			}
			text := expand.Replace(p.Text)
			if p.TextMissing || text == "" {
				text = "(the prompt was not recorded)"
			}
			frame := fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%s}}`+"\n", plainjson.MarshalString(text))
			if _, err := io.WriteString(programInput, frame); err != nil {
				return r.collectedOutput, nil // the process has exited; missing output is reported as a difference
			}
			if !r.collectLinesUntilResult(0) {
				return r.collectedOutput, nil
			}
		}
	}
	err := programInput.Close()
	for r.collectLinesUntilResult(0) {
	}
	if errors.Is(err, os.ErrClosed) { // the process had already exited
		err = nil
	}
	return r.collectedOutput, err
}

type replayOutputCollector struct {
	unreadLines     chan []byte
	collectedOutput []byte
}

func (r *replayOutputCollector) sendOutputLinesToChannel(programOutput *bufio.Reader, readingStopped <-chan struct{}) {
	defer close(r.unreadLines)
	for {
		line, err := programOutput.ReadBytes('\n')
		select {
		case r.unreadLines <- line:
		case <-readingStopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// collectLinesUntilResult collects lines up to the next result. It returns false if none came within maxWait (0: no limit).
func (r *replayOutputCollector) collectLinesUntilResult(maxWait time.Duration) (hasResultArrived bool) {
	var late <-chan time.Time
	if maxWait > 0 {
		late = time.After(maxWait)
	}
	for {
		select {
		case line, ok := <-r.unreadLines:
			if !ok {
				return false
			}
			r.collectedOutput = append(r.collectedOutput, line...)
			if plainjson.DecodeIgnoringErrors[struct{ Type string }](line).Type == "result" {
				return true
			}
		case <-late:
			return false
		}
	}
}

// comparableSessionEvent is something that happened in a session, and where it was recorded.
type comparableSessionEvent struct {
	place        session.Place
	comparedText string
}

func collectComparableSessionEvents(sessions []*session.Session, placeholdersByPath map[string]string, o CompareOptions) []comparableSessionEvent {
	t := eventCollector{normaliser: parity.NewNormaliser(placeholdersByPath), o: o}
	for _, s := range sessions {
		for _, p := range s.Prompts {
			if !p.IsNotice { // a notification may come in its own turn or in the current one
				t.addEvent(p.At, "prompt")
			}
			t.addEventsOfMessages("", p.Messages)
		}
	}
	return t.events
}

type eventCollector struct {
	normaliser *parity.Normaliser
	o          CompareOptions
	events     []comparableSessionEvent
}

func (t *eventCollector) addEvent(at session.Place, text string) {
	t.events = append(t.events, comparableSessionEvent{at, text})
}

func (t *eventCollector) addEventsOfMessages(subAgentIndent string, messages []*session.Message) {
	for _, m := range messages {
		if m.Failure != nil {
			_, message := m.Failure.APIError()
			t.addEvent(m.At, subAgentIndent+"failure "+t.normaliser.Text(message))
			continue
		}
		for _, b := range m.Blocks {
			switch {
			case b.Call != nil:
				t.addEventsOfCall(subAgentIndent, b.Call)
			case subAgentIndent != "": // the stream contains only the calls of sub-agents
			case b.Thinking && t.o.Thinking && b.Text != "":
				t.addEvent(m.At, subAgentIndent+"thinking "+t.normaliser.Text(b.Text))
			case !b.Thinking && b.Text != "":
				t.addEvent(m.At, subAgentIndent+"text "+t.normaliser.Text(b.Text))
			}
		}
	}
}

func (t *eventCollector) addEventsOfCall(indent string, c *session.Call) {
	input := t.normaliser.JSON(c.Input)
	if c.Tool == "Bash" { // file names are absolute when the scenario is played
		input = strings.ReplaceAll(input, " <cwd>/", " ")
	}
	t.addEvent(c.At, indent+"call "+c.Tool+" "+input)
	if c.Agent != nil {
		t.addEventsOfMessages(indent+"  ", c.Agent.Messages)
	}
	if c.Result == nil {
		return
	}
	text, _, _ := strings.Cut(c.Result.Text, truncationMark)
	if t.o.MaxResultBytes > 0 && len(text) > t.o.MaxResultBytes {
		text = strings.ToValidUTF8(text[:t.o.MaxResultBytes], "")
	}
	kind := "result "
	if c.Result.IsError {
		kind = "error "
	}
	switch { // prompts that the CLI itself wrote
	case c.Agent != nil:
		text = "of the agent"
	case c.Result.Denied, strings.HasSuffix(text, ScriptedErrorTextOfDeniedTool(c.Tool)):
		kind, text = "denied", ""
	}
	t.addEvent(c.Result.At, indent+kind+t.normaliser.Text(text))
}

// TruncateLongWithNote cuts a text, which must be longer than maxBytes bytes, to at most this length and appends the number of omitted bytes.
func TruncateLongWithNote(s string, maxBytes int) string {
	return strings.ToValidUTF8(s[:maxBytes], "") + truncationMark + strconv.Itoa(len(s)-maxBytes) + " bytes; --big keeps them]"
}

// truncationMark begins the note that [TruncateLongWithNote] appends.
const truncationMark = "\n[import left out the other "

// ScriptedErrorTextOfDeniedTool returns the error that the scenario scripts for a tool whose calls were denied in the
// recording. Without it, the call could be allowed when the scenario is played.
func ScriptedErrorTextOfDeniedTool(toolName string) string {
	return "The user does not want " + toolName + " to run."
}

const maxListedDifferencesBetweenRecordingAndPlay = 20

func compareEvents(recorded, played []comparableSessionEvent) []string {
	var out []string
	for i := range max(len(recorded), len(played)) {
		var want, got string
		at := "after the end"
		if i < len(recorded) {
			want, at = recorded[i].comparedText, recorded[i].place.String()
		}
		if i < len(played) {
			got = played[i].comparedText
		}
		if want == got {
			continue
		}
		if len(out) == maxListedDifferencesBetweenRecordingAndPlay {
			return append(out, "and more")
		}
		out = append(out, fmt.Sprintf("%s: recorded %s, played %s", at, quoteTextFromFirstDifference(want, got), quoteTextFromFirstDifference(got, want)))
	}
	return out
}

// quoteTextFromFirstDifference returns a text from the point where it begins to differ from another.
func quoteTextFromFirstDifference(text, comparedText string) string {
	if text == "" {
		return "nothing"
	}
	const before, most = 20, 160
	same := 0
	for same < min(len(text), len(comparedText)) && text[same] == comparedText[same] {
		same++
	}
	prefix := ""
	if same > before*2 {
		kind, _, _ := strings.Cut(text, " ")
		prefix, text = kind+" …", text[same-before:]
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%q", prefix+strings.ToValidUTF8(text, "�"))
}
