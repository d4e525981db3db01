package transcript

import "cmp"

// lineWriter writes the lines of the session's own conversation in order.
type lineWriter struct {
	conversation      *conversation
	labels            *sessionListWriter
	opened            bool  // the lines at the head of the file are written
	endsInPartialLine bool  // the transcript ends within a line
	waitingLines      []any // lines that are written together with the next ones
	// pending returns the lines that a fork copies from its source before its first own line. promptID is the id of the
	// fork's first prompt. nil means that there is nothing to copy.
	pending func(promptID string) []byte
}

// write appends transcript lines. Before the first, it writes the opening lines and, in a fork, the source's lines.
func (p *lineWriter) write(lines ...any) error {
	if err := p.writeOpeningLines(); err != nil {
		return err
	}
	if err := p.flush(); err != nil {
		return err
	}
	if copied := p.pending; copied != nil {
		p.pending = nil
		if err := p.conversation.writer.writeCopy(p.conversation.path, copied(cmp.Or(p.conversation.promptID, p.conversation.options.Clock.NewID()))); err != nil {
			return err
		}
	}
	return p.conversation.writer.writeLines(p.conversation.path, lines...)
}

func (p *lineWriter) flush() error {
	held := p.waitingLines
	p.waitingLines = nil
	return p.conversation.writer.writeLines(p.conversation.path, held...)
}

func (p *lineWriter) writeOpeningLines() error {
	if p.opened {
		return nil
	}
	p.opened = true
	if p.endsInPartialLine {
		if err := p.conversation.writer.writeBytes(p.conversation.path, []byte("\n")); err != nil {
			return err
		}
	}
	return p.conversation.writer.writeLines(p.conversation.path, p.labels.openingLines()...)
}
