package permission_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

var update = flag.Bool("update", false, "rewrite the verdicts of testdata/verdicts.txt")

// dirFS is a testFS with one directory.
type dirFS struct{ testFS }

func (dirFS) IsDir(path string) bool { return strings.TrimSuffix(path, "/") == "/else/dir" }

// summary describes a verdict in a few lines.
func summary(v permission.Verdict) string {
	var b strings.Builder
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, ", %s %s", name, value)
		}
	}
	add("code", v.Decision.ReasonCode)
	add("source", v.Decision.Source)
	add("rule of", v.RuleSource)
	add("safety", string(v.Safety))
	add("breaker", v.Decision.CircuitBreaker)
	add("path", v.BlockedPath)
	for _, f := range []struct {
		set  bool
		name string
	}{{v.AskRule, "ask rule"}, {v.DenyRule, "deny rule"}, {v.RequiresUser, "user only"}, {v.ToolError, "tool error"}, {!v.CountDenial && v.Behavior == permission.Deny, "not counted"}} {
		if f.set {
			b.WriteString(", " + f.name)
		}
	}
	if v.Message != "" {
		fmt.Fprintf(&b, "\n  message %.70q", v.Message)
	}
	if v.Reason != "" && v.Reason != v.Message {
		fmt.Fprintf(&b, "\n  reason %.70q", v.Reason)
	}
	for _, s := range v.Suggestions {
		fmt.Fprintf(&b, "\n  suggests %s", strings.Join(strings.Fields(fmt.Sprint(s.Type, s.Behavior, s.Rules, s.Mode, s.Directories, s.Destination)), " "))
	}
	return verdictText(v) + b.String()
}

// TestWholeVerdicts checks every part of the verdicts in testdata/verdicts.txt, which explains its format.
func TestWholeVerdicts(t *testing.T) {
	const name = "testdata/verdicts.txt"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	var o permission.Options
	var rules []string
	for line := range strings.Lines(string(data)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(line, "  ") {
			got.WriteString(line)
		}
		switch word {
		case "with":
			o, rules = permission.Options{}, nil
			for text := range strings.SplitSeq(rest, "; ") {
				switch key, value, _ := strings.Cut(text, " "); key {
				case "mode":
					o.Mode = protocol.PermissionMode(value)
				case "asker":
					o.AsksPerson = true
				case "silence":
					o.NoPrompts = true
				case "plans":
					o.PlanDir = value
				case "skills":
					o.AskSkill = func(name string) (bool, string, string) { return name == value, "", "" }
				case "allow", "ask", "deny":
					rules = append(rules, text)
				}
			}
		case "$":
			tool, input, _ := strings.Cut(rest, " ")
			o := files(o)
			o.FileSystem = dirFS{}
			v := newPolicy(t, o, rules...).Decide(newCall(tool, strings.NewReplacer(`\n`, "\n", "CWD", cwd).Replace(input)))
			fmt.Fprintf(&got, "  %s\n", summary(v))
		}
	}
	if *update {
		if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), got.String()); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
