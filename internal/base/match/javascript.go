package match

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
)

// JSMatchTimeout is how long one match may take; a match that takes longer fails.
const JSMatchTimeout = time.Second / 2

// JSPattern is a compiled regular expression of JavaScript, as hook matchers and JSON Schemas use it. Unlike Go's
// it supports lookahead, lookbehind and backreferences. Every match ends within [JSMatchTimeout].
type JSPattern interface {
	MatchString(string) bool // reports a match anywhere in the text
	String() string          // the source
}

// CompileJS compiles an expression. An expression without lookaround is matched in linear time.
func CompileJS(expr string) (JSPattern, error) {
	plain, err := regexp.Compile(expr)
	if err == nil {
		return plain, nil
	}
	rich, failed := regexp2.Compile(expr, regexp2.ECMAScript)
	if failed != nil {
		return nil, fmt.Errorf("%w", err)
	}
	rich.MatchTimeout = JSMatchTimeout // the library's timer goroutine exits one or two seconds after the last match
	return lookaroundPattern{rich}, nil
}

// lookaroundPattern is an expression with lookahead, lookbehind or backreferences.
type lookaroundPattern struct{ re *regexp2.Regexp }

func (l lookaroundPattern) MatchString(text string) bool {
	found, err := l.re.MatchString(text)
	return found && err == nil
}

func (l lookaroundPattern) String() string { return l.re.String() }
