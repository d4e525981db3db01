package parity

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

// Case is one test that both programs, claudeless and the real claude, execute.
type Case struct {
	// Name identifies the case. For a case in a given directory, it is the path below this directory without the
	// extension. For a case that is given as a file, it is the base name of the file.
	Name string `json:"name"`
	// File is the path of the case, as given.
	File string `json:"file"`
	// Scenario is the scripted model; ScenarioLine is its first line in File.
	Scenario     []byte `json:"scenario"`
	ScenarioLine int    `json:"scenario_line"`
	// Dir is the directory that relative file names in the scenario refer to.
	Dir string `json:"dir"`
	// Runs are executed in order in the same directories.
	Runs []CaseRun `json:"runs"`
	// Settings are the user's settings, MCP the servers of --mcp-config; nil means none.
	Settings []byte `json:"settings,omitempty"`
	MCP      []byte `json:"mcp,omitempty"`
	// Files and Home are files in the working and in the home directory, by path.
	Files map[string][]byte `json:"files,omitempty"`
	Home  map[string][]byte `json:"home,omitempty"`
	// Env holds additional variables, K=V.
	Env []string `json:"env,omitempty"`
	// Refuses is true if the case is about a command line that claude rejects.
	Refuses bool `json:"refuses,omitempty"`
	// DefaultURL lets the programs use the default URL of the API, instead of a URL that is set for each program.
	DefaultURL bool `json:"default_url,omitempty"`
	// Subdirectory is where the programs start, relative to the working directory; empty means in the working directory.
	Subdirectory string `json:"subdirectory,omitempty"`
	// InertShell replaces bash by a program that does nothing. Permissions are decided, but no command runs.
	InertShell bool `json:"inert_shell,omitempty"`
	// Servers are fixtures served over HTTP.
	Servers []CaseServer `json:"servers,omitempty"`
	// Incomparable lists the parts of the scenario that claudeless serve does not support; nil means none. A case with
	// such a part cannot be compared, because the real CLI needs claudeless serve to play the scenario.
	Incomparable []string `json:"incomparable,omitempty"`
}

// CaseRun is one execution of claude.
type CaseRun struct {
	Args []string `json:"args"`
	// Stdin is the complete input, followed by end of file. If there are Steps, they are used instead.
	Stdin []byte     `json:"stdin,omitempty"`
	Steps []CaseStep `json:"steps,omitempty"`
}

// CaseServer is a fixture of the case, served over HTTP. The variable NAME_URL contains its base URL.
type CaseServer struct {
	Name    string `json:"name"`
	Fixture string `json:"fixture"`
}

// AreaFromDirectoryName returns the area of the case, which is the name of its directory.
func (c *Case) AreaFromDirectoryName() string {
	if dir := filepath.Base(filepath.Dir(c.File)); dir != "." && dir != string(filepath.Separator) {
		return dir
	}
	return "cases"
}

// LoadCases reads cases from files and directories. Cases that cannot be read are omitted and reported in problems.
func LoadCases(names []string) (all []*Case, problems diag.List) {
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
			problems = append(problems, unreadableCaseDiagnostic(name, err))
		case !info.IsDir():
			add(readCase(name, trimExt(filepath.Base(name)), false))
		default:
			n := len(all) + len(problems)
			err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !slices.Contains([]string{".txtar", ".toml"}, filepath.Ext(path)) {
					return err
				}
				rel, err := filepath.Rel(name, path)
				add(readCase(path, trimExt(filepath.ToSlash(rel)), true))
				return err
			})
			if err != nil {
				problems = append(problems, unreadableCaseDiagnostic(name, err))
			} else if len(all)+len(problems) == n {
				problems = append(problems, diag.Diagnostic{Pos: diag.Position{File: name}, Message: "the directory contains no case", Hint: "a case is a .txtar file, or a scenario with [parity]"})
			}
		}
	}
	return all, problems
}

func trimExt(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

func unreadableCaseDiagnostic(name string, err error) diag.Diagnostic {
	return diag.Diagnostic{Pos: diag.Position{File: name}, Message: "cannot read the case: " + diag.FileErrorTextWithoutPath(err)}
}

// readCase reads one file. isFromDirectory means that the user named only the file's directory. A scenario without a
// [parity] table is then simply not a case: readCase returns nil and no problem.
func readCase(file, name string, isFromDirectory bool) (*Case, diag.List) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, diag.List{unreadableCaseDiagnostic(file, err)}
	}
	c := &Case{Name: name, File: file, Dir: filepath.Dir(file), Files: map[string][]byte{}, Home: map[string][]byte{}}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, diag.List{unreadableCaseDiagnostic(file, err)}
	}
	if filepath.Ext(file) == ".txtar" {
		return c, c.fillFromTxtarArchive(src)
	}
	s, err := scenarios.Parse(file, src, scenarios.LoadOptions{})
	switch {
	case err != nil && isFromDirectory && !strings.Contains(string(src), "[parity]"):
		return nil, nil // not a case: a fixture, or another file with this extension
	case err != nil:
		return nil, diagnosticsOf(file, err)
	case len(s.Parity.Argv) == 0 && isFromDirectory:
		return nil, nil
	case len(s.Parity.Argv) == 0:
		return nil, diag.List{{Pos: diag.Position{File: file}, Message: "the scenario has no [parity] table", Hint: `argv = ["-p", "hello"] below [parity] sets the arguments of claude`}}
	}
	c.Scenario, c.ScenarioLine = src, 1
	c.Runs, c.Refuses = []CaseRun{{Args: s.Parity.Argv, Stdin: []byte(s.Parity.Stdin)}}, s.Parity.Refuses
	c.setReasonsNotComparable(s)
	return c, nil
}

func diagnosticsOf(file string, err error) diag.List {
	if list, ok := errors.AsType[diag.List](err); ok {
		return list
	}
	return diag.List{{Pos: diag.Position{File: file}, Message: err.Error()}}
}

// setReasonsNotComparable fills c.Incomparable. It omits MCP servers, because the real CLI runs them, not claudeless serve.
func (c *Case) setReasonsNotComparable(s *scenarios.Scenario) {
	for _, d := range s.UnsupportedByAPI() {
		if !strings.HasPrefix(d.Message, "mcp") {
			c.Incomparable = append(c.Incomparable, fmt.Sprintf("line %d: %s", d.Pos.Line+c.ScenarioLine-1, d.Message))
		}
	}
}

// addProblemIfInvalidJSON reports invalid JSON in settings.json or mcp.json of a case. A case about invalid JSON has such a file
// below cwd/ or home/ instead, where it is not checked.
func addProblemIfInvalidJSON(f *archiveFile, list *diag.List) {
	if json.Valid(f.data) {
		return
	}
	ix := diag.IndexJSON(f.name, f.data)
	d := diag.Diagnostic{Message: "invalid JSON"}
	if doubt := ix.FirstPossibleProblem(); doubt != nil {
		d = *doubt
		d.Message = "invalid JSON: " + d.Message
	}
	*list = append(*list, f.withArchivePosition(d))
}
