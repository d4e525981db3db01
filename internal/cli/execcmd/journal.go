package execcmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/claudeless/claudeless/docs"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Journal prints the journal schema, or journals in readable form.
type Journal struct {
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
		if err := explainJournal(s, name); err != nil {
			return err
		}
	}
	return nil
}

func explainJournal(s *process.System, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading a journal: %w", err)
	}
	defer file.Close()
	for e, err := range journal.Read(file) {
		text := e.Explain()
		switch {
		case errors.Is(err, journal.ErrIncompleteLine):
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
