package simulator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Failures are reported as in the table of cli-contract 3.5, with the texts of cli-observed 10.
func TestFailuresAsTheRealCLIShowsThem(t *testing.T) {
	type shown struct {
		Error, Kind, Connection string
		Status                  int
		Text, Terminal          string
		Retries                 []string
	}
	tests := []struct {
		name    string
		failure scenarios.Failure
		want    shown
	}{
		{"400", scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "mock error 400"}, shown{
			Error: "unknown", Kind: "invalid_request_error", Status: 400, Text: "API Error: 400 mock error 400", Terminal: "api_error",
		}},
		{"credit", scenarios.Failure{Type: scenarios.FailOutOfCredits}, shown{
			Error: "billing_error", Kind: "invalid_request_error", Status: 400, Text: "Credit balance is too low", Terminal: "api_error",
		}},
		{"too long", scenarios.Failure{Type: scenarios.FailPromptTooLong}, shown{
			Error: "invalid_request", Kind: "invalid_request_error", Status: 400, Text: "Prompt is too long · this conversation is a single exchange", Terminal: "prompt_too_long",
		}},
		{"context limit", scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "input length and `max_tokens` exceed context limit: 2 > 1"}, shown{
			Error: "invalid_request", Kind: "invalid_request_error", Status: 400, Text: "Prompt is too long · ", Terminal: "prompt_too_long",
		}},
		{"image", scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "messages.0: image exceeds 5 MB maximum"}, shown{
			Error: "invalid_request", Kind: "invalid_request_error", Status: 400, Text: "Image was too large.", Terminal: "image_error",
		}},
		{"PDF", scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "The PDF specified was not valid."}, shown{
			Error: "invalid_request", Kind: "invalid_request_error", Status: 400, Text: "The PDF file was not valid.", Terminal: "image_error",
		}},
		{"history", scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "`tool_use` ids were found without `tool_result` blocks"}, shown{
			Error: "invalid_request", Kind: "invalid_request_error", Status: 400, Connection: "tool_history_mismatch",
			Text: "API Error: 400 due to tool use concurrency issues.", Terminal: "api_error",
		}},
		{"disabled", scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "This organization has been disabled."}, shown{
			Error: "invalid_request", Kind: "invalid_request_error", Status: 400, Connection: "org_disabled_credential",
			Text: "Your ANTHROPIC_API_KEY belongs to a disabled organization", Terminal: "api_error",
		}},
		{"409", scenarios.Failure{Type: scenarios.FailAPIError, Status: 409, Message: "c"}, shown{
			Error: "unknown", Kind: "invalid_request_error", Status: 409, Text: "API Error: 409 c", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 server_error", "api_retry 2/2 server_error"},
		}},
		{"403 of an organization", scenarios.Failure{Type: scenarios.FailAPIError, Status: 403, Message: "OAuth is not allowed for this organization."}, shown{
			Error: "oauth_org_not_allowed", Kind: "permission_error", Status: 403, Text: "Your organization has disabled Claude subscription access", Terminal: "api_error",
		}},
		{"401", scenarios.Failure{Type: scenarios.FailAuthError, Message: "bad key"}, shown{
			Error: "authentication_failed", Kind: "authentication_error", Status: 401, Text: "Failed to authenticate. API Error: 401 bad key", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 authentication_failed", "api_retry 2/2 authentication_failed"},
		}},
		{"401 of an external key", scenarios.Failure{Type: scenarios.FailAuthError, Message: "invalid x-api-key"}, shown{
			Error: "authentication_failed", Kind: "authentication_error", Status: 401, Text: "Invalid API key · Fix external API key", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 authentication_failed", "api_retry 2/2 authentication_failed"},
		}},
		{"403", scenarios.Failure{Type: scenarios.FailAPIError, Status: 403, Message: "no"}, shown{
			Error: "authentication_failed", Kind: "permission_error", Status: 403, Text: "Failed to authenticate. API Error: 403 no", Terminal: "api_error",
		}},
		{"404", scenarios.Failure{Type: scenarios.FailAPIError, Status: 404}, shown{
			Error: "model_not_found", Kind: "not_found_error", Status: 404, Text: "There's an issue with the selected model (claude-opus-5-5).", Terminal: "api_error",
		}},
		{"413", scenarios.Failure{Type: scenarios.FailAPIError, Status: 413}, shown{
			Error: "invalid_request", Kind: "request_too_large", Status: 413, Text: "Request too large (max 32MB).", Terminal: "image_error",
		}},
		{"429", scenarios.Failure{Type: scenarios.FailRateLimit, RetryAfter: 3}, shown{
			Error: "rate_limit", Kind: "rate_limit_error", Status: 429, Text: "API Error: Request rejected (429) · ", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 rate_limit", "api_retry 2/2 rate_limit"},
		}},
		{"422", scenarios.Failure{Type: scenarios.FailAPIError, Status: 422, Message: "msg"}, shown{
			Error: "unknown", Kind: "invalid_request_error", Status: 422, Text: "API Error: 422 msg", Terminal: "api_error",
		}},
		{"500", scenarios.Failure{Type: scenarios.FailServerError, Status: 500, Message: "boom"}, shown{
			Error: "server_error", Kind: "api_error", Status: 500, Text: "API Error: 500 boom. This is a server-side issue, usually temporary", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 server_error", "api_retry 2/2 server_error"},
		}},
		{"529", scenarios.Failure{Type: scenarios.FailOverloaded}, shown{
			Error: "server_error", Kind: "overloaded_error", Status: 529, Text: "API Error: Repeated 529 Overloaded errors.", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 overloaded", "api_retry 2/2 overloaded"},
		}},
		{"refused", scenarios.Failure{Type: scenarios.FailNetworkUnreachable}, shown{
			Error: "server_error", Connection: "connection_failed", Text: "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 unknown", "api_retry 2/2 unknown"},
		}},
		{"cut", scenarios.Failure{Type: scenarios.FailPartialResponse}, shown{
			Error: "server_error", Connection: "connection_failed", Text: "API Error: Connection to the API was lost (ECONNRESET).", Terminal: "api_error",
			Retries: []string{"api_retry 1/2 unknown", "api_retry 2/2 unknown"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{{Failure: &tt.failure}}}, Limits: simulator.Limits{Retries: 2}})
			var got shown
			for ev, err := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "hi"}}) {
				if err != nil {
					t.Fatal(err)
				}
				switch ev := ev.(type) {
				case *protocol.APIRetryEvent:
					got.Retries = append(got.Retries, eventText(ev))
				case *protocol.AssistantEvent:
					if ev.Message.Model != "<synthetic>" || !ev.IsAPIErrorMessage || *ev.Message.StopReason != "stop_sequence" {
						t.Errorf("assistant event: %+v", ev)
					}
					got.Error, got.Kind, got.Connection, got.Status = ev.Error, ev.APIErrorType, ev.APIError, ev.APIErrorStatus
					got.Text = ev.Message.Content[0].(protocol.TextBlock).Text
				case *protocol.ResultEvent:
					got.Terminal = ev.TerminalReason
					if ev.Subtype != "success" || !ev.IsError || ev.NumTurns != 1 || *ev.StopReason != "stop_sequence" || *ev.Result != got.Text || ev.Errors != nil {
						t.Errorf("result: %+v", ev)
					}
					if status := ev.APIErrorStatus.Value; (status == nil) != (tt.want.Status == 0) || status != nil && *status != tt.want.Status {
						t.Errorf("api_error_status of the result: %v", status)
					}
				}
			}
			if !strings.HasPrefix(got.Text, tt.want.Text) {
				t.Errorf("text %q, want %q…", got.Text, tt.want.Text)
			}
			got.Text = tt.want.Text
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
		})
	}
}

