package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// CaseJob is a case to run, and the programs that run it one after the other.
type CaseJob struct {
	Case  *parity.Case `json:"case"`
	Lanes []Lane       `json:"lanes"`
	// Dir is a new directory. Both programs run in the same subdirectory, one after the other, so that both see the same paths.
	Dir        string        `json:"dir"`
	Executable string        `json:"self"`    // the claudeless binary, which is also used for fixtures
	Timeout    time.Duration `json:"timeout"` // bounds each run of a program
	// DefaultURL lets the programs use the default URL of the API. This needs a separate network, where its host is our server.
	DefaultURL bool `json:"default_url,omitempty"`
	// Protocol lists the revisions of MCP that the fixtures speak; empty means the revisions in the fixture files.
	Protocol string `json:"protocol,omitempty"`
	Isolated bool   `json:"isolated"` // true if the network has only the loopback interface
}

// Lane is one of the two programs that a case compares.
type Lane struct {
	Program string `json:"program,omitempty"` // the path of claude; empty means claudeless
	Version string `json:"version,omitempty"` // the version of claude that claudeless claims to be; empty means its default
}

// Play runs the case of a job with each of the job's programs, in order.
func Play(ctx context.Context, s *process.System, job *CaseJob) ([]*parity.Recording, error) {
	var all []*parity.Recording
	for _, l := range job.Lanes {
		p := &caseRunOfProgram{CaseJob: job, Lane: l, sys: s, started: s.Now()}
		if err := p.recreateDirsAndStartServers(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing the case %s: %w", job.Case.Name, err), p.stopServers(ctx))
		}
		before := unroutedPacketCount()
		for i := range p.Case.Runs {
			if !p.executeRunOfCase(ctx, &p.Case.Runs[i]) {
				break
			}
		}
		if n := unroutedPacketCount() - before; job.Isolated && n > 0 {
			p.addProblem("network", fmt.Sprintf("tried to reach the network (%d times)", n))
		}
		if err := errors.Join(p.stopServers(ctx), p.collectResults()); err != nil {
			return nil, fmt.Errorf("recording the case %s: %w", job.Case.Name, err)
		}
		p.recording.Duration = s.Now().Sub(p.started)
		all = append(all, &p.recording)
	}
	return all, nil
}

// JobResult is the output of [RunJobFromStdin].
type JobResult struct {
	Recordings []*parity.Recording `json:"recordings,omitempty"`
	Error      string              `json:"error,omitempty"`
}

// RunJobFromStdin reads a job from stdin, runs it, and writes a [JobResult] to stdout. It must run in the process that
// [PlayIsolated] starts in a separate network namespace.
func RunJobFromStdin(ctx context.Context, s *process.System) error {
	var job CaseJob
	if err := json.NewDecoder(s.Stdin).Decode(&job); err != nil {
		return fmt.Errorf("reading the job of an isolated case from stdin: %w", err)
	}
	var a JobResult
	err := guard.BringUpLoopback()
	if err == nil && job.DefaultURL {
		var names io.Closer
		if names, err = guard.ServeDNSNameAsLoopback(apiHost); err == nil {
			defer func() { _ = names.Close() }() // the network disappears when this process exits
		}
	}
	if err == nil {
		a.Recordings, err = Play(ctx, s, &job)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(s.Stdout).Encode(a)
}

// ErrNotIsolated means that the system does not allow separate network namespaces.
var ErrNotIsolated = errors.New("the system does not allow separate network namespaces: run as root, or allow user namespaces")

// PlayIsolated runs a job in a process without network access. When the process exits, all processes that it has
// started are killed. serveArgs are the arguments with which job.Executable calls [RunJobFromStdin].
func PlayIsolated(ctx context.Context, s *process.System, job *CaseJob, runJobArgs ...string) ([]*parity.Recording, error) {
	job.Isolated = true
	raw, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	const most = 512 << 20
	limit := time.Duration(len(job.Lanes)*max(1, len(job.Case.Runs)))*(job.Timeout+5*time.Second) + 30*time.Second
	res, err := proc.Run(ctx, proc.RunOptions{Command: proc.Command{Path: job.Executable, Args: runJobArgs, Env: s.Environ, Isolated: true}, Stdin: raw, Limit: most, Timeout: limit})
	if err != nil {
		return nil, errors.Join(ErrNotIsolated, err)
	}
	var a JobResult
	if err := json.Unmarshal(res.Stdout, &a); err != nil {
		return nil, fmt.Errorf("the process that runs the case ended with %s and without a result: %s", res.Exit, res.Stderr[max(0, len(res.Stderr)-500):])
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Recordings, nil
}

// unroutedPacketCount returns the number of packets that could not be routed. In a network with only the
// loopback interface, these are attempts to reach another machine.
func unroutedPacketCount() (countSinceCreation int) {
	table, _ := os.ReadFile("/proc/self/net/snmp") // only Linux counts unroutable packets
	var names []string
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "Ip:" {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		for i, name := range names {
			if name == "OutNoRoutes" && i < len(words) {
				n, _ := strconv.Atoi(words[i]) // the kernel writes numbers
				return n
			}
		}
	}
	return 0
}

func (p *caseRunOfProgram) collectResults() (err error) {
	p.recording.Hooks = readJSONLines(p.path("rec", "hooks.jsonl"))
	p.recording.MCP = map[string][]json.RawMessage{}
	records, err := filepath.Glob(p.path("rec", "mcp", "*.jsonl"))
	for _, name := range records {
		p.recording.MCP[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = readJSONLines(name)
	}
	file := "journal.jsonl"
	if p.isProgramRealClaude() {
		file = "api.jsonl"
	}
	if err == nil {
		p.recording.Requests, err = readJournalModelRequests(p.path("rec", file))
	}
	if err != nil {
		return err
	}
	return errors.Join(p.collectWorkingDirFiles(), p.readSessionFilesIntoRecording())
}

// readJSONLines returns the lines of a file, which may be missing.
func readJSONLines(name string) []json.RawMessage {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	var all []json.RawMessage
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); json.Valid(line) {
			all = append(all, json.RawMessage(line))
		}
	}
	return all
}

func (p *caseRunOfProgram) collectWorkingDirFiles() error {
	p.recording.Files = map[string]string{}
	root := p.path("cwd")
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		}
		switch {
		case d.IsDir():
			p.recording.Files[name+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			p.recording.Files[name] = "→ " + target
			return err
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			p.recording.Files[name] = string(data)
			return err
		}
		return nil
	})
}

