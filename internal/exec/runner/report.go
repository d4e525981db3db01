package runner

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Reports are the output files of a verdict; empty = not written.
type Reports struct {
	JUnit, JSON string
	Summary     string // file to which Markdown is appended (GITHUB_STEP_SUMMARY)
	GitHub      bool   // annotations on stderr
	// Environ is the environment whose secret values are redacted in all reports.
	Environ []string
}

// Write writes the lines of a verdict to stderr and then the files, all without secrets. If one file cannot be
// written, the others still are.
func (o Reports) Write(r *verdict.Report, stderr io.Writer) error {
	r, err := r.Redacted(o.Environ)
	if err != nil {
		return err
	}
	errs := []error{r.Write(stderr, verdict.Lines)}
	if o.GitHub {
		errs = append(errs, r.Write(stderr, verdict.Annotations))
	}
	for _, f := range []struct {
		name string
		how  int
		as   verdict.Format
	}{{o.Summary, os.O_APPEND, verdict.Markdown}, {o.JUnit, os.O_TRUNC, verdict.JUnit}, {o.JSON, os.O_TRUNC, verdict.JSON}} {
		if f.name != "" {
			errs = append(errs, toFile(f.name, f.how, r, f.as))
		}
	}
	return errors.Join(errs...)
}

func toFile(name string, how int, r *verdict.Report, as verdict.Format) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	if err := errors.Join(r.Write(file, as), file.Close()); err != nil {
		return fmt.Errorf("writing the report %s: %w", name, err)
	}
	return nil
}
