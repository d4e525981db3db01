package scenarios_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/scenarios"
)

// wordsAfterToken treats the word after "token" as a secret.
type wordsAfterToken struct{}

func (wordsAfterToken) Places(text string) (places [][2]int) {
	for _, at := range regexp.MustCompile(`token \w+`).FindAllStringIndex(text, -1) {
		places = append(places, [2]int{at[0] + len("token "), at[1]})
	}
	return places
}

// TestExplainHidesSecretsBeforeItCuts checks that no part of a secret is shown: neither by a near miss that ends inside
// a secret nor by an excerpt that is shorter than the secret.
func TestExplainHidesSecretsBeforeItCuts(t *testing.T) {
	long := strings.Repeat("x", 35) + " token abcdefghijklmnop and more"
	for name, tt := range map[string]struct{ pattern, prompt, want string }{
		"the prompt leaves the pattern inside a secret": {
			`type = "exact", text = "use token abcdefgh now"`, "use token abcdxyzw now",
			`it is not "use token [redacted] now"; the match ends after "use token ", where "[redacted] now" follows instead of "[redacted] now"`,
		},
		"the prompt ends before the secret of the pattern": {
			`type = "exact", text = "use token abcdefgh now"`, "use token",
			`it is not "use token [redacted] now"; the match ends after "use token", where " [redacted] now" should follow`,
		},
		"the excerpt of the prompt ends in a secret": {
			`type = "exact", text = "for all"`, "for " + long,
			`it is not "for all"; the match ends after "for ", where "` + strings.Repeat("x", 35) + ` toke"… follows instead of "all"`,
		},
		"the pattern is cut in a secret": {
			`type = "contains", text = "` + strings.Repeat("y", 50) + ` token abcdefghijkl"`, "z",
			`it does not contain "` + strings.Repeat("y", 50) + ` token [re"…`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenarios.Parse("s.toml", []byte("[[responses]]\nresponse = \"x\"\npattern = { "+tt.pattern+" }\n"), scenarios.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s.HideSecrets(wordsAfterToken{})
			_, got, _ := strings.Cut(scenarios.NewEngine(s, scenarios.EngineOptions{}).ExplainNearMisses(scenarios.Request{Prompt: tt.prompt})[1], "): ")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
