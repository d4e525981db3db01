package scenarios

import "testing"

// The explanation of an unmatched prompt contains the next expected turn, the nearest rules, and
// the position at which their patterns stopped matching.
func TestExplain(t *testing.T) {
	s, err := Parse("s.toml", []byte(`[[responses]]
pattern = { type = "regex", pattern = "^triage issue \\d+$" }
response = "one"
[[responses.turns]]
expect = { type = "exact", text = "go on with it" }
response = "two"

[[responses]]
pattern = { type = "glob", pattern = "deploy * to prod" }
response = "no"

[[responses]]
pattern = { type = "all", patterns = [ { type = "contains", text = "deploy" }, { type = "contains", text = "quickly" } ] }
response = "no"

[[responses]]
pattern = { type = "exact", text = "bye" }
response = "no"
`), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := NewEngine(s, EngineOptions{})
	if _, err := e.Next(t.Context(), Request{Prompt: "triage issue 7"}); err != nil {
		t.Fatal(err)
	}
	if reply, err := e.Next(t.Context(), Request{Prompt: "go on without"}); err != nil || !reply.IsUnmatched {
		t.Fatal(reply, err)
	}
	for _, tt := range []struct {
		name string
		got  []string
		want string
	}{
		{"the turn that was expected", e.ExplainNearMisses(Request{Prompt: "go on without"}), `s.toml:4: responses[0].turns[0] was expected next (exact "go on with it"): it is not "go on with it"; the match ends after "go on with", where "out" follows instead of " it"`},
		{"a regular expression", explainPrompt(s, "triage issue seven"), `s.toml:1: responses[0] (regex "^triage issue \\d+$"): the regex "^triage issue \\d+$" does not match; the match ends after "triage issue ", where "seven" follows instead of "\\d+$"`},
		{"a part that matches comes first", explainPrompt(s, "deploy it to stage"), `s.toml:12: responses[2] (all (contains "deploy", contains "quickly")): it does not contain "quickly"`},
		{"a glob", explainPrompt(s, "deploy it to stage")[1:], `s.toml:8: responses[1] (glob "deploy * to prod"): the glob "deploy * to prod" does not match all of it; the match ends after "deploy it to ", where "stage" follows instead of "prod"`},
		{"too short", explainPrompt(s, "triage issue"), `s.toml:1: responses[0] (regex "^triage issue \\d+$"): the regex "^triage issue \\d+$" does not match; the match ends after "triage issue", where " \\d+$" should follow`},
	} {
		if len(tt.got) < 2 || tt.got[1] != tt.want {
			t.Errorf("%s:\n%q\nwant\n%q", tt.name, tt.got, tt.want)
		}
	}
	if all := NewEngine(s, EngineOptions{}).ExplainMissesOfAllRules(Request{Prompt: "x"}); len(all) != 1+len(s.Responses) {
		t.Errorf("all misses: %q", all)
	}
}

func explainPrompt(s *Scenario, prompt string) []string {
	return NewEngine(s, EngineOptions{}).ExplainNearMisses(Request{Prompt: prompt})
}
