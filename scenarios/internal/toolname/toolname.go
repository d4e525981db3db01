// Package toolname converts the tool names that scenarios use, such as
// server/tool, to canonical names. A name of any other form is returned as it
// is.
package toolname

import "strings"

// Forms are the globs for canonical names that a tool name in a scenario
// stands for: the name itself, server/tool, or the bare name of an MCP tool.
func Forms(name string) []string {
	if name == "" {
		return nil
	}
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return []string{name, "mcp__" + Part(server) + "__" + Part(tool)}
	}
	if strings.HasPrefix(name, "mcp__") {
		return []string{name}
	}
	return []string{name, "mcp__*__" + name}
}

// Canonical is the name that a tool has in a conversation when a scenario
// writes it as server/tool; other names stay.
func Canonical(name string) string {
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return "mcp__" + wordName(server) + "__" + wordName(tool)
	}
	return name
}

// wordName is a name with everything else than word characters and hyphens
// replaced.
func wordName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (IsWord(byte(r)) || r == '-') {
			return r
		}
		return '_'
	}, s)
}

// Part is the part of a canonical name that a server or tool name
// becomes. Glob characters stay.
func Part(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (IsWord(byte(r)) || strings.ContainsRune("-*?[]!", r)) {
			return r
		}
		return '_'
	}, s)
}

// IsWord tells whether c is a letter, a digit or an underscore.
func IsWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
