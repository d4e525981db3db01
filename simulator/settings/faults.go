package settings

import (
	"cmp"
	_ "embed" // for schema.json
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
)

func (f Fault) String() string {
	if f.Key == "" {
		return f.Location + ": " + f.Text
	}
	return f.Location + " (" + f.Key + "): " + f.Text
}

// FormatFaults formats faults as the real CLI prints them on stderr if its output format is text. The explanations are
// claudeless's own. It returns "" if there are no faults.
func FormatFaults(faults []Fault) string {
	said := formatFaultList(faults, "These settings did not load. Nothing in them is in effect, including hooks and permission rules; "+
		"variables that they have already set may remain:", "These settings entries were skipped; the rest of each source is in effect:")
	if said == "" {
		return ""
	}
	return said + "Fix each problem listed, then start Claude Code again.\n"
}

// FormatFaultsForOldVersions is like FormatFaults, but uses the wording of older versions, which mention only files.
func FormatFaultsForOldVersions(faults []Fault) string {
	return formatFaultList(faults, "These settings files did not load. Nothing in them is in effect, including hooks and permission rules, "+
		"until you correct these problems:", "These settings entries were skipped; the rest of each file is in effect:")
}

func formatFaultList(faults []Fault, wholeFileHeading, entryHeading string) string {
	var b strings.Builder
	group := func(whole bool, head string) {
		said := map[string]int{}
		for _, f := range faults {
			if f.WholeFile != whole {
				continue
			}
			if len(said) == 0 {
				b.WriteString(head + "\n")
			}
			if said[f.Location]++; said[f.Location] <= maxReportedFaultsPerFile {
				b.WriteString("  " + f.String() + "\n")
			}
		}
		for _, f := range faults { // the files are listed in the order of their first faults
			if n := said[f.Location]; f.WholeFile == whole && n > maxReportedFaultsPerFile {
				fmt.Fprintf(&b, "  … and %d more in %s\n", n-maxReportedFaultsPerFile, f.Location)
				said[f.Location] = 0
			}
		}
	}
	group(true, wholeFileHeading)
	group(false, entryHeading)
	return b.String()
}

const maxReportedFaultsPerFile = 10

// faultsOfKeysWithInvalidValues reports the invalid keys because of which the CLI ignores a file. As in the CLI, invalid hooks that
// may protect permissions are reported twice: before all other keys, and at the position of the key "hooks".
func faultsOfKeysWithInvalidValues(keys []string, file map[string]json.RawMessage) []Fault {
	var found []Fault
	for _, p := range schemas()["settings"].Properties {
		switch {
		case !slices.Contains(keys, p.Name):
		case p.Name == "hooks":
			guards, again := faultsOfInvalidGuardHooks(file["hooks"])
			found = append(append(guards, found...), again...)
		default:
			found = append(found, invalidValueFaults(p, file[p.Name])...)
		}
	}
	return found
}

// invalidValueFaults reports why a value is not valid for a key. To find the expected type, it validates samples of each type.
func invalidValueFaults(p plainjson.SchemaProperty, value json.RawMessage) []Fault {
	got := plainjson.TypeOf(value)
	if found := nestedFaults(p.Name, p.Schema.Issues(value)); found != nil {
		return found
	}
	for _, sample := range []string{`"x"`, `true`, `1`, `[]`, `{}`, `{"type":"command","command":"x"}`} {
		if p.Schema.Issues(json.RawMessage(sample)) != nil {
			continue
		}
		want := plainjson.TypeOf(json.RawMessage(sample))
		if want == "object" && (p.Name == "env" || strings.HasPrefix(p.Name, "enabled")) {
			want = "record"
		}
		if want == "number" && got == "number" {
			return []Fault{{Key: p.Name, Text: "Number must be greater than or equal to 0"}}
		}
		return []Fault{{Key: p.Name, Text: "Expected " + want + ", but received " + got}}
	}
	return []Fault{{Key: p.Name, Text: "Invalid value"}}
}

