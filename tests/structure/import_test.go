package structure

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// packageRow is one package of the tree: its purpose, and the packages of this module that it may
// import. Every package with a file has exactly one row.
type packageRow struct {
	layer          int
	path           string
	purpose        string
	allowedImports string // space-separated package paths; "*" = every package above it
}

var packageTable = []packageRow{
	{0, "simulator/protocol", "types of everything that crosses the process boundary; JSON tags, no behaviour", "internal/base/plainjson"},
	{0, "internal/base/match", "compiled matchers for text and JSON; JavaScript regular expressions", ""},
	{0, "internal/base/diag", "diagnostics with positions; the line of each key in a file; suggestions for misspelled names", ""},
	{0, "internal/base/proc", "start, drain and stop child processes, each in its own group", ""},
	{0, "internal/base/localhttp", "loopback listener, Host/Origin check, graceful stop, printed address", "internal/base/plainjson"},
	{0, "internal/base/eval", "the expression language, bounded in time and memory", ""},
	{0, "internal/base/shellcmd", "parses a shell command line: its simple commands, prefixes and redirections", ""},
	{0, "internal/base/argv", "parses a command line like the JavaScript library commander.js", "internal/base/diag"},
	{0, "internal/base/process", "the process: arguments, environment, streams, clock, signals; the texts of errors", "internal/base/argv internal/base/diag internal/base/proc"},
	{1, "internal/claude/flags", "the grammar of claude's command line, read and checked", "internal/base/argv internal/base/plainjson internal/claudecode internal/base/process simulator/outputschema"},
	{0, "internal/base/gitworktree", "the git worktrees of sessions and agents, and what a command changes in them", "internal/base/proc internal/base/textdiff"},
	{0, "internal/base/clock", "time, ids and randomness of a run: real, or repeatable from a seed", ""},
	{0, "internal/base/plainjson", "JSON without HTML escapes that keeps numbers and the order of keys; converts values like JavaScript and checks them like its library zod", ""},
	{0, "internal/base/earlysignal", "signals received while the program is still initializing", ""},
	{0, "internal/base/junit", "writes JUnit XML reports", ""},
	{0, "internal/base/textdiff", "line-by-line comparison of two texts, as hunks", ""},
	{0, "internal/tools/schemadoc", "tool: writes the JSON Schema and the reference page of a format from Go types and doc comments", "internal/base/plainjson simulator/protocol"},
	{0, "internal/record/redact", "redaction of secrets in texts and JSON, with one list of secrets shared by all records", "internal/base/plainjson"},
	{0, "internal/record/redact/rules", "tool: converts the maintained rule set for secrets to the text files of internal/record/redact", ""},
	{0, "internal/base/cas", "content-addressed store", "internal/base/plainjson"},
	{0, "simulator/slash", "slash commands: parsing, and the output of the local ones", "internal/base/diag"},
	{1, "simulator/task", "background tasks: their state and their output", "simulator/protocol"},
	{1, "internal/debug/compat/pickle", "reads and writes Python pickles without executing them", ""},
	{1, "internal/claude/checkpoint", "file contents before each prompt, so that a rewind can restore them", "simulator/protocol internal/base/textdiff"},
	{1, "internal/record/journal", "the capture file: one redacted JSON line per event; the summary of a run", "simulator/protocol internal/record/redact scenarios"},
	{2, "internal/claude/telemetry", "the session as OpenTelemetry metrics, events and spans, sent to a collector", "internal/base/clock internal/base/shellcmd internal/claudecode simulator/protocol"},
	{1, "internal/claudecode", "what Claude Code is, as data: init event, tools, hook events, commands, models, versions", "simulator/protocol internal/base/plainjson"},
	{1, "internal/claude/catalog", "agents, commands, skills, styles and plugins found on disk", "simulator/protocol internal/base/diag internal/base/gitworktree internal/base/match internal/base/plainjson internal/claudecode"},
	{1, "simulator/settings", "reads settings files, by source", "simulator/protocol internal/base/diag internal/base/plainjson internal/claudecode"},
	{1, "scenarios", "loads, validates and matches scenarios: the scripted model", "simulator/protocol internal/base/match internal/base/diag internal/base/eval scenarios/internal/fill internal/base/plainjson"},
	{0, "scenarios/internal/fill", "the template language of scenarios: expressions and templates, compiled and evaluated", "internal/base/diag internal/base/eval internal/base/plainjson"},
	{1, "simulator/permission", "decides with modes and rules whether a call is allowed, denied or asked about", "simulator/protocol internal/base/match internal/base/shellcmd internal/claudecode"},
	{1, "simulator/outputschema", "validates against --json-schema, with the messages of the real CLI's validator", "internal/base/match internal/base/plainjson"},
	{1, "simulator/transcript", "session ids, transcripts, resume, fork", "simulator/protocol internal/base/plainjson internal/claudecode"},
	{1, "simulator/hook", "runs the hooks of an event and merges their outputs", "simulator/protocol internal/base/plainjson internal/base/match internal/base/proc internal/claudecode"},
	{1, "mcp", "configured and connected MCP servers: connect, call, reconnect; results as protocol types", "simulator/protocol simulator/outputschema internal/base/plainjson mcp/oauth mcp/internal/connection internal/base/proc internal/record/redact internal/base/cas"},
	{1, "tests/mcptest", "MCP servers with exactly one fault each; for tests only", "internal/base/plainjson"},
	{0, "tests/oauthtest", "the HTTP client with which tests of OAuth servers send requests; for tests only", ""},
	{1, "tests/tooltest", "what the tests of the families of built-in tools share; for tests only", "simulator/protocol"},
	{1, "fixtures/wire", "JSON-RPC between an MCP server and its clients, as raw JSON; the list of possible faults", "internal/base/plainjson internal/base/localhttp internal/base/proc"},
	{1, "fixtures/backend", "runs tool calls outside the fixture server", "internal/base/proc"},
	{1, "fixtures", "an MCP server from a TOML file", "internal/base/diag internal/base/localhttp fixtures/wire fixtures/backend fixtures/internal/oauth internal/base/plainjson internal/base/match internal/base/eval"},
	{1, "fixtures/internal/oauth", "an authorization server with tokens derived from a seed, and the token check of a resource", "fixtures/wire"},
	{1, "fixtures/clone", "writes a fixture from a live server or from recorded calls", "internal/base/diag internal/base/plainjson internal/base/proc internal/base/tomltext internal/base/localhttp fixtures fixtures/wire"},
	{2, "executor", "runs one tool call: the composite executor and the middleware chain", "simulator/protocol executor/internal/tool mcp internal/base/clock internal/base/match internal/base/plainjson internal/claudecode"},
	{1, "executor/internal/tool", "shared by built-in tools: input schemas, the texts of refusals, the shell of the session", "simulator/protocol internal/base/plainjson internal/base/proc internal/base/shellcmd"},
	{2, "executor/internal/files", "the tools that read, change and find files", "simulator/protocol executor/internal/tool internal/base/plainjson internal/base/textdiff executor internal/base/diag"},
	{3, "executor/internal/bash", "the tools that run command lines and stop their processes", "simulator/protocol executor executor/internal/files executor/internal/tool internal/base/gitworktree internal/base/process internal/base/shellcmd simulator/task"},
	{3, "executor/builtin", "assembles the built-in tools of a session", "simulator/protocol executor executor/internal/tool executor/internal/files executor/internal/bash internal/base/textdiff simulator/task internal/claudecode internal/base/gitworktree"},
	{3, "simulator", "the agent loop: asks the model, runs tools, yields events", "simulator/protocol internal/claudecode simulator/hook simulator/slash simulator/task scenarios executor internal/base/plainjson"},
	{4, "simulator/layer", "middleware around every tool call: hooks, and the permission to run", "simulator/protocol executor simulator simulator/hook simulator/permission internal/base/plainjson"},
	{4, "simulator/agent", "sub-agents: conversations that a tool call starts", "simulator/protocol internal/claudecode scenarios executor simulator simulator/hook simulator/task"},
	{1, "internal/api/history", "reads requests to the Messages API and interprets their history", ""},
	{2, "internal/api/wire", "the responses of the Messages API: messages, events, errors, models", "simulator/protocol internal/claudecode scenarios"},
	{2, "internal/api", "the Messages API over HTTP: each request is answered by replaying its history", "simulator/protocol internal/claudecode scenarios internal/exec/gate internal/record/journal internal/base/clock internal/api/history internal/api/wire"},
	{4, "internal/claude/output", "converts events to text, json and stream-json", "simulator/protocol"},
	{4, "internal/claude/control", "the SDK control protocol on stdin and stdout: frames, the prompt queue, requests to the host", "internal/base/plainjson internal/base/process mcp simulator simulator/hook simulator/permission simulator/protocol"},
	{4, "internal/debug", "the breakpoint debugger, controlled by people or by a scenario; it also connects to external MCP servers", "simulator/protocol executor internal/base/match internal/base/eval internal/base/cas mcp internal/base/plainjson scenarios"},
	{0, "mcp/oauth", "OAuth logins of MCP servers: the flow and the credential store", "internal/base/plainjson"},
	{1, "mcp/internal/connection", "one live connection to a server: transport, client, handshake, running requests", "internal/base/plainjson internal/base/proc"},
	{4, "internal/debug/compat", "the older breakpoint clients: their values, calls, expressions and routes", "simulator/protocol internal/debug internal/base/cas internal/debug/compat/pickle internal/base/plainjson"},
	{4, "internal/debug/mcpserver", "the breakpoint debugger as an MCP server", "simulator/protocol executor fixtures/wire internal/debug internal/debug/compat internal/base/plainjson"},
	{4, "internal/debug/rest", "the breakpoint debugger over HTTP: its routes, and their client", "internal/base/match internal/base/localhttp internal/debug internal/debug/compat internal/base/plainjson simulator/protocol"},
	{2, "internal/cli/plugincmd", "claude plugin: plugins and marketplaces in local directories", "internal/claude/catalog internal/base/argv internal/base/plainjson internal/base/process"},
	{2, "internal/cli/mcpcmd", "claudeless mcp: configure, inspect and call servers", "simulator/protocol internal/base/argv internal/base/diag internal/base/plainjson internal/base/proc internal/base/process mcp mcp/oauth"},
	{6, "tests/interop/mcp", "runs public MCP servers with the binary", ""},
	{0, "internal/exec/gate", "gates: steps of several processes wait until they are released", "internal/base/proc"},
	{2, "internal/exec/procio", "the streams, signals and exit of a process that runs as claude: its journal, its fault, strict mode", "internal/base/diag internal/record/journal internal/base/plainjson internal/base/process internal/claude/flags internal/base/proc internal/exec/verdict internal/claudecode"},
	{2, "internal/exec/verdict", "the verdict on a journal: expectations, how the program treats claude, strict mode; the reports", "internal/base/diag internal/record/journal internal/base/junit internal/record/redact scenarios internal/base/plainjson simulator/protocol internal/claudecode internal/base/tomltext"},
	{1, "internal/exec/guard", "detects, blocks and reports access to a real claude or a vendor", "internal/record/redact"},
	{4, "internal/exec/runner", "runs a command with claudeless instead of claude: shims, guard, verdict", "internal/exec/procio internal/exec/guard internal/api internal/base/proc internal/base/process internal/base/localhttp internal/exec/verdict internal/screens/console scenarios"},
	{4, "internal/cli/execcmd", "the commands for a program under test: exec, shim, verify, journal, gates", "docs internal/base/diag internal/exec/verdict internal/exec/gate internal/exec/runner internal/record/journal internal/base/process internal/exec/procio executor/builtin"},
	{0, "internal/base/tomltext", "writes TOML for human readers", ""},
	{2, "internal/importer/session", "reads real sessions (transcripts, stream-json logs, journals, recordings) into one form", "internal/base/diag internal/record/journal internal/api/history internal/base/plainjson internal/base/shellcmd internal/claudecode"},
	{2, "internal/parity", "the cases of a parity run, and the comparison of two runs", "docs internal/base/diag internal/base/junit internal/base/plainjson internal/claudecode scenarios"},
	{5, "internal/importer", "converts real sessions to scenarios with patterns and fixtures, and removes secrets; can run the result", "fixtures/clone internal/importer/session internal/base/plainjson internal/parity internal/base/proc internal/record/redact internal/base/tomltext scenarios"},
	{3, "internal/parity/permissions", "compares how two programs decide about tool calls under permission rules", "internal/base/diag internal/base/junit internal/parity internal/base/plainjson"},
	{5, "internal/parity/suite", "runs cases with claudeless and the real claude and reports the differences", "internal/base/diag internal/exec/runner internal/parity internal/parity/permissions internal/base/proc internal/base/process internal/exec/guard internal/record/journal internal/base/clock internal/api internal/base/localhttp scenarios"},
	{0, "internal/screens/emulator", "a terminal without a display: runs a program in a pseudo-terminal and converts its output to cells, cursor and title", "internal/base/proc"},
	{2, "internal/screens/tape", "reads and runs tapes: scripts of keys that lead an interactive program to its screens", "internal/base/diag internal/base/proc internal/screens/emulator"},
	{1, "internal/screens/book", "the captured screens of one version of the CLI, in files: labels, options, parts that vary between runs", "internal/base/proc internal/screens/emulator internal/base/textdiff internal/base/diag internal/base/tomltext internal/base/plainjson"},
	{4, "internal/screens/console", "connects this program's terminal to a pseudo-terminal, and records it", "internal/screens/emulator internal/record/redact internal/screens/book"},
	{3, "internal/screens/capture", "runs tapes with the real CLI and saves its screens in books", "internal/base/proc internal/exec/gate internal/screens/book internal/screens/emulator internal/screens/tape internal/base/diag scenarios"},
	{6, "internal/cli/screenscmd", "claudeless screens, and the check of programs that read screens", "internal/base/diag internal/base/junit internal/base/process internal/exec/runner internal/parity/suite internal/screens/book internal/screens/capture internal/screens/tape internal/screens/emulator internal/base/proc"},
	{0, "docs", "embeds the JSON Schemas of the file formats and the list of known differences", ""},
	{1, "internal/cli/help", "help, manual page, completions, schemas, first files", "docs internal/base/process"},
	{6, "simtest", "a scripted claude for Go tests; the test binary itself acts as claude", "internal/cli internal/base/clock internal/exec/gate internal/exec/runner internal/record/journal internal/api internal/base/process internal/exec/verdict executor/builtin internal/screens/tape"},
	{3, "internal/claude/launch", "combines flags, environment, settings and scenario into the plan of a run", "internal/claude/telemetry internal/claude/catalog internal/base/clock internal/claude/flags internal/exec/gate internal/record/journal internal/cli/mcpcmd internal/claudecode internal/base/process mcp scenarios simulator/permission simulator/protocol simulator/settings simulator/transcript internal/base/gitworktree"},
	{4, "simulator/command", "the slash commands of a session, one file per family", "internal/claude/catalog internal/claudecode mcp simulator simulator/protocol simulator/slash internal/base/diag"},
	{4, "internal/claude/session", "one assembled session: servers, policy, hooks, toolbox, records and background work, each owning its state", "internal/claude/telemetry internal/claude/flags internal/base/plainjson executor executor/builtin internal/claude/catalog internal/claude/checkpoint internal/base/clock internal/debug internal/debug/rest internal/record/journal internal/claude/launch internal/cli/mcpcmd internal/claudecode internal/base/proc internal/base/process internal/record/redact mcp scenarios simulator simulator/agent simulator/command simulator/hook simulator/layer simulator/outputschema simulator/permission simulator/protocol simulator/settings simulator/slash simulator/task simulator/transcript internal/base/gitworktree internal/exec/procio internal/exec/gate"},
	{5, "internal/claude/host", "requests of an SDK host to a session: parsed and answered", "internal/claude/checkpoint internal/claude/flags internal/claude/control internal/base/plainjson internal/claude/launch internal/claude/output internal/claudecode internal/base/process internal/claude/session mcp simulator simulator/hook simulator/permission simulator/protocol simulator/settings simulator/slash simulator/task"},
	{5, "internal/claude/terminal", "a session on a terminal: keys, screen and dialogs; consumes the events of the session", "internal/base/clock internal/claude/flags internal/base/plainjson internal/base/process internal/base/textdiff internal/claude/launch internal/claude/session internal/claudecode internal/record/journal internal/screens/book mcp simulator/protocol simulator/task"},
	{5, "internal/cli/debugcmd", "claudeless debug: the breakpoint server, the hook for any agent CLI, the proxy in front of an MCP server", "internal/debug internal/debug/rest internal/debug/mcpserver internal/base/proc internal/base/process internal/base/localhttp mcp simulator/protocol"},
	{3, "internal/cli/toolserver", "claude mcp serve: the built-in tools as an MCP server", "executor/builtin fixtures/wire internal/claudecode simulator/protocol"},
	{3, "internal/cli/servecmd", "claudeless serve, and its recording proxy", "internal/base/clock internal/record/journal internal/api internal/base/process internal/base/localhttp scenarios"},
	{5, "internal/cli/filecmd", "the commands for scenario and fixture files: check, fixture", "fixtures fixtures/clone fixtures/wire internal/base/diag internal/base/process internal/base/localhttp internal/record/journal executor/builtin internal/exec/verdict mcp scenarios"},
	{6, "internal/cli", "the command line: one file per command, exit codes", "*"},
	{7, "cmd/claudeless", "main: one statement", "internal/base/earlysignal internal/cli"},
	{7, "examples/go", "a project to copy: a program that starts claude, and its test", "simtest"},
	{6, "tests/soak", "load tests that take minutes and watch for leaked memory, files and processes", ""},
	{6, "tests/interop", "runs programs of the Agent SDKs and of the older breakpoint protocol with the binary", ""},
	{0, "tests/internal/tree", "the parsed source files of this repository, for its tests", ""},
	{6, "tests/scripts", "tests the binary from outside: scripts, captured runs, programs", "internal/cli internal/parity internal/screens/emulator tests/internal/tree"},
	{6, "tests/docs", "runs what the documents and examples show", "internal/base/diag internal/cli internal/claude/flags internal/parity tests/internal/tree"},
	{6, "tests/structure", "checks the rules for the source tree: imports, sizes, names, documents", "tests/internal/tree"},
	{6, "tests/bench", "the benchmarks of docs/performance.md", "tests/internal/tree"},
}

