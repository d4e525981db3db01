package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Surroundings is what the model is told beside the first prompt. Lists that
// are nil are left out of transcripts.
type Surroundings struct {
	Model     string
	ModelName string   // as people call it; empty = unknown
	Deferred  []string // tools of which the model knows only the names
	Agents    []Listed // of the tool Agent
	Skills    []Listed // of the tool Skill
}

// Listed is an agent or a skill as the model is told of it.
type Listed struct {
	Name    string
	Text    string // "- name: what it is for"
	BuiltIn bool
}

// The attachments of transcripts that stand for [Surroundings].
type (
	environment struct {
		Type     string   `json:"type"` // "environment"
		Snapshot snapshot `json:"snapshot"`
	}
	snapshot struct {
		WorkingDirectory string   `json:"workingDirectory"`
		IsWorktree       bool     `json:"isWorktree"`
		IsGitRepo        bool     `json:"isGitRepo"`
		AdditionalDirs   []string `json:"additionalWorkingDirectories"`
		Platform         string   `json:"platform"`
		Shell            string   `json:"shell"`
		OSVersion        string   `json:"osVersion"`
	}
	model struct {
		Type     string   `json:"type"` // "model"
		Identity identity `json:"identity"`
		Text     string   `json:"text"`
	}
	identity struct {
		ModelID         string  `json:"modelId"`
		MarketingName   *string `json:"marketingName"`
		KnowledgeCutoff *string `json:"knowledgeCutoff"`
	}
	deferredTools struct {
		Type         string    `json:"type"` // "deferred_tools_delta"
		AddedNames   []string  `json:"addedNames"`
		AddedLines   []string  `json:"addedLines"`
		RemovedNames []string  `json:"removedNames"`
		WireHidden   []string  `json:"wireHiddenNames"`
		Readded      []string  `json:"readdedNames"`
		Pending      *[]string `json:"pendingMcpServers,omitempty"`
		NeedsAuth    *[]string `json:"needsAuthMcpServers,omitempty"`
		Failed       *[]string `json:"failedMcpServers,omitempty"`
	}
	agentListing struct {
		Type            string   `json:"type"` // "agent_listing_delta"
		AddedTypes      []string `json:"addedTypes"`
		AddedLines      []string `json:"addedLines"`
		BuiltIn         []string `json:"builtInTypes"`
		BuiltInPlugin   []string `json:"builtInPluginTypes"`
		Removed         []string `json:"removedTypes"`
		IsInitial       bool     `json:"isInitial"`
		ConcurrencyNote bool     `json:"showConcurrencyNote"`
	}
	skillListing struct {
		Type      string   `json:"type"` // "skill_listing"
		Content   string   `json:"content"`
		Count     int      `json:"skillCount"`
		IsInitial bool     `json:"isInitial"`
		Names     []string `json:"names"`
		Digests   []string `json:"digests"`
	}
	sessionContext struct {
		Type    string            `json:"type"` // "session_context"
		Context map[string]string `json:"context"`
	}
	date struct {
		Type string `json:"type"` // "date"
		Date string `json:"date"`
	}
	sessionChange struct {
		Type          string  `json:"type"` // "remote_session_change"
		URL           *string `json:"url"`
		Commit        string  `json:"commit"`
		PR            string  `json:"pr"`
		FileHint      bool    `json:"sendUserFileHint"`
		ManagedCommit bool    `json:"managedCommit"`
		ManagedPR     bool    `json:"managedPr"`
	}
)

func (s *Transcript) surroundings() Surroundings {
	if s.opts.Surroundings == nil {
		return Surroundings{}
	}
	return s.opts.Surroundings()
}

// environment tells the model its surroundings with the first prompt of a
// conversation.
func (s *Transcript) environment() error {
	if s.rec.listed {
		return nil
	}
	s.rec.listed, s.rec.asked = true, true
	now := s.surroundings()
	lines := append(s.place("", now), s.lists("", now, true)...)
	return s.write(lines...)
}

// context tells the model the rest, with the first request.
func (s *Transcript) context() error {
	if !s.rec.asked {
		return nil
	}
	s.rec.asked = false
	var lines []any
	if !s.resumed {
		lines = append(lines, s.latch())
	}
	return s.write(append(lines, s.rest("", s.surroundings())...)...)
}

// relisted tells the model its surroundings again, after a compaction.
func (s *Transcript) relisted() error {
	s.rec.listed, s.rec.asked = true, true
	now := s.surroundings()
	return s.write(append(s.lists("", now, false), s.place("", now)...)...)
}