// nestedFaults reports values inside the value of a key that have the wrong type or are not among the permitted values.
func nestedFaults(key string, issues []plainjson.Issue) (found []Fault) {
	for _, i := range issues {
		text := i.Message
		switch {
		case i.Received != "":
			text = "Expected " + i.Expected + ", but received " + i.Received
		case i.Values != nil: // the CLI does not name the alias "manual"
			values := slices.DeleteFunc(slices.Sorted(slices.Values(i.Values)), func(v string) bool { return v == "manual" })
			text = `Invalid value. Expected one of: "` + strings.Join(values, `", "`) + `"`
		}
		if len(i.Path) > 0 {
			found = append(found, Fault{Key: key + "." + i.DottedPath(), Text: text})
			continue
		}
		for _, ofKind := range i.Errors {
			found = append(found, nestedFaults(key, ofKind)...)
		}
	}
	return found
}

func ruleSyntaxError(text, behavior string) string {
	rule := claudecode.ParsePermissionRule(text)
	name, content := rule.Tool, rule.Content
	mcp := strings.HasPrefix(name, "mcp__")
	switch {
	case text == "":
		return "Permission rule cannot be empty"
	case rule.HasContent && !rule.IsClosed:
		return `Malformed Tool(content) rule. Rules take the form Tool or Tool(content) and must end at the closing ")"; parentheses inside the content are literal`
	case rule.HasContent && content == "":
		return fmt.Sprintf("Empty parentheses. Either specify a pattern or use just %q without parentheses", name)
	case mcp && rule.HasContent:
		return fmt.Sprintf("MCP rules do not support patterns in parentheses. Use %q without parentheses, or use %q for all tools", name, name+"__*")
	case behavior == "allow" && hasForbiddenWildcard(name):
		return AllowRulePatternError(name)
	}
	if first, n := utf8.DecodeRuneInString(name); !mcp && unicode.IsLower(first) {
		return fmt.Sprintf("Tool names must start with uppercase. Use %q", string(unicode.ToUpper(first))+name[n:])
	}
	switch name {
	case "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob":
		if strings.Contains(content, ":*") {
			return `The ":*" syntax is only for Bash prefix rules. Use glob patterns like "*" or "**" for file matching`
		}
	case "Bash":
		if content == ":*" {
			return "Prefix cannot be empty before :*. Specify a command prefix before :*"
		}
	case "WebSearch":
		if content != "*" && strings.ContainsAny(content, "*?") {
			return "WebSearch does not support wildcards. Use exact search terms without * or ?"
		}
	case "WebFetch":
		switch {
		case content == "", content == "*", strings.HasPrefix(content, "domain:"):
		case strings.Contains(content, "://"):
			return `WebFetch permissions use domain format, not URLs. Use "domain:hostname" format`
		default:
			return `WebFetch permissions must use "domain:" prefix. Use "domain:hostname" format`
		}
	}
	return ""
}

// hasForbiddenWildcard reports whether a tool name has a star where allow rules must not have one.
// Allow rules may have a star only after the name of an MCP server, as in mcp__server__*.
func hasForbiddenWildcard(name string) bool {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		server, _, _ := strings.Cut(rest, "__")
		return strings.Contains(server, "*")
	}
	return strings.Contains(name, "*")
}

// AllowRulePatternError returns the error for an allow rule whose tool name is a pattern; empty means an allowed name.
func AllowRulePatternError(name string) string {
	if !hasForbiddenWildcard(name) {
		return ""
	}
	return fmt.Sprintf("Wildcard tool name %q is not supported in allow rules. Name the tools in full: a wildcard is allowed only after "+
		"mcp__<server>__, and anywhere in deny and ask rules", name)
}

