package lane

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

// gather reads what the lane has left.
func (p *play) gather() (err error) {
	p.rec.Hooks = linesOf(p.at("rec", "hooks.jsonl"))
	p.rec.MCP = map[string][]json.RawMessage{}
	records, err := filepath.Glob(p.at("rec", "mcp", "*.jsonl"))
	for _, name := range records {
		p.rec.MCP[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = linesOf(name)
	}
	file := "journal.jsonl"
	if p.real() {
		file = "api.jsonl"
	}
	if p.rec.Requests, err = requests(p.at("rec", file), err); err != nil {
		return err
	}
	return errors.Join(p.written(), p.transcripts())
}

// linesOf are the lines of a file that may not be there.
func linesOf(name string) []json.RawMessage {
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

// written are the files of the working directory.
func (p *play) written() error {
	p.rec.Files = map[string]string{}
	root := p.at("cwd")
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
			p.rec.Files[name+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			p.rec.Files[name] = "→ " + target
			return err
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			p.rec.Files[name] = string(data)
			return err
		}
		return nil
	})
}

// transcripts are the session files; the name of the project is left out.
func (p *play) transcripts() error {
	p.rec.Transcripts = map[string][]json.RawMessage{}
	root := filepath.Join(p.config(), "projects")
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		name, err := filepath.Rel(root, path)
		_, name, _ = strings.Cut(filepath.ToSlash(name), "/")
		p.rec.Transcripts[name] = linesOf(path)
		return err
	})
}

// questionCounts is a request of the model as it was folded: a prompt, or the result of a
// call.
type questionCounts struct {
	Type    string          `json:"type"` // prompt or result
	Text    string          `json:"text,omitempty"`
	Rule    string          `json:"rule,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	ID      string          `json:"tool_use_id,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Result  string          `json:"result,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// requests reads them from a journal: that of the API face, or that of the double.
func requests(name string, err error) ([]json.RawMessage, error) {
	file, openErr := os.Open(name)
	if errors.Is(openErr, fs.ErrNotExist) || err != nil {
		return nil, err // a command that asks nobody keeps none
	}
	if openErr != nil {
		return nil, openErr
	}
	defer file.Close()
	return Requests(file)
}

// Requests reads what the model was asked from a journal. That of the double tells
// of a call when it ends: it is part of a request only if the model was asked again
// before the turn ended.
func Requests(file io.Reader) ([]json.RawMessage, error) {
	var all []json.RawMessage
	open := 0 // of the last ones, results that nobody has been told
	for e, err := range journal.Read(file) {
		switch {
		case err != nil:
			continue // a line that its writer did not come to the end of
		case e.Model != nil, e.Retry != nil, e.Result != nil && e.Result.TerminalReason == "aborted_streaming":
			open = 0
		case e.Result != nil, e.Start != nil:
			all, open = all[:len(all)-open], 0
		}
		for _, a := range askedIn(e) {
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

func askedIn(e journal.Entry) (all []questionCounts) {
	switch {
	case e.Match != nil:
		all = append(all, questionCounts{Type: "prompt", Text: e.Match.Prompt, Rule: e.Match.Rule})
	case e.Tool != nil:
		t := e.Tool
		all = append(all, questionCounts{Type: "result", Tool: t.Tool, ID: t.ToolUseID, Input: t.Input, Result: t.Result, IsError: t.IsError})
	case e.Request != nil && e.Request.Attempt == 1:
		for _, c := range e.Request.Calls {
			if c.Unasked {
				continue
			}
			all = append(all, questionCounts{Type: "result", Tool: c.Tool, ID: c.ToolUseID, Input: c.Input, Result: c.Result, IsError: c.IsError})
		}
		if e.Request.Prompt != "" {
			all = append(all, questionCounts{Type: "prompt", Text: e.Request.Prompt, Rule: e.Request.Rule})
		}
	}
	return all
}
