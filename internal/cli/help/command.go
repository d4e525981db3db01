package help

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/docs"
	"github.com/claudeless/claudeless/internal/base/process"
)

// InitCommand writes starter files: `claudeless init [DIR]`.
type InitCommand struct {
	Dir   string `arg:"" optional:"" default:"." help:"Directory to write to (default: the working directory)"`
	Force bool   `help:"Overwrite existing files"`
}

// Run writes the files and prints their names and the next steps.
func (c *InitCommand) Run(s *process.System) error {
	names, err := c.WriteFiles()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s\n\nnext:\n  claudeless check %s %s\n  claudeless -p \"What is the weather in Oslo?\" --mcp-config %s --allowedTools mcp__weather\n",
		strings.Join(names, ", "), names[0], names[1], names[2])
	return err
}

// SchemaCommand prints the JSON Schema of a file format: `claudeless schema scenario`.
type SchemaCommand struct {
	Format string `arg:"" help:"Schema to print: scenario, fixture or journal"`
}

// Run prints the schema.
func (c *SchemaCommand) Run(s *process.System) error {
	text, ok := docs.Schema(c.Format)
	if !ok {
		return process.WithHint(fmt.Sprintf("unknown schema %q", c.Format), "choose one of "+strings.Join(docs.SchemaNames(), ", "))
	}
	_, err := s.Stdout.Write(text)
	return err
}

// The files that `init` writes: a scenario with its MCP server, and a CI job.
//
//go:embed files
var starterFiles embed.FS

func starterFileSourceAndTargetPaths() [][2]string {
	return [][2]string{
		{"files/claudeless.toml", "claudeless.toml"},
		{"files/weather.toml", "weather.toml"},
		{"files/mcp.json", "claudeless.mcp.json"},
		{"files/ci.yml", filepath.Join(".github", "workflows", "claudeless.yml")},
	}
}

// WriteFiles writes the starter files to the directory, creating it, and returns their names. If a file exists and
// Force is not set, it returns an error and writes nothing.
func (c *InitCommand) WriteFiles() ([]string, error) {
	var names []string
	var there []error
	for _, f := range starterFileSourceAndTargetPaths() {
		name := filepath.Join(c.Dir, f[1])
		names = append(names, name)
		if _, err := os.Lstat(name); err == nil && !c.Force {
			there = append(there, fmt.Errorf("%s already exists; use --force to overwrite it", name))
		}
	}
	if there != nil {
		return nil, errors.Join(there...)
	}
	for i, f := range starterFileSourceAndTargetPaths() {
		data, err := fs.ReadFile(starterFiles, f[0])
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(names[i]), 0o755); err != nil {
			return nil, fmt.Errorf("writing the files of the new project: %w", err)
		}
		if err := os.WriteFile(names[i], data, 0o644); err != nil {
			return nil, fmt.Errorf("writing the files of the new project: %w", err)
		}
	}
	return names, nil
}
