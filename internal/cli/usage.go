package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/simulator/outputschema"
)

// compatRust is the value of CLAUDELESS_COMPAT under which the habits of the older Rust tool are kept.
const compatRust = "claudeless-rs"

// checkFlags checks what no single flag can: flags against each other, against the process, and texts that must be JSON.
// The first fault is the error, in the real CLI's words. It also brings f into the form that Flags documents (session id,
// system prompts from files) and prints the warnings that do not end a run.
//
// Not checked here, because it needs more than the command line: --settings, --mcp-config, the name in --agent
// (agentNotFound) and whether the session id is in use (sessionInUse).
func checkFlags(s *System, f *Flags) error {
	checks := []func(*System, *Flags) error{
		checkSession, checkSettingSources, checkAgents, checkSchema, checkFormats, checkPrivileges, loadSystemPrompts,
	}
	for _, check := range checks {
		if err := check(s, f); err != nil {
			return err
		}
	}
	warnFlags(s, f)
	return nil
}

// isUUID compiles its pattern on use, not at every start.
func isUUID(text string) bool {
	return regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(text)
}

func checkSession(_ *System, f *Flags) error {
	f.SessionName = title(f.SessionName)
	if f.SessionID != "" {
		switch {
		case (f.Continue || f.Has("resume")) && !f.ForkSession:
			return claudeErrorf("Error: --session-id with --continue or --resume also needs --fork-session.")
		case !isUUID(f.SessionID):
			return claudeErrorf("Error: Invalid session ID. Must be a valid UUID.")
		}
	}
	switch {
	case f.Has("resume") && f.Resume == "":
		return errResumeNeedsID()
	case f.Has("resume-session-at") && !f.Has("resume"):
		return claudeErrorf("Error: --resume-session-at requires --resume")
	case f.Has("resume-drops-turn") && f.ResumeSessionAt == "":
		return claudeErrorf("Error: --resume-drops-turn requires --resume-session-at")
	}
	return nil
}

// title is a session's name as it is kept: without white space around it, and
// not too long.
func title(name string) string {
	const most = 200
	runes := []rune(strings.TrimSpace(name))
	return string(runes[:min(len(runes), most)])
}

// errResumeNeedsID is also the answer to a --resume value that is neither an id nor the title of a session.
func errResumeNeedsID() error {
	return claudeErrorf("Error: --resume requires a valid session ID or session title when used with --print. " +
		"Usage: claude -p --resume <session-id|title>")
}

// sessionInUse is the error of a --session-id that has a transcript already.
func sessionInUse(id string) error {
	return claudeErrorf("Error: Session ID %s is already in use.", id)
}

// agentNotFound is the error of an --agent that no source of agents knows.
func agentNotFound(name string, available []string) error {
	return claudeErrorf("--agent '%s' not found. Available agents: %s", name, strings.Join(available, ", "))
}

func checkSettingSources(_ *System, f *Flags) error {
	for _, name := range f.SettingSources {
		if !slices.Contains([]string{"user", "project", "local"}, name) {
			return claudeErrorf("Error processing --setting-sources: Invalid setting source: %s. Valid options are: user, project, local", name)
		}
	}
	return nil
}

// checkAgents checks --agents and puts the content of a file in the place of its name.
func checkAgents(s *System, f *Flags) error {
	if f.Agents == "" {
		return nil
	}
	from := ""
	if raw := strings.TrimSpace(f.Agents); !strings.HasPrefix(raw, "{") && (!json.Valid([]byte(raw)) || raw == "null") {
		path, err := s.abs(f, f.Agents)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return claudeErrorf("Error: --agents file not found: %s (a value that is not a JSON object is read as a file path)", path)
		}
		f.Agents, from = string(content), "\n(read from "+path+")"
	}
	if faults := agentsFaults(json.RawMessage(f.Agents)); len(faults) > 0 {
		return claudeErrorf("Error: Invalid --agents configuration:\n%s%s", strings.Join(faults, "\n"), from)
	}
	return nil
}

// agentsFaults words what is wrong with agents by name as the real CLI does.
func agentsFaults(raw json.RawMessage) []string {
	if err := ordered.SyntaxError(raw); err != nil {
		return []string{"invalid JSON: " + err.Error()}
	}
	agents, err := ordered.Parse(raw)
	if err != nil {
		return []string{"Invalid input: expected record, received " + ordered.TypeOf(raw)}
	}
	var faults []string
	for _, a := range agents {
		agent, err := ordered.Parse(a.Value)
		if err != nil {
			faults = append(faults, a.Key+": Invalid input: expected object, received "+ordered.TypeOf(a.Value))
			continue
		}
		faults = append(faults, agentFaults(a.Key, agent)...)
	}
	return faults
}

// agentFaults checks the keys of one agent in the order in which the real CLI names them.
func agentFaults(name string, agent ordered.Object) []string {
	var faults []string
	for _, key := range []struct {
		name  string
		fault func(json.RawMessage) string // what follows the key; empty = none
	}{
		{"description", stringWith("Description cannot be empty", func(text string) bool { return text != "" })},
		{"tools", stringsFault},
		{"disallowedTools", stringsFault},
		{"prompt", typeFault("string")},
		{"model", stringWith("Model cannot be empty", func(text string) bool { return strings.TrimSpace(text) != "" })},
		{"effort", effortFault},
		{"permissionMode", modeFault},
		{"mcpServers", typeFault("array")},
		{"hooks", typeFault("record")},
		{"maxTurns", positiveFault},
		{"skills", stringsFault},
		{"initialPrompt", typeFault("string")},
		{"memory", optionFault("user", "project", "local")},
		{"background", typeFault("boolean")},
		{"isolation", optionFault("worktree", "remote")},
	} {
		value := agent.Get(key.name)
		if value == nil && key.name != "description" && key.name != "prompt" {
			continue
		}
		if fault := key.fault(value); fault != "" {
			faults = append(faults, name+"."+key.name+fault)
		}
	}
	return faults
}

