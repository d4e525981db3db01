package claudecode

import (
	"cmp"
	_ "embed" // the tables of tools
	"slices"
	"strings"
)

// ToolClass is a group of tools that permission rules treat in the same way.
type ToolClass string

// The classes of tools.
const (
	ToolClassAsk                ToolClass = "" // asks for permission, like all unknown tools
	ToolClassNeverAsk           ToolClass = "never asks"
	ToolClassAsksQuestionToUser ToolClass = "asks the user" // the tool is itself a question to the user
	ToolClassRunsCommandLine    ToolClass = "runs a command line"
	ToolClassRead               ToolClass = "reads"   // the file system
	ToolClassWrite              ToolClass = "writes"  // one file
	ToolClassFetch              ToolClass = "fetches" // a URL
	ToolClassStartsAgent        ToolClass = "starts an agent"
	ToolClassSkill              ToolClass = "loads a skill"
)

// InitToolListingCondition specifies when the init event lists a tool.
type InitToolListingCondition string

// The conditions under which the init event lists a tool.
const (
	InitListsToolNever                            InitToolListingCondition = ""
	InitListsToolAlways                           InitToolListingCondition = "always"
	InitListsToolIfFlagNamesIt                    InitToolListingCondition = "if a flag names it"                         // --tools or --allowedTools
	InitListsToolForTaskListModelsOrIfFlagNamesIt InitToolListingCondition = "for task list models or if a flag names it" // models that are offered the task list
	InitListsToolIfUserCanAnswer                  InitToolListingCondition = "if a user can answer"                       // questions
	InitListsToolIfMCPServerHasResources          InitToolListingCondition = "if an MCP server has resources"
)

// Tool describes one built-in tool. It does not run the tool.
type Tool struct {
	Name    string
	Aliases []string // other names that calls and rules may use
	Class   ToolClass
	Listing InitToolListingCondition
	Subject string // the parameter of a call that a rule such as Bash(ls) is compared with; empty means none
	// ReadOnly tools can run at the same time as other read-only tools. For tools of ToolClassRunsCommandLine this depends on the command.
	ReadOnly    bool
	Deferred    bool // tools are found by search, because the model receives only their names
	Unsimulated bool // tools are listed but have no effect; a scenario can define their results
	// MainOnly tools do not exist for sub-agents. ForegroundOnly tools do not exist for sub-agents in the background.
	MainOnly, ForegroundOnly bool
	// BareDenial is true if hooks see another input than the model wrote. A denial in the JSON output of a hook is then shown
	// without the name of the hook (observed with 2.1.330).
	BareDenial     bool
	UnknownToRules bool   // true if permission rules do not know the tool: a rule with its name matches no tool
	Since          string // the first version that lists the tool; empty means all
}

//go:embed tools.json
var toolTable string

var builtinTools = tableFromJSON[Tool](toolTable)

// Tools lists the built-in tools by name.
func Tools() []Tool { return slices.Clone(builtinTools()) }

// ToolNamed returns the tool with this name or alias, or the zero Tool if none exists.
func ToolNamed(name string) Tool {
	for i, all := 0, builtinTools(); i < len(all); i++ {
		if all[i].Name == name || slices.Contains(all[i].Aliases, name) {
			return all[i]
		}
	}
	return Tool{}
}

// InitToolNames returns the names of the tools that the init event lists under a condition, in the form that the event uses.
func InitToolNames(condition InitToolListingCondition) []string {
	var names []string
	for _, t := range builtinTools() {
		if t.Listing == condition {
			names = append(names, t.nameInInit())
		}
	}
	return names
}

// ToolNameInInitEvent returns the name that the init event uses for a tool, given any of the tool's names.
func ToolNameInInitEvent(toolNameOrAlias string) string {
	return cmp.Or(ToolNamed(toolNameOrAlias).nameInInit(), toolNameOrAlias)
}

func (t Tool) nameInInit() string {
	if t.Name == "Agent" { // init uses the older name
		return "Task"
	}
	return t.Name
}

func toolsWithFirstVersions() []nameWithFirstVersion {
	var rows []nameWithFirstVersion
	for _, t := range builtinTools() {
		if t.Since != "" {
			rows = append(rows, nameWithFirstVersion{t.Name, t.Since})
		}
	}
	return rows
}

