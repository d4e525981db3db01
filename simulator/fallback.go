package simulator

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// nextFallbackModel returns the next model to use after a failure, or "" if none can be used. The CLI retries an overloaded model
// twice before it uses another one; if fewer than two retries are allowed, there is no fallback (observed with 2.1.330).
func (x *modelClient) nextFallbackModel(api apiFailure) string {
	left := x.sim.options.Limits.FallbackModels
	left = left[min(x.usedFallbackModels, len(left)):]
	if len(left) == 0 || api.FallbackReason() == "" || api.Status == 529 && x.sim.options.Limits.Retries < maxOverloadRetries || claudecode.ResolveModel(left[0]) == x.sim.resolvedModelName() {
		return ""
	}
	return left[0]
}

// switchToFallbackForTurn uses the fallback model for the next requests until the end of the turn (spec: cli-observed 10).
func (x *modelClient) switchToFallbackForTurn(api apiFailure) {
	original, next, trigger := x.sim.resolvedModelName(), x.nextFallbackModel(api), api.FallbackReason()
	name := claudecode.ResolveModel(next)
	x.out.emitAsIs(&protocol.RequestRepeated{})
	x.sim.options.State.SetTurnModel(next)
	x.usedFallbackModels++
	x.nextReplyIsUnstreamed = api.Status == 404 // the following requests of the turn are not streamed
	content := fmt.Sprintf("Switched to %s due to high demand for %s", claudecode.ModelDisplayName(name), claudecode.ModelDisplayName(original))
	if trigger == "model_not_found" {
		content = fmt.Sprintf("Switched to %s because %s is not available", claudecode.ModelDisplayName(name), claudecode.ModelDisplayName(original))
	}
	x.out.emitSystem("model_fallback",
		protocol.Field{Key: "trigger", Value: trigger},
		protocol.Field{Key: "original_model", Value: original},
		protocol.Field{Key: "fallback_model", Value: name},
		protocol.Field{Key: "content", Value: content})
}

// compactIfRequestWasTooLong compacts the conversation and announces the next request, if the API refused the request because of its size.
func (x *modelClient) compactIfRequestWasTooLong(ctx context.Context, api apiFailure) (done bool, err error) {
	tooLarge := api.Status == 413
	if !tooLarge && api.TerminalReason != "prompt_too_long" || x.sim.history.lastAssistantUUID == "" || x.sim.options.Limits.DisableAutoCompact {
		return false, nil
	}
	prompt := 0
	if x.totals.firstUsage == nil { // the request has the prompt, not the results of calls
		prompt = scenarios.EstimateTokens(len(x.prompts.prompt.Content.Plain()))
	}
	if done, err = (&compaction{x.turnContext}).runAutoCompaction(ctx, !tooLarge, prompt); err == nil && done {
		x.emitRequestStatusAndReplayPrompt()
	}
	return done, err
}
