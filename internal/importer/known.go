package importer

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/importer/session"
)

// readKnownSecrets reads secret values from files of the project and of its user. Missing and unreadable files are ignored.
func readKnownSecrets(p Environment, sessions []*session.Session) (environ, values []string) {
	dirs := []string{p.Dir}
	for _, s := range sessions {
		if s.CWD != "" && !slices.Contains(dirs, s.CWD) {
			dirs = append(dirs, s.CWD)
		}
	}
	k := &knownSecretReader{}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		for _, name := range []string{".env", ".env.local"} {
			k.readAssignments(readFileOrNil(dir, name))
		}
		for _, name := range []string{".mcp.json", ".claude/settings.json", ".claude/settings.local.json"} {
			k.readConfigSecrets(readFileOrNil(dir, name))
		}
		k.readGitConfig(readFileOrNil(dir, ".git/config"))
	}
	if p.Home != "" {
		k.readNetrc(readFileOrNil(p.Home, ".netrc"))
		k.readAssignments(readFileOrNil(p.Home, ".aws/credentials"))
		k.readConfigSecrets(readFileOrNil(p.Home, ".claude/settings.json"))
	}
	return k.environ, k.values
}

func readFileOrNil(dir, name string) []byte {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return data
}

type knownSecretReader struct{ environ, values []string }

// add records a value under its name, and also without the name unless [ordinaryValue] matches the value. Of a URL, add
// records only the password or, if there is none, a long user name.
func (k *knownSecretReader) add(name, value string) {
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
		if password, ok := u.User.Password(); ok {
			k.values = append(k.values, password)
		} else if u.User != nil && len(u.User.Username()) > 8 {
			k.values = append(k.values, u.User.Username())
		}
		return
	}
	k.environ = append(k.environ, name+"="+value)
	if !ordinaryValue().MatchString(value) {
		k.values = append(k.values, value)
	}
}

// ordinaryValue matches values that are not secrets: numbers, switches, paths, addresses without a password, words.
var ordinaryValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:.{0,7}|[A-Za-z]+|[a-z]+(?:[-_ .][a-z]+)*|[0-9.:]+|[~./$].*|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?)$`)
})

// readAssignments parses lines NAME=value, with or without quotes and export.
func (k *knownSecretReader) readAssignments(data []byte) {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		k.add(strings.TrimSpace(name), value)
	}
}

func (k *knownSecretReader) readConfigSecrets(data []byte) {
	type server struct{ Env, Headers map[string]string }
	var c struct {
		server
		MCPServers map[string]server
	}
	if json.Unmarshal(data, &c) != nil {
		return
	}
	servers := []server{c.server}
	for _, s := range c.MCPServers {
		servers = append(servers, s)
	}
	for _, s := range servers {
		for name, value := range s.Env {
			k.add(name, value)
		}
		for name, value := range s.Headers {
			if _, token, ok := strings.Cut(value, " "); ok {
				value = token
			}
			k.add(name, value)
		}
	}
}

var (
	gitRemote = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(?:push)?url\s*=\s*\w+://(?:[^\s:@/]*:)?([^\s:@/]+)@`)
	})
	gitHeader = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?mi)^\s*extraheader\s*=\s*.*?:\s*(?:\w+\s+)?(\S+)\s*$`)
	})
	netrcPass = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bpassword\s+(\S+)`) })
)

func (k *knownSecretReader) readGitConfig(data []byte) {
	for _, expr := range []*regexp.Regexp{gitRemote(), gitHeader()} {
		for _, m := range expr.FindAllSubmatch(data, -1) {
			if secret := string(m[1]); secret != "git" {
				k.values = append(k.values, secret)
			}
		}
	}
}

func (k *knownSecretReader) readNetrc(data []byte) {
	for _, m := range netrcPass().FindAllSubmatch(data, -1) {
		k.values = append(k.values, string(m[1]))
	}
}
