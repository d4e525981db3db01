package files

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// datedFile is a file with its modification time.
type datedFile struct {
	name  string
	mtime time.Time
}

type datedFiles []datedFile

// sort sorts by modification time, newest first, then by name.
func (ds datedFiles) sort() {
	slices.SortFunc(ds, func(a, b datedFile) int {
		return cmp.Or(b.mtime.Compare(a.mtime), strings.Compare(a.name, b.name))
	})
}