func typeFault(want string) func(json.RawMessage) string {
	return func(value json.RawMessage) string {
		got := ordered.TypeOf(value)
		if got == want || got == "object" && want == "record" {
			return ""
		}
		return ": Invalid input: expected " + want + ", received " + got
	}
}

func stringWith(fault string, good func(string) bool) func(json.RawMessage) string {
	return func(value json.RawMessage) string {
		var text string
		if err := json.Unmarshal(value, &text); err == nil && ordered.TypeOf(value) == "string" && !good(text) {
			return ": " + fault
		}
		return typeFault("string")(value)
	}
}

func stringsFault(value json.RawMessage) string {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) == nil {
		for i, item := range items {
			if fault := typeFault("string")(item); fault != "" {
				return "." + strconv.Itoa(i) + fault
			}
		}
	}
	return typeFault("array")(value)
}

// modeFault accepts "manual" too, which is another name of the default mode.
func modeFault(value json.RawMessage) string {
	if string(value) == `"manual"` {
		return ""
	}
	return optionFault("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")(value)
}

func optionFault(options ...string) func(json.RawMessage) string {
	return func(value json.RawMessage) string {
		var text string
		if json.Unmarshal(value, &text) == nil && slices.Contains(options, text) {
			return ""
		}
		return `: Invalid option: expected one of "` + strings.Join(options, `"|"`) + `"`
	}
}

// effortFault accepts the names of efforts and whole numbers.
func effortFault(value json.RawMessage) string {
	var name string
	var amount int
	if json.Unmarshal(value, &name) == nil && slices.Contains(persona.EffortLevels(), name) || json.Unmarshal(value, &amount) == nil && ordered.TypeOf(value) == "number" {
		return ""
	}
	return ": Invalid input"
}

func positiveFault(value json.RawMessage) string {
	var amount float64
	if fault := typeFault("number")(value); fault != "" || json.Unmarshal(value, &amount) != nil {
		return fault
	}
	switch {
	case amount != math.Trunc(amount):
		return ": Invalid input: expected int, received number"
	case amount <= 0:
		return ": Too small: expected number to be >0"
	}
	return ""
}

func checkSchema(_ *System, f *Flags) error {
	if f.JSONSchema == "" {
		return nil
	}
	_, err := compileSchema(f.JSONSchema)
	return err
}

// compileSchema compiles the text of --json-schema.
func compileSchema(text string) (*outputschema.Schema, error) {
	compiled, err := outputschema.Compile(text)
	if err != nil {
		return nil, claudeErrorf("Error: %v", err)
	}
	return compiled, nil
}

func checkFormats(s *System, f *Flags) error {
	streamsOut, streamsIn := f.OutputFormat == "stream-json", f.InputFormat == "stream-json"
	switch {
	case streamsIn && !streamsOut:
		return claudeErrorf("Error: --input-format=stream-json requires output-format=stream-json.")
	case f.ReplayUserMessages && (!streamsIn || !streamsOut):
		return claudeErrorf("Error: --replay-user-messages requires both --input-format=stream-json and --output-format=stream-json.")
	case f.IncludePartialMessages && !streamsOut:
		return claudeErrorf("Error: --include-partial-messages requires --print and --output-format=stream-json.")
	case streamsOut && !f.Verbose && s.Getenv("CLAUDELESS_COMPAT") != compatRust:
		return claudeErrorf("Error: When using --print, --output-format=stream-json requires --verbose")
	}
	return nil
}

func checkPrivileges(s *System, f *Flags) error {
	if f.DangerouslySkipPermissions || f.AllowDangerouslySkipPermissions || f.PermissionMode == "bypassPermissions" {
		return s.checkBypass()
	}
	return nil
}

// checkBypass refuses to let everything run as the superuser.
func (s *System) checkBypass() error {
	if s.UID == 0 && s.Getenv("IS_SANDBOX") != "1" {
		return claudeErrorf("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	}
	return nil
}

// loadSystemPrompts reads the prompts that are files. One given both ways is the file's text after the other.
func loadSystemPrompts(s *System, f *Flags) error {
	err := appendFile(s, f, &f.SystemPrompt, f.SystemPromptFile, "System prompt file")
	if err != nil {
		return err
	}
	return appendFile(s, f, &f.AppendSystemPrompt, f.AppendPromptFile, "Append system prompt file")
}

func appendFile(s *System, f *Flags, prompt *string, file, what string) error {
	if file == "" {
		return nil
	}
	path, err := s.abs(f, file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return claudeErrorf("Error: %s not found: %s", what, path)
	case err != nil:
		return claudeErrorf("Error: reading %s: %v", strings.ToLower(what), err)
	case *prompt != "":
		*prompt += "\n"
	}
	*prompt += string(content)
	return nil
}

const knownBeta = "context-1m-2025-08-07"

func warnFlags(s *System, f *Flags) {
	if f.Effort != "" && !slices.Contains(persona.EffortLevels(), strings.ToLower(f.Effort)) {
		fmt.Fprintf(s.Stderr, "Warning: Unknown --effort value '%s' — ignoring it and using the default effort. Valid values: %s.\n", f.Effort, strings.Join(persona.EffortLevels(), ", "))
	}
	for _, beta := range f.Betas {
		if beta != knownBeta {
			fmt.Fprintf(s.Stderr, "Warning: Beta header '%s' is not allowed. Only the following betas are supported: %s\n", beta, knownBeta)
		}
	}
}
