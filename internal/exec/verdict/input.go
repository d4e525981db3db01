package verdict

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// JudgingOptions define which problems count.
type JudgingOptions struct {
	Strict      bool                  // turns warnings about the scenario into errors
	AllowNoRuns bool                  // accepts a run in which claude was never started
	Lint        scenarios.LintOptions // the checks of the scenario; without the built-in tools, the inputs of scripted calls are not checked
}

// Input is the evidence to judge. Input{} means a run in which nothing happened.
type Input struct {
	Entries  []journal.Entry
	Scenario *scenarios.Scenario // the scenario with the expectations; nil means none
	Lenient  bool                // leaves out the findings about the set-up (S…)
	JudgingOptions
	Findings         []Finding // findings of other checks: of the guard, and of the check for leftover processes
	Environ          []string  // environment whose secret values are redacted in excerpts of prompts and patterns
	UnreadableLines  int       // number of journal lines that could not be read
	RequiredRuns     int       // required number of runs of claude; 0 means any
	RequiredJournals int       // required number of distinct journals; 0 means any
	OnlyProcess      int       // selects the entries of one process; 0 means all
	Killed           []int     // lists processes that were killed on purpose from outside the command, so that their end is not reported

	parts []scenarioEntries // the entries grouped by scenario; nil means all belong to Scenario
	// digests of the journals read so far.
	digests [][sha256.Size]byte
	starts  map[processStartKey]bool // the processes read so far
	idle    []string                 // the journals in which nothing ran
}

type processStartKey struct {
	startTime string
	pid       int
}

// recordProcessAndDetectRepeat records the process that an entry starts, and reports whether the entry repeats a process that was
// read before. This happens if a file contains another journal, or one journal twice. It updates alreadyReadPIDs, the ids of the
// repeated processes in the current file.
func (in *Input) recordProcessAndDetectRepeat(entry journal.Entry, alreadyReadPIDs map[int]bool) bool {
	if entry.Start != nil {
		if in.starts == nil {
			in.starts = map[processStartKey]bool{}
		}
		key := processStartKey{entry.When.String(), entry.PID}
		if delete(alreadyReadPIDs, entry.PID); in.starts[key] {
			alreadyReadPIDs[entry.PID] = true
		}
		in.starts[key] = true
	}
	return alreadyReadPIDs[entry.PID]
}

// ReadJournalsAndLoadScenarios adds the lines of journals. It orders the lines of several journals by time, and reads each journal once, even if it is given
// twice. It ignores findings of earlier verdicts. ReadJournalsAndLoadScenarios also loads the scenario that the runs are checked against. If scenario is
// empty, each run is checked against the scenario that it used.
func (in *Input) ReadJournalsAndLoadScenarios(journals []string, scenario string) error {
	for _, name := range journals {
		if err := in.readJournal(name); err != nil {
			return err
		}
	}
	if len(journals) > 1 {
		slices.SortStableFunc(in.Entries, func(a, b journal.Entry) int { return a.When.Compare(b.When) })
	}
	if scenario == "" {
		return in.loadScenariosAndSplitEntries()
	}
	var err error
	in.Scenario, err = LoadScenario(scenario)
	return err
}

