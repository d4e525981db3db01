package verdict

import (
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/internal/record/redact"
)

// Redacted returns the report with secrets removed from all texts, including the values of secret variables in
// environ.
func (r *Report) Redacted(environ []string) (*Report, error) {
	hide := redact.New(redact.Options{Environ: environ})
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("redacting the report: %w", err)
	}
	out := &Report{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("redacting the report: %w", err)
	}
	if out.Command != nil {
		out.Command.Argv = hide.Args(out.Command.Argv)
	}
	for i := range out.Runs {
		out.Runs[i].Argv = hide.Args(out.Runs[i].Argv)
	}
	if raw, err = json.Marshal(out); err == nil {
		out = &Report{}
		err = json.Unmarshal(hide.JSON(raw), out)
	}
	if err != nil {
		return nil, fmt.Errorf("redacting the report: %w", err)
	}
	return out, nil
}
