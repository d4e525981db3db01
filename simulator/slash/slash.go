// Package slash parses slash commands and formats the messages of commands that run without the model.
package slash

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// Call is a prompt that is a slash command: "/name args".
type Call struct {
	Name string // without the slash: "clear", "plugin:cmd", "mcp__server__prompt", "server:prompt (MCP)"
	Args string // text after the name, trimmed
}

var promptSlashCommandPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/([A-Za-z0-9][A-Za-z0-9_:.-]*)(?:\s+|$)`) })

// Parse parses a prompt. It returns false if the prompt is not a command: a path, or text after white space.
func Parse(prompt string) (Call, bool) {
	if !strings.HasPrefix(prompt, "/") {
		return Call{}, false
	}
	m := promptSlashCommandPattern().FindStringSubmatch(prompt)
	if m == nil {
		return Call{}, false
	}
	c := Call{Name: m[1], Args: strings.TrimSpace(prompt[len(m[0]):])}
	if args, ok := strings.CutPrefix(c.Args+" ", "(MCP) "); ok {
		c.Name, c.Args = c.Name+MCPPromptSuffix, strings.TrimSpace(args)
	}
	return c, true
}

// MCPPromptSuffix is the end of the names that users see for MCP prompts, such as "server:prompt (MCP)".
const MCPPromptSuffix = " (MCP)"

// Tags returns the text with which transcripts record the prompt of a command (spec: cli-contract 9.6).
func (c Call) Tags() (transcriptText string) {
	s := "<command-message>" + c.Name + "</command-message>\n<command-name>/" + c.Name + "</command-name>"
	if c.Args != "" {
		s += "\n<command-args>" + c.Args + "</command-args>"
	}
	return s
}

// Output wraps the output of a local command in the tags of user messages.
func Output(text string) string { return "<local-command-stdout>" + text + "</local-command-stdout>" }

// ErrorOutput is like [Output], but for a command that failed. It escapes tags in the output of a shell command.
func ErrorOutput(text string) string {
	if strings.HasPrefix(text, "Shell command ") {
		text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	}
	return "<local-command-stderr>" + text + "</local-command-stderr>"
}

// Expansion is the text that the model receives for a custom command, a skill or an MCP prompt.
type Expansion struct {
	Name   string // full name of the command, even if the user typed a shorter one; empty means the typed name
	Text   string
	Kind   string // "slash_command" or "mcp_prompt"
	Source string // where the command was found: "projectSettings", "userSettings", "plugin", "mcp"; empty means unknown
	// Tools are permission rules for the turn that begins with this text. Model and Effort are its model and effort level;
	// empty means those of the session.
	Tools         []string
	Model, Effort string
	UsedTool      string // as in [protocol.ExpandedCommand]
}

// LocalCommandTags returns the text with which transcripts record the prompt of a command that runs without the model. name is
// the canonical name of the command, even if an alias was typed.
func (c Call) LocalCommandTags(name string) string {
	const gap = "\n            "
	return "<command-name>/" + name + "</command-name>" + gap + "<command-message>" + name + "</command-message>" + gap + "<command-args>" + c.Args + "</command-args>"
}

// Outcome is the result of a command that runs without the model.
type Outcome struct {
	Text      string
	Name      string // the canonical name of the command; empty means the typed name
	IsUnknown bool   // true if the command is not available here; the result event then contains no command name
	UsedTool  string // as in [protocol.ExpandedCommand]
	IsPrompt  bool   // the transcript records the command as an ordinary prompt, without its arguments
	Title     string // the new name of the session; empty means that the session keeps its name
	// Model is the model that the session uses from now on; nil means that the session keeps its model. The init event
	// of this turn still has the previous model.
	Model    *string
	Failed   bool       // the command failed; Text is the reason
	IsSilent bool       // the result event does not contain Text
	Work     *AgentWork // the skill's agent, whose answer is the text of the command; nil means that the skill has no agent
	Result   string     // the command's name in the result event, such as "custom"; empty means the typed name
}

// AgentWork is a skill that runs in an agent.
type AgentWork struct {
	Source string                                                                      // as in [Expansion]
	Run    func(ctx context.Context, addedContext []string) (answer string, err error) // addedContext is for the agent, from hooks of the prompt
}

// UnavailableOutcome returns the answer of a command that exists only on a terminal.
func UnavailableOutcome(name string) Outcome {
	return Outcome{Text: "/" + name + " isn't available in this environment.", IsUnknown: true}
}

// ModelCost is the usage of one model, which /cost shows as one line.
type ModelCost struct {
	Name                               string
	Input, Output, CacheRead, CacheNew int
	USD                                float64
}

// Cost contains the figures of /cost.
type Cost struct {
	USD                      float64
	APIMS, WallMS            int
	LinesAdded, LinesRemoved int // number of lines in files
	Requests                 int // number of requests to the model
	Models                   []ModelCost
}

// Text returns the costs as the text that /cost shows.
func (c Cost) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Estimated cost:        $%.4f\n", c.USD)
	fmt.Fprintf(&b, "Total duration (API):  %s\n", formatDuration(c.APIMS))
	fmt.Fprintf(&b, "Total duration (wall): %s\n", formatDuration(c.WallMS))
	fmt.Fprintf(&b, "Total code changes:    %s added, %s removed", diag.FormatCount(c.LinesAdded, "line"), diag.FormatCount(c.LinesRemoved, "line"))
	if len(c.Models) > 0 {
		b.WriteString("\nUsage by model:")
	} else {
		b.WriteString("\nUsage:                 0 input, 0 output, 0 cache read, 0 cache write")
	}
	var cached, all int
	for _, m := range c.Models {
		fmt.Fprintf(&b, "\n%20s:  %d input, %d output, %d cache read, %d cache write ($%.4f)", m.Name, m.Input, m.Output, m.CacheRead, m.CacheNew, m.USD)
		cached += m.CacheRead
		all += m.CacheRead + m.CacheNew + m.Input
	}
	if c.Requests > 0 {
		fmt.Fprintf(&b, "\nPrompt cache (main):   %s · %d%% of input tokens from cache · no misses", diag.FormatCount(c.Requests, "request"), cached*100/max(1, all))
		if cached == 0 {
			b.WriteString(" · no prompt caching reported by the API")
		}
	}
	return b.String()
}

// formatDuration formats a time in whole seconds, as "1h 2m 3s".
func formatDuration(ms int) string {
	s := ms / 1000
	switch {
	case s >= 3600:
		return fmt.Sprintf("%dh %dm %ds", s/3600, s/60%60, s%60)
	case s >= 60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}
