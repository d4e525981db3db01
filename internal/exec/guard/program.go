package guard

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxExaminedCommandWords is how many words of a command are examined: the program, a few options, and an interpreter's script.
const maxExaminedCommandWords = 6

// realCLIFileCache caches which files are programs of the real CLI. The zero value is ready to use by one goroutine.
type realCLIFileCache struct{ isRealCLIByPath map[string]bool }

// realClaudeOfCommandLine returns the real claude that a command line runs, or "". words[0] is the program's path, relative to dir.
func (p *realCLIFileCache) realClaudeOfCommandLine(ownFiles ClaudelessFiles, words []string, dir string) string {
	if words[0] == "" {
		return ""
	}
	file := resolveFile(words[0], dir)
	if ownFiles.isSimulatorOrShim(words[0]) {
		return ""
	}
	if p.isRealCLIFile(ownFiles, file) {
		return file
	}
	if name := filepath.Base(file); strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so") || name == "ld.so" { // a dynamic loader runs the program in its arguments
		return p.realClaudeRunByDynamicLoader(ownFiles, words, dir)
	}
	if !slices.Contains([]string{"node", "nodejs", "bun", "deno", "sh", "bash", "dash"}, strings.TrimRight(filepath.Base(file), "0123456789.-")) {
		return "" // not the interpreter of a script that is one of its arguments
	}
	at := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") })
	if at < 0 || slices.Contains(words[1:at+1], "-c") || slices.Contains(words[1:at+1], "-e") {
		return ""
	}
	script := resolveFile(words[1+at], dir)
	isNamedLikeRealCLI := slices.ContainsFunc([]string{"claude", "cli.", "cli-wrapper."}, func(start string) bool { return strings.HasPrefix(filepath.Base(script), start) })
	if ownFiles.isSimulatorOrShim(words[1+at]) || !isNamedLikeRealCLI || !p.isRealCLIFile(ownFiles, script) {
		return ""
	}
	return script
}

// resolveFile returns the file that a path refers to, following links; empty means none.
func resolveFile(path, dir string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	file, _ := filepath.EvalSymlinks(path)
	return file
}

func (p *realCLIFileCache) realClaudeRunByDynamicLoader(ownFiles ClaudelessFiles, loaderCommandWords []string, dir string) string {
	for i := 1; i < len(loaderCommandWords); i++ {
		switch word := loaderCommandWords[i]; {
		case slices.Contains([]string{"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"}, word):
			i++
		case word == "--list" || word == "--verify" || ownFiles.isSimulatorOrShim(word):
			return ""
		case !strings.HasPrefix(word, "-"):
			return p.realClaudeOfCommandLine(ownFiles, append([]string{word}, loaderCommandWords[i+1:]...), dir)
		}
	}
	return ""
}

// isRealCLIFile reports whether a file is a program of the real CLI. It recognizes the program by path or by content.
func (p *realCLIFileCache) isRealCLIFile(ownFiles ClaudelessFiles, file string) bool {
	is, known := p.isRealCLIByPath[file]
	if known {
		return is
	}
	placed := IsInRealCLIInstallation(file) && !strings.Contains(file, "/vendor/")
	is = !ownFiles.isSimulatorOrShim(file) && (placed && !isClaudelessBinary(file) || hasRealCLISignature(file))
	if p.isRealCLIByPath == nil {
		p.isRealCLIByPath = map[string]bool{}
	}
	p.isRealCLIByPath[file] = is
	return is
}

// realCLISignature is a text that every build of the real CLI contains.
const realCLISignature = "(c) Anthropic PBC"

// hasRealCLISignature reports whether a file contains the signature of the real CLI. It searches the beginning of a
// script, and the section of the JavaScript engine in an ELF binary. Small binaries are not searched.
func hasRealCLISignature(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(file, head)
	if bytes.HasPrefix(head, []byte("#!")) {
		return bytes.Contains(head[:n], []byte(realCLISignature))
	}
	info, err := file.Stat()
	const least = 20 << 20 // a binary with an embedded engine is larger
	if err != nil || info.Size() < least {
		return false
	}
	program, err := elf.NewFile(file)
	if err != nil {
		return false
	}
	carried := program.Section(".bun")
	return carried != nil && readerContains(carried.Open(), realCLISignature)
}

func readerContains(r io.Reader, text string) bool {
	buf := make([]byte, 1<<20)
	kept := 0
	for {
		n, err := r.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], []byte(text)) {
			return true
		}
		if err != nil {
			return false
		}
		end := kept + n
		kept = copy(buf, buf[max(0, end-len(text)):end])
	}
}

// isClaudelessBinary reports whether a file is a build of claudeless, possibly installed instead of the real CLI.
func isClaudelessBinary(file string) bool {
	const most = 200 << 20 // a larger file is not a copy of this program, and reading it takes long
	if info, err := os.Stat(file); err != nil || info.Size() > most {
		return false
	}
	info, err := buildinfo.ReadFile(file)
	return err == nil && strings.HasPrefix(info.Path, "github.com/claudeless/claudeless")
}

// isModelVendorHost reports whether a host belongs to a vendor of models, such as Bedrock, or to a service of claude.
func isModelVendorHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	first, _, _ := strings.Cut(host, ".")
	isAtOrBelow := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	switch {
	case slices.ContainsFunc([]string{"anthropic.com", "claude.ai", "claude.com", "claudeusercontent.com"}, isAtOrBelow):
		return true
	case strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".api.aws"):
		return strings.HasPrefix(first, "bedrock")
	case strings.HasSuffix(host, ".googleapis.com"):
		return first == "aiplatform" || strings.HasSuffix(first, "-aiplatform")
	}
	return strings.HasSuffix(host, ".services.ai.azure.com")
}

// isAnthropicAddrPort reports whether an address is in a network of Anthropic. Clouds do not count, because others use them.
func isAnthropicAddrPort(addr string) bool {
	at, _ := netip.ParseAddrPort(addr) // on an error, at is the zero address, which no network contains
	return slices.ContainsFunc([]string{"160.79.104.0/21", "2607:6bc0::/48"}, func(own string) bool {
		return netip.MustParsePrefix(own).Contains(at.Addr().Unmap())
	})
}

// IsInRealCLIInstallation reports whether a file is part of the real CLI, judged by its path.
func IsInRealCLIInstallation(path string) bool {
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

// ClaudelessFiles are the files that are named claude but are not a real claude: the binary that simulates claude, and the
// shims. A file with the marker of shims, see [IsShim], always counts as one of them.
type ClaudelessFiles struct {
	Executable string // the binary that plays claude
	ShimDir    string // directory of the shims
}

func (o ClaudelessFiles) isSimulatorOrShim(path string) bool {
	inside := o.ShimDir != "" && strings.HasPrefix(path, o.ShimDir+string(filepath.Separator))
	return path != "" && path == o.Executable || inside || filepath.IsAbs(path) && IsShim(path)
}
