package session

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Hook is one that ran beside a prompt.
type Hook struct {
	At   Place
	Name string // its event, with what it matched: "PreToolUse:Bash"
	Came string // what came of it: "blocked", "failed"; empty = it went well
}

// hook notes one at the prompt that is under way; what runs before the first one
// belongs to that.
func (b *building) hook(h Hook) {
	if len(b.Prompts) == 0 || b.finished {
		b.early = append(b.early, h)
		return
	}
	p := b.Prompts[len(b.Prompts)-1]
	p.Hooks = append(p.Hooks, h)
}

// attachedHook is what a transcript says of a hook beside the conversation.
type attachedHook struct {
	Type      string `json:"type"`
	HookName  string `json:"hookName"`
	HookEvent string `json:"hookEvent"`
	Decision  string `json:"decision"`
}

// ran says of an attachment that a hook ran; came is what came of it. The
// context that a hook adds stands beside the line that it ran.
func (a *attachedHook) ran() (came string, ok bool) {
	switch a.Type {
	case "hook_success":
		return "", true
	case "hook_blocking_error":
		return "blocked", true
	case "hook_non_blocking_error":
		return "failed", true
	case "hook_cancelled":
		return "cancelled", true
	case "hook_stopped_continuation":
		return "stopped the session", true
	case "hook_permission_decision":
		return "said " + a.Decision, true
	}
	return "", false
}

// UnmarshalJSON passes over what is no object: attachments are of many kinds.
func (a *attachedHook) UnmarshalJSON(raw []byte) error {
	type plain attachedHook
	var p plain
	if json.Unmarshal(raw, &p) == nil {
		*a = attachedHook(p)
	}
	return nil
}

// hookType is that of all lines which tell of hooks, once they are kept.
const hookType = "hook"

func (l *transcriptLine) tellsOfHook() bool {
	if l.Type == "attachment" && l.Attachment != nil {
		_, ran := l.Attachment.ran()
		return ran
	}
	return l.Type == "system" && l.Subtype == "stop_hook_summary"
}

// hookLine takes a line of a transcript that tells of hooks.
func (b *building) hookLine(n *node) {
	l := n.line
	if l.Attachment != nil {
		came, _ := l.Attachment.ran()
		b.hook(Hook{n.at, cmp.Or(l.Attachment.HookName, l.Attachment.HookEvent), came})
		return
	}
	if len(b.Prompts) == 0 {
		return
	}
	// The summary repeats the hooks that have a line of their own.
	p := b.Prompts[len(b.Prompts)-1]
	if !slices.ContainsFunc(p.Hooks, func(h Hook) bool { return h.Name == "Stop" }) {
		came := ""
		if l.Prevented {
			came = "blocked"
		}
		b.hook(Hook{n.at, "Stop", came})
	}
}

// hookEvent takes an event of a stream that tells of one.
func (b *building) hookEvent(at Place, ev *streamEvent) {
	switch {
	case ev.Type == "control_request" && ev.Request.Subtype == "hook_callback":
		in := ev.Request.Input
		name := in.Event
		if in.Tool != "" {
			name += ":" + in.Tool
		}
		b.hook(Hook{at, name, ""})
	case ev.Subtype == "hook_response":
		came := ""
		if ev.Outcome != "success" {
			came = "failed"
		}
		b.hook(Hook{at, cmp.Or(ev.HookName, ev.HookEvent), came})
	}
}