// thirdParty lists the packages that may import each foreign module. Test libraries are in testOnly.
var thirdParty = map[string]string{
	"os/exec":                                  "internal/base/proc examples/go",
	"github.com/alecthomas/kong":               "internal/cli internal/cli/execcmd internal/cli/mcpcmd",
	"github.com/BurntSushi/toml":               "scenarios fixtures internal/record/redact/rules internal/base/tomltext",
	"github.com/andybalholm/brotli":            "internal/api",
	"github.com/klauspost/compress":            "internal/api",
	"github.com/bmatcuk/doublestar/v4":         "executor/internal/files internal/claude/catalog",
	"github.com/dlclark/regexp2":               "internal/base/match",
	"github.com/expr-lang/expr":                "internal/base/eval",
	"github.com/go-jose/go-jose/v4":            "mcp/oauth",
	"github.com/goccy/go-yaml":                 "fixtures internal/claude/catalog tests/docs",
	"github.com/charmbracelet/x":               "internal/screens/emulator",
	"github.com/clipperhouse/displaywidth":     "internal/claude/terminal",
	"github.com/creack/pty":                    "internal/screens/emulator",
	"github.com/google/uuid":                   "internal/base/process internal/base/clock scenarios simulator/transcript",
	"github.com/rogpeppe/go-internal":          "mcp/oauth",
	"github.com/mark3labs/mcp-go":              "mcp mcp/oauth mcp/internal/connection fixtures/clone fixtures internal/debug/mcpserver", // the last: as a peer in tests
	"github.com/santhosh-tekuri/jsonschema/v6": "fixtures executor/builtin simulator/outputschema scenarios internal/debug/mcpserver",    // the last two: in tests
	"github.com/tailscale/hujson":              "mcp",
	"golang.org/x/oauth2":                      "mcp/oauth",
	"golang.org/x/sys":                         "internal/exec/guard internal/base/proc executor/builtin internal/record/journal simulator/transcript",
	"golang.org/x/text":                        "simulator/outputschema",
	"golang.org/x/term":                        "internal/base/process internal/screens/console tests/scripts",
	"mvdan.cc/sh/v3":                           "internal/base/shellcmd",
}

