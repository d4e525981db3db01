package transcript

import (
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// open writes, once, what a process begins its part of a transcript with.
func (s *Transcript) open() error {
	if s.rec.opened {
		return nil
	}
	s.rec.opened = true
	if s.cutOff {
		if err := s.writer.bytes(s.path, []byte("\n")); err != nil {
			return err
		}
	}
	var lines []any
	if s.named || s.forked || s.cleared {
		lines = append(lines, s.titles()...)
	}
	if !s.resumed {
		lines = append(lines, s.agentSetting()...)
	}
	if s.forked || s.cleared {
		lines = append(lines, s.mode())
	}
	if s.forked {
		lines = append(lines, s.latch())
	}
	if s.resumed && len(s.rec.tools) > 0 {
		lines = append(lines, s.toolsUsed())
	}
	return s.writer.lines(s.path, lines...)
}

// closing is what a list of sessions shows of the conversation so far. What a
// process begins a file with stands there again.
func (s *Transcript) closing() []any {
	s.rec.closed, s.rec.told = true, s.rec.leaf[""]
	lines := []any{protocol.LastPromptLine{Type: "last-prompt", LastPrompt: s.rec.prompt, LeafUUID: s.rec.told, SessionID: s.id}}
	appended := s.resumed && !s.forked
	if !appended {
		lines = append(append(lines, s.titles()...), s.agentSetting()...)
	}
	if s.resumed || s.cleared {
		lines = append(lines, s.mode())
	}
	if !appended {
		lines = append(lines, s.latch())
	}
	return lines
}

// Close writes what the conversation has come to and what it cost, if there
// was one. Nothing may be recorded after it; to close again does nothing.
func (s *Transcript) Close() error {
	if !s.rec.opened || s.closed {
		return nil
	}
	s.closed = true
	if leaf := s.rec.leaf[""]; leaf != "" && leaf != s.rec.told {
		if err := s.write(s.closing()...); err != nil {
			return err
		}
	}
	return s.ended()
}

// ended writes what the conversation cost.
func (s *Transcript) ended() error {
	if !s.rec.opened {
		return nil
	}
	costs := s.totals
	costs.Type, costs.SessionID = "cost-state", s.id
	if costs.ModelUsage == nil {
		costs.ModelUsage = map[string]protocol.LineCost{}
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.writer.lines(s.path, costs)
}

// Entitle names the session. A name that it has already changes nothing.
func (s *Transcript) Entitle(title string) error {
	if title == s.title {
		return nil
	}
	s.title, s.named = title, true
	if !s.rec.opened {
		return nil
	}
	return s.write(s.titles()...)
}

func (s *Transcript) titles() []any {
	if s.title == "" {
		return nil
	}
	return []any{
		protocol.CustomTitleLine{Type: "custom-title", CustomTitle: s.title, SessionID: s.id},
		protocol.AgentNameLine{Type: "agent-name", AgentName: s.title, SessionID: s.id},
	}
}

func (s *Transcript) agentSetting() []any {
	if s.opts.Agent == "" {
		return nil
	}
	return []any{protocol.AgentSettingLine{Type: "agent-setting", AgentSetting: s.opts.Agent, SessionID: s.id}}
}

func (s *Transcript) mode() protocol.ModeLine {
	return protocol.ModeLine{Type: "mode", Mode: "normal", SessionID: s.id}
}

func (s *Transcript) latch() protocol.LatchLine {
	return protocol.LatchLine{Type: "atis-latch", SessionID: s.id}
}

func (s *Transcript) toolsUsed() protocol.ToolsUsedLine {
	return protocol.ToolsUsedLine{Type: "tools-used", Tools: slices.Clone(s.rec.tools), SessionID: s.id}
}
