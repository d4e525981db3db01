package shellcmd

import (
	"regexp"
	"sync"
)

// lazyPattern returns a function that compiles a pattern at its first call.
func lazyPattern(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
