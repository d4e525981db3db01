package catalog

import (
	"cmp"
	"strings"
)

// collationOrder lists the ASCII characters in natural order: punctuation, digits, then letters regardless of case.
const collationOrder = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

// compareNames orders names as the real CLI does: in natural order, the lower-case letter first if nothing else
// differs. Letters outside ASCII come last.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(collation(a), collation(b)), cmp.Compare(b, a))
}

// collation returns a key for a name; comparing keys byte by byte gives the natural order.
func collation(name string) string {
	return strings.Map(func(c rune) rune {
		if at := strings.IndexRune(collationOrder, c); at >= 0 {
			return rune(at)
		}
		return c
	}, strings.ToLower(name))
}