var testOnly = []string{
	"github.com/rogpeppe/go-internal",
	"github.com/google/go-cmp",
	"go.uber.org/goleak",
	"go.opentelemetry.io/proto/slim/otlp", // reads the telemetry that is sent
	"google.golang.org/protobuf",
	"github.com/google/uuid",
	"os/exec",
}

// forbiddenImports are imports whose absence guarantees a property, in addition to the table. Most are packages of the
// standard library, which the table does not contain.
var forbiddenImports = []struct{ from, to, why string }{
	{"scenarios", "net", "the scripted model reaches nothing"},
	{"scenarios", "net/http", "the scripted model reaches nothing"},
	{"scenarios/internal/fill", "net", "the scripted model reaches nothing"},
	{"scenarios/internal/fill", "time", "the scripted model knows no clock"},
	{"simulator", "os", "process state enters in internal/base/process"},
	{"simulator", "net/http", "the loop reaches nothing but its executor"},
	{"simulator/protocol", "os", "types only"},
	{"executor", "os", "running is the work of the executors behind it"},
	{"internal/claude/output", "os", "it writes to the writer it is given"},
	{"*", "log", "a library that logs decides for its caller; diagnostics are values"},
	{"*", "math/rand", "randomness is injected; math/rand/v2 with a seed"},
}

