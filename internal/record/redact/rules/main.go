// Command rules converts the rule set of gitleaks, a TOML file, to the text files that redact embeds. `go generate` runs it in internal/record/redact.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

type gitleaksConfig struct {
	Rules []struct {
		ID, Regex, Path string
		Keywords        []string
		Entropy         float64
		SecretGroup     int
		Allowlists      []allowlist
	}
}

type allowlist struct {
	Regexes, StopWords []string
	RegexTarget        string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rules gitleaks.toml")
		os.Exit(2)
	}
	if err := writeRulesAndExclusionsFiles(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func writeRulesAndExclusionsFiles(configFile string) error {
	var c gitleaksConfig
	if _, err := toml.DecodeFile(configFile, &c); err != nil {
		return err
	}
	var rules []string
	for _, r := range c.Rules {
		if r.Regex == "" || r.Path != "" {
			continue // about file names
		}
		properties := fmt.Sprintf("%s entropy=%g group=%d", r.ID, r.Entropy, r.SecretGroup)
		if r.ID == "generic-api-key" {
			properties += " isGuess"
			if err := writeExclusions(r.Allowlists); err != nil {
				return err
			}
		}
		rules = append(rules, fmt.Sprintf("%s\n%s\n%s\n", properties, strings.Join(r.Keywords, "|"), r.Regex))
	}
	return os.WriteFile("gitleaks_rules.txt", []byte(strings.Join(rules, "\n")), 0o644)
}

func writeExclusions(lists []allowlist) error {
	var stop, match []string
	for _, a := range lists {
		stop = append(stop, a.StopWords...)
		if a.RegexTarget == "match" {
			match = append(match, a.Regexes...)
		}
	}
	slices.Sort(stop)
	return os.WriteFile("gitleaks_exclusions.txt", []byte(strings.Join(match, "|")+"\n"+strings.Join(stop, " ")+"\n"), 0o644)
}
