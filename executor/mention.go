package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Mention is a resource that a prompt names as `@server:uri`.
type Mention struct {
	Server string // raw name
	URI    string
	// Contents are those of the resource; Err says why there are none.
	Contents []ResourceContent
	Err      error
}

// Block is what the model reads of a mention beside the prompt.
func (m Mention) Block() protocol.TextBlock {
	var b strings.Builder
	fmt.Fprintf(&b, "<mcp-resource server=%q uri=%q>\n", m.Server, m.URI)
	if m.Err != nil {
		fmt.Fprintf(&b, "(could not be read: %v)\n", m.Err)
	}
	for _, c := range m.Contents {
		b.WriteString(strings.TrimSuffix(c.Text, "\n") + "\n")
	}
	b.WriteString("</mcp-resource>")
	return protocol.Text(b.String())
}

// Mentions reads the resources that a prompt mentions, each once and in the
// order of the prompt. A word is a mention only when it names a server of the
// manager: everything else, mail addresses and file mentions included, stays
// text. The prompt itself is not changed.
func (r Resources) Mentions(ctx context.Context, prompt string) []Mention {
	var servers []string
	for _, st := range r.Manager.Servers() {
		if st.State == mcp.StateConnected {
			servers = append(servers, st.Name)
		}
	}
	all := FindMentions(prompt, servers)
	for i, m := range all {
		out, err := r.contents(ctx, m.Server, m.URI)
		all[i].Contents, all[i].Err = out.Contents, err
	}
	return all
}

// FindMentions finds `@server:uri` for the servers given by their raw names;
// of names that begin alike the longest counts. The `@` stands at the start of
// a word, and the uri ends with it; punctuation at its end belongs to the
// sentence.
func FindMentions(prompt string, servers []string) []Mention {
	var all []Mention
	for at := 0; ; {
		i := strings.IndexByte(prompt[at:], '@')
		if i < 0 {
			return all
		}
		at += i + 1
		if at > 1 && !strings.ContainsRune(" \t\r\n([{\"'`", rune(prompt[at-2])) {
			continue
		}
		m, ok := mentionAt(prompt[at:], servers)
		if ok && !slices.ContainsFunc(all, func(o Mention) bool { return o.Server == m.Server && o.URI == m.URI }) {
			all = append(all, m)
		}
	}
}

// mentionAt reads the mention that follows an `@`.
func mentionAt(text string, servers []string) (m Mention, ok bool) {
	for _, name := range servers {
		if strings.HasPrefix(text, name+":") && len(name) >= len(m.Server) {
			m.Server, ok = name, true
		}
	}
	if !ok {
		return m, false
	}
	m.URI = text[len(m.Server)+1:]
	if end := strings.IndexAny(m.URI, " \t\r\n"); end >= 0 {
		m.URI = m.URI[:end]
	}
	m.URI = strings.TrimRight(m.URI, ".,;:!?)]}\"'`")
	return m, m.URI != ""
}