// A failure with times = 2 no longer occurs at the third request: after a retry if the CLI retries, otherwise at a
// later prompt.
func TestFailureThatEnds(t *testing.T) {
	failing := func(status int) []scenarios.Reply {
		r := text("back")
		r.Failure = &scenarios.Failure{Type: scenarios.FailAPIError, Status: status, Times: 2}
		r.Rule.Name = "responses[0]"
		return []scenarios.Reply{r}
	}
	s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: failing(500)}})
	got, _ := playTurn(t.Context(), t, s, "hi")
	want := []string{
		"init", "api_retry 1/10 server_error", "api_retry 2/10 server_error", `assistant text "back"`, "result success error=false turns=1 completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("retried (-want +got):\n%s", diff)
	}
	s = newSimulator(t, simulator.Options{Model: &fakeModel{replies: failing(400)}})
	got, _ = playTurn(t.Context(), t, s, "hi")
	if diff := cmp.Diff([]string{"init", `assistant text "back"`, "result success error=false turns=1 completed"}, got); diff != "" {
		t.Errorf("mended in silence (-want +got):\n%s", diff)
	}
	s = newSimulator(t, simulator.Options{Model: &fakeModel{replies: failing(403)}})
	var ends []string
	for range 3 {
		got, _ = playTurn(t.Context(), t, s, "hi")
		ends = append(ends, got[len(got)-1])
	}
	const bad, good = "result success error=true turns=1 api_error", "result success error=false turns=1 completed"
	if diff := cmp.Diff([]string{bad, bad, good}, ends); diff != "" {
		t.Errorf("not retried (-want +got):\n%s", diff)
	}
}

// Delays begin at half a second and double. A retry-after header takes precedence. The scale shortens only the actual wait.
func TestRetryDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := func(f scenarios.Failure, scale float64) (shown []int, waited time.Duration) {
			s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{{Failure: &f}}}, Limits: simulator.Limits{Retries: 4, RetryScale: scale}})
			began := time.Now()
			for ev := range s.RunTurn(t.Context(), protocol.UserMessage{}) {
				if r, ok := ev.(*protocol.APIRetryEvent); ok {
					shown = append(shown, r.RetryDelayMS)
				}
			}
			return shown, time.Since(began)
		}
		shown, waited := delays(scenarios.Failure{Type: scenarios.FailServerError, Status: 500}, 0)
		if diff := cmp.Diff([]int{500, 1000, 2000, 4000}, shown); diff != "" || waited != 0 {
			t.Errorf("waited %s; shown (-want +got):\n%s", waited, diff)
		}
		shown, waited = delays(scenarios.Failure{Type: scenarios.FailRateLimit, RetryAfter: 2}, 0.5)
		if diff := cmp.Diff([]int{2000, 2000, 2000, 2000}, shown); diff != "" || waited != 4*time.Second {
			t.Errorf("waited %s; shown (-want +got):\n%s", waited, diff)
		}
	})
}

func TestHangEndsWithAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{{Failure: &scenarios.Failure{Type: scenarios.FailHang}}}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got, _ := playTurn(ctx, t, s, "hi")
		want := []string{"init", `user text "[Request interrupted by user]"`, "result error_during_execution error=true turns=2 aborted_streaming"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