// surroundingsOfAgent is what a sub-agent is told with its prompt.
func (s *Transcript) surroundingsOfAgent(id string) []any {
	now := s.surroundings()
	now.Agents = nil
	lists := s.lists(id, Surroundings{Deferred: now.Deferred}, false)
	lists = append(lists, s.place(id, now)...)
	lists = append(lists, s.lists(id, Surroundings{Skills: now.Skills}, false)...)
	return append(lists, s.rest(id, now)...)
}

// place says where the agent is and what model it has.
func (s *Transcript) place(agentID string, now Surroundings) []any {
	m := s.opts.Machine
	dirs := append([]string{}, m.AdditionalDirs...)
	told := model{Type: "model", Identity: identity{ModelID: now.Model}, Text: "You are powered by the model " + now.Model + "."}
	if now.ModelName != "" {
		told.Identity.MarketingName = &now.ModelName
		told.Text = "You are powered by the model named " + now.ModelName + ". The exact model ID is " + now.Model + "."
	}
	return []any{
		s.attachment(agentID, "system", environment{"environment", snapshot{
			WorkingDirectory: s.opts.CWD, IsWorktree: m.IsWorktree, IsGitRepo: m.IsGitRepo, AdditionalDirs: dirs,
			Platform: m.Platform, Shell: m.Shell, OSVersion: m.OSVersion,
		}}),
		s.attachment(agentID, "system", told),
	}
}

// lists says what tools, agents and skills there are; of the servers still to
// come only at the start.
func (s *Transcript) lists(agentID string, now Surroundings, start bool) []any {
	var lines []any
	if now.Deferred != nil {
		tools := deferredTools{
			Type: "deferred_tools_delta", AddedNames: now.Deferred, AddedLines: now.Deferred,
			RemovedNames: []string{}, WireHidden: []string{}, Readded: []string{},
		}
		if start {
			tools.Pending, tools.NeedsAuth, tools.Failed = &[]string{}, &[]string{}, &[]string{}
		}
		lines = append(lines, s.attachment(agentID, "system", tools))
	}
	if now.Agents != nil {
		agents := agentListing{
			Type: "agent_listing_delta", BuiltIn: []string{}, BuiltInPlugin: []string{}, Removed: []string{}, IsInitial: true, ConcurrencyNote: true,
		}
		for _, a := range now.Agents {
			agents.AddedTypes, agents.AddedLines = append(agents.AddedTypes, a.Name), append(agents.AddedLines, a.Text)
			if a.BuiltIn {
				agents.BuiltIn = append(agents.BuiltIn, a.Name)
			}
		}
		lines = append(lines, s.attachment(agentID, "system", agents))
	}
	if now.Skills != nil {
		skills := skillListing{Type: "skill_listing", Count: len(now.Skills), IsInitial: true}
		var texts []string
		for _, skill := range now.Skills {
			sum := sha256.Sum256([]byte(skill.Text))
			texts, skills.Names = append(texts, skill.Text), append(skills.Names, skill.Name)
			skills.Digests = append(skills.Digests, hex.EncodeToString(sum[:8]))
		}
		skills.Content = strings.Join(texts, "\n")
		lines = append(lines, s.attachment(agentID, "system", skills))
	}
	return lines
}

// rest is what the first request adds: the state of the repository is not
// looked at.
func (s *Transcript) rest(agentID string, now Surroundings) []any {
	author := now.ModelName
	if author == "" {
		author = now.Model
	}
	lines := []any{
		s.attachment(agentID, "", sessionContext{"session_context", map[string]string{}}),
		s.attachment(agentID, "system", date{"date", s.opts.Now().Format("2006-01-02")}),
	}
	change := s.attachment(agentID, "user", sessionChange{
		Type: "remote_session_change", Commit: "Co-Authored-By: Claude " + author + " <noreply@anthropic.com>",
		PR: "🤖 Generated with [Claude Code](https://claude.com/claude-code)",
	})
	change.BesideResult = true
	return append(lines, change)
}

func (s *Transcript) attachment(agentID, role string, value any) protocol.AttachmentLine {
	e := s.envelope(agentID, "", "")
	return protocol.AttachmentLine{Head: e.Head, Attachment: value, Type: "attachment", Stamp: e.Stamp, RenderedRole: role, Foot: e.Foot}
}
