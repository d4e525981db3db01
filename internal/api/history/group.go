package history

import (
	"cmp"
	"slices"
	"strings"
)

// MessageGroup is either everything between two assistant messages, or one assistant message. The API
// treats adjacent messages of one role as one message.
type MessageGroup struct {
	Assistant         bool
	Index             int // index of its first message
	Steps             []Segment
	Context           []string // texts that accompany the steps; those from the user's hooks and files come first
	accompanyingTexts []rankedContextText
	Text              string    // text of an assistant message
	AnswerDigest      Digest    // digest of an assistant message
	Uses              []ToolUse // calls of the assistant message in or before the group
}

// GroupAndInterpretMessages divides the client's messages into groups.
func (c *RequestSender) GroupAndInterpretMessages(messages []*Message) []MessageGroup {
	groups := make([]MessageGroup, 0, len(messages))
	for i, m := range messages {
		if assistant := m.Role == "assistant"; len(groups) == 0 || groups[len(groups)-1].Assistant != assistant {
			groups = append(groups, MessageGroup{Assistant: assistant, Index: i})
		}
		groups[len(groups)-1].mergeMessage(m)
	}
	var uses []ToolUse
	for i := range groups {
		if g := &groups[i]; g.Assistant {
			uses = g.Uses
		} else {
			g.Uses = uses
			g.separatePromptsFromResultTexts(c)
			g.finalizeStepsAndContext(i == len(groups)-1)
		}
	}
	return groups
}

func (g *MessageGroup) mergeMessage(m *Message) {
	g.accompanyingTexts = append(g.accompanyingTexts, m.context...)
	if m.Role == "assistant" {
		if g.AnswerDigest == (Digest{}) {
			g.AnswerDigest = m.AnswerDigest
		} else {
			g.AnswerDigest = g.AnswerDigest.ChainDigest(m.AnswerDigest)
		}
	}
	g.Text += m.Text
	g.Uses = append(g.Uses, m.Uses...)
	if len(g.Steps) == 0 {
		g.Steps = slices.Clip(m.Steps) // shares memory with the message, which must not be modified
		return
	}
	for _, in := range m.Steps {
		if n := len(g.Steps); in.Kind == KindResults && g.Steps[n-1].Kind == KindResults {
			in.Results = append(slices.Clip(g.Steps[n-1].Results), in.Results...)
			g.Steps = slices.Clone(g.Steps[:n-1])
		}
		g.Steps = append(g.Steps, in)
	}
}

// separatePromptsFromResultTexts decides which texts next to tool results are prompts. From Claude Code, the first texts are the texts of
// loaded skills and belong to the results. All later texts are prompts that the user typed after the turn had ended, so the results before
// them are marked as those of an ended turn. From other clients, all texts belong to the results.
func (g *MessageGroup) separatePromptsFromResultTexts(client *RequestSender) {
	steps := make([]Segment, 0, len(g.Steps))
	skills := g.countSuccessfulSkillCalls()
	for _, in := range g.Steps {
		if in.Kind == kindTextNextToResults {
			own := len(in.Blocks)
			if client.IsClaudeCode() {
				own = min(own, skills)
				skills -= own
			}
			for _, text := range in.Blocks[:own] {
				g.accompanyingTexts = append(g.accompanyingTexts, splitContext(text)...)
			}
			if own == len(in.Blocks) {
				continue
			}
			in.Kind = KindPrompt
			in = in.PromptWithoutFirstBlocks(own)
		}
		if in.Kind == KindPrompt && client.IsClaudeCode() {
			markTrailingResultsAsOfEndedTurn(steps)
		}
		steps = append(steps, in)
	}
	g.Steps = steps
}

// markTrailingResultsAsOfEndedTurn marks the results at the end of the steps as those of an ended turn. Only prompts that were typed while
// the model worked may follow them.
func markTrailingResultsAsOfEndedTurn(steps []Segment) {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Kind == KindResults {
			steps[i].markAsResultsOfEndedTurn()
		}
		if steps[i].Kind != KindAddedPrompt {
			return
		}
	}
}

// countSuccessfulSkillCalls counts the calls that loaded a skill or a command, whose texts follow the results.
func (g *MessageGroup) countSuccessfulSkillCalls() int {
	n := 0
	for _, in := range g.Steps {
		for _, r := range in.Results {
			called := slices.ContainsFunc(g.Uses, func(u ToolUse) bool { return u.ID == r.ID && u.Name == "Skill" })
			if called && strings.HasPrefix(r.Text, "Launching skill: ") {
				n++
			}
		}
	}
	return n
}

// finalizeStepsAndContext changes steps whose meaning depends on other steps of the group. For example, after an interruption all results
// count as those of an ended turn, and a notice next to results is removed. If isLastGroupOfHistory is true and none of the steps then
// needs an answer, it adds a prompt.
func (g *MessageGroup) finalizeStepsAndContext(isLastGroupOfHistory bool) {
	slices.SortStableFunc(g.accompanyingTexts, func(a, b rankedContextText) int { return cmp.Compare(a.sortRank, b.sortRank) })
	for _, a := range g.accompanyingTexts {
		g.Context = append(g.Context, a.text)
	}
	at := slices.IndexFunc(g.Steps, func(in Segment) bool { return in.Kind == KindInterrupt })
	if at >= 0 { // the response in progress was aborted
		g.Steps = slices.Clone(g.Steps)
		for i := range g.Steps {
			if g.Steps[i].Kind == KindResults {
				g.Steps[i].markAsResultsOfEndedTurn()
			}
		}
	}
	has := func(kinds ...SegmentKind) bool {
		return slices.ContainsFunc(g.Steps, func(in Segment) bool { return slices.Contains(kinds, in.Kind) })
	}
	if has(KindBackgroundWorkNotice) && has(KindResults, KindPrompt) { // a notification among other steps is part of them
		g.Steps = slices.DeleteFunc(slices.Clone(g.Steps), func(in Segment) bool { return in.Kind == KindBackgroundWorkNotice })
	}
	if has(KindResults) { // prompts that arrived in the meantime belong to the results
		g.Steps = slices.Clone(g.Steps)
		slices.SortStableFunc(g.Steps, func(a, b Segment) int { return g.sortKeyPromptsFirst(a) - g.sortKeyPromptsFirst(b) })
	}
	if has(KindAddedPrompt) && !has(KindResults, KindPrompt, KindClaudeCodeTextNeedingReply, KindTextRequestingNewReply, KindTextRequestingRestOfReply, KindBackgroundWorkNotice) {
		g.Steps = slices.Clone(g.Steps)
		for i := range g.Steps {
			if in := &g.Steps[i]; in.Kind == KindAddedPrompt {
				in.Kind = KindPrompt
				in.digest = in.digestWithoutUses()
			}
		}
	}
	if isLastGroupOfHistory && !has(KindResults, KindPrompt, KindClaudeCodeTextNeedingReply, KindTextRequestingNewReply, KindTextRequestingRestOfReply, KindBackgroundWorkNotice) {
		text := ""
		if n := len(g.Context); n > 0 {
			text = g.Context[n-1]
		}
		in := newSegment(KindPrompt, text)
		in.Blocks = []string{text}
		g.Steps = append(slices.Clip(g.Steps), in)
	}
}

// sortKeyPromptsFirst returns the sort key of a step. Prompts that were typed while the model worked come first.
func (g *MessageGroup) sortKeyPromptsFirst(step Segment) int {
	if step.Kind == KindAddedPrompt {
		return 0
	}
	return 1
}
