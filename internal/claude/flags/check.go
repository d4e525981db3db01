package flags

import (
	_ "embed" // for agent.json
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/outputschema"
)

// CompatValueForOlderRustTool is the value of CLAUDELESS_COMPAT that selects the behaviour of the older Rust tool.
const CompatValueForOlderRustTool = "claudeless-rs"

// CheckAndNormalize validates what cannot be checked while parsing one flag: combinations of flags, flags that the superuser may
// not use, and values that must be JSON. It returns the first problem as an error with the message of the real CLI. It
// also normalises values in f (session id, system prompts from files, known betas) and prints warnings.
//
// It does not check four things that need more than flags: --settings, --mcp-config, the name of --agent, and whether
// the session id is already in use.
func (f *Flags) CheckAndNormalize(s *process.System) error {
	checks := []func(*process.System, *Flags) error{
		validateAndTrimSessionFlags, refuseUnsimulatedFlags, validateSettingSources, loadAndCheckAgentsFlag, validateJSONSchema, validateFormats, refuseBypassForSuperuser, appendSystemPromptFiles,
	}
	for _, check := range checks {
		if err := check(s, f); err != nil {
			return err
		}
	}
	warnAboutEffortAndDropUnknownBetas(s, f)
	return nil
}

// CommandLineRefusal returns the message with which claude refuses a command line; empty means that claude accepts it. It prints nothing.
func CommandLineRefusal(s process.System, words []string) string {
	s.Stderr = io.Discard
	f, err := Parse(&s, words)
	if err == nil {
		f.Interactive = !f.Print && s.StdinIsTTY
		err = f.CheckAndNormalize(&s)
	}
	return RefusalMessageOrEmpty(err)
}

// RefusalMessageOrEmpty returns the message of an error of [Parse] or [Flags.CheckAndNormalize]; empty if the error has another origin.
func RefusalMessageOrEmpty(err error) (message string) {
	if usage, ok := errors.AsType[*argv.Error](err); ok {
		return strings.TrimSpace(usage.Text)
	}
	if verbatim, ok := errors.AsType[*process.VerbatimError](err); ok && strings.Contains(" "+verbatim.Text, " --") {
		return strings.TrimSpace(verbatim.Text)
	}
	return ""
}

func validateAndTrimSessionFlags(_ *process.System, f *Flags) error {
	name := []rune(strings.TrimSpace(f.SessionName))
	f.SessionName = string(name[:min(len(name), 200)])
	switch {
	case f.SessionID != "" && (f.Continue || f.WasGiven("resume")) && !f.ForkSession:
		return process.Verbatimf("Error: --session-id with --continue or --resume also needs --fork-session.")
	case f.SessionID != "" && !regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(f.SessionID): // most runs do not need the pattern
		return process.Verbatimf("Error: Invalid session ID. Must be a valid UUID.")
	case f.WasGiven("tmux") && !f.WasGiven("worktree"):
		return process.Verbatimf("Error: --tmux requires --worktree")
	case f.WasGiven("resume") && f.Resume == "" && !f.Interactive:
		return process.Verbatimf("Error: --resume requires a valid session ID or session title when used with --print. " +
			"Usage: claude -p --resume <session-id|title>")
	case f.WasGiven("resume-session-at") && !f.WasGiven("resume"):
		return process.Verbatimf("Error: --resume-session-at requires --resume")
	case f.WasGiven("resume-drops-turn") && f.ResumeSessionAt == "":
		return process.Verbatimf("Error: --resume-drops-turn requires --resume-session-at")
	}
	return nil
}

