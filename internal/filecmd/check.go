package filecmd

import (
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/internal/check"
	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/process"
)

// Check validates files of all three kinds and reports everything that is wrong with all of them.
type Check struct {
	Files []string `arg:"" name:"file" help:"Scenario, fixture or MCP configuration; what it is follows from its keys."`
	JSON  bool     `help:"Print the findings as one JSON object on stdout."`
	Face  string   `placeholder:"FACE" enum:"cli,api," default:"" help:"Also list what of scenarios a face cannot honour: api is that of claudeless serve."`
}

// Run prints a line on stdout for each good file and the diagnostics on stderr, or the report.
func (c *Check) Run(s *process.System) error {
	dir, err := s.Getwd()
	if err != nil {
		return err
	}
	report := check.Files(c.Files, check.Options{Dir: dir, Environ: s.Environ, Face: c.Face})
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