func TestImports(t *testing.T) {
	rows := map[string]packageRow{}
	for _, r := range packageTable {
		rows[r.path] = r
	}
	for _, s := range tree.Sources(t) {
		r, ok := rows[s.Dir]
		if !ok {
			t.Errorf("%s: package %s has no row in the package table (tests/structure/import_test.go)", s.Path, s.Dir)
			rows[s.Dir] = packageRow{path: s.Dir, allowedImports: "*"}
			continue
		}
		for _, spec := range s.File.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if msg := checkImport(r, imp, s.IsTest()); msg != "" {
				t.Errorf("%s:%d: %s", s.Path, s.Line(spec), msg)
			}
		}
	}
	for _, r := range packageTable {
		if _, err := os.Stat(filepath.Join(tree.Root, r.path)); err != nil {
			t.Errorf("package table: %s has a row but no directory", r.path)
		}
		for imp := range strings.FieldsSeq(r.allowedImports) {
			if rows[imp].layer > r.layer {
				t.Errorf("package table: %s of layer %d may not import %s of layer %d: arrows go down", r.path, r.layer, imp, rows[imp].layer)
			}
		}
	}
}

// testPackages are imported only by tests.
var testPackages = []string{"tests/mcptest", "tests/oauthtest", "tests/tooltest"} // constant: only read

