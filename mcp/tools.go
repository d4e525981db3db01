package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ShadowedTool is a tool that cannot be called because an earlier tool has the same canonical name.
type ShadowedTool struct {
	Name       string `json:"name"`   // canonical name
	Server     string `json:"server"` // raw name
	Tool       string `json:"tool"`   // raw name
	ShadowedBy string `json:"by"`     // raw name of the server whose tool is called instead
}

// toolCatalogue is the table of callable tools. Its keys are canonical names, which cannot be split into server and tool.
type toolCatalogue struct {
	changeCount   int64 // value of managerState.changeCount from which the table was built
	tools         []protocol.Tool
	owners        map[string]*server // by canonical name
	byName        map[string]int     // canonical name → index in tools
	shadowedTools []ShadowedTool
}

func newToolCatalogue(servers []*server, statusVersion int64) *toolCatalogue {
	c := &toolCatalogue{changeCount: statusVersion, owners: map[string]*server{}, byName: map[string]int{}}
	for _, s := range servers {
		st, _ := s.statusAndChangeSignal()
		if s.cfg.Name == "ide" { // connected, but its tools are not shown
			continue
		}
		for _, t := range st.lists.tools {
			if by := c.owners[t.Name]; by != nil {
				c.shadowedTools = append(c.shadowedTools, ShadowedTool{Name: t.Name, Server: t.Server, Tool: t.RawName, ShadowedBy: by.cfg.Name})
				continue
			}
			c.owners[t.Name], c.byName[t.Name] = s, len(c.tools)
			c.tools = append(c.tools, t)
		}
	}
	return c
}

func (c *toolCatalogue) logHiddenTools(before *toolCatalogue, debug *sharedDebugLogOutput) {
	if before != nil && len(before.shadowedTools) == len(c.shadowedTools) {
		return
	}
	for _, h := range c.shadowedTools {
		debug.LogOfServer(h.Server).Printf("tool %q is hidden: %s is already a tool of %q", h.Tool, h.Name, h.ShadowedBy)
	}
}

// findTool finds a tool by its canonical name, by "server/tool" (raw names), or by its raw name; the first match wins.
func (c *toolCatalogue) findTool(canonicalOrRawName string) (protocol.Tool, bool) {
	if i, ok := c.byName[canonicalOrRawName]; ok {
		return c.tools[i], true
	}
	i := slices.IndexFunc(c.tools, func(t protocol.Tool) bool { return t.Server+"/"+t.RawName == canonicalOrRawName })
	if i < 0 {
		i = slices.IndexFunc(c.tools, func(t protocol.Tool) bool { return t.RawName == canonicalOrRawName })
	}
	if i < 0 {
		return protocol.Tool{}, false
	}
	return c.tools[i], true
}

func unresolvedToolError(name string, servers []*server) error {
	qualified := strings.HasPrefix(name, "mcp__") || strings.Contains(name, "/")
	for _, s := range servers {
		if !strings.HasPrefix(name, "mcp__"+protocol.NormalizeMCPNamePart(s.cfg.Name)+"__") && !strings.HasPrefix(name, s.cfg.Name+"/") {
			continue
		}
		switch st, _ := s.statusAndChangeSignal(); st.state {
		case StateConnected, StateLost:
			return fmt.Errorf("%w: %s", ErrUnknownTool, name)
		case StateDisabled:
			return fmt.Errorf("%w: %s", ErrDisabled, s.cfg.Name)
		default:
			return notConnectedError{s.cfg.Name}
		}
	}
	if qualified {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	return fmt.Errorf("%w: %s", ErrUnknownTool, name)
}
