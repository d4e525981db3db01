package permission

import (
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// allow lets the call run; reason is shown as reason_type.
func (c *call) allow(reason string) Verdict {
	return Verdict{
		Behavior: Allow,
		Decision: protocol.PermissionDecision{Decision: "accept", Source: "config", ReasonType: reason},
	}
}

// ask puts the question; message and reasonType are shown when nobody is there
// to answer.
func (c *call) ask(message, reasonType, reason string) Verdict {
	return Verdict{
		Behavior:         Ask,
		Decision:         protocol.PermissionDecision{Decision: "reject", Source: "config"},
		NonExecutionKind: "user-rejected",
		Message:          message,
		Event:            c.event(message, reasonType, reason),
		CountDenial:      true,
		Suggestions:      c.suggestions(),
		ReasonType:       reasonType,
		Reason:           reason,
	}
}

func (c *call) askOutside(message string) Verdict {
	v := c.ask(message, "workingDir", "Path is outside allowed working directories")
	v.BlockedPath = c.path
	return v
}

// deny refuses without a question.
func (c *call) deny(reasonType, message string) Verdict {
	return Verdict{
		Behavior:         Deny,
		Decision:         protocol.PermissionDecision{Decision: "reject", Source: "config", ReasonType: reasonType},
		NonExecutionKind: "permission-rule",
		Message:          message,
		Event:            c.event(message, reasonType, ""),
		CountDenial:      true,
		ReasonType:       reasonType,
	}
}

// denyByRule refuses for a deny rule. The file tools see it as an error of
// their input: no event, no decision.
func (c *call) denyByRule() Verdict {
	switch c.name {
	case "Read", "Write", "Edit", "MultiEdit", "NotebookEdit":
		return Verdict{
			Behavior: Deny, ToolError: true, DenyRule: true,
			Message: "File is in a directory that is denied by your permission settings.",
		}
	}
	what := "use " + c.use.Name
	switch c.kind {
	case kindShell:
		what += " with command " + c.command
	case kindRead:
		what = "read " + c.path
	default:
	}
	v := c.deny("rule", "Permission to "+what+" has been denied.")
	v.DenyRule = true
	return v
}

func (c *call) event(message, reasonType, reason string) *protocol.PermissionDenied {
	return &protocol.PermissionDenied{
		Type: "system", Subtype: "permission_denied",
		ToolName: c.use.Name, ToolUseID: c.use.ID,
		DecisionReasonType: reasonType, DecisionReason: reason, Message: message,
	}
}

// refusePart words the question about the first part of a command line that
// nothing allows.
func (c *call) refusePart(bad part, parts int) Verdict {
	message, reasonType, reason := c.unknownCommand(), bad.reason, ""
	if bad.path != "" {
		where := "inside the working directories for this session ('" + c.dirList() + "'), and Claude Code asks before a shell command changes files there."
		if bad.reason == "workingDir" {
			where = "outside the working directories for this session ('" + c.dirList() + "')."
			reason = "Path is outside allowed working directories"
		}
		name := bad.name
		if name == "" {
			name = "Output redirection"
		}
		message = name + " in '" + bad.path + "' needs approval. The path is " + where
	}
	if parts > 1 {
		reasonType = "subcommandResults"
	}
	v := c.ask(message, reasonType, reason)
	if bad.reason == "workingDir" {
		v.BlockedPath = bad.path
	}
	return v
}

func (c *call) dirList() string { return strings.Join(c.policy.dirs, "', '") }

func (c *call) unknownCommand() string { return "This command requires approval" }

// requested is the denial of a question that nobody answered.
func (c *call) requested() string {
	what := "use " + c.use.Name
	switch c.kind {
	case kindRead:
		what = "read from " + c.path
	case kindWrite:
		what = "write to " + c.path
	default:
	}
	return "Claude requested permissions to " + what + ", but you haven't granted it yet."
}

func (c *call) dontAsk() string {
	return "Permission to use " + c.use.Name + " has been denied because Claude Code is running in don't ask mode. Only calls that a rule or the mode allows run here; do not try to reach the same end another way."
}

func (c *call) noPrompts() string {
	return "Permission to use " + c.use.Name + " has been denied because this session shows no permission prompts."
}

func (c *call) unclassified() string {
	return c.use.Name + " was not run: this mode checks such calls with a classifier, and none is available in this session. Go on with calls that need no check."
}

// suggestions are the updates that a host may hand back to be asked less.
func (c *call) suggestions() []protocol.PermissionUpdate {
	mode := protocol.PermissionUpdate{Type: "setMode", Mode: protocol.ModeAcceptEdits, Destination: "session"}
	outside := !c.policy.inside(c.path)
	dir := filepath.Dir(c.path)
	switch c.kind {
	case kindShell:
		return c.shellSuggestions(mode)
	case kindRead:
		if !outside {
			return nil
		}
		if c.name != "Read" {
			dir = c.path
		}
		u := addRule("Read", "/"+strings.TrimSuffix(dir, "/")+"/**")
		u.Destination = "session"
		return []protocol.PermissionUpdate{u}
	case kindWrite:
		if outside {
			return []protocol.PermissionUpdate{mode, {Type: "addDirectories", Directories: []string{dir}, Destination: "session"}}
		}
		return []protocol.PermissionUpdate{mode}
	case kindFetch:
		if c.domain == "" {
			return nil
		}
		return []protocol.PermissionUpdate{addRule(c.name, "domain:"+c.domain)}
	case kindSkill:
		return []protocol.PermissionUpdate{addRule(c.name, c.subject)}
	default:
		return []protocol.PermissionUpdate{addRule(c.use.Name, "")}
	}
}

func (c *call) shellSuggestions(mode protocol.PermissionUpdate) []protocol.PermissionUpdate {
	var out []protocol.PermissionUpdate
	files := false
	for _, cmd := range c.script.Commands {
		if len(cmd.Args) == 0 || cmd.ReadOnly() {
			continue
		}
		prefix := cmd.Args[0]
		if len(cmd.Args) > 1 && !cmd.Dynamic[1] && !strings.HasPrefix(cmd.Args[1], "-") {
			prefix += " " + cmd.Args[1]
		}
		out = append(out, addRule("Bash", prefix+" *"))
		files = files || isFileCommand(cmd.Args[0])
	}
	if files {
		out = append(out, protocol.PermissionUpdate{Type: "addDirectories", Directories: []string{c.policy.opts.CWD}, Destination: "session"}, mode)
	}
	return out
}

func addRule(tool, content string) protocol.PermissionUpdate {
	return protocol.PermissionUpdate{
		Type:        "addRules",
		Rules:       []protocol.PermissionRule{{ToolName: tool, RuleContent: content}},
		Behavior:    BehaviorAllow,
		Destination: "localSettings",
	}
}
