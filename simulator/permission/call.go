package permission

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// kind groups tools that are decided alike.
type kind int

const (
	kindAsk   kind = iota // nothing known: ask
	kindFree              // never asks
	kindUser              // is itself a question to the user
	kindShell             // Bash, and Monitor, which runs a command, too
	kindRead              // reads the file system
	kindWrite             // writes one file
	kindFetch             // WebFetch
	kindAgent             // Agent, alias Task
	kindSkill
)

// kindOf maps canonical tool names to kinds.
func kindOf(tool string) kind {
	switch tool {
	case "Bash", "Monitor":
		return kindShell
	case "Read", "Glob", "Grep", "LS", "NotebookRead":
		return kindRead
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return kindWrite
	case "WebFetch":
		return kindFetch
	case "Agent":
		return kindAgent
	case "Skill":
		return kindSkill
	case "AskUserQuestion", "ExitPlanMode":
		return kindUser
	case "StructuredOutput", "TodoWrite", "ToolSearch", "TaskStop", "KillShell", "KillBash", "TaskOutput", "TaskCreate", "TaskGet",
		"TaskList", "TaskUpdate", "BashOutput", "EnterPlanMode", "ListMcpResourcesTool",
		"ReadMcpResourceTool", "ReadMcpResourceDirTool", "ListAgents", "SendMessage", "CronList", "CronCreate",
		"CronDelete", "ScheduleWakeup", "ReportFindings", "EnterWorktree", "ExitWorktree":
		return kindFree
	}
	return kindAsk
}

// call is what rules and modes want to know of one tool call.
type call struct {
	policy *Policy
	use    protocol.ToolUse
	name   string // canonical: "Agent" for "Task"
	server string // "mcp__server" of an MCP tool
	kind   kind
	// complete is false when the input lacks what its kind needs: the tool
	// itself will say so.
	complete bool

	command  string
	script   shellcmd.Script
	parseErr error
	path     string // absolute
	domain   string
	page     string // path of the address to fetch
	subject  string // agent type, skill name
}

func (p *Policy) inspect(use protocol.ToolUse, tool protocol.Tool) *call {
	c := &call{policy: p, use: use, name: canonicalName(use.Name), complete: true}
	c.kind = kindOf(c.name)
	if strings.HasPrefix(c.name, "mcp__") {
		c.server = serverPrefix(c.name, tool)
	}
	var in struct {
		Command      any `json:"command"`
		FilePath     any `json:"file_path"`
		NotebookPath any `json:"notebook_path"`
		Path         any `json:"path"`
		Pattern      any `json:"pattern"`
		URL          any `json:"url"`
		SubagentType any `json:"subagent_type"`
		Skill        any `json:"skill"`
		CommandName  any `json:"name"`
	}
	if err := json.Unmarshal(use.Input, &in); err != nil {
		c.complete = c.kind == kindAsk || c.kind == kindFree || c.kind == kindUser
		return c
	}
	switch c.kind {
	case kindShell:
		c.command = firstString(in.Command)
		c.complete = c.command != ""
		c.script, c.parseErr = shellcmd.Parse(c.command)
	case kindRead, kindWrite:
		path := firstString(in.FilePath, in.NotebookPath, in.Path)
		c.complete = path != "" || c.name == "Glob" || c.name == "Grep" || c.name == "LS"
		if pattern := firstString(in.Pattern); c.name == "Glob" && filepath.IsAbs(pattern) {
			path, _ = filepath.Split(pattern[:strings.IndexAny(pattern+"*", "*?[{\\")])
		}
		c.path = p.callPath(path)
	case kindFetch:
		if u, err := url.Parse(firstString(in.URL)); err == nil {
			c.domain, c.page = u.Hostname(), path.Join("/", u.Path)
		}
	case kindAgent:
		c.subject = firstString(in.SubagentType)
	case kindSkill:
		c.subject = firstString(in.Skill, in.Command, in.CommandName)
	default: // the name is all that matters
	}
	return c
}

// documentation tells whether the page to fetch is one that needs no
// permission (observed with 2.1.329).
func (c *call) documentation() bool {
	switch strings.ToLower(c.domain) {
	case "github.com":
		return under("/anthropics", c.page)
	case "huggingface.co", "vercel.com":
		return under("/docs", c.page)
	case "agentskills.io", "angular.io", "asp.net", "blazor.net", "bun.sh", "cloud.google.com", "code.claude.com",
		"cypress.io", "d3js.org", "dev.mysql.com", "devcenter.heroku.com", "developer.android.com",
		"developer.apple.com", "developer.mozilla.org", "doc.rust-lang.org", "docs.aws.amazon.com",
		"docs.djangoproject.com", "docs.flutter.dev", "docs.netlify.com", "docs.oracle.com", "docs.python.org",
		"docs.spring.io", "docs.swift.org", "docs.unity.com", "docs.unrealengine.com", "dotnet.microsoft.com",
		"en.cppreference.com", "expressjs.com", "fastapi.tiangolo.com", "flask.palletsprojects.com",
		"getbootstrap.com", "git-scm.com", "gradle.org", "graphql.org", "hibernate.org", "httpd.apache.org",
		"jestjs.io", "jquery.com", "jupyter.org", "keras.io", "kotlinlang.org", "kubernetes.io", "laravel.com",
		"learn.microsoft.com", "matplotlib.org", "maven.apache.org", "modelcontextprotocol.io", "nextjs.org",
		"nginx.org", "nodejs.org", "numpy.org", "pandas.pydata.org", "platform.claude.com", "prisma.io",
		"pytorch.org", "react.dev", "reactnative.dev", "reactrouter.com", "redis.io", "redux.js.org",
		"requests.readthedocs.io", "ruby-doc.org", "scikit-learn.org", "selenium.dev", "spark.apache.org",
		"symfony.com", "tailwindcss.com", "threejs.org", "tomcat.apache.org", "vuejs.org", "webpack.js.org",
		"www.ansible.com", "www.docker.com", "www.mongodb.com", "www.php.net", "www.postgresql.org",
		"www.sqlite.org", "www.tensorflow.org", "www.terraform.io", "www.typescriptlang.org":
		return true
	}
	return false
}

func firstString(values ...any) string {
	for _, v := range values {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// serverPrefix is what a rule calls the server of an MCP tool. The definition
// knows it; without one the name is cut at its second double underscore.
func serverPrefix(name string, tool protocol.Tool) string {
	if tool.Server != "" {
		return "mcp__" + normalize(tool.Server)
	}
	server, _, _ := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	return "mcp__" + server
}

// normalize writes a server's name as tool names hold it: every character
// outside [a-zA-Z0-9_-] is an underscore (spec: cli-contract 7).
func normalize(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// Known leaves out the keys of an input that the tool does not have, if it is
// one of the CLI's own.
func (p *Policy) Known(tool string, input json.RawMessage) json.RawMessage {
	if p.opts.Tool == nil {
		return input
	}
	t, ok := p.opts.Tool(tool)
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var keys map[string]json.RawMessage
	if !ok || t.Server != "" || json.Unmarshal(t.InputSchema, &schema) != nil || json.Unmarshal(input, &keys) != nil {
		return input
	}
	before := len(keys)
	maps.DeleteFunc(keys, func(key string, _ json.RawMessage) bool { _, known := schema.Properties[key]; return !known })
	if len(keys) == before {
		return input
	}
	known, err := json.Marshal(keys)
	if err != nil {
		return input
	}
	return known
}
