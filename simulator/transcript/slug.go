package transcript

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
)

// slugLimit is the length that a project folder's name is cut at.
const slugLimit = 200

// Slug names the project folder of a directory, given with its symbolic links
// resolved: every UTF-16 unit outside [a-zA-Z0-9] becomes a dash. A longer name
// is cut and ends in a hash of the whole path (spec: cli-contract 8.2).
func Slug(realpath string) string {
	var b strings.Builder
	var hash int32
	for _, unit := range utf16.Encode([]rune(realpath)) {
		hash = hash*31 + int32(unit)
		switch {
		case unit >= 'a' && unit <= 'z', unit >= 'A' && unit <= 'Z', unit >= '0' && unit <= '9':
			b.WriteByte(byte(unit))
		default:
			b.WriteByte('-')
		}
	}
	if b.Len() <= slugLimit {
		return b.String()
	}
	magnitude := int64(hash)
	if magnitude < 0 {
		magnitude = -magnitude
	}
	return b.String()[:slugLimit] + "-" + strconv.FormatInt(magnitude, 36)
}

func (o Options) projectDir() string {
	return filepath.Join(o.StateDir, "projects", Slug(o.Project))
}

// isID tells whether s has the form of a session id, a uuid.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash && c != '-' || !dash && !hex {
			return false
		}
	}
	return true
}
