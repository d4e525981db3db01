package catalog

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Claude Code 2.1.329 lists commands with these names in this order.
func TestCompareNames(t *testing.T) {
	want := []string{
		"a", "A", "a_b", "a-b", "a-b:y", "a:a", "a:x", "a.b", "ab", "b-1", "b-10", "b-2", "Beta", "steering", "steering-custom", "zeta",
	}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, compareNamesInRealCLIOrder)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
