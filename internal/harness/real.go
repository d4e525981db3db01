package harness

import (
	"fmt"
	"strings"
)

// realLine is the end of a shim that runs the real claude: our server
// configurations go in front, where no other option can swallow them, unless a
// command of claude is called.
func (s Setup) realLine() string {
	var configs strings.Builder
	for _, c := range s.MCPConfig {
		configs.WriteString(" " + quote("--mcp-config="+c))
	}
	if configs.Len() == 0 {
		return fmt.Sprintf("exec %s \"$@\"\n", quote(s.Real))
	}
	return fmt.Sprintf("case \"${1-}\" in\n%s) exec %s \"$@\" ;;\nesac\nexec %s%s \"$@\"\n",
		strings.Join(realCommands(), "|"), quote(s.Real), quote(s.Real), configs.String())
}

// realCommands are the commands of claude that take no server configurations.
func realCommands() []string {
	return []string{"mcp", "agents", "auth", "auto-mode", "doctor", "gateway", "install", "plugin", "plugins", "project", "setup-token", "update", "upgrade"}
}
