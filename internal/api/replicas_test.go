package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api"
)

const twiceOverloaded = `
[[responses]]
pattern = { type = "any" }
failure = { type = "overloaded", times = 2 }
response = "fine"
`

// TestReplicas_B15: a failure with times = 2 also occurs twice with three replicas. An SDK sends its number of
// attempts; for other clients the replicas count in a shared directory.
func TestReplicas_B15(t *testing.T) {
	status := func(server http.Handler, header string) string {
		text := exchangeText(t, server, "POST /v1/messages\n"+header+"\n{\"model\":\"m\",\"max_tokens\":10,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", nil)
		code, _, _ := strings.Cut(text, "\n")
		return code
	}
	state := t.TempDir()
	for _, c := range []struct {
		name    string
		headers []string
		state   string
		want    []string
	}{
		{"alone each", []string{"", "", "", ""}, "", []string{"529", "529", "529", "529"}},
		{"retries of an SDK", []string{"x-stainless-retry-count: 0\n", "x-stainless-retry-count: 1\n", "x-stainless-retry-count: 2\n"}, "", []string{"529", "529", "200"}},
		{"not a number of retries", []string{"x-stainless-retry-count: many\n", "x-stainless-retry-count: -5\n"}, "", []string{"529", "529"}},
		{"a directory", []string{"", "", "", ""}, state, []string{"529", "529", "200", "200"}},
		{"a namespace of the directory", []string{"X-Claudeless-Test: a\n", "X-Claudeless-Test: a\n", "X-Claudeless-Test: a\n"}, state, []string{"529", "529", "200"}},
		{"the directory later", []string{""}, state, []string{"200"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var replicas []http.Handler
			for range 3 {
				replicas = append(replicas, newServer(t, twiceOverloaded, func(o *api.Options) { o.State = c.state }))
			}
			var got []string
			for i, header := range c.headers {
				got = append(got, status(replicas[i%len(replicas)], header))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	server := newServer(t, twiceOverloaded, func(o *api.Options) { o.State, o.Token = state, "T" })
	if text := exchangeText(t, server, "POST /_claudeless/reset\nX-Claudeless-Token: T\n\n", nil); !strings.HasPrefix(text, "200") {
		t.Fatalf("reset: %s", text)
	}
	if got := status(server, ""); got != "529" {
		t.Errorf("after a reset: %s", got)
	}
	if got := status(server, "X-Claudeless-Test: a\n"); got != "200" {
		t.Errorf("another namespace after a reset: %s", got)
	}
}

// An expectation of a rule is met only by an answer of that rule.
func TestRulesAreObserved(t *testing.T) {
	server := newServer(t, `
default_response = "something"
[[responses]]
pattern = { type = "exact", text = "hi" }
response = "hello"
[[expect]]
rule = 3
`, func(o *api.Options) { o.Token = "T" })
	unmet := func(prompt string) bool {
		if text := exchangeText(t, server, "POST /v1/messages\nX-Api-Key: T\n\n{\"model\":\"m\",\"max_tokens\":10,\"messages\":[{\"role\":\"user\",\"content\":\""+prompt+"\"}]}", nil); !strings.HasPrefix(text, "200") {
			t.Fatal(text)
		}
		return !strings.Contains(exchangeText(t, server, "GET /_claudeless/state\nX-Claudeless-Token: T\n\n", nil), `"unmet":[]`)
	}
	for _, step := range []struct {
		prompt string
		unmet  bool
	}{{"else", true}, {"hi", false}} {
		if got := unmet(step.prompt); got != step.unmet {
			t.Errorf("after %q the expectation is unmet: %t, want %t", step.prompt, got, step.unmet)
		}
	}
}
