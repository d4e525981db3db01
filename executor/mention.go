package executor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/mcp"
)

// Mention is an MCP resource that a prompt mentions as `@server:uri`.
type Mention struct {
	Server string // name of the server in the configuration
	URI    string
	// [Resources.Mentions] sets the following fields. If the server does not list the resource, Name is its URI.
	Name, Description string
	Content           json.RawMessage // result of resources/read, unchanged
	Text              string          // text parts of the content, joined by newlines
}

// Mentions reads the resources that a prompt mentions, each once and in the order of the prompt. It ignores words that
// do not name a connected server and a readable resource, such as mail addresses and file mentions.
func (r Resources) Mentions(ctx context.Context, prompt string) []Mention {
	var servers []string
	for _, st := range r.Manager.Servers() {
		if st.State == mcp.StateConnected {
			servers = append(servers, st.Name)
		}
	}
	var all []Mention
	for _, m := range FindMentions(prompt, servers) {
		raw, err := r.Manager.ReadResource(ctx, m.Server, m.URI)
		if err != nil {
			continue
		}
		out, err := r.decodeContents(m.Server, raw)
		if err != nil {
			continue
		}
		texts := make([]string, len(out.Contents))
		for i, c := range out.Contents {
			texts[i] = c.Text
		}
		m.Name, m.Content, m.Text = m.URI, raw, strings.Join(texts, "\n")
		listed, _ := r.Manager.Resources(m.Server) // a disconnected server has no resources
		if i := slices.IndexFunc(listed, func(l mcp.Resource) bool { return l.URI == m.URI }); i >= 0 {
			m.Name, m.Description = listed[i].Name, listed[i].Description
		}
		all = append(all, m)
	}
	return all
}

// FindMentions finds `@server:uri` in a prompt, for servers with these raw names. If several names match, the longest
// is used. The `@` must follow white space, an opening bracket or a quote. The URI extends to the next white space,
// without trailing punctuation.
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
		m, ok := parseMention(prompt[at:], servers)
		if ok && !slices.ContainsFunc(all, func(o Mention) bool { return o.Server == m.Server && o.URI == m.URI }) {
			all = append(all, m)
		}
	}
}

func parseMention(text string, servers []string) (m Mention, ok bool) {
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
