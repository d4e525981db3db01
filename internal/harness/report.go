package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/claudeless/claudeless/internal/verdict"
)

// Write writes a verdict: its lines on stderr, then the files. A file that cannot
// be written keeps none of the others from being.
func (o Reports) Write(r *verdict.Report, stderr io.Writer) error {
	errs := []error{r.Terminal(stderr)}
	if o.GitHub {
		errs = append(errs, r.GitHub(stderr))
	}
	if o.Summary != "" {
		errs = append(errs, toFile(o.Summary, os.O_APPEND, r.Summary))
	}
	if o.JUnit != "" {
		errs = append(errs, toFile(o.JUnit, os.O_TRUNC, r.JUnit))
	}
	if o.JSON != "" {
		errs = append(errs, toFile(o.JSON, os.O_TRUNC, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(r)
		}))
	}
	return errors.Join(errs...)
}

func toFile(name string, how int, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("writing the report %s: %w", name, err)
	}
	return nil
}