func (in *Input) readJournal(name string) error {
	file, err := diag.OpenUnlessDevice(name)
	if err != nil {
		return fmt.Errorf("reading a journal: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		const line = 400 // approximate
		in.Entries = slices.Grow(in.Entries, int(min(info.Size()/line, 1<<20)))
	}
	first, torn, whole, sum, repeated := len(in.Entries), 0, 0, sha256.New(), map[int]bool{}
	for e, err := range journal.Read(io.TeeReader(file, sum)) {
		switch {
		case errors.Is(err, journal.ErrNotAJournalLine):
			torn++
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		default:
			whole++
			if e.Source = len(in.digests); !isWrittenByEarlierVerdict(e) && !in.recordProcessAndDetectRepeat(e, repeated) && (in.OnlyProcess == 0 || e.PID == in.OnlyProcess) {
				in.Entries = append(in.Entries, e)
			}
		}
	}
	if whole == 0 && torn > 0 {
		return fmt.Errorf("%s: %w", name, journal.ErrNotAJournalLine)
	}
	if digest := [sha256.Size]byte(sum.Sum(nil)); slices.Contains(in.digests, digest) {
		in.Entries = in.Entries[:first]
	} else {
		in.digests, in.UnreadableLines = append(in.digests, digest), in.UnreadableLines+torn
		if len(repeated) == 0 && !containClaudeRunOrAPIRequest(in.Entries[first:]) {
			in.idle = append(in.idle, name)
		}
	}
	return nil
}

// HasRunsOrRequests reports whether a process ran as claude, or a client sent a request to the API.
func (in *Input) HasRunsOrRequests() bool { return containClaudeRunOrAPIRequest(in.Entries) }

func containClaudeRunOrAPIRequest(journalEntries []journal.Entry) bool {
	return slices.ContainsFunc(journalEntries, func(e journal.Entry) bool {
		answered := e.Request != nil && (e.Request.Rule+e.Request.Prompt != "" || e.Request.Status < http.StatusBadRequest) // else the API refused it
		return e.Start != nil || e.Run != nil || answered || e.SideRequest != nil || e.Exchange != nil
	})
}

// isWrittenByEarlierVerdict reports whether a line was written by an earlier verdict, not by a process itself.
func isWrittenByEarlierVerdict(e journal.Entry) bool {
	return e.Finding != nil && e.Finding.Time != "" || e.Expectation != nil && e.SessionID == ""
}

// LoadScenario loads a scenario file, or a scenario of the library by its name.
func LoadScenario(name string) (*scenarios.Scenario, error) {
	if _, err := os.Stat(name); err != nil && !strings.ContainsAny(name, `/\`) {
		return scenarios.LoadLibraryScenario(name)
	}
	return scenarios.Load(name, scenarios.LoadOptions{})
}

type journalAndPID struct{ journalIndex, pid int }

func journalAndPIDOfEntry(e journal.Entry) journalAndPID { return journalAndPID{e.Source, e.PID} }

// scenarioKey identifies the scenario of a run by name and by digest, because the file may change between runs.
type scenarioKey struct{ name, digest string }

type scenarioEntries struct {
	scenario *scenarios.Scenario
	entries  []journal.Entry
	changed  *Finding // finding that the scenario has changed since the run; nil means unchanged
}

func (in *Input) loadScenariosAndSplitEntries() error {
	owners, order := in.scenarioKeysOfJournalEntries()
	var all []scenarioEntries
	for _, key := range order {
		loaded, err := LoadScenario(key.name)
		if err != nil {
			return err
		}
		p := scenarioEntries{scenario: loaded}
		if key.digest != "" && loaded.Digest() != key.digest {
			p.changed = &Finding{
				ID: "S17", Level: levelError, Text: "the scenario has changed since the run: " + key.name, File: loaded.File(),
				Advice: "run the command again, or choose the scenario with -s FILE",
			}
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil
	}
	in.Scenario = all[0].scenario
	if len(all) == 1 && all[0].changed == nil {
		return nil
	}
	for i, e := range in.Entries {
		p := &all[max(0, slices.Index(order, owners[i]))]
		p.entries = append(p.entries, e)
	}
	in.parts = all
	return nil
}

// scenarioKeysOfJournalEntries returns the scenario of each entry, by index, and every scenario once, in the order of first use.
// Lines of processes without a scenario belong to the first scenario of their journal.
func (in *Input) scenarioKeysOfJournalEntries() (keyByEntryIndex, keysInOrderOfFirstUse []scenarioKey) {
	runs := journal.RunNumberPerEntry(in.Entries)
	own, first := map[int]scenarioKey{}, map[int]scenarioKey{} // scenarios by run and by journal
	for i, e := range in.Entries {
		run := runs[i]
		if e.Run == nil || cmp.Or(e.Run.ScenarioFile, e.Run.Scenario) == "" {
			continue
		}
		key := scenarioKey{cmp.Or(e.Run.ScenarioFile, e.Run.Scenario), e.Run.ScenarioDigest}
		own[run] = key
		if _, found := first[e.Source]; !found {
			first[e.Source] = key
		}
		if !slices.Contains(keysInOrderOfFirstUse, key) {
			keysInOrderOfFirstUse = append(keysInOrderOfFirstUse, key)
		}
	}
	keyByEntryIndex = make([]scenarioKey, len(runs))
	for i, run := range runs {
		key, found := own[run]
		if !found {
			key = first[in.Entries[i].Source]
		}
		keyByEntryIndex[i] = key
	}
	return keyByEntryIndex, keysInOrderOfFirstUse
}

// splitByScenario returns one input per scenario. Findings that belong to no run go to the first input.
func (in *Input) splitByScenario() []Input {
	if in.parts == nil {
		return []Input{*in}
	}
	var all []Input
	for i, p := range in.parts {
		one := *in
		one.parts, one.Scenario, one.Entries = nil, p.scenario, p.entries
		if i > 0 {
			one.Findings, one.UnreadableLines = nil, 0
		}
		if p.changed != nil && !in.Lenient {
			one.Findings = append(slices.Clone(one.Findings), *p.changed)
		}
		all = append(all, one)
	}
	return all
}

// findingsOfWrongCounts returns an S18 finding if actualRunCount or the number of journals is not the required one.
// If claude was started in some journals but not in all, it returns an S10 finding for each journal without a run.
func (in *Input) findingsOfWrongCounts(actualRunCount int) []Finding {
	var found []Finding
	if len(in.idle) < len(in.digests) && !in.AllowNoRuns && !in.Lenient {
		for _, name := range in.idle {
			found = append(found, Finding{
				ID: "S10", Level: levelError, Text: "claude was never started in the run of the journal " + name,
				Advice: "check the log of this shard; --allow-no-runs accepts a run without claude",
			})
		}
	}
	for _, demand := range []struct {
		want, got int
		noun      string
	}{{in.RequiredRuns, actualRunCount, "runs of claude"}, {in.RequiredJournals, len(in.digests), "different journals"}} {
		if demand.want > 0 && demand.got != demand.want {
			found = append(found, Finding{
				ID: "S18", Level: levelError, Text: fmt.Sprintf("expected %d %s, got %d", demand.want, demand.noun, demand.got),
				Advice: "give the journal of every shard exactly once",
			})
		}
	}
	return found
}
