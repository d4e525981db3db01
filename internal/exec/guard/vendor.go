package guard

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// isVendorHost reports whether a host belongs to a vendor of models or to the services of claude.
func isVendorHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, domain := range []string{"anthropic.com", "claude.ai", "claude.com", "claudeusercontent.com"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	first, _, _ := strings.Cut(host, ".")
	switch {
	case strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".api.aws"):
		return strings.HasPrefix(first, "bedrock")
	case strings.HasSuffix(host, ".googleapis.com"):
		return first == "aiplatform" || strings.HasSuffix(first, "-aiplatform")
	}
	return strings.HasSuffix(host, ".services.ai.azure.com")
}

// isVendorAddr reports whether an address with a port is in a network that only Anthropic uses. Networks of clouds are
// not among them.
func isVendorAddr(addr string) bool {
	at, _ := netip.ParseAddrPort(addr) // on an error, at is the zero address, which no network contains
	for _, own := range []string{"160.79.104.0/21", "2607:6bc0::/48"} {
		if netip.MustParsePrefix(own).Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// IsRealCLI reports whether a file is part of the real CLI, judged by its path.
func IsRealCLI(path string) bool {
	path = filepath.ToSlash(path)
	return strings.Contains(path, "/@anthropic-ai/claude-") || strings.Contains(path, "/.local/share/claude/versions/") ||
		strings.Contains(path, "/claude_agent_sdk/_bundled/")
}

// IsShim reports whether a file contains the marker of shims.
func IsShim(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(file, head)
	return (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) && bytes.Contains(head[:n], []byte("Made by claudeless"))
}

// OwnFiles are the files of a run that may have the name claude. The zero value contains only shims, of any run.
type OwnFiles struct {
	Self    string // the binary that plays claude
	ShimDir string // directory of the shims
}

func (o OwnFiles) contains(path string) bool {
	inside := o.ShimDir != "" && strings.HasPrefix(path, o.ShimDir+string(filepath.Separator))
	return path != "" && path == o.Self || inside || filepath.IsAbs(path) && IsShim(path)
}
