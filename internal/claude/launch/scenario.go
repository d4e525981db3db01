package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/scenarios"
)

// loadScenario loads the scenario with this name or, without a name, the default one.
func loadScenario(name string, at Directories) (Scenario, error) {
	path, library := findScenario(name, at)
	var size int64
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	process.DelayGarbageCollection(size) // the loaded data stays in use, so a garbage collection now would cost a fifth of the time without freeing memory
	s := Scenario{Name: name}
	var err error
	switch {
	case library:
		s.Scenario, err = scenarios.LoadLibrary(path)
	case path == "":
		s.Scenario = scenarios.Greeting()
	default:
		s.Path = path
		s.Scenario, err = scenarios.Load(path, scenarios.LoadOptions{})
	}
	return s, err
}

// findScenario looks for the scenario: flag or variable, then claudeless.toml in the working and in the state
// directory. A name without a slash that is not a file selects a library scenario. An empty path means that there is
// no scenario.
func findScenario(name string, at Directories) (path string, library bool) {
	if name != "" {
		path = at.Abs(name)
		if _, err := os.Stat(path); err != nil && !strings.ContainsAny(name, `/\`) {
			return name, true
		}
		return path, false
	}
	for _, place := range []string{at.CWD, at.State} {
		path := filepath.Join(place, "claudeless.toml")
		if _, err := os.Stat(path); place != "" && err == nil {
			return path, false
		}
	}
	return "", false
}

func newClock(sys *process.System, f *flags.Flags, p *Plan) (*clock.Source, error) {
	o := clock.Options{Now: sys.Now, NewID: sys.NewID, Seed: p.Scenario.Seed}
	if text := p.Scenario.LaunchTimestamp; text != "" {
		start, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("launch_timestamp: %w", err)
		}
		o.Start = &start
	}
	if f.Continue || f.Resume != "" {
		// A later process of the session must not generate the same ids as the first one.
		o.Salt = sys.Now().String()
	}
	return clock.New(o), nil
}

// parseFailure returns the failure of --failure; nil means none.
func parseFailure(name string) (*scenarios.Failure, error) {
	if name == "" {
		return nil, nil
	}
	failure := scenarios.FailureByName(name)
	if failure == nil {
		return nil, process.WithHint(fmt.Sprintf("--failure: unknown failure %q", name),
			"one of network-unreachable, connection-timeout, auth-error, rate-limit, out-of-credits, partial-response, malformed-json, "+
				"overloaded, server-error, api-error, prompt-too-long, hang, crash")
	}
	return failure, nil
}
