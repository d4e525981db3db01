package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

type processKey struct{ source, pid int }

func processKeyOf(e journal.Entry) processKey { return processKey{e.Source, e.PID} }

// scenarioKey identifies the scenario of a run by name and by digest, because the file may change between runs.
type scenarioKey struct{ name, digest string }

type scenarioEntries struct {
	scenario *scenarios.Scenario
	entries  []journal.Entry
	changed  *Finding // finding that the scenario has changed since the run; nil means unchanged
}

func (in *Input) loadRunScenarios() error {
	owners, order := in.scenariosOfEntries()
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

// scenariosOfEntries returns the scenario of each entry, by index, and every scenario once, in the order of first use.
// Lines of processes without a scenario belong to the first scenario of their journal.
func (in *Input) scenariosOfEntries() (owners, order []scenarioKey) {
	runs := journal.RunNumbers(in.Entries)
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
		if !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	owners = make([]scenarioKey, len(runs))
	for i, run := range runs {
		key, found := own[run]
		if !found {
			key = first[in.Entries[i].Source]
		}
		owners[i] = key
	}
	return owners, order
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

// checkRunCounts returns an S18 finding if the number of runs or of journals is not the required one. If claude was
// started in some journals but not in all, it returns an S10 finding for each journal without a run.
func (in *Input) checkRunCounts(runs int) []Finding {
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
	}{{in.RequiredRuns, runs, "runs of claude"}, {in.RequiredJournals, len(in.digests), "different journals"}} {
		if demand.want > 0 && demand.got != demand.want {
			found = append(found, Finding{
				ID: "S18", Level: levelError, Text: fmt.Sprintf("expected %d %s, got %d", demand.want, demand.noun, demand.got),
				Advice: "give the journal of every shard exactly once",
			})
		}
	}
	return found
}
