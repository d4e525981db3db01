package executor

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

const mcpPrefix = "mcp__"

// ToolNameIndex maps the tool names of a scenario to canonical names. It is immutable, so many goroutines may use it.
type ToolNameIndex struct {
	toolsByCanonicalName       map[string]protocol.Tool
	canonicalByServerSlashTool map[string]string   // "server/tool" → canonical name
	canonicalByRawName         map[string][]string // raw MCP tool name → canonical names, in list order
	servers                    map[string]bool     // raw server names
}

// NewToolNameIndex indexes a list of tools. Of tools with the same name it uses the first.
func NewToolNameIndex(tools []protocol.Tool) *ToolNameIndex {
	x := &ToolNameIndex{toolsByCanonicalName: make(map[string]protocol.Tool, len(tools)), canonicalByServerSlashTool: make(map[string]string, len(tools)), canonicalByRawName: make(map[string][]string, len(tools)), servers: map[string]bool{}}
	for _, t := range tools {
		if _, ok := x.toolsByCanonicalName[t.Name]; ok {
			continue
		}
		x.toolsByCanonicalName[t.Name] = t
		if t.Server == "" && t.RawName == "" {
			continue
		}
		x.servers[t.Server] = true
		if key := t.Server + "/" + t.RawName; x.canonicalByServerSlashTool[key] == "" {
			x.canonicalByServerSlashTool[key] = t.Name
		}
		x.canonicalByRawName[t.RawName] = append(x.canonicalByRawName[t.RawName], t.Name)
	}
	return x
}

// Tool returns the tool with this canonical name.
func (x *ToolNameIndex) Tool(canonical string) (protocol.Tool, bool) {
	t, ok := x.toolsByCanonicalName[canonical]
	return t, ok
}

// Canonical is [ToolNameIndex.Resolve] without the warning.
func (x *ToolNameIndex) Canonical(written string) string {
	name, _ := x.Resolve(written)
	return name
}

// Resolve returns the canonical name of a tool that a scenario writes as "mcp__server__tool", "server/tool" or "tool". For a name without a
// server, Resolve prefers an MCP tool to a built-in one. If several servers have a tool with this name, it uses the first server, and warning
// names all of them. An unknown "server/tool" gets the canonical name that the tool would have. Any other unknown name is returned unchanged.
func (x *ToolNameIndex) Resolve(written string) (canonical, ambiguityWarning string) {
	if t, ok := x.toolsByCanonicalName[written]; ok && strings.HasPrefix(t.Name, mcpPrefix) {
		return written, ""
	}
	if name, ok := x.canonicalByServerSlashTool[written]; ok {
		return name, ""
	}
	if names := x.canonicalByRawName[written]; len(names) > 0 {
		if len(names) > 1 {
			ambiguityWarning = x.ambiguityWarning(written, names)
		}
		return names[0], ambiguityWarning
	}
	if _, ok := x.toolsByCanonicalName[written]; ok {
		return written, ""
	}
	if server, tool, ok := x.splitAtServerOrFirstSlash(written); ok {
		return mcpPrefix + protocol.NormalizeMCPNamePart(server) + "__" + protocol.NormalizeMCPNamePart(tool), ""
	}
	return written, ""
}

func (x *ToolNameIndex) ambiguityWarning(written string, names []string) string {
	servers := make([]string, len(names))
	for i, n := range names {
		servers[i] = x.toolsByCanonicalName[n].Server
	}
	return fmt.Sprintf("several servers offer the tool %q (%s); using that of %s (to choose a server, write for example %q)",
		written, strings.Join(servers, ", "), servers[0], servers[0]+"/"+written)
}

// splitAtServerOrFirstSlash splits "server/tool" after a known server, whose name may contain slashes, or else at the first slash.
func (x *ToolNameIndex) splitAtServerOrFirstSlash(written string) (server, tool string, ok bool) {
	for i := len(written) - 1; i > 0; i-- {
		if written[i] == '/' && x.servers[written[:i]] {
			return written[:i], written[i+1:], true
		}
	}
	server, tool, ok = strings.Cut(written, "/")
	return server, tool, ok && server != "" && tool != ""
}

// DisplayNames returns the names that hosts display for a call; differFromToolName is false if they display the tool's own
// name. For a tool that is not listed, only DisplayName is set.
func (x *ToolNameIndex) DisplayNames(use protocol.ToolUse) (displayNames protocol.ToolUseDisplayNames, differFromToolName bool) {
	if t, ok := x.toolsByCanonicalName[use.Name]; ok {
		if t.Server == "" && t.RawName == "" {
			return protocol.ToolUseDisplayNames{}, false
		}
		return protocol.ToolUseDisplayNames{ID: use.ID, DisplayName: DisplayName(t), ServerDisplayName: t.ServerTitle, ToolName: t.RawName}, true
	}
	name := use.Name
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		name = x.toolNameAfterServerPrefix(rest)
	}
	shown := displayNameFromRawToolName(name)
	if shown == use.Name {
		return protocol.ToolUseDisplayNames{}, false
	}
	return protocol.ToolUseDisplayNames{ID: use.ID, DisplayName: shown}, true
}

// toolNameAfterServerPrefix returns the tool in "server__tool". Because the name of a server may contain "__", several known
// servers may fit; the longest name is used.
func (x *ToolNameIndex) toolNameAfterServerPrefix(serverAndToolName string) string {
	longest := ""
	for server := range x.servers {
		if prefix := protocol.NormalizeMCPNamePart(server) + "__"; len(prefix) > len(longest) && strings.HasPrefix(serverAndToolName, prefix) {
			longest = prefix
		}
	}
	if longest != "" {
		return serverAndToolName[len(longest):]
	}
	if _, name, ok := strings.Cut(serverAndToolName, "__"); ok {
		return name
	}
	return serverAndToolName
}

// DisplayName returns the title in the tool's annotations or, without one, the readable form of its name. It ignores
// the tool's top-level title (observed with 2.1.329).
func DisplayName(t protocol.Tool) string {
	var hints struct{ Title string }
	if len(t.Annotations) > 0 && json.Unmarshal(t.Annotations, &hints) == nil && hints.Title != "" {
		return hints.Title
	}
	if t.RawName != "" {
		return displayNameFromRawToolName(t.RawName)
	}
	return t.Name
}

// displayNameFromRawToolName converts a raw tool name to the form that the real CLI displays: get-sum_of_two to Get-Sum Of Two.
func displayNameFromRawToolName(rawToolName string) string {
	b := []byte(strings.ReplaceAll(protocol.NormalizeMCPNamePart(rawToolName), "_", " "))
	for i, c := range b {
		if (i == 0 || b[i-1] == ' ' || b[i-1] == '-') && 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