// refuseUnsimulatedFlags refuses flags that need another program or machine. With -p, the error is that of the real CLI; otherwise it
// says that the flag is not simulated.
func refuseUnsimulatedFlags(_ *process.System, f *Flags) error {
	for _, refused := range []struct{ flag, messageWithPrint string }{
		{"bg", "--bg and --print conflict: drop --print, and give the prompt as an argument: `claude --bg '<task>'`."},
		{"cloud", "Error: --cloud cannot be combined with --print."},
		{"teleport", "Cloud sessions need a claude.ai sign-in. Run `claude auth login` (or /login in a local session), then try again."},
		{"desktop", "--desktop opens the Claude Desktop app and can't run non-interactively (`--print`, `--sdk-url`, `--init-only`, or redirected output)."},
		{"file", "Error: Session token required for file downloads. CLAUDE_CODE_SESSION_ACCESS_TOKEN must be set."},
	} {
		if f.WasGiven(refused.flag) && f.Print {
			return process.Verbatimf("%s", refused.messageWithPrint)
		} else if f.WasGiven(refused.flag) {
			return fmt.Errorf("the flag --%s of claude is not simulated", refused.flag)
		}
	}
	return nil
}

func validateSettingSources(_ *process.System, f *Flags) error {
	for _, name := range f.SettingSources {
		if !slices.Contains([]string{"user", "project", "local"}, name) {
			return process.Verbatimf("Error processing --setting-sources: Invalid setting source: %s. Valid options are: user, project, local", name)
		}
	}
	return nil
}

func validateJSONSchema(_ *process.System, f *Flags) error {
	if _, err := outputschema.CompileJSONSchemaFlag(f.JSONSchema); err != nil && f.JSONSchema != "" {
		return process.Verbatimf("Error: %v", err)
	}
	return nil
}

func validateFormats(s *process.System, f *Flags) error {
	streamsOut, streamsIn := f.OutputFormat == "stream-json", f.InputFormat == "stream-json"
	switch {
	case streamsIn && !streamsOut:
		return process.Verbatimf("Error: --input-format=stream-json requires output-format=stream-json.")
	case f.ReplayUserMessages && (!streamsIn || !streamsOut):
		return process.Verbatimf("Error: --replay-user-messages requires both --input-format=stream-json and --output-format=stream-json.")
	case f.IncludePartialMessages && !streamsOut:
		return process.Verbatimf("Error: --include-partial-messages requires --print and --output-format=stream-json.")
	case f.ForwardSubagentText && !streamsOut:
		return process.Verbatimf("Error: --forward-subagent-text requires --print and --output-format=stream-json.")
	case f.WasGiven("prompt-suggestions") && !streamsOut:
		return process.Verbatimf("Error: --prompt-suggestions requires --print and --output-format=stream-json (prompt_suggestion messages only appear in stream-json output).")
	case streamsOut && !f.Verbose && s.Getenv("CLAUDELESS_COMPAT") != CompatValueForOlderRustTool:
		return process.Verbatimf("Error: When using --print, --output-format=stream-json requires --verbose")
	}
	return nil
}

func refuseBypassForSuperuser(s *process.System, f *Flags) error {
	if f.DangerouslySkipPermissions || f.AllowDangerouslySkipPermissions || f.PermissionMode == "bypassPermissions" {
		return s.PermissionBypassError()
	}
	return nil
}

// appendSystemPromptFiles reads the system prompts that are given as files, and appends them to those given as text.
func appendSystemPromptFiles(s *process.System, f *Flags) error {
	if err := appendPromptFile(s, f, &f.SystemPrompt, f.SystemPromptFile, "System prompt file"); err != nil {
		return err
	}
	return appendPromptFile(s, f, &f.AppendSystemPrompt, f.AppendPromptFile, "Append system prompt file")
}

func appendPromptFile(s *process.System, f *Flags, promptToExtend *string, file, promptName string) error {
	if file == "" {
		return nil
	}
	path, err := f.Abs(s, file)
	if err != nil {
		return err
	}
	content, err := plainjson.ReadFileUnlessTooLarge(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return process.Verbatimf("Error: %s not found: %s", promptName, path)
	case err != nil:
		return process.Verbatimf("Error: reading %s: %v", strings.ToLower(promptName), err)
	case *promptToExtend != "":
		*promptToExtend += "\n"
	}
	*promptToExtend += string(content)
	return nil
}