// toolWordTable has a line for each deferred tool: its name, and the distinct words of its search hint and of its description,
// sorted. Tabs separate the columns. ToolSearch compares queries with these words (observed with 2.1.330).
//
//go:embed tool_words.txt
var toolWordTable string

// ToolSearchWords returns the words, in lower case, of the search hint and the description that the real CLI gives a tool.
func ToolSearchWords(toolName string) (hint, description string) {
	_, row, _ := strings.Cut("\n"+toolWordTable, "\n"+toolName+"\t")
	row, _, _ = strings.Cut(row, "\n")
	hint, description, _ = strings.Cut(row, "\t")
	return hint, description
}

// documentationSites lists hosts, with the path of the documentation if it is only a part of the site.
//
//go:embed documentation_sites.txt
var documentationSites string

// NeedsNoPermissionToFetch reports whether a page belongs to a site whose pages need no permission to be fetched (observed with 2.1.329).
func NeedsNoPermissionToFetch(host, path string) bool {
	return slices.ContainsFunc(strings.Fields(documentationSites), func(site string) bool {
		return strings.HasPrefix(strings.ToLower(host)+strings.TrimSuffix(path, "/")+"/", site+"/")
	})
}

// ParsedPermissionRule contains the parts of a permission rule: Tool or Tool(content). ParsedPermissionRule{} is an empty rule.
type ParsedPermissionRule struct {
	Tool       string // the text before the first parenthesis
	Content    string // the text in the parentheses, with its escapes
	HasContent bool   // there is an opening parenthesis
	IsClosed   bool   // the text ends with a closing parenthesis that is not escaped
}

// ParsePermissionRule splits the text of a rule without validating it. If the closing parenthesis is missing, Content
// is everything after the opening one.
func ParsePermissionRule(text string) ParsedPermissionRule {
	var r ParsedPermissionRule
	r.Tool, r.Content, r.HasContent = strings.Cut(text, "(")
	if r.HasContent {
		content, closed := strings.CutSuffix(r.Content, ")")
		isEscaped := (len(content)-len(strings.TrimRight(content, `\`)))%2 == 1
		if closed && !isEscaped {
			r.Content, r.IsClosed = content, true
		}
	}
	return r
}

// PermitsArbitraryCode reports whether a Bash rule with this content permits a program that can run arbitrary code. Examples are
// python3:* and py*. Plan mode and auto mode ignore rules for these programs if no user can be asked (observed with 2.1.330).
func PermitsArbitraryCode(bashRuleContent string) bool {
	prefix, isPrefix := strings.CutSuffix(bashRuleContent, ":*")
	attached := false
	if !isPrefix {
		prefix, isPrefix = strings.CutSuffix(bashRuleContent, "*")
		attached = isPrefix && !strings.HasSuffix(prefix, " ")
	}
	prefix = strings.TrimRight(prefix, " ")
	if word, rest, _ := strings.Cut(prefix, " "); strings.TrimRight(strings.TrimPrefix(word, "python"), "0123456789.") == "" && word != "" {
		prefix = strings.TrimRight("python "+rest, " ")
	}
	return slices.ContainsFunc(codeRunners[:], func(name string) bool {
		return prefix == name || attached && prefix != "" && strings.HasPrefix(name, prefix) || isPrefix && strings.HasPrefix(prefix, name+" -")
	})
}

// codeRunners are programs that run code or commands from their arguments.
var codeRunners = [...]string{
	"python", "node", "deno", "tsx", "ruby", "perl", "php", "lua", "npx", "bunx", "npm run", "npm exec", "yarn run", "yarn exec", "yarn dlx",
	"pnpm run", "pnpm exec", "pnpm dlx", "bun run", "bun x", "bash", "sh", "zsh", "fish", "ksh", "mksh", "dash", "ash", "csh", "tcsh",
	"powershell", "pwsh", "cmd", "busybox", "ssh", "env", "xargs", "eval", "exec", "source", "sudo", "doas", "su", "runuser", "pkexec",
	"timeout", "nohup", "nice", "ionice", "stdbuf", "setsid", "flock", "unshare", "script", "strace", "ltrace",
}
