package diag

import "strings"

// Nearest returns the candidate most similar to name; "" if none is similar. Case and the difference between "-" and
// "_" are ignored. Of equally similar candidates, the first is returned; name itself is never returned.
func Nearest(name string, candidates []string) string {
	return Closest(name, candidates, max(1, len(name)/3))
}

// Closest is like [Nearest], but most is the maximum number of edits between similar names.
func Closest(name string, candidates []string, most int) string {
	const longest = 64
	if name == "" || len(name) > longest {
		return ""
	}
	best, bestDist := "", 1+most
	folded := normalizeName(name)
	for _, c := range candidates {
		if len(c) > longest {
			continue
		}
		d := editDistance(folded, normalizeName(c))
		if d == 0 && c == name {
			continue
		}
		if d < bestDist && d < max(len(name), len(c)) {
			best, bestDist = c, d
		}
	}
	return best
}

func normalizeName(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// editDistance counts insertions, deletions, replacements and swaps of neighbours
// (optimal string alignment) between two short strings.
func editDistance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
