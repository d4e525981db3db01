package execcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/docs"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// ReportCommand writes reports about journals.
type ReportCommand struct {
	Page  reportHTMLPageCommand `cmd:"" default:"withargs" help:"Write an HTML report from the journals of one run (the default)"`
	Merge reportMergeCommand    `cmd:"" help:"Check the journals of all shards as one run"`
}

type reportHTMLPageCommand struct {
	Journals []string `arg:"" name:"journal" help:"Journals of one run or of its shards, in any order"`
	Output   string   `short:"o" default:"report.html" placeholder:"FILE" help:"File to write (default: report.html)"`
	Scenario string   `short:"s" placeholder:"FILE" help:"Check every run against this scenario (default: the scenario of each run)"`
	Strict   bool     `help:"Also fail on warnings about the scenario, such as a rule that answered no prompt"`
	Lenient  bool     `help:"Do not report findings about the test set-up (ids S01, S02, …)"`
}

func (c *reportHTMLPageCommand) Run(s *process.System) error {
	in := verdict.Input{Environ: s.Environ, Lenient: c.Lenient, JudgingOptions: verdictRules(c.Strict, false)}
	if err := in.ReadJournalsAndLoadScenarios(c.Journals, c.Scenario); err != nil {
		return err
	}
	judged := verdict.Judge(in)
	r, err := judged.Redacted(s.Environ)
	if err != nil {
		return err
	}
	if err := (verdict.OutputFiles{HTML: c.Output, Environ: s.Environ}).WriteHTMLFile(r, in.Entries); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "%s: %s\n", c.Output, r.Verdict)
	return err
}

// reportMergeCommand judges several shards of one test run together. A shard is a directory with journals, or one journal.
type reportMergeCommand struct {
	Shards   []string `arg:"" name:"shard" help:"Directory of a shard's journals (*.jsonl), or a journal"`
	Expect   int      `name:"expect-shards" placeholder:"N" help:"Fail unless N shards are given"`
	Scenario string   `short:"s" placeholder:"FILE" help:"Check every run against this scenario (default: the scenario of each run)"`
	Strict   bool     `help:"Also fail on warnings about the scenario, such as a rule that answered no prompt"`
	Lenient  bool     `help:"Do not report findings about the test set-up (ids S01, S02, …)"`
	NoRuns   bool     `name:"allow-no-runs" help:"Accept shards in which claude was never started"`

	ReportFlags `embed:""`
}

// Run writes the reports and exits with the verdict.
func (c *reportMergeCommand) Run(s *process.System) error {
	in := verdict.Input{Environ: s.Environ, Lenient: c.Lenient, JudgingOptions: verdictRules(c.Strict, c.NoRuns)}
	journals, err := c.shardJournalsReportingMissing(&in)
	if err != nil {
		return err
	}
	if err := in.ReadJournalsAndLoadScenarios(journals, c.Scenario); err != nil {
		return err
	}
	judged := verdict.Judge(in)
	err = c.outputFilesFromFlags(s).Write(&judged, in.Entries, s.Stderr)
	if code := judged.ExitCode(); code != 0 {
		return &process.ExitError{Code: code, Err: err}
	}
	return err
}

// shardJournalsReportingMissing returns the journals of all shards. A missing journal is a finding, and so is a wrong number of shards.
func (c *reportMergeCommand) shardJournalsReportingMissing(verdictInput *verdict.Input) (paths []string, _ error) {
	var all []string
	for _, shard := range c.Shards {
		found, err := journalsOf(shard)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			verdictInput.Findings = append(verdictInput.Findings, verdict.Finding{
				ID: "S18", Level: "error", Text: "the shard " + shard + " has no journal", File: shard,
				Advice: "run the shard with --capture FILE.jsonl, and keep the file even if the shard fails",
			})
		}
		all = append(all, found...)
	}
	if c.Expect > 0 && len(c.Shards) != c.Expect {
		verdictInput.Findings = append(verdictInput.Findings, verdict.Finding{
			ID: "S18", Level: "error", Text: fmt.Sprintf("expected %d shards, got %d: %s", c.Expect, len(c.Shards), strings.Join(c.Shards, ", ")),
			Advice: "check that every shard uploads its directory, even when it fails",
		})
	}
	return all, nil
}

// journalsOf returns the non-empty journals of a shard, which is a directory or a file; none if the shard does not exist.
func journalsOf(shard string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(shard, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || path != shard && filepath.Ext(path) != ".jsonl":
			return nil
		}
		info, err := entry.Info()
		if err == nil && info.Size() > 0 {
			found = append(found, path)
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the shard %s: %w", shard, err)
	}
	slices.Sort(found)
	return found, nil
}

// JournalCommand prints the journal schema, or journals in readable form.
type JournalCommand struct {
	Schema  journalSchemaCommand  `cmd:"" help:"Print the JSON Schema of journal lines"`
	Explain journalExplainCommand `cmd:"" help:"Print journals in readable form"`
}

type journalSchemaCommand struct{}

func (journalSchemaCommand) Run(s *process.System) error {
	text, _ := docs.Schema("journal") // the schema is embedded
	_, err := s.Stdout.Write(text)
	return err
}

type journalExplainCommand struct {
	Files []string `arg:"" name:"journal" help:"Journal files"`
}

// Run prints a line for each line of the journals.
func (c *journalExplainCommand) Run(s *process.System) error {
	for _, name := range c.Files {
		if err := printJournalInWords(s, name); err != nil {
			return err
		}
	}
	return nil
}

func printJournalInWords(s *process.System, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading a journal: %w", err)
	}
	defer file.Close()
	for e, err := range journal.Read(file) {
		text := e.SummaryLine()
		switch {
		case errors.Is(err, journal.ErrNotAJournalLine):
			text = name + ": " + err.Error()
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := fmt.Fprintln(s.Stdout, text); err != nil {
			return err
		}
	}
	return nil
}
