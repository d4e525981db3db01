package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/clock"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/scenarios"
)

func (r *resolver) noScenario() error {
	r.p.Scenario.Scenario = &scenarios.Scenario{}
	return nil
}

func (r *resolver) scenario() error {
	path, library := r.findScenario()
	s := &r.p.Scenario
	s.Name = r.f.Scenario
	var err error
	switch {
	case library:
		s.Scenario, err = scenarios.LoadLibrary(path)
	case path == "":
		s.Scenario = scenarios.Greeting()
	default:
		s.Path = path
		s.Scenario, err = loadFile(path)
	}
	return err
}

// loadFile loads a scenario. What that allocates stays, so that collecting garbage halfway only costs time: a fifth of it
// for thousands of rules.
func loadFile(path string) (*scenarios.Scenario, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	return scenarios.Load(path, scenarios.LoadOptions{})
}

// findScenario looks for the scenario: flag or variable, then claudeless.toml in the working and in the state directory. A
// name that is no file and has no slash is one of the library; an empty path = none at all.
func (r *resolver) findScenario() (path string, library bool) {
	if name := r.f.Scenario; name != "" {
		path = r.p.Abs(name)
		if _, err := os.Stat(path); err != nil && !strings.ContainsAny(name, `/\`) {
			return name, true
		}
		return path, false
	}
	for _, place := range []string{r.p.CWD, r.p.State} {
		path := filepath.Join(place, "claudeless.toml")
		if _, err := os.Stat(path); place != "" && err == nil {
			return path, false
		}
	}
	return "", false
}

func (r *resolver) clock() error {
	o := clock.Options{Now: r.sys.Now, NewID: r.sys.NewID, Seed: r.p.Scenario.Seed}
	if text := r.p.Scenario.LaunchTimestamp; text != "" {
		start, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("launch_timestamp: %w", err)
		}
		o.Start = &start
	}
	if r.f.Continue || r.f.Resume != "" {
		// Another part of the session must not repeat the ids of the first.
		o.Salt = r.sys.Now().String()
	}
	r.p.Clock = clock.New(o)
	return nil
}

// played is how the scenario is played: what its expressions see, and the one failure that --failure names.
func (r *resolver) played() error {
	r.p.Scenario.Engine = scenarios.EngineOptions{Env: r.sys.Environ, Args: r.sys.Args[1:], CWD: r.p.CWD}
	if r.f.Failure == "" {
		return nil
	}
	r.p.Scenario.Failure = scenarios.FailureByName(r.f.Failure)
	if r.p.Scenario.Failure == nil {
		return process.Hinted(fmt.Sprintf("--failure: there is no failure %q", r.f.Failure),
			"one of network-unreachable, connection-timeout, auth-error, rate-limit, out-of-credits, partial-response, malformed-json, "+
				"overloaded, server-error, api-error, prompt-too-long, hang, crash")
	}
	return nil
}
