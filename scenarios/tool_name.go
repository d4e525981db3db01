package scenarios

import "strings"

// toolGlobs returns globs for the canonical names of a tool in a scenario. The name may be canonical, server/tool, or
// the bare name of an MCP tool.
func toolGlobs(name string) []string {
	if name == "" {
		return nil
	}
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return []string{name, "mcp__" + canonicalToolPart(server) + "__" + canonicalToolPart(tool)}
	}
	if strings.HasPrefix(name, "mcp__") {
		return []string{name}
	}
	return []string{name, "mcp__*__" + name}
}

// canonicalTool converts server/tool to the canonical name of the tool. Other names are returned unchanged.
func canonicalTool(name string) string {
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return "mcp__" + plainToolPart(server) + "__" + plainToolPart(tool)
	}
	return name
}

// plainToolPart replaces every character by "_", except word characters and hyphens.
func plainToolPart(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (isWordByte(byte(r)) || r == '-') {
			return r
		}
		return '_'
	}, s)
}

// canonicalToolPart converts the name of a server or tool to a part of a canonical name. It keeps the characters of
// globs.
func canonicalToolPart(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (isWordByte(byte(r)) || strings.ContainsRune("-*?[]!", r)) {
			return r
		}
		return '_'
	}, s)
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