func withoutInvalidHooks(raw json.RawMessage) (json.RawMessage, []Fault) {
	events, err := plainjson.Parse(raw)
	if err != nil {
		return json.RawMessage("{}"), []Fault{{
			Key: "hooks",
			Text: `"hooks" must be an object mapping event names to matcher arrays; received ` + plainjson.TypeOf(raw) +
				". This field was ignored.",
		}}
	}
	var kept plainjson.Object
	var found []Fault
	for _, m := range events {
		key := "hooks." + m.Key
		var groups []json.RawMessage
		switch {
		case claudecode.HookEventNamed(m.Key).Name == "":
			text := []rune("Unknown hook event \"" + m.Key + "\" was ignored. Valid events: " + validEventNames() + ".")
			found = append(found, Fault{Key: key, Text: string(text[:min(len(text), 500)])})
			continue
		case json.Unmarshal(m.Value, &groups) != nil || groups == nil:
			found = append(found, Fault{Key: key, Text: fmt.Sprintf("Hook event %q must be an array of matchers; received %s. This entry was ignored.", m.Key, plainjson.TypeOf(m.Value))})
			continue
		}
		good := []json.RawMessage{}
		for i, group := range groups {
			at := fmt.Sprintf("%s.%d", key, i)
			one, odd := withoutInvalidHooksOfMatcher(at, group)
			for _, o := range odd {
				found = append(found, o.fault("; "+o.part+" ignored."))
			}
			if one != nil {
				good = append(good, one)
			}
		}
		if list, err := json.Marshal(good); err == nil {
			kept = append(kept, plainjson.Member{Key: m.Key, Value: list})
		}
	}
	return kept.Raw(), found
}

// hookProblem is a problem in the hooks of a settings file: in one hook, or in a matcher with its hooks.
type hookProblem struct {
	path       string
	part       string // "entry" or "matcher"
	problem    string
	validTypes []string // lists the types that would be valid; empty means that the type is not the problem
	// field is the key of an invalid value, and valueProblem the text about it. Both are empty for other problems.
	field, valueProblem string
}

// fault returns the fault in the words that the CLI uses for hooks. consequence is the end of the sentence.
func (o hookProblem) fault(consequence string) Fault {
	text := o.problem + consequence
	if o.validTypes != nil {
		text += " Valid types: " + strings.Join(o.validTypes, ", ")
	}
	return Fault{Key: o.path, Text: text}
}

// faultInWordsOfValueErrors returns the fault in the words that the CLI uses for values of any key, such as "Expected
// string, but received number". hasWordsForProblem is false if the CLI has no such words for the problem.
func (o hookProblem) faultInWordsOfValueErrors() (valueError Fault, hasWordsForProblem bool) {
	switch {
	case o.validTypes != nil:
		return Fault{Key: o.path, Text: "Invalid discriminator value. Expected '" + strings.Join(o.validTypes, "' | '") + "'"}, true
	case o.field != "":
		return Fault{Key: o.path + "." + o.field, Text: o.valueProblem}, true
	}
	return Fault{}, false
}

// withoutInvalidHooksOfMatcher returns a matcher without its invalid hooks, and the list of these hooks. The returned
// matcher is nil if the matcher itself is invalid.
func withoutInvalidHooksOfMatcher(path string, raw json.RawMessage) (valid json.RawMessage, problems []hookProblem) {
	group, err := plainjson.Parse(raw)
	matcher, hooks := group.Get("matcher"), group.Get("hooks")
	var list []json.RawMessage
	odd := hookProblem{path: path, part: "matcher"}
	switch {
	case err != nil:
		odd.problem = "Hook matcher must be an object; received a " + plainjson.TypeOf(raw)
	case hooks == nil || json.Unmarshal(hooks, &list) != nil || list == nil:
		got := plainjson.TypeOf(hooks)
		if hooks != nil {
			got = "a " + got
		}
		odd.problem = `Hook matcher "hooks" must be an array of hook entries; received ` + got
	case matcher != nil && plainjson.TypeOf(matcher) != "string":
		got := plainjson.TypeOf(matcher)
		odd.field, odd.valueProblem = "matcher", "Expected string, but received "+got
		odd.problem = "Invalid hook matcher (matcher: Invalid input: expected string, received " + got + ")"
	}
	if odd.problem != "" {
		return nil, []hookProblem{odd}
	}
	good := []json.RawMessage{}
	var found []hookProblem
	for i, hook := range list {
		if o := findHookProblem(fmt.Sprintf("%s.hooks.%d", path, i), hook); o != nil {
			found = append(found, *o)
			continue
		}
		good = append(good, hook)
	}
	if len(found) == 0 {
		return raw, nil
	}
	left, err := json.Marshal(good)
	if err != nil {
		return nil, found
	}
	return group.Set("hooks", left).Raw(), found
}

