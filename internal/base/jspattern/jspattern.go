// Package jspattern compiles JavaScript regular expressions, as used by hook
// matchers and JSON Schemas. Unlike Go's, they support lookahead, lookbehind
// and backreferences. Every match ends within [MatchTimeout].
package jspattern

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
)

// MatchTimeout is how long one match may take; a match that takes longer fails.
const MatchTimeout = time.Second / 2

// Pattern is a compiled expression. It is made by [Compile].
type Pattern interface {
	MatchString(string) bool // reports a match anywhere in the text
	String() string          // the source
}

// Compile compiles an expression. An expression without lookaround is matched in
// linear time.
func Compile(expr string) (Pattern, error) {
	plain, err := regexp.Compile(expr)
	if err == nil {
		return plain, nil
	}
	rich, failed := regexp2.Compile(expr, regexp2.ECMAScript)
	if failed != nil {
		return nil, fmt.Errorf("%w", err)
	}
	rich.MatchTimeout = MatchTimeout // the library's timer goroutine ends one or two seconds after the last match
	return lookaroundPattern{rich}, nil
}

// lookaroundPattern is an expression with lookahead, lookbehind or backreferences.
type lookaroundPattern struct{ re *regexp2.Regexp }

func (l lookaroundPattern) MatchString(text string) bool {
	found, err := l.re.MatchString(text)
	return found && err == nil
}

func (l lookaroundPattern) String() string { return l.re.String() }
