package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/ordered"
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

func checkAgents(_ *System, f *Flags) error {
	if f.Agents == "" {
		return nil
	}
	const head = "Error: Invalid --agents configuration:\n"
	if raw := json.RawMessage(f.Agents); !json.Valid(raw) {
		return claudeErrorf(head+"invalid JSON: %v", json.Unmarshal(raw, new(any)))
	}
	agents, err := ordered.Parse(json.RawMessage(f.Agents))
	if err != nil {
		return claudeErrorf(head+"Invalid input: expected record, received %s", ordered.TypeOf(json.RawMessage(f.Agents)))
	}
	var faults []string
	for _, a := range agents {
		faults = append(faults, agentFaults(a)...)
	}
	if len(faults) == 0 {
		return nil
	}
	return claudeErrorf("%s%s", head, strings.Join(faults, "\n"))
}

// agentFaults words what is wrong with one agent as the real CLI does.
func agentFaults(a ordered.Member) []string {
	agent, err := ordered.Parse(a.Value)
	if err != nil {
		return []string{fmt.Sprintf("%s: Invalid input: expected object, received %s", a.Key, ordered.TypeOf(a.Value))}
	}
	var faults []string
	for _, key := range []struct{ name, kind, empty string }{
		{"description", "string", "Description cannot be empty"},
		{"tools", "array", ""},
		{"prompt", "string", "Prompt cannot be empty"},
		{"model", "string", "Model cannot be empty"},
	} {
		value := agent.Get(key.name)
		switch got := ordered.TypeOf(value); {
		case value == nil && (key.name == "tools" || key.name == "model"):
		case got != key.kind:
			faults = append(faults, fmt.Sprintf("%s.%s: Invalid input: expected %s, received %s", a.Key, key.name, key.kind, got))
		case key.empty != "" && string(value) == `""`:
			faults = append(faults, fmt.Sprintf("%s.%s: %s", a.Key, key.name, key.empty))
		}
	}
	return faults
}

func checkSchema(_ *System, f *Flags) error {
	if !f.Has("json-schema") {
		return nil
	}
	_, err := compileSchema(f.JSONSchema)
	return err
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
	efforts := []string{"low", "medium", "high", "xhigh", "max"}
	if f.Effort != "" && !slices.Contains(efforts, strings.ToLower(f.Effort)) {
		fmt.Fprintf(s.Stderr, "Warning: Unknown --effort value '%s' — ignoring it and using the default effort. Valid values: %s.\n", f.Effort, strings.Join(efforts, ", "))
	}
	for _, beta := range f.Betas {
		if beta != knownBeta {
			fmt.Fprintf(s.Stderr, "Warning: Beta header '%s' is not allowed. Only the following betas are supported: %s\n", beta, knownBeta)
		}
	}
}
