package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/fixtures"
	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
)

// checkCmd validates files of all three kinds and reports everything that is wrong with all of them.
type checkCmd struct {
	Files []string `arg:"" name:"file" help:"Scenario, fixture or MCP configuration; what it is follows from its keys."`
	JSON  bool     `help:"Print the findings as one JSON object on stdout."`
}

// checkReport is the --json form. Diagnostics are never null.
type checkReport struct {
	OK    bool          `json:"ok"`
	Files []checkedFile `json:"files"`
}

type checkedFile struct {
	File        string    `json:"file"`
	Kind        string    `json:"kind"` // scenario, fixture or mcp
	OK          bool      `json:"ok"`   // warnings do not count
	Diagnostics diag.List `json:"diagnostics"`
}

// Run prints a line on stdout for each good file and the diagnostics on stderr, or the report.
func (c *checkCmd) Run(s *process.System) error {
	report := checkReport{OK: true}
	for _, name := range c.Files {
		file := checkFile(s, name)
		report.OK = report.OK && file.OK
		report.Files = append(report.Files, file)
	}
	if c.JSON {
		encoder := json.NewEncoder(s.Stdout)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else {
		for _, file := range report.Files {
			diag.Render(s.Stderr, file.Diagnostics)
			if file.OK {
				fmt.Fprintf(s.Stdout, "%s: ok (%s)\n", file.File, file.Kind)
			}
		}
	}
	if !report.OK {
		return &process.ExitError{Code: process.ExitFailed}
	}
	return nil
}

func checkFile(s *process.System, name string) checkedFile {
	file := checkedFile{File: name, Kind: "scenario", Diagnostics: diag.List{}}
	src, err := os.ReadFile(name)
	if err == nil {
		index := indexFile(name, src)
		file.Kind = fileKind(index.Keys(nil))
		switch file.Kind {
		case "mcp":
			file.Diagnostics = append(file.Diagnostics, checkMCP(s, name, index)...)
		case "fixture":
			var fixture *fixtures.Fixture
			if fixture, err = fixtures.Load(name); err == nil {
				file.Diagnostics = append(file.Diagnostics, fixture.Warnings...)
			}
		default:
			_, err = scenarios.Load(name, scenarios.LoadOptions{})
		}
	}
	file.Diagnostics = append(file.Diagnostics, faults(name, err)...)
	file.OK = file.Diagnostics.Err() == nil
	return file
}

// faults is what an error of a loader has to say.
func faults(name string, err error) diag.List {
	if err == nil {
		return nil
	}
	if list, ok := errors.AsType[diag.List](err); ok {
		return list
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == name {
		err = path.Err
	}
	return diag.List{{Pos: diag.Position{File: name}, Message: err.Error()}}
}

func indexFile(name string, src []byte) *diag.Index {
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return diag.IndexJSON(name, src)
	}
	return diag.IndexTOML(name, src)
}

// fileKind tells what a file is by its top-level keys. A file that could be anything is a scenario.
func fileKind(keys []string) string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(keys, name) })
	}
	switch {
	case has("mcpServers"):
		return "mcp"
	case has("responses", "default_response", "tool_execution", "breakpoints", "expect"):
		return "scenario"
	case has("tools", "resources", "resource_templates", "prompts", "completions", "instructions", "envelope", "meta_dir", "backend", "faults"):
		return "fixture"
	case has("servers"):
		return "mcp"
	default:
		return "scenario"
	}
}

// checkMCP reads name as the value of --mcp-config.
func checkMCP(s *process.System, name string, index *diag.Index) diag.List {
	path, err := new(flags.Flags).Abs(s, name)
	if err != nil {
		return faults(name, err)
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{path}, CWD: filepath.Dir(path), Environ: s.Environ, ValuesOnly: true})
	if broken, ok := errors.AsType[*mcp.ConfigError](err); ok {
		return brokenMCP(name, index, broken.Details)
	}
	list := faults(name, err)
	for _, entry := range config.Errors {
		list = append(list, index.At(serverPath(index, entry.Name), entry.Message))
	}
	for _, text := range config.Warnings {
		list = append(list, diag.Diagnostic{Pos: diag.Position{File: name}, Message: text, Warning: true})
	}
	return list
}

// brokenMCP prefers the place where the text stops being JSON to the words of the CLI, which have no place.
func brokenMCP(name string, index *diag.Index, details []string) diag.List {
	if doubt := index.Doubt(); doubt != nil {
		return diag.List{*doubt}
	}
	var list diag.List
	for _, text := range details {
		list = append(list, diag.Diagnostic{Pos: diag.Position{File: name}, Message: text})
	}
	return list
}

func serverPath(index *diag.Index, server string) diag.Path {
	for _, table := range []string{"mcpServers", "servers"} {
		if _, ok := index.Lookup(diag.Path{table, server}); ok {
			return diag.Path{table, server}
		}
	}
	return diag.Path{"mcpServers"}
}
