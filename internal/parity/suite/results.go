package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
)

func (p *laneRun) collectResults() (err error) {
	p.recording.Hooks = readJSONLines(p.path("rec", "hooks.jsonl"))
	p.recording.MCP = map[string][]json.RawMessage{}
	records, err := filepath.Glob(p.path("rec", "mcp", "*.jsonl"))
	for _, name := range records {
		p.recording.MCP[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = readJSONLines(name)
	}
	file := "journal.jsonl"
	if p.isReal() {
		file = "api.jsonl"
	}
	if p.recording.Requests, err = readRequests(p.path("rec", file), err); err != nil {
		return err
	}
	return errors.Join(p.collectFiles(), p.collectTranscripts())
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

func (p *laneRun) collectFiles() error {
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

// collectTranscripts reads the session files. The returned paths do not contain the name of the project.
func (p *laneRun) collectTranscripts() error {
	p.recording.Transcripts = map[string][]json.RawMessage{}
	root := filepath.Join(p.configDir(), "projects")
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		name, err := filepath.Rel(root, path)
		_, name, _ = strings.Cut(filepath.ToSlash(name), "/")
		p.recording.Transcripts[name] = readJSONLines(path)
		return err
	})
}

// modelRequest is a part of a request to the model: a prompt, or the result of a call.
type modelRequest struct {
	Type    string          `json:"type"` // prompt or result
	Text    string          `json:"text,omitempty"`
	Rule    string          `json:"rule,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	ID      string          `json:"tool_use_id,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Result  string          `json:"result,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// readRequests reads the model requests from the journal of claudeless, which ran as `claudeless serve` or as `claude`.
func readRequests(name string, err error) ([]json.RawMessage, error) {
	file, openErr := os.Open(name)
	if errors.Is(openErr, fs.ErrNotExist) || err != nil {
		return nil, err // a command that sends no request writes none
	}
	if openErr != nil {
		return nil, openErr
	}
	defer file.Close()
	return ReadRequests(file)
}

// ReadRequests reads the requests to the model from a journal. When claudeless runs as claude, it records a call when
// the call returns. The call is part of a request only if another request followed in the turn.
func ReadRequests(file io.Reader) ([]json.RawMessage, error) {
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
		for _, a := range requestsOf(e) {
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

func requestsOf(e journal.Entry) (all []modelRequest) {
	switch {
	case e.Match != nil:
		all = append(all, modelRequest{Type: "prompt", Text: e.Match.Prompt, Rule: e.Match.Rule})
	case e.Tool != nil:
		t := e.Tool
		all = append(all, modelRequest{Type: "result", Tool: t.Tool, ID: t.ToolUseID, Input: t.Input, Result: t.Result, IsError: t.IsError})
	case e.Request != nil && e.Request.Attempt == 1:
		for _, c := range e.Request.Calls {
			if c.EndedTurn {
				continue
			}
			all = append(all, modelRequest{Type: "result", Tool: c.Tool, ID: c.ToolUseID, Input: c.Input, Result: c.Result, IsError: c.IsError})
		}
		if e.Request.Prompt != "" {
			all = append(all, modelRequest{Type: "prompt", Text: e.Request.Prompt, Rule: e.Request.Rule})
		}
	}
	return all
}