func findHookProblem(path string, raw json.RawMessage) *hookProblem {
	if isValidHook(raw) {
		return nil
	}
	if got := plainjson.TypeOf(raw); got != "object" {
		return &hookProblem{path: path, part: "entry", problem: "Hook entry must be an object; received a " + got}
	}
	fields := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](raw)
	kind, _ := plainjson.StringValue(fields["type"])
	if !slices.Contains(hookTypes(), kind) {
		return &hookProblem{path: path + ".type", part: "entry", problem: fmt.Sprintf("Unknown hook type %q", kind), validTypes: hookTypes()}
	}
	for _, key := range requiredHookFields(kind) {
		if got := plainjson.TypeOf(fields[key]); got != "string" {
			return &hookProblem{path: path, part: "entry", field: key, valueProblem: "Expected string, but received " + got, problem: fmt.Sprintf("Invalid %s hook (%s: Invalid input: expected string, received %s)", kind, key, got)}
		}
	}
	if kind == "http" && !hasValidURL(fields) {
		return &hookProblem{path: path, part: "entry", field: "url", valueProblem: "Invalid URL", problem: "Invalid http hook (url: Invalid URL)"}
	}
	return &hookProblem{path: path, part: "entry", problem: "Invalid " + kind + " hook"}
}

const invalidHookHint = " — it may protect the permissions in the same file, so the whole file is ignored until the hook is fixed or removed."

// faultsOfInvalidGuardHooks returns the faults for invalid hooks that make the CLI ignore the whole file: hooks of events that
// guard permissions. The CLI reports each of them twice: first in its wording for hooks, then in its wording for any invalid value.
func faultsOfInvalidGuardHooks(hooksValue json.RawMessage) (inHookWords, inValueWords []Fault) {
	events := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](hooksValue)
	for _, known := range claudecode.HookEvents() {
		event := known.Name
		value, there := events[event]
		if !known.CanGuardPermissions || !there {
			continue
		}
		key := "hooks." + event
		var groups []json.RawMessage
		if got := plainjson.TypeOf(value); got != "array" || json.Unmarshal(value, &groups) != nil {
			inHookWords = append(inHookWords, Fault{Key: key, Text: fmt.Sprintf("Hook event %q must be an array of matchers; received %s", event, got) + invalidHookHint})
			inValueWords = append(inValueWords, Fault{Key: key, Text: "Expected array, but received " + got})
			continue
		}
		for i, group := range groups {
			_, odd := withoutInvalidHooksOfMatcher(fmt.Sprintf("%s.%d", key, i), group)
			for _, o := range odd {
				inHookWords = append(inHookWords, o.fault(invalidHookHint))
				if f, ok := o.faultInWordsOfValueErrors(); ok {
					inValueWords = append(inValueWords, f)
				}
			}
		}
	}
	return inHookWords, inValueWords
}

