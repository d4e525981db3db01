// Package toolname converts the tool names of scenarios, such as server/tool, to
// canonical names. Other names are unchanged.
package toolname

import "strings"

// Globs returns globs for the canonical names that a tool name in a scenario
// matches: the name itself, server/tool, or the bare name of an MCP tool.
func Globs(name string) []string {
	if name == "" {
		return nil
	}
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return []string{name, "mcp__" + CanonicalPart(server) + "__" + CanonicalPart(tool)}
	}
	if strings.HasPrefix(name, "mcp__") {
		return []string{name}
	}
	return []string{name, "mcp__*__" + name}
}

// Canonical returns the canonical name of a tool written as server/tool; other
// names are unchanged.
func Canonical(name string) string {
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return "mcp__" + wordName(server) + "__" + wordName(tool)
	}
	return name
}

// wordName replaces all characters except word characters and hyphens.
func wordName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (IsWord(byte(r)) || r == '-') {
			return r
		}
		return '_'
	}, s)
}

// CanonicalPart converts a server or tool name to a part of a canonical name. Glob
// characters are unchanged.
func CanonicalPart(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (IsWord(byte(r)) || strings.ContainsRune("-*?[]!", r)) {
			return r
		}
		return '_'
	}, s)
}

// IsWord reports whether c is a letter, a digit or an underscore.
func IsWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
