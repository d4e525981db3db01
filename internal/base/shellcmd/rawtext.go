package shellcmd

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// textObstacle checks the plain text, including quoted text and comments, because shells interpret some forms
// differently even there (observed with 2.1.330).
func textObstacle(cmd string) Obstacle {
	switch {
	case strings.ContainsFunc(cmd, isForeignSpace):
		return Obstacle{Kind: ObstacleForeignSpace}
	case hasEscapedSpace(cmd):
		return Obstacle{Kind: ObstacleEscapedSpace}
	case strings.Contains(cmd, "~["):
		return Obstacle{Kind: ObstacleNamedDirectory}
	case equalsExpansion().MatchString(cmd):
		return Obstacle{Kind: ObstacleEqualsExpansion}
	case hasQuotedBrace(cmd):
		return Obstacle{Kind: ObstacleQuotedBrace}
	}
	return Obstacle{}
}

// isForeignSpace reports whether a character looks like a space but is not one for the shell.
func isForeignSpace(r rune) bool {
	return r == '\u200b' || r == '\ufeff' || r == '\u2028' || r == '\u2029' || r != ' ' && unicode.Is(unicode.Zs, r)
}

// hasEscapedSpace looks for a backslash before a space or before the end of a line. A
// usual line continuation, a single backslash after a space, is allowed.
func hasEscapedSpace(cmd string) bool {
	run := 0 // backslashes so far
	for i := range len(cmd) {
		switch c := cmd[i]; {
		case c == '\\':
			run++
			continue
		case run == 0:
		case c == ' ' || c == '\t':
			return true
		case c == '\n' && run%2 == 1 && (run > 1 || i < 2 || cmd[i-2] != ' ' && cmd[i-2] != '\t'):
			return true
		}
		run = 0
	}
	return false
}

var equalsExpansion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s;&|])=[a-zA-Z_]`) })

// hasQuotedBrace looks for a quote after an open, unquoted brace.
func hasQuotedBrace(cmd string) bool {
	open := false
	var quote byte // the current quote; 0 means none
	for i := 0; i < len(cmd); i++ {
		c := cmd[i]
		if open && (c == '\'' || c == '"') {
			return true
		}
		switch {
		case c == '}':
			open = false
		case quote != 0:
			switch {
			case c == quote:
				quote = 0
			case quote == '"' && c == '\\':
				i++
			}
		case c == '{':
			open = true
		case c == '\\':
			i++
			open = open || i < len(cmd) && cmd[i] == '{'
		case c == '\'' || c == '"':
			quote = c
		}
	}
	return false
}
