package importer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// CompareOptions select the parts to compare.
type CompareOptions struct {
	Thinking       bool // compare the model's reasoning
	MaxResultBytes int  // number of bytes of a result to compare; 0 means all
}

// ScenarioPlayer plays an imported scenario with this program.
type ScenarioPlayer struct {
	Executable string   // the binary, run under the name claude
	Environ    []string // only PATH is passed on
}

// Prepare copies a file set to a temporary directory; done removes it.
func (p *ScenarioPlayer) Prepare(k *FileSet) (at PlayDirs, done func(), err error) {
	tmp, err := proc.MakeTempDir("claudeless-import-")
	if err != nil {
		return at, nil, err
	}
	done = func() { _ = tmp.Remove() } // best effort: a leftover directory is removed later
	dir, err := filepath.EvalSymlinks(tmp.Path)
	if err == nil {
		at = PlayDirs{dir: dir, scenario: filepath.Join(dir, "kit"), home: filepath.Join(dir, "home"), claude: filepath.Join(dir, "claude")}
		err = errors.Join(k.CopyTo(at.scenario), os.MkdirAll(at.home, 0o755), os.Symlink(p.Executable, at.claude))
	}
	if err != nil {
		done()
	}
	return at, done, err
}

// Differences plays the scenario with the recorded prompts and returns the differences; nil means none.
func (p *ScenarioPlayer) Differences(ctx context.Context, at PlayDirs, sessions []*session.Session, o CompareOptions) ([]string, error) {
	log, err := p.runScenario(ctx, at, sessions)
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
	return compareEvents(collectEvents(sessions, recordedPaths(sessions), o), collectEvents(played, at.paths(), CompareOptions{Thinking: o.Thinking})), nil
}

// PlayDirs are the directories in which an imported scenario is played.
type PlayDirs struct{ dir, scenario, home, claude string }

func (d PlayDirs) paths() map[string]string {
	return map[string]string{d.scenario + "/files": "<cwd>", d.scenario: "<cwd>", d.home: "<home>", "REDACTED_CWD_1": "<cwd>", "REDACTED_HOME_1": "<home>"}
}

func recordedPaths(sessions []*session.Session) map[string]string {
	paths := map[string]string{CWDPlaceholder: "<cwd>", HomePlaceholder: "<home>"}
	for _, s := range sessions {
		paths[s.CWD] = "<cwd>"
	}
	return paths
}

func (p *ScenarioPlayer) runScenario(ctx context.Context, at PlayDirs, sessions []*session.Session) ([]byte, error) {
	env := []string{"CLAUDELESS_SCENARIO=scenario.toml", "HOME=" + at.home, "CLAUDELESS_RETRY_SCALE=0", "ANTHROPIC_API_KEY=none"}
	for _, kv := range p.Environ {
		if strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "GORACE=") || strings.HasPrefix(kv, "GOCOVERDIR=") {
			env = append(env, kv)
		}
	}
	child, err := proc.Start(ctx, proc.Options{Command: proc.Command{Path: at.claude, Env: env, Dir: at.scenario, Args: []string{
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
	log, err := sendPrompts(child.Stdin(), child.Stdout(), at, sessions)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("running the scenario: it did not finish within %v", limit)
	}
	if tail := strings.TrimSpace(child.StderrTail()); err == nil && len(log) == 0 && tail != "" {
		return nil, fmt.Errorf("running the scenario: %s", session.EscapeControls(tail))
	}
	return log, err
}

// sendPrompts sends each prompt and waits for its result. After the last prompt it also waits for background work.
func sendPrompts(in io.WriteCloser, out io.Reader, at PlayDirs, sessions []*session.Session) ([]byte, error) {
	r := &resultReader{lines: make(chan []byte)}
	done := make(chan struct{})
	defer close(done)
	go r.readLines(bufio.NewReaderSize(out, 1<<20), done) // returns at EOF of the output, or at the next line
	expand := strings.NewReplacer(CWDPlaceholder, at.scenario, HomePlaceholder, at.home)
	for _, s := range sessions {
		for _, p := range s.Prompts {
			if p.IsNotice {
				const patience = 3 * time.Second // a notice that joined the previous turn has no result of its own
				r.waitResult(patience)
				continue
			}
			text := expand.Replace(p.Text)
			if p.TextMissing || text == "" {
				text = "(the prompt was not recorded)"
			}
			frame := fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%s}}`+"\n", plainjson.MarshalString(text))
			if _, err := io.WriteString(in, frame); err != nil {
				return r.log, nil // the process has exited; missing output is reported as a difference
			}
			if !r.waitResult(0) {
				return r.log, nil
			}
		}
	}
	err := in.Close()
	for r.waitResult(0) {
	}
	if errors.Is(err, os.ErrClosed) { // the process had already exited
		err = nil
	}
	return r.log, err
}

type resultReader struct {
	lines chan []byte
	log   []byte
}

func (r *resultReader) readLines(out *bufio.Reader, done <-chan struct{}) {
	defer close(r.lines)
	for {
		line, err := out.ReadBytes('\n')
		select {
		case r.lines <- line:
		case <-done:
			return
		}
		if err != nil {
			return
		}
	}
}

// waitResult collects lines up to the next result. It returns false if none came within limit (0 means no limit).
func (r *resultReader) waitResult(limit time.Duration) bool {
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				return false
			}
			r.log = append(r.log, line...)
			var head struct{ Type string }
			if json.Unmarshal(line, &head) == nil && head.Type == "result" {
				return true
			}
		case <-late:
			return false
		}
	}
}
