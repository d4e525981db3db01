package search

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// datedFile is a file with the time of its last change.
type datedFile struct {
	name  string
	mtime time.Time
}

type datedFiles []datedFile

// sort puts the newest first, files of one age by name.
func (ds datedFiles) sort() {
	slices.SortFunc(ds, func(a, b datedFile) int {
		return cmp.Or(b.mtime.Compare(a.mtime), strings.Compare(a.name, b.name))
	})
}
