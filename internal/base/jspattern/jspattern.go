// Package jspattern compiles JavaScript regular expressions, as used by hook
// matchers and JSON Schemas. Unlike Go's, they support lookahead, lookbehind
// and backreferences. Every match ends within [Patience].
package jspattern

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
)

// Patience is how long one match may take; what takes longer does not match.
const Patience = time.Second / 2

// Pattern is a compiled expression. It is made by [Compile].
type Pattern interface {
	MatchString(string) bool // anywhere in the text
	String() string          // as it was written
}

// Compile reads an expression. What looks neither ahead nor back is matched in linear time.
func Compile(expr string) (Pattern, error) {
	plain, err := regexp.Compile(expr)
	if err == nil {
		return plain, nil
	}
	rich, failed := regexp2.Compile(expr, regexp2.ECMAScript)
	if failed != nil {
		return nil, fmt.Errorf("%w", err)
	}
	rich.MatchTimeout = Patience // its clock is a goroutine of the library, which ends a second or two behind the last match
	return lookaroundPattern{rich}, nil
}

// lookaroundPattern is an expression that looks around.
type lookaroundPattern struct{ re *regexp2.Regexp }

func (l lookaroundPattern) MatchString(text string) bool {
	found, err := l.re.MatchString(text)
	return found && err == nil
}

func (l lookaroundPattern) String() string { return l.re.String() }
