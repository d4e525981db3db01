package host

import "testing"

// Checklist row 59: the chart of the context has 200 squares, the used ones first and the buffer last.
func TestUsageGrid(t *testing.T) {
	rows := contextUsageGrid([]usageCategory{
		{Name: "a", Tokens: 1000, Color: "x", Kind: "used"},
		{Name: "b", Tokens: 12_000, Kind: "used"},
		{Name: "buffer", Tokens: 33_000, Kind: "buffer"},
		{Name: "free", Tokens: 954_000, Kind: "free"},
	}, 1_000_000)
	if len(rows) != contextUsageGridRows || len(rows[0]) != contextUsageGridColumns {
		t.Fatalf("%d rows", len(rows))
	}
	first := rows[0]
	if first[0].Category != "a" || first[0].Fullness != 0.2 || first[1].Fullness != 1 || first[2].Category != "b" || first[3].Category != "free" {
		t.Errorf("first squares %+v", first[:5])
	}
	last := rows[contextUsageGridRows-1]
	if last[contextUsageGridColumns-1].Category != "buffer" || last[contextUsageGridColumns-7].Category != "buffer" || last[contextUsageGridColumns-8].Category != "free" {
		t.Errorf("last squares %+v", last)
	}
	for _, full := range [][]usageCategory{nil, {{Name: "a", Tokens: 5_000_000, Kind: "used"}}} {
		if rows := contextUsageGrid(full, 1_000_000); len(rows) != contextUsageGridRows || len(rows[contextUsageGridRows-1]) != contextUsageGridColumns {
			t.Errorf("%v: %d rows", full, len(rows))
		}
	}
}
