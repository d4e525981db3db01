// Package filecmd implements the commands for claudeless's own file formats: check and fixture.
package filecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
)

// Check validates scenarios, fixtures and MCP configurations, and reports all their problems.
type Check struct {
	Files   []string `arg:"" name:"file" help:"Scenario, fixture or MCP configuration files; the kind is detected from the keys"`
	Strict  bool     `help:"Treat warnings as errors"`
	JSON    bool     `help:"Print the findings as one JSON object"`
	Explain []string `sep:"none" placeholder:"PROMPT" help:"Show which rule of the scenario answers this prompt, or why none does; repeat the flag for the successive prompts of one session"`
	Target  string   `aliases:"face" placeholder:"TARGET" enum:"cli,api," default:"" help:"Also report keys that are ignored by this target: cli, or api (claudeless serve)"`
}

// Run prints a line on stdout for each valid file and the diagnostics on stderr or, with --json, only the report.
func (c *Check) Run(ctx context.Context, s *process.System) error {
	dir, err := s.Getwd()
	if err != nil {
		return err
	}
	report := CheckFiles(ctx, c.Files, CheckOptions{Dir: dir, Environ: s.WithEnv(map[string]string{"CLAUDELESS_BIN": s.InvokedProgramName()}).Environ, Target: c.Target, Strict: c.Strict, Explain: process.ReplaceInvalidUTF8InCommandLineWords(c.Explain)})
	if c.JSON {
		encoder := json.NewEncoder(s.Stdout)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else {
		for _, file := range report.Files {
			diag.Render(s.Stderr, file.Diagnostics)
			var text strings.Builder
			for _, line := range file.Explained {
				fmt.Fprintln(&text, strings.TrimSuffix(line, "\n"))
			}
			if file.OK {
				fmt.Fprintf(&text, "%s: ok (%s)\n", diag.ReplaceControlCharacters(file.File), file.Kind)
			}
			if _, err := io.WriteString(s.Stdout, text.String()); err != nil {
				return fmt.Errorf("writing the findings: %w", err)
			}
		}
	}
	if !report.OK {
		return &process.ExitError{Code: process.ExitFailed}
	}
	return nil
}
