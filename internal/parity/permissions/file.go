// Package permissions reads files of tool calls with permission rules, converts them to cases of a parity run, and
// compares the decisions of two programs call by call: the same, looser or stricter.
//
// A [CallGroupsFile] holds groups; each [CallGroup] is one session of claude with its rules, its mode and its calls. Both programs run
// [CallGroup.SessionAsParityCase], [ReadOutcomes] extracts the decisions from the recording, and [CallVerdictsReport] formats them.
package permissions

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// CallGroupsFile is a list of tool calls, in groups. Each group is played in its own session. All sessions begin with the same files.
type CallGroupsFile struct {
	// Files are files of the working directory, Home files of the home directory, by path.
	Files  map[string]string `toml:"files"`
	Home   map[string]string `toml:"home"`
	Groups []*CallGroup      `toml:"groups,required"` // the calls, one group per session
	Known  []*KnownDecision  `toml:"known"`           // calls with an accepted difference

	name  string
	index *diag.SourceIndex
}

// CallGroup is one session: rules, a mode, and the calls that the model makes. In rules
// and inputs {cwd} is the working directory and {home} the home directory.
type CallGroup struct {
	Name string `toml:"name,required" empty:"no"`
	// Mode of the session; empty means default.
	Mode string `toml:"mode" enum:"default,acceptEdits,plan,dontAsk,bypassPermissions"`
	// Allow, Ask and Deny are permission rules of the user's settings.
	Allow       []string                   `toml:"allow"`
	Ask         []string                   `toml:"ask"`
	Deny        []string                   `toml:"deny"`
	Directories []string                   `toml:"directories"`    // additional directories of the session
	Arguments   []string                   `toml:"arguments"`      // additional arguments of claude
	Servers     map[string]json.RawMessage `toml:"servers"`        // MCP servers, as in .mcp.json
	Calls       []Call                     `toml:"calls,required"` // made one after the other

	file *CallGroupsFile
}

// Call is a tool call. In the file, a plain string stands for a Bash command.
type Call struct {
	Tool  string          `toml:"tool,required" empty:"no"`
	Input json.RawMessage `toml:"input,required"`

	line int
}

// BindValue implements [diag.Binder].
func (c *Call) BindValue(v diag.Value, b *diag.BindRun) {
	if v.Kind == diag.KindString {
		c.Tool, c.Input = "Bash", singleKeyInput("command", v.Text)
		return
	}
	type table Call
	b.BindInto(v, (*table)(c))
}

func singleKeyInput(key, value string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err) // cannot happen: a map of strings can always be encoded
	}
	return raw
}

// CommandOrNameAndInput returns the call on one line: the command of a Bash call, otherwise the name and the input.
func (c *Call) CommandOrNameAndInput() string {
	var bash struct{ Command *string }
	if c.Tool == "Bash" && json.Unmarshal(c.Input, &bash) == nil && bash.Command != nil {
		return *bash.Command
	}
	return c.Tool + " " + string(c.Input)
}

// KnownDecision accepts that the decisions about one call differ.
type KnownDecision struct {
	// Group of the call; empty means any.
	Group  string `toml:"group"`
	Call   string `toml:"call,required" empty:"no"`   // the text of the call, see [Call.CommandOrNameAndInput]
	Reason string `toml:"reason,required" empty:"no"` // explains the difference

	used bool
}

// Load reads files and returns all their problems; invalid files are omitted.
func Load(names []string) (all []*CallGroupsFile, problems diag.List) {
	for _, name := range names {
		f, list := readFile(name)
		if problems = append(problems, list...); list.Err() == nil {
			all = append(all, f)
		}
	}
	return all, problems
}

func readFile(name string) (*CallGroupsFile, diag.List) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, diag.List{{Pos: diag.Position{File: name}, Message: "cannot read the calls: " + diag.FileErrorTextWithoutPath(err)}}
	}
	f := &CallGroupsFile{name: name, index: diag.IndexTOML(name, src)}
	if doubt := f.index.FirstPossibleProblem(); doubt != nil {
		return nil, diag.List{*doubt}
	}
	problems := append(f.index.BindFileTo(f), f.checkEntriesAndSetLineNumbers()...)
	problems.Sort()
	return f, problems
}

// checkEntriesAndSetLineNumbers sets the line numbers of calls and known decisions, and checks what the types do not check.
func (f *CallGroupsFile) checkEntriesAndSetLineNumbers() (problems diag.List) {
	names := map[string]bool{}
	for i, g := range f.Groups {
		g.file = f
		at := diag.Path{"groups", i}
		if names[g.Name] {
			problems = append(problems, f.index.DiagnosticAt(append(at, "name"), fmt.Sprintf("duplicate group %q", g.Name)))
		}
		names[g.Name] = true
		for j := range g.Calls {
			c := &g.Calls[j]
			c.line = f.index.Pos(append(slices.Clone(at), "calls", j)).Line
			if !strings.HasPrefix(string(c.Input), "{") && c.Input != nil {
				problems = append(problems, f.index.DiagnosticAt(append(slices.Clone(at), "calls", j), "the input of a call must be a table"))
			}
		}
	}
	for i, k := range f.Known {
		if k.Group != "" && !names[k.Group] {
			d := f.index.DiagnosticAt(diag.Path{"known", i, "group"}, fmt.Sprintf("unknown group %q", k.Group))
			d.Hint = diag.NameHint(k.Group, slices.Sorted(maps.Keys(names)))
			problems = append(problems, d)
		}
	}
	for _, table := range []struct {
		key   string
		files map[string]string
	}{{"files", f.Files}, {"home", f.Home}} {
		for _, name := range slices.Sorted(maps.Keys(table.files)) {
			if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
				problems = append(problems, f.index.DiagnosticAt(diag.Path{table.key, name}, "the path of a file must be inside the directory and contain no . or .. elements"))
			}
		}
	}
	return problems
}

// markKnownDecisionUsed marks the known decision about a call as used and returns its reason; empty means that there is none.
func (f *CallGroupsFile) markKnownDecisionUsed(groupName string, call *Call) (reason string) {
	for _, k := range f.Known {
		if (k.Group == "" || k.Group == groupName) && k.Call == call.CommandOrNameAndInput() {
			k.used = true
			return k.Reason
		}
	}
	return ""
}
