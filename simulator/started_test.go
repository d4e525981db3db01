package simulator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// The SessionStart hooks of a resumed session receive the same data about its last reply as from CLI 2.1.329.
func TestSessionStartTellsOfTheLastReply(t *testing.T) {
	now := time.Date(2026, 11, 22, 18, 30, 0, 900e6, time.UTC)
	for _, tt := range []struct {
		name    string
		heard   protocol.LastReplyBeforeResume
		ago     time.Duration
		seconds float64
		expired bool
		usd     float64
	}{
		{"small", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 15}, 2600 * time.Millisecond, 2, false, 0.0001},
		{"large", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 123_400}, 169 * time.Second, 169, false, 0.4628},
		{"almost five minutes", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 15}, 282 * time.Second, 282, false, 0.0001},
		{"more than five minutes", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 100_005}, 313 * time.Second, 313, true, 0.375},
		{"from the future", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 15}, -500 * time.Second, 0, false, 0.0001},
		{"another model", protocol.LastReplyBeforeResume{Model: "claude-opus-4-5", Tokens: 1_000_005}, time.Second, 1, false, 6.25},
		{"a stranger", protocol.LastReplyBeforeResume{Model: "strange-model", Tokens: 1_000_005}, time.Second, 1, false, 6.25},
		{"kept for an hour", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 1_000_005, LongCache: true}, 403 * time.Second, 403, false, 6},
		{"more than an hour", protocol.LastReplyBeforeResume{Model: "claude-sonnet-4-5", Tokens: 15, LongCache: true}, 3700 * time.Second, 3700, true, 0.0001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.heard.At = now.Add(-tt.ago)
			var in protocol.SessionStartHookInput
			setPreviousReplyAgeAndCost(&tt.heard, &in, now)
			want := protocol.SessionStartHookInput{
				SecondsSinceLastResponse: &tt.seconds, ContextTokens: &tt.heard.Tokens, PromptCacheLikelyExpired: &tt.expired, EstimatedCacheWriteUSD: &tt.usd,
			}
			if diff := cmp.Diff(want, in); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
