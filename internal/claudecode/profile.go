// Package claudecode describes Claude Code as data: its tools, commands and models, its init event, and the changes
// in each version. The tables were measured with the real CLI ([OldestMeasuredVersion] to [NewestMeasuredVersion]).
//
// [ProfileForExactVersion] answers every question about a version. No other package contains or compares version numbers.
package claudecode

import (
	"cmp"
	_ "embed" // for versions.txt
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// DefaultVersion is the version of the real CLI that is simulated unless a run asks for another.
const DefaultVersion = "2.1.330"

// The oldest and the newest version that the tables of this package were measured with.
const (
	OldestMeasuredVersion = "2.1.300"
	NewestMeasuredVersion = "2.1.333"
)

// Profile describes one version of the real CLI: which features it has. The zero value has none of the newer features.
type Profile struct {
	version                string
	numbers                []int // nil means the version is not a list of numbers
	env                    Environment
	fastModeDisabledReason string // empty means sdk_opt_in_required
}

// ProfileForExactVersion returns the profile of a version. A version newer than all measured ones has every feature. A version
// that is not a list of numbers has only the features that all versions share.
func ProfileForExactVersion(version string) Profile {
	return Profile{version: version, numbers: versionNumbers(version)}
}

// WithEnvironment returns the profile of the same version with e as the environment variables on which behaviour depends.
func (p Profile) WithEnvironment(e Environment) Profile {
	p.env = e
	return p
}

// WithFastModeAllowedModels returns the profile for settings that allow only allowedModels, where nil means all models.
func (p Profile) WithFastModeAllowedModels(allowedModels []string) Profile {
	if p.env.NoFastMode {
		p.fastModeDisabledReason = "disabled_by_env"
	} else if allowedModels != nil && !slices.ContainsFunc(allowedModels, func(name string) bool { return ResolveModel(name) == DefaultModel }) {
		p.fastModeDisabledReason = "model_not_allowed"
	}
	return p
}

// FastMode returns whether messages say that fast mode is "on" or "off" with a model, and why it is disabled.
func (p Profile) FastMode(model string) (state, disabledReason string) {
	if p.fastModeDisabledReason == "" && p.env.RequestsFastMode {
		return map[bool]string{true: "on", false: "off"}[FactsOfModel(ResolveModel(model)).HasFastMode], ""
	}
	return "off", cmp.Or(p.fastModeDisabledReason, "sdk_opt_in_required")
}

// Environment returns the environment of the profile.
func (p Profile) Environment() Environment { return p.env }

// Version returns the requested version.
func (p Profile) Version() string { return p.version }

// IsVersionInMeasuredRange reports whether the version is between [OldestMeasuredVersion] and [NewestMeasuredVersion].
func (p Profile) IsVersionInMeasuredRange() bool {
	return p.isAtLeast(OldestMeasuredVersion) && slices.Compare(p.numbers, versionNumbers(NewestMeasuredVersion)) <= 0
}

func (p Profile) isAtLeast(since string) bool {
	return since == "" || slices.Compare(p.numbers, versionNumbers(since)) >= 0
}

func versionNumbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// Feature is a behaviour that a version introduced.
type Feature string

// The features; versions.txt explains them.
const (
	FeatureAsksServersForNewMCPRevisionFirst         Feature = "MCP servers are asked for revision 2026-07-28 first"
	FeatureSettingsProblemsBySource                  Feature = "problems in settings are reported per source"
	FeatureMCPStatusReportsTransportsAndErrorCodes   Feature = "mcp_status reports transports, hosts and error codes"
	FeatureEditResultsReportChangesMadeByHost        Feature = "results of Write and Edit report changes that the host made to the content"
	FeatureInvalidJSONReportedAsMalformedResponse    Feature = "responses with invalid JSON are described like other malformed responses"
	FeatureEventsSayWhenTheyWereWritten              Feature = "events without a timestamp say when they were written"
	FeatureCommandsRunForHosts                       Feature = "commands tell a host that it may send them as lines"
	FeatureResultsReportChangedInputAndRemedies      Feature = "results of calls say that their input was changed, or how to correct it"
	FeatureSessionsStartInPermissionModeDefault      Feature = "sessions start in permission mode default"
	FeatureTerminalSessionsStartInPermissionModeAuto Feature = "sessions on a terminal start in permission mode auto"
)

type nameWithFirstVersion struct {
	name, firstVersion string
}

//go:embed versions.txt
var firstVersions string

// tableOfFirstVersions returns the rows of a table of versions.txt, in order.
func tableOfFirstVersions(title string) (rows []nameWithFirstVersion) {
	_, table, _ := strings.Cut(firstVersions, "\n## "+title+"\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		columns := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "")
		rows = append(rows, nameWithFirstVersion{columns[0], columns[1]})
	}
	return rows
}

// Has reports whether the version has a feature.
func (p Profile) Has(f Feature) bool { return p.includes(tableOfFirstVersions("features"), string(f)) }

// includes reports whether the version has a feature. A feature without a row is in every version.
func (p Profile) includes(rows []nameWithFirstVersion, name string) bool {
	i := slices.IndexFunc(rows, func(r nameWithFirstVersion) bool { return r.name == name })
	return i < 0 || p.isAtLeast(rows[i].firstVersion)
}

func (p Profile) namesAvailableInVersion(namesWithFirstVersions []nameWithFirstVersion) []string {
	var names []string
	for _, r := range namesWithFirstVersions {
		if p.isAtLeast(r.firstVersion) {
			names = append(names, r.name)
		}
	}
	return names
}

// StartAndAnswerDelays contains the minimum times of the real CLI until a start and an answer. Zero means no delay.
type StartAndAnswerDelays struct {
	Start  time.Duration // time until a session has started
	Answer time.Duration // time until the model answers a request
}

// MinimumStartAndAnswerDelays returns the shortest times that the real CLI takes. Start lasts until the init event: it
// is the shortest of 40 starts of Claude Code 2.1.330 on Linux with two cores. Answer is the time that the network and
// the model take, because the CLI itself needs only 10 ms with a local API.
func (p Profile) MinimumStartAndAnswerDelays() StartAndAnswerDelays {
	return StartAndAnswerDelays{Start: 540 * time.Millisecond, Answer: time.Second}
}

// DefaultMode returns the permission mode of a session without a setting for it. terminalModelOrEmpty is the model of a session on
// a terminal; empty means that the session is not on a terminal.
func (p Profile) DefaultMode(terminalModelOrEmpty string) protocol.PermissionMode {
	if terminalModelOrEmpty != "" {
		if p.Has(FeatureTerminalSessionsStartInPermissionModeAuto) && FactsOfModel(terminalModelOrEmpty).HasAutoMode() {
			return protocol.ModeAuto
		}
		return protocol.ModeDefault
	}
	if p.IsVersionInMeasuredRange() && !p.Has(FeatureSessionsStartInPermissionModeDefault) {
		return protocol.ModeAuto
	}
	return protocol.ModeDefault
}
