package verdict

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// Input is what is judged. The zero value is a run in which nothing happened.
type Input struct {
	Entries []journal.Entry
	// Scenario holds the expectations; nil = there are none.
	Scenario *scenarios.Scenario
	// Lenient leaves out the findings about the set-up (S…).
	Lenient bool
	// Strict makes errors of the warnings about the scenario.
	Strict bool
	// AllowNoRuns accepts a run in which claude was never started.
	AllowNoRuns bool
	// Findings were made by others: the guard, and what was left running.
	Findings []Finding
	// Torn is how many lines of the journal could not be read.
	Torn int
	// Killed are processes that were ended from outside by whoever ran the command:
	// their end is nobody's fault.
	Killed []int
}

// ReadFiles adds the lines of journals, in the order of time where there are
// several, and loads the scenario: the one that is named, else the one that the
// processes were given. What was judged before is left out.
func (in *Input) ReadFiles(journals []string, scenario string) error {
	for _, name := range journals {
		if err := in.read(name); err != nil {
			return err
		}
	}
	if len(journals) > 1 {
		slices.SortStableFunc(in.Entries, func(a, b journal.Entry) int { return a.When.Compare(b.When) })
	}
	if scenario == "" {
		scenario = in.scenarioOfRuns()
	}
	if scenario == "" {
		return nil
	}
	var err error
	in.Scenario, err = LoadScenario(scenario)
	return err
}

func (in *Input) read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading a journal: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		const line = 400 // bytes, more or less
		in.Entries = slices.Grow(in.Entries, int(min(info.Size()/line, 1<<20)))
	}
	whole := 0
	for e, err := range journal.Read(file) {
		switch {
		case errors.Is(err, journal.ErrTorn):
			in.Torn++
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		default:
			whole++
			if !judged(e) {
				in.Entries = append(in.Entries, e)
			}
		}
	}
	if whole == 0 && in.Torn > 0 {
		return fmt.Errorf("%s: %w", name, journal.ErrTorn)
	}
	return nil
}

// judged tells the lines of an earlier verdict from what a process has found
// itself.
func judged(e journal.Entry) bool {
	return e.Finding != nil && e.Finding.Time != "" || e.Expectation != nil && e.SessionID == ""
}

// scenarioOfRuns is the first that a process was given; empty = none.
func (in *Input) scenarioOfRuns() string {
	for _, e := range in.Entries {
		switch {
		case e.Run == nil:
		case e.Run.ScenarioFile != "":
			return e.Run.ScenarioFile
		case e.Run.Scenario != "":
			return e.Run.Scenario
		}
	}
	return ""
}

// LoadScenario loads a file, or by its bare name a scenario of the library.
func LoadScenario(name string) (*scenarios.Scenario, error) {
	if _, err := os.Stat(name); err != nil && !strings.ContainsAny(name, `/\`) {
		return scenarios.LoadLibrary(name)
	}
	return scenarios.Load(name, scenarios.LoadOptions{})
}
