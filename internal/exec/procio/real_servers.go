package procio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// RealClaudeMCPServerRecords are the files with data about the MCP servers of a real claude.
type RealClaudeMCPServerRecords struct {
	Journal string // journal of the run
	// Dir has a subdirectory for each fixture of the scenario, named after the fixture and escaped
	// with [url.PathEscape]. In it, the processes of the fixture have recorded their messages.
	Dir string
	// StartedAt is when the run began. Older logs are ignored.
	StartedAt time.Time
}

// Write appends two kinds of lines to the journal: the notifications that the fixtures recorded, and a finding for each
// server that did not start. The logs of the real claude show which servers did not start. The lines get the process id
// and the time of s. If a record or a log cannot be read, Write appends nothing.
func (r RealClaudeMCPServerRecords) Write(s *process.System) error {
	lines, err := findingsOfFailedServerStarts(r.Journal, r.StartedAt)
	files, badPattern := filepath.Glob(filepath.Join(r.Dir, "*", "*"))
	err = errors.Join(err, badPattern)
	for _, name := range files {
		server, undecodable := url.PathUnescape(filepath.Base(filepath.Dir(name)))
		record, unreadable := os.ReadFile(name)
		if unreadable != nil {
			unreadable = fmt.Errorf("reading the recorded messages of an MCP server: %w", unreadable)
		}
		lines, err = append(lines, recordedNotifications(server, record)...), errors.Join(err, undecodable, unreadable)
	}
	if len(lines) == 0 || err != nil {
		return err
	}
	file, err := os.OpenFile(r.Journal, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the MCP servers to the journal: %w", err)
	}
	j := journal.New(journal.Options{W: file, Now: s.Now, PID: s.PID, Environ: s.Environ})
	for _, line := range lines {
		j.Write(line)
	}
	return errors.Join(j.Err(), file.Close())
}

type recordedMCPMessage struct {
	From    string `json:"from"`
	Message struct {
		Method string `json:"method"`
		Params struct {
			Name     string          `json:"name"`
			Token    json.RawMessage `json:"progressToken"`
			Progress float64         `json:"progress"`
			Total    float64         `json:"total"`
			Message  string          `json:"message"`
			Level    string          `json:"level"`
			Logger   string          `json:"logger"`
			Data     json.RawMessage `json:"data"`
			Meta     struct {
				Token json.RawMessage `json:"progressToken"`
				UseID string          `json:"claudecode/toolUseId"`
			} `json:"_meta"`
		} `json:"params"`
	} `json:"message"`
}

// recordedNotifications returns the notifications in the record of one process. An incomplete last line is omitted.
func recordedNotifications(server string, record []byte) []journal.Body {
	type call struct{ tool, useID string }
	calls := map[string]call{} // calls by progress token
	var all []journal.Body
	for line := range bytes.Lines(record) {
		var m recordedMCPMessage
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		p := &m.Message.Params
		n := journal.MCPNotification{Source: "mcp_server", Server: server}
		switch {
		case m.From == "client" && m.Message.Method == "tools/call":
			calls[string(p.Meta.Token)] = call{p.Name, p.Meta.UseID}
			continue
		case m.From == "server" && m.Message.Method == "notifications/progress":
			of := calls[string(p.Token)]
			n.RawTool, n.ToolUseID, n.Progress, n.Total, n.Text = of.tool, of.useID, p.Progress, p.Total, p.Message
		case m.From == "server" && m.Message.Method == "notifications/message":
			n.Level, n.Logger = p.Level, p.Logger
			if json.Unmarshal(p.Data, &n.Text) != nil { // Data is not a string
				n.Text = string(p.Data)
			}
		default:
			continue
		}
		all = append(all, n)
	}
	return all
}

// findingsOfFailedServerStarts returns a finding for each MCP server that a real claude could not start. It reads the
// logs to which the journal refers. It ignores logs older than ignoreLogsBefore, and log lines of other sessions.
func findingsOfFailedServerStarts(journalFile string, ignoreLogsBefore time.Time) ([]journal.Body, error) {
	file, err := os.Open(journalFile)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	defer file.Close()
	caches, sessions := map[string]bool{}, map[string]bool{}
	for e, err := range journal.Read(file) {
		switch {
		case errors.Is(err, journal.ErrNotAJournalLine):
		case err != nil:
			return nil, err
		case e.Start != nil && e.Start.LogCache != "":
			caches[e.Start.LogCache] = true
		case e.Request != nil:
			sessions[e.Request.Session] = true
		}
	}
	var all []journal.Body
	for _, cache := range slices.Sorted(maps.Keys(caches)) {
		// <project>/mcp-logs-<server>/<start>.jsonl
		files, err := filepath.Glob(filepath.Join(cache, "*", mcpServerLogDirPrefix+"*", "*.jsonl"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if info, err := os.Stat(name); err != nil || info.ModTime().Before(ignoreLogsBefore) {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("reading the log of an MCP server: %w", err)
			}
			if reason := serverStartFailureReason(text, sessions); reason != "" {
				all = append(all, journal.NewUnstartedServerFinding(strings.TrimPrefix(filepath.Base(filepath.Dir(name)), mcpServerLogDirPrefix), reason))
			}
		}
	}
	return all, nil
}

const mcpServerLogDirPrefix = "mcp-logs-"

// serverStartFailureReason returns why a server did not start, from its log. Only the lines of the given sessionIDs are read. An
// empty result means that the server started or that the log does not give a reason.
func serverStartFailureReason(serverLog []byte, sessionIDs map[string]bool) string {
	reason := ""
	for line := range bytes.Lines(serverLog) {
		var entry struct {
			Error   string `json:"error"`
			Debug   string `json:"debug"`
			Session string `json:"sessionId"`
		}
		if json.Unmarshal(line, &entry) != nil || !sessionIDs[entry.Session] {
			continue
		}
		if strings.HasPrefix(entry.Debug, "Successfully connected") {
			return ""
		}
		if text, ok := strings.CutPrefix(entry.Error, "Connection failed"); ok {
			_, text, _ = strings.Cut(text, ": ") // after the code in brackets, if there is one
			reason = text
		}
	}
	return reason
}
