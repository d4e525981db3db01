package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
)

// identify needs the scenario and the environment of the settings.
func (r *resolver) identify() {
	r.p.Version = cmp.Or(r.f.ClaudeVersion, r.sys.Getenv("CLAUDELESS_CLAUDE_VERSION"), r.p.Scenario.ClaudeVersion, persona.Version)
	r.p.Entrypoint = cmp.Or(r.sys.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-cli")
	r.p.Compat = r.sys.Getenv("CLAUDELESS_COMPAT") == flags.CompatRust
	r.p.APIKeySource = "none"
	if r.sys.Getenv("ANTHROPIC_API_KEY") != "" {
		r.p.APIKeySource = "ANTHROPIC_API_KEY"
	}
	r.p.Environ = r.environ()
}

// environ is the environment of the programs we start: ours, with the way back to this very binary.
func (r *resolver) environ() []string {
	env := slices.Clone(r.sys.Environ)
	if r.sys.Getenv("CLAUDELESS_BIN") == "" && r.p.Executable != "" {
		env = append(env, "CLAUDELESS_BIN="+r.p.Executable)
	}
	return append(env, "CLAUDE_CODE_ENTRYPOINT="+r.p.Entrypoint)
}

func (r *resolver) limits() Limits {
	t := r.p.Scenario.Timeouts
	return Limits{
		MaxTurns: r.f.MaxTurns, MaxBudgetUSD: r.f.MaxBudgetUSD, MaxRetries: retries(r.sys), RetryScale: retryScale(r.sys),
		ResponseDelay:     r.timeout(t.ResponseDelayMS, "CLAUDELESS_RESPONSE_DELAY_MS", 0),
		StopBlockCap:      number(r.sys, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
		HookTimeout:       r.timeout(t.HookTimeoutMS, "CLAUDELESS_HOOK_TIMEOUT_MS", 0),
		CompactDelay:      r.timeout(t.CompactDelayMS, "CLAUDELESS_COMPACT_DELAY_MS", 20*time.Millisecond),
		BackgroundCeiling: millis(r.sys, "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", 10*time.Minute),
	}
}

// on tells whether a variable switches something on.
func on(sys *process.System, name string) bool { return process.On(sys.Getenv(name)) }

// number reads a whole number from the environment; 0 = it is none.
func number(sys *process.System, name string) int {
	n, err := strconv.Atoi(sys.Getenv(name))
	if err != nil {
		return 0
	}
	return n
}

// millis reads a duration in milliseconds from the environment.
func millis(sys *process.System, name string, otherwise time.Duration) time.Duration {
	const year = 365 * 24 * time.Hour // more could overflow
	if n := number(sys, name); n > 0 {
		return time.Duration(min(n, int(year/time.Millisecond))) * time.Millisecond
	}
	return otherwise
}

// timeout is scenario > environment > otherwise.
func (r *resolver) timeout(scenario *int, name string, otherwise time.Duration) time.Duration {
	if scenario != nil {
		return time.Duration(*scenario) * time.Millisecond
	}
	return millis(r.sys, name, otherwise)
}

// retries is how often a failed request is made again: -1 for none.
func retries(sys *process.System) int {
	switch value := sys.Getenv("CLAUDE_CODE_MAX_RETRIES"); value {
	case "":
		return 0
	case "0":
		return -1
	default:
		return number(sys, "CLAUDE_CODE_MAX_RETRIES")
	}
}

// retryScale stretches the waits between retries: CLAUDELESS_RETRY_SCALE, 1 as long as the real CLI waits. Without it a
// run does not wait at all.
func retryScale(sys *process.System) float64 {
	var scale float64
	if _, err := fmt.Sscanf(sys.Getenv("CLAUDELESS_RETRY_SCALE"), "%g", &scale); err != nil || scale < 0 {
		return 0
	}
	return scale
}
