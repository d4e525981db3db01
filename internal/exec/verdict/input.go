package verdict

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Rules say what counts as wrong.
type Rules struct {
	// Strict makes errors of the warnings about the scenario.
	Strict bool
	// AllowNoRuns accepts a run in which claude was never started.
	AllowNoRuns bool
	// Tools are the built-in tools, for the inputs of scripted calls; nil = those are not looked at.
	Tools []protocol.Tool
}

// Input is what is judged. The zero value is a run in which nothing happened.
type Input struct {
	Entries []journal.Entry
	// Scenario holds the expectations; nil = there are none.
	Scenario *scenarios.Scenario
	// Lenient leaves out the findings about the set-up (S…).
	Lenient bool
	Rules
	// Findings were made by others: the guard, and what was left running.
	Findings []Finding
	// Torn is how many lines of the journal could not be read.
	Torn int
	// Runs is how many runs of claude there must be; 0 = any number.
	Runs int
	// Journals is how many different journals there must be; 0 = any number.
	Journals int
	// Process leaves out what other processes have written; 0 = nothing is left out.
	Process int
	// Killed are processes that were ended from outside by whoever ran the command:
	// their end is nobody's fault.
	Killed []int

	// parts judge the entries that belong to different scenarios; nil = all belong to
	// Scenario.
	parts []verdictPart
	// sums are the digests of the journals so far, of each one once.
	sums [][sha256.Size]byte
}

// ReadFiles adds the lines of journals, in the order of time where there are
// several, and loads the scenario that is named, else those that the processes were
// given: each run is judged by its own. A journal that is given twice counts once.
// What was judged before is left out.
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
		return in.loadOfRuns()
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
	first, torn, whole, sum := len(in.Entries), 0, 0, sha256.New()
	for e, err := range journal.Read(io.TeeReader(file, sum)) {
		switch {
		case errors.Is(err, journal.ErrTorn):
			torn++
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		default:
			whole++
			if e.Source = len(in.sums); !judged(e) && (in.Process == 0 || e.PID == in.Process) {
				in.Entries = append(in.Entries, e)
			}
		}
	}
	if whole == 0 && torn > 0 {
		return fmt.Errorf("%s: %w", name, journal.ErrTorn)
	}
	if digest := [sha256.Size]byte(sum.Sum(nil)); slices.Contains(in.sums, digest) {
		in.Entries = in.Entries[:first]
	} else {
		in.sums, in.Torn = append(in.sums, digest), in.Torn+torn
	}
	return nil
}

// judged tells the lines of an earlier verdict from what a process has found
// itself.
func judged(e journal.Entry) bool {
	return e.Finding != nil && e.Finding.Time != "" || e.Expectation != nil && e.SessionID == ""
}

// LoadScenario loads a file, or by its bare name a scenario of the library.
func LoadScenario(name string) (*scenarios.Scenario, error) {
	if _, err := os.Stat(name); err != nil && !strings.ContainsAny(name, `/\`) {
		return scenarios.LoadLibrary(name)
	}
	return scenarios.Load(name, scenarios.LoadOptions{})
}