const knownBeta = "context-1m-2025-08-07"

func warnAboutEffortAndDropUnknownBetas(s *process.System, f *Flags) {
	if f.WasGiven("effort") && !slices.Contains(claudecode.EffortLevels(), strings.ToLower(f.Effort)) {
		fmt.Fprintf(s.Stderr, "Warning: Unknown --effort value '%s' — ignoring it and using the default effort. Valid values: %s.\n", f.Effort, strings.Join(claudecode.EffortLevels(), ", "))
	}
	f.Betas = slices.DeleteFunc(f.Betas, func(beta string) bool {
		if beta != knownBeta {
			fmt.Fprintf(s.Stderr, "Warning: Beta header '%s' is not allowed. Only the following betas are supported: %s\n", beta, knownBeta)
		}
		return beta != knownBeta
	})
}

// loadAndCheckAgentsFlag validates --agents and replaces a file name with the content of the file.
func loadAndCheckAgentsFlag(s *process.System, f *Flags) error {
	if f.Agents == "" {
		return nil
	}
	from := ""
	if raw := strings.TrimSpace(f.Agents); !strings.HasPrefix(raw, "{") && (!json.Valid([]byte(raw)) || raw == "null") {
		path, err := f.Abs(s, f.Agents)
		if err != nil {
			return err
		}
		content, err := plainjson.ReadFileUnlessTooLarge(path)
		if err != nil {
			return process.Verbatimf("Error: --agents file not found: %s (a value that is not a JSON object is read as a file path)", path)
		}
		f.Agents, from = string(content), "\n(read from "+path+")"
	}
	if problems := AgentsProblems(json.RawMessage(f.Agents)); len(problems) > 0 {
		return process.Verbatimf("Error: Invalid --agents configuration:\n%s%s", strings.Join(problems, "\n"), from)
	}
	return nil
}

// AgentsProblems describes the problems in a JSON object of agents, with the texts of the real CLI.
func AgentsProblems(raw json.RawMessage) []string {
	if err := plainjson.JavaScriptSyntaxErrorOf(raw); err != nil {
		return []string{"invalid JSON: " + err.Error()}
	}
	agents, err := plainjson.Parse(raw)
	if err != nil {
		return []string{"Invalid input: expected record, received " + plainjson.TypeOf(raw)}
	}
	var problems []string
	for _, a := range agents {
		agent, err := plainjson.Parse(a.Value)
		if err != nil {
			problems = append(problems, a.Key+": Invalid input: expected object, received "+plainjson.TypeOf(a.Value))
			continue
		}
		problems = append(problems, agentProblems(a.Key, agent)...)
	}
	return problems
}

//go:embed agent.json
var agentSchemaJSON string

var agentSchema = sync.OnceValue(func() *plainjson.Schema { return plainjson.MustParseSchemas(agentSchemaJSON)["agent"] })

// agentProblems validates the keys of one agent in the order in which the real CLI reports them.
func agentProblems(name string, agent plainjson.Object) []string {
	if model, ok := plainjson.StringValue(agent.Get("model")); ok {
		agent = agent.Set("model", json.RawMessage(plainjson.MarshalString(strings.TrimSpace(model))))
	}
	if string(agent.Get("permissionMode")) == `"manual"` { // another name of the default mode, which the messages do not mention
		agent = agent.Delete("permissionMode")
	}
	emptyMessages := map[string]string{"description": "Description cannot be empty", "model": "Model cannot be empty"}
	var problems []string
	for _, i := range agentSchema().Issues(agent.Raw()) {
		if empty := emptyMessages[i.LastKey()]; empty != "" && i.Code == plainjson.IssueTooSmall {
			i.Message = empty
		}
		problems = append(problems, name+"."+i.DottedPath()+": "+i.Message)
	}
	return problems
}
