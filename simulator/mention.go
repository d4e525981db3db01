package simulator

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Mention is a file that a prompt names with @.
type Mention struct {
	Path         string // as written, without quotes
	First, Lines int    // the part that is asked for: #L3-5 is 3 and 3; 0 = all of it
}

// Mentioned is what a mention is replaced by for the model.
type Mentioned struct {
	Attachment map[string]any // as transcripts keep it
	Text       string         // what the model reads
}

// Mentions is what stands behind @ in prompts.
type Mentions interface {
	// Open reads a mentioned file or directory; false = it is none, or may not be
	// read, and the mention is plain text.
	Open(ctx context.Context, m Mention) (Mentioned, bool)
	// Read reads what else a text mentions, the resources of MCP servers.
	Read(ctx context.Context, text string) []Mentioned
}

var (
	quotedMention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@"([^"]+)"`) })
	plainMention  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@([^\s"]*\w)`) })
	lineRange     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#L(\d+)(?:-L?(\d+))?$`) })
)

// mentionsIn lists what a text names with @, each once.
func mentionsIn(text string) []Mention {
	var list []Mention
	seen := map[string]bool{}
	for _, re := range []*regexp.Regexp{quotedMention(), plainMention()} {
		for _, found := range re.FindAllStringSubmatch(text, -1) {
			if !seen[found[1]] {
				seen[found[1]] = true
				list = append(list, readMention(found[1]))
			}
		}
	}
	return list
}

func readMention(s string) Mention {
	found := lineRange().FindStringSubmatch(s)
	if found == nil {
		return Mention{Path: s}
	}
	m := Mention{Path: strings.TrimSuffix(s, found[0]), Lines: 1}
	m.First, _ = strconv.Atoi(found[1]) // digits; too many of them are no line
	if last, err := strconv.Atoi(found[2]); err == nil {
		m.Lines = max(1, last-m.First+1)
	}
	return m
}

// attach puts the files and resources that the prompt mentions beside it.
func (t *turn) attach(text string) error {
	mentions := t.s.main.Mentions
	if mentions == nil || t.in.Verbatim || t.in.Source == sourceSystem || !strings.Contains(text, "@") {
		return nil
	}
	var all []Mentioned
	for _, m := range mentionsIn(text) {
		if found, ok := mentions.Open(t.ctx, m); ok {
			all = append(all, found)
		}
	}
	for _, found := range append(all, mentions.Read(t.ctx, text)...) {
		t.beside = append(t.beside, found.Text)
		if err := t.emit(&protocol.Attached{Attachment: found.Attachment, Role: "user"}); err != nil {
			return err
		}
	}
	return t.ctx.Err()
}