// checkImport returns why a package may not import imp, or "".
func checkImport(r packageRow, imp string, isTest bool) string {
	for _, n := range forbiddenImports {
		if imp == "log" && r.path == "internal/base/process" {
			continue // specifies where the standard library logs to
		}
		if (n.from == "*" || n.from == r.path) && imp == n.to && !isTest {
			return fmt.Sprintf("%s must not import %s: %s", r.path, imp, n.why)
		}
	}
	if local, ok := strings.CutPrefix(imp, tree.Module+"/"); ok {
		switch {
		case local == r.path: // an external test package
		case isTest && slices.Contains(testPackages, local):
		case slices.Contains(testPackages, local):
			return local + " is for tests"
		case r.allowedImports == "*" && !strings.HasPrefix(local, "tests/") && local != "cmd/claudeless":
		case slices.Contains(strings.Fields(r.allowedImports), local):
		default:
			return fmt.Sprintf("%s may not import %s (package table)", r.path, local)
		}
		return ""
	}
	if (isTest || strings.HasPrefix(r.path, "tests/")) && slices.ContainsFunc(testOnly, func(p string) bool { return isBelow(imp, p) }) {
		return ""
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") && imp != "os/exec" {
		return "" // the rest of the standard library
	}
	for mod, where := range thirdParty {
		if !isBelow(imp, mod) {
			continue
		}
		if !slices.Contains(strings.Fields(where), r.path) {
			return fmt.Sprintf("%s belongs to %s only", imp, where)
		}
		return ""
	}
	return fmt.Sprintf("%s is in no row of the third-party table", imp)
}

// isBelow reports whether path is dir or below it.
func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// TestPackageTable checks that the table in docs/architecture.md has the data above.
func TestPackageTable(t *testing.T) {
	const begin, end = "<!-- packages:begin -->\n", "<!-- packages:end -->"
	var b strings.Builder
	b.WriteString("| layer | package | job | may import |\n|---|---|---|---|\n")
	byLayer := slices.SortedStableFunc(slices.Values(packageTable), func(a, b packageRow) int { return cmp.Compare(a.layer, b.layer) })
	for _, r := range byLayer {
		may := "–"
		if r.allowedImports == "*" {
			may = "all above"
		} else if r.allowedImports != "" {
			may = "`" + strings.Join(strings.Fields(r.allowedImports), "` `") + "`"
		}
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", r.layer, r.path, r.purpose, may)
	}
	b.WriteString("\n| from outside | only in |\n|---|---|\n")
	for _, mod := range slices.Sorted(maps.Keys(thirdParty)) {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", mod, strings.Join(strings.Fields(thirdParty[mod]), "` `"))
	}
	tree.ReplaceSection(t, "docs/architecture.md", begin, end, b.String())
}
