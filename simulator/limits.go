package simulator

import (
	"fmt"
	"strconv"
)

// overBudget tells whether the session has spent more than it may; from then
// on no request is made any more (spec: cli-observed 3).
func (t *turn) overBudget() bool {
	limit := t.s.o.MaxBudgetUSD
	t.s.exhausted = limit > 0 && t.s.totalCost() >= limit
	return t.s.exhausted
}

func (t *turn) budgetSpent() finish {
	limit := strconv.FormatFloat(t.s.o.MaxBudgetUSD, 'f', -1, 64)
	return finish{
		subtype: "error_max_budget_usd", terminal: "budget_exhausted", isError: true,
		errors: []string{"Reached maximum budget ($" + limit + ")"},
	}
}

func (t *turn) turnsSpent() finish {
	return finish{
		subtype: "error_max_turns", terminal: "max_turns", isError: true,
		errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", t.s.o.MaxTurns)},
	}
}
