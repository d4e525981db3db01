package argv

import (
	"slices"
	"strings"
)

// suggestionLine returns the second line of an unknown-option error, with its leading newline, or "" if no option is
// similar. The similarity is computed as in commander: at most three edits, more than 40 % equal, only the nearest
// options, sorted.
func suggestionLine(word string, options []Option) string {
	bare, long := strings.CutPrefix(word, "--")
	if !long {
		return ""
	}
	return nearest("--", bare, suggestibleNames(options))
}

// UnknownCommand returns the error about an unknown subcommand, with those of the names that are similar.
func UnknownCommand(word string, names []string) string {
	return "error: unknown command '" + word + "'" + nearest("", word, names)
}

// nearest returns the line with the names, after a prefix, that are similar to a word.
func nearest(prefix, word string, names []string) string {
	best := 3
	var near []string
	for _, candidate := range names {
		distance := editDistance(word, candidate)
		longer := max(len(word), len(candidate))
		if 10*(longer-distance) <= 4*longer || distance > best {
			continue
		}
		if distance < best {
			best, near = distance, nil
		}
		near = append(near, candidate)
	}
	slices.Sort(near)
	for i := range near {
		near[i] = prefix + near[i]
	}
	switch len(near) {
	case 0:
		return ""
	case 1:
		return "\n(Did you mean " + near[0] + "?)"
	default:
		return "\n(Did you mean one of " + strings.Join(near, ", ") + "?)"
	}
}

// suggestibleNames lists the long names that may be suggested, without dashes. If an option has two long spellings,
// commander treats the first as the short one and only the second as long.
func suggestibleNames(options []Option) []string {
	names := []string{"help"}
	for i := range options {
		spellings := parseFlags(options[i].Flags).spellings
		last, long := strings.CutPrefix(spellings[len(spellings)-1], "--")
		if long && len(last) > 1 && !options[i].Hidden {
			names = append(names, last)
		}
	}
	return names
}

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbours between two ASCII
// words. Words whose lengths differ by more than three count as completely different.
func editDistance(a, b string) int {
	if len(a)-len(b) > 3 || len(b)-len(a) > 3 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
