package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/importer"
)

const (
	exitReplayDiffers = 1
	exitInvalidInput  = 2
	exitSecretFound   = 3
)

type importCmd struct {
	Files    []string `arg:"" name:"file" help:"Recorded sessions: transcripts, stream-json logs, journals, SDK recordings or API traffic; the format is detected"`
	Out      string   `short:"o" placeholder:"DIR" help:"Directory to write to (default: ./NAME; if stdout is a pipe, the scenario is written to stdout instead)"`
	Name     string   `placeholder:"NAME" help:"Name of the scenario (default: the name of the first file)"`
	Check    bool     `help:"Run the new scenario with the recorded prompts and report the differences"`
	Exact    bool     `help:"Match the whole text of each prompt instead of a part of it"`
	Link     bool     `help:"Where a reply repeats a tool result, insert a reference to the result instead"`
	Thinking bool     `help:"Keep the thinking blocks of the model"`
	Reads    bool     `name:"files" help:"Save the files that the session read, and answer Read and similar calls from these copies"`
	Branch   string   `placeholder:"UUID" help:"Follow the branch that contains the message with this UUID (default: the newest branch)"`
	Raw      bool     `help:"Do not redact secrets or personal data"`
	Big      bool     `help:"Keep tool results over 200 KB in full"`
	Against  string   `placeholder:"DIR" help:"Make patterns so specific that they match no prompt of the scenarios in DIR"`
	JSON     string   `placeholder:"FILE" help:"Write a report as JSON to FILE (- for stdout)"`
	Force    bool     `help:"Overwrite existing files"`
	Update   string   `placeholder:"SCENARIO" help:"Import into this existing scenario and keep your edits"`
	Audit    bool     `help:"Only search the files for secrets; exit with 3 if any are found"`
}

// Run imports the recorded sessions or, with --audit, prints the secrets in them.
func (c *importCmd) Run(ctx context.Context, s *process.System) error {
	dir, err := s.Getwd()
	if err != nil {
		return err
	}
	place := importer.CurrentEnvironment{Dir: dir, Home: s.Getenv("HOME"), Environ: s.Environ}
	if c.Audit {
		return c.auditInputFilesForSecrets(s, place)
	}
	const memory = 130 << 20 // this allows a session of 100 MB
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	if c.Update != "" {
		if c.Out != "" || filepath.Base(c.Update) != "scenario.toml" {
			return errors.New("--update requires a file named scenario.toml and cannot be combined with -o")
		}
		c.Out = filepath.Dir(c.Update)
	}
	o := importer.Options{
		Update: c.Update != "",
		Files:  c.Files, Branch: c.Branch, Out: c.outputDir(s), Name: c.Name, RivalDir: c.Against, ExactPatterns: c.Exact, LinkResults: c.Link, KeepThinking: c.Thinking,
		KeepFiles: c.Reads, KeepBigResults: c.Big, Raw: c.Raw, Force: c.Force, Environment: place, Stdout: s.Stdout,
	}
	shown := &importProgressLine{w: s.ProgressTerminalOrNil()}
	o.Progress = shown
	if c.Check {
		self, err := s.Executable()
		if err != nil {
			return fmt.Errorf("finding the path of the claudeless binary: %w", err)
		}
		o.Check = &importer.ScenarioPlayer{Executable: self, Environ: s.Environ}
	}
	out, err := importer.Run(ctx, o)
	if shown.isLineShown {
		fmt.Fprint(shown.w, "\r\x1b[K")
	}
	out.Report(s.Stderr)
	if jsonErr := c.writeJSONReport(s, &out); err == nil {
		err = jsonErr
	}
	return exitErrorForImportOutcome(&out, err)
}

func exitErrorForImportOutcome(outcome *importer.Outcome, err error) error {
	switch {
	case errors.Is(err, importer.ErrNothingWrittenBecauseOfSecrets):
		return &process.ExitError{Code: exitSecretFound, Err: fmt.Errorf("refusing to write a secret: %w", err)}
	case importer.IsInputError(err):
		return &process.ExitError{Code: exitInvalidInput, Err: err}
	case err == nil && len(outcome.Differences) > 0:
		return &process.ExitError{Code: exitReplayDiffers}
	}
	return err
}

func (c *importCmd) outputDir(s *process.System) string {
	if c.Out != "" || !s.StdoutIsTTY && c.Name == "" {
		return c.Out
	}
	return cmp.Or(c.Name, importer.DefaultScenarioName(c.Files))
}

func (c *importCmd) writeJSONReport(s *process.System, out *importer.Outcome) error {
	if c.JSON == "" {
		return nil
	}
	data, err := out.JSON()
	if err != nil {
		return err
	}
	if c.JSON == "-" {
		_, err = fmt.Fprintf(s.Stdout, "%s\n", data)
		return err
	}
	return os.WriteFile(filepath.Clean(c.JSON), append(data, '\n'), 0o644)
}

func (c *importCmd) auditInputFilesForSecrets(s *process.System, environment importer.CurrentEnvironment) error {
	leaks, err := importer.FindSecretsInFiles(c.Files, environment)
	for _, leak := range leaks {
		fmt.Fprintln(s.Stdout, leak)
	}
	switch {
	case err != nil:
		return &process.ExitError{Code: exitInvalidInput, Err: err}
	case len(leaks) > 0:
		return &process.ExitError{Code: exitSecretFound}
	}
	return nil
}

type importProgressLine struct {
	w           io.Writer
	lastShown   int64 // bytes shown last
	isLineShown bool  // the progress line is visible
}

func (p *importProgressLine) ReportRead(fileBytesRead int64) {
	const every = 8 << 20
	if p.w == nil || fileBytesRead >= p.lastShown && fileBytesRead-p.lastShown < every {
		return
	}
	p.lastShown = fileBytesRead
	if fileBytesRead >= every {
		p.isLineShown = true
		fmt.Fprintf(p.w, "\rread %d MB", fileBytesRead>>20)
	}
}
