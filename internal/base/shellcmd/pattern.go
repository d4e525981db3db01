package shellcmd

import (
	"regexp"
	"sync"
)

// LazyPattern returns a function that compiles a pattern at its first call.
func LazyPattern(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