// readSessionFilesIntoRecording records the session files. Their paths omit the project directory, whose name varies.
func (p *caseRunOfProgram) readSessionFilesIntoRecording() error {
	p.recording.Transcripts = map[string][]json.RawMessage{}
	root := filepath.Join(p.configDir(), "projects")
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" && !strings.HasSuffix(path, ".meta.json") {
			return err
		}
		name, err := filepath.Rel(root, path)
		_, name, _ = strings.Cut(filepath.ToSlash(name), "/")
		p.recording.Transcripts[name] = readJSONLines(path)
		return err
	})
}

// promptOrToolResult is a part of a request to the model: a prompt, or the result of a call.
type promptOrToolResult struct {
	Type    string          `json:"type"` // prompt or result
	Text    string          `json:"text,omitempty"`
	Rule    string          `json:"rule,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	ID      string          `json:"tool_use_id,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Result  string          `json:"result,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// readJournalModelRequests reads the requests from a journal of `claudeless serve` or `claude`. It returns none if the file does not exist.
func readJournalModelRequests(journalFile string) ([]json.RawMessage, error) {
	file, err := os.Open(journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a command that sends no request writes no journal
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadRequestsFromJournal(file)
}

// ReadRequestsFromJournal reads the requests to the model from a journal. When claudeless runs as claude, it records the result of
// each call. If a turn ends after a call, no request sends the result to the model, so ReadRequestsFromJournal omits it.
func ReadRequestsFromJournal(file io.Reader) ([]json.RawMessage, error) {
	var all []json.RawMessage
	open := 0 // number of trailing results that no request has contained yet
	for e, err := range journal.Read(file) {
		switch {
		case err != nil:
			continue // an incomplete line
		case e.Model != nil, e.Retry != nil, e.Result != nil && e.Result.TerminalReason == "aborted_streaming":
			open = 0
		case e.Result != nil, e.Start != nil:
			all, open = all[:len(all)-open], 0
		}
		for _, a := range promptAndResultsOf(e) {
			raw, err := json.Marshal(a)
			if err != nil {
				return nil, err
			}
			all = append(all, raw)
			if open > 0 || e.Tool != nil {
				open++
			}
		}
	}
	return all[:len(all)-open], nil
}

func promptAndResultsOf(e journal.Entry) (all []promptOrToolResult) {
	switch {
	case e.Match != nil:
		all = append(all, promptOrToolResult{Type: "prompt", Text: e.Match.Prompt, Rule: e.Match.Rule})
	case e.Tool != nil:
		t := e.Tool
		all = append(all, promptOrToolResult{Type: "result", Tool: t.Tool, ID: t.ToolUseID, Input: t.Input, Result: t.Result, IsError: t.IsError})
	case e.Request != nil && e.Request.Attempt == 1:
		for _, c := range e.Request.Calls {
			if !c.EndedTurn {
				all = append(all, promptOrToolResult{Type: "result", Tool: c.Tool, ID: c.ToolUseID, Input: c.Input, Result: c.Result, IsError: c.IsError})
			}
		}
		if e.Request.Prompt != "" {
			all = append(all, promptOrToolResult{Type: "prompt", Text: e.Request.Prompt, Rule: e.Request.Rule})
		}
	}
	return all
}
