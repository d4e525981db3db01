package argv

import (
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// suggestionLine returns the second line of the error about an unknown option, with its leading newline. It suggests
// the nearest names, sorted; "" means that no option is similar. As in commander, a similar name differs from the word
// by at most three edits, and by fewer than 60 % of the letters.
func suggestionLine(word string, options []Option) string {
	bare, long := strings.CutPrefix(word, "--")
	if !long {
		return ""
	}
	return nearestNamesLine("--", bare, suggestibleNames(options))
}

// UnknownCommandText returns the error about an unknown subcommand. It suggests the names that are similar.
func UnknownCommandText(word string, names []string) string {
	return "error: unknown command '" + word + "'" + nearestNamesLine("", word, names)
}

// nearestNamesLine returns a line that suggests the names nearest to a word, each after prefix; "" means none.
func nearestNamesLine(prefix, word string, names []string) string {
	best := 3
	var near []string
	for _, candidate := range names {
		distance := diag.EditDistance(word, candidate)
		if longer := max(len(word), len(candidate)); 10*(longer-distance) <= 4*longer || distance > best {
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
// only the second may be suggested: commander treats the first as the short one.
func suggestibleNames(options []Option) []string {
	names := []string{"help"}
	for i := range options {
		spellings := parseFlags(options[i].Flags).spellings
		if last, long := strings.CutPrefix(spellings[len(spellings)-1], "--"); long && len(last) > 1 && !options[i].Hidden {
			names = append(names, last)
		}
	}
	return names
}
