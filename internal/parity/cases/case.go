// Package cases reads parity cases: the command to run, its environment and its
// input. All errors of a case are reported together, with file and line.
package cases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/scenarios"
)

// Case is one thing to be done by both lanes.
type Case struct {
	// Name is the path below the directory that was named, without the ending; of a
	// file that was named itself, its base.
	Name string `json:"name"`
	// File it was read from, as it was named.
	File string `json:"file"`
	// Scenario plays the model; ScenarioLine is where it begins in File.
	Scenario     []byte `json:"scenario"`
	ScenarioLine int    `json:"scenario_line"`
	// Dir is where files of the scenario are looked for.
	Dir string `json:"dir"`
	// Runs happen one after the other in the same directories.
	Runs []Run `json:"runs"`
	// Settings are the user's settings, MCP the servers of --mcp-config; nil = none.
	Settings []byte `json:"settings,omitempty"`
	MCP      []byte `json:"mcp,omitempty"`
	// Files and Home are files in the working and in the home directory, by path.
	Files map[string][]byte `json:"files,omitempty"`
	Home  map[string][]byte `json:"home,omitempty"`
	// Env are further variables, K=V.
	Env []string `json:"env,omitempty"`
	// Refuses says that the case is about a command line that claude refuses.
	Refuses bool `json:"refuses,omitempty"`
	// InertShell replaces bash by a program that does nothing, so that commands are
	// decided about and never run.
	InertShell bool `json:"inert_shell,omitempty"`
	// Servers are fixtures that are served over HTTP.
	Servers []Server `json:"servers,omitempty"`
	// Incomparable says what the API face cannot honour; nil = nothing.
	Incomparable []string `json:"incomparable,omitempty"`
}

// Run is one call of claude.
type Run struct {
	Args []string `json:"args"`
	// Stdin is read as it stands, then comes the end of file. Steps take its place.
	Stdin []byte `json:"stdin,omitempty"`
	Steps []Step `json:"steps,omitempty"`
}

// Server is a fixture of the case, served over HTTP; its address without a path is
// in the variable NAME_URL.
type Server struct {
	Name    string `json:"name"`
	Fixture string `json:"fixture"`
}

// Area is the directory that the case stands in.
func (c *Case) Area() string {
	if dir := filepath.Base(filepath.Dir(c.File)); dir != "." && dir != string(filepath.Separator) {
		return dir
	}
	return "cases"
}

// Load reads cases and directories of them. Cases that cannot be read are left out
// and told in the list.
func Load(names []string) (all []*Case, problems diag.List) {
	add := func(c *Case, wrong diag.List) {
		problems = append(problems, wrong...)
		if wrong.Err() == nil && c != nil {
			all = append(all, c)
		}
	}
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			problems = append(problems, unreadable(name, err))
		case !info.IsDir():
			add(read(name, base(name), false))
		default:
			n := len(all) + len(problems)
			err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !isCase(path) {
					return err
				}
				rel, err := filepath.Rel(name, path)
				add(read(path, trimExt(filepath.ToSlash(rel)), true))
				return err
			})
			if err != nil {
				problems = append(problems, unreadable(name, err))
			} else if len(all)+len(problems) == n {
				problems = append(problems, diag.Diagnostic{Pos: diag.Position{File: name}, Message: "the directory holds no case", Hint: "a case is a .txtar file, or a scenario with [parity]"})
			}
		}
	}
	return all, problems
}

func isCase(path string) bool {
	return slices.Contains([]string{".txtar", ".toml"}, filepath.Ext(path))
}

func base(name string) string { return trimExt(filepath.Base(name)) }

func trimExt(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

func unreadable(name string, err error) diag.Diagnostic {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return diag.Diagnostic{Pos: diag.Position{File: name}, Message: "cannot read the case: " + err.Error()}
}

// read reads one file. In a directory, scenarios without [parity] are no cases.
func read(file, name string, listed bool) (*Case, diag.List) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, diag.List{unreadable(file, err)}
	}
	c := &Case{Name: name, File: file, Dir: filepath.Dir(file), Files: map[string][]byte{}, Home: map[string][]byte{}}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, diag.List{unreadable(file, err)}
	}
	if filepath.Ext(file) == ".txtar" {
		return c, c.archive(src)
	}
	s, err := scenarios.Parse(file, src, scenarios.LoadOptions{})
	switch {
	case err != nil && listed && !strings.Contains(string(src), "[parity]"):
		return nil, nil // a fixture, or what else has this ending
	case err != nil:
		return nil, listOf(file, err)
	case len(s.Parity.Argv) == 0 && listed:
		return nil, nil
	case len(s.Parity.Argv) == 0:
		return nil, diag.List{{Pos: diag.Position{File: file}, Message: "the scenario has no [parity] table", Hint: `argv = ["-p", "hello"] below [parity] says how claude is called`}}
	}
	c.Scenario, c.ScenarioLine = src, 1
	c.Runs, c.Refuses = []Run{{Args: s.Parity.Argv, Stdin: []byte(s.Parity.Stdin)}}, s.Parity.Refuses
	c.judge(s)
	return c, nil
}

func listOf(file string, err error) diag.List {
	if list, ok := errors.AsType[diag.List](err); ok {
		return list
	}
	return diag.List{{Pos: diag.Position{File: file}, Message: err.Error()}}
}

// judge notes what the API face cannot honour. Servers are given to the real CLI.
func (c *Case) judge(s *scenarios.Scenario) {
	for _, d := range s.Unhonoured() {
		if !strings.HasPrefix(d.Message, "mcp") {
			c.Incomparable = append(c.Incomparable, fmt.Sprintf("line %d: %s", d.Pos.Line+c.ScenarioLine-1, d.Message))
		}
	}
}

// Valid JSON is what settings.json and mcp.json must be; broken ones are files
// below cwd/ or home/.
func checkJSON(f *file, list *diag.List) {
	if json.Valid(f.data) {
		return
	}
	ix := diag.IndexJSON(f.name, f.data)
	d := diag.Diagnostic{Message: "invalid JSON"}
	if doubt := ix.Doubt(); doubt != nil {
		d = *doubt
		d.Message = "invalid JSON: " + d.Message
	}
	*list = append(*list, f.at(d))
}