// MisspellingMessages returns messages about keys and rules that are probably misspelled: unknown keys that resemble a key for
// hooks, permissions or variables, and rules whose tool name resembles that of a tool. The real CLI ignores them silently.
func MisspellingMessages(s Settings) (messagesAboutKeysAndRules []string) {
	for _, layer := range s.Layers {
		var all, permissions map[string]json.RawMessage
		_ = json.Unmarshal(layer.Raw, &all) // a layer that is not an object has already been reported
		_ = json.Unmarshal(all["permissions"], &permissions)
		messagesAboutKeysAndRules = append(messagesAboutKeysAndRules, layer.misspelledKeyMessages("", all, "hooks", "permissions", "env", "disableAllHooks")...)
		messagesAboutKeysAndRules = append(messagesAboutKeysAndRules, layer.misspelledKeyMessages("permissions.", permissions,
			"allow", "ask", "deny", "defaultMode", "additionalDirectories", "disableBypassPermissionsMode", "disableAutoMode")...)
	}
	names := claudecode.InitToolNames(claudecode.InitListsToolAlways)
	for _, rule := range s.Permissions.Rules {
		tool, _, _ := strings.Cut(rule.Text, "(")
		if strings.HasPrefix(tool, "mcp__") || claudecode.ToolNamed(tool).Name != "" {
			continue
		}
		if near := diag.SimilarOtherName(tool, names); near != "" {
			messagesAboutKeysAndRules = append(messagesAboutKeysAndRules, fmt.Sprintf("%s (permissions.%s): the rule %s names no known tool; did you mean %s?", rule.Source, rule.Behavior, rule.Text, near))
		}
	}
	return messagesAboutKeysAndRules
}

func (l Layer) misspelledKeyMessages(prefix string, object map[string]json.RawMessage, known ...string) (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if near := diag.SimilarOtherName(key, known); near != "" && !slices.Contains(known, key) {
			texts = append(texts, fmt.Sprintf("%s: unknown key %s%s; did you mean %s%s?", l.displayName(), prefix, key, prefix, near))
		}
	}
	return texts
}

// schemaJSON has the schema of each key that the CLI validates, in the order in which it reports faults, where that is known.
// Keys for which it tolerates faults (theme, viewMode, effortLevel, the lists of MCP servers …) are not included.
//
//go:embed schema.json
var schemaJSON string

var schemas = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.MustParseSchemas(schemaJSON) })

// keysWithInvalidValues returns the keys of a file with values that the CLI rejects, in the order of the CLI's schema where that is
// known. Each of them makes the CLI ignore the whole file. Unknown keys are valid (observed with 2.1.329).
func keysWithInvalidValues(settingsFile map[string]json.RawMessage) (bad []string) {
	for _, p := range schemas()["settings"].Properties {
		value, found := settingsFile[p.Name]
		if guards, _ := faultsOfInvalidGuardHooks(settingsFile["hooks"]); found && (p.Schema.Issues(value) != nil || p.Name == "hooks" && len(guards) > 0) {
			bad = append(bad, p.Name)
		}
	}
	return bad
}

func isValidHook(hook json.RawMessage) bool {
	if schemas()["hook"].Issues(hook) != nil {
		return false
	}
	fields := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](hook)
	kind, _ := plainjson.StringValue(fields["type"])
	return !slices.ContainsFunc(requiredHookFields(kind), func(key string) bool { return fields[key] == nil }) && (kind != "http" || hasValidURL(fields))
}

// hasValidURL reports whether the URL of a hook is absolute and has a host or path. It may have any scheme.
func hasValidURL(hook map[string]json.RawMessage) bool {
	text, _ := plainjson.StringValue(hook["url"])
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || strings.Trim(u.Host+u.Path+u.Opaque, "/") == "" {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16)
	return err == nil
}

func hookTypes() []string { return []string{"command", "prompt", "agent", "http", "mcp_tool"} }

func requiredHookFields(kind string) []string {
	switch kind {
	case "command":
		return []string{"command"}
	case "http":
		return []string{"url"}
	case "mcp_tool":
		return []string{"server", "tool"}
	default:
		return []string{"prompt"}
	}
}

func validEventNames() string {
	var names []string
	for _, e := range claudecode.HookEvents() {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}
