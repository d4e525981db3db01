package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/importer/session"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// Placeholders for directories in recorded texts. In the scenario they become templates such as {{ cwd }}. Where
// templates are not supported, they become plain words.
const (
	HomePlaceholder = "\uE100"
	CWDPlaceholder  = "\uE101"
)

// CurrentEnvironment describes the environment in which the import runs.
type CurrentEnvironment struct {
	Dir     string   // working directory
	Home    string   // home directory of the user
	Environ []string // K=V
}

// RedactionCount counts the replacements of one kind.
type RedactionCount struct {
	Kind       string `json:"kind"`
	Times      int    `json:"times"`
	FirstPlace string `json:"first"` // file:line
}

// Redactor replaces secrets and personal data in sessions. Equal values get equal replacements. The types of blocks and
// the decisions about calls do not change.
type Redactor struct {
	redact               *redact.Redactor
	numberedPlaceholders redact.NumberedPlaceholders
	currentPlace         session.Place
	seen                 []RedactionCount
}

// Placeholder implements [redact.PlaceholderMaker].
func (h *Redactor) Placeholder(kind, secret string) string {
	i := slices.IndexFunc(h.seen, func(s RedactionCount) bool { return s.Kind == kind })
	if i < 0 {
		h.seen = append(h.seen, RedactionCount{Kind: kind, FirstPlace: h.currentPlace.String()})
		i = len(h.seen) - 1
	}
	h.seen[i].Times++
	switch kind {
	case "HOME":
		return HomePlaceholder
	case "CWD":
		return CWDPlaceholder
	}
	return h.numberedPlaceholders.Placeholder(kind, secret)
}

// Report returns the replacements by kind.
func (h *Redactor) Report() []RedactionCount {
	slices.SortFunc(h.seen, func(a, b RedactionCount) int { return strings.Compare(a.Kind, b.Kind) })
	return h.seen
}

var accountHomePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/home|/Users|/var/home)/([^/]+)|^/root\b|^[A-Za-z]:\\Users\\([^\\]+)`)
})

// NewRedactorReadingSecretFiles returns a Redactor that knows secrets in the environment and the sessions, and recognizes others by form.
func NewRedactorReadingSecretFiles(environment CurrentEnvironment, sessions []*session.Session) *Redactor {
	h := &Redactor{}
	host, _ := os.Hostname() // an unknown name cannot be redacted
	p := redact.PersonalData{Hosts: []string{cmp.Or(proc.Getenv(environment.Environ, "HOSTNAME"), host)}}
	environ := slices.Clone(environment.Environ)
	homes := []string{environment.Home}
	for _, s := range sessions {
		p.CWDs = append(p.CWDs, s.CWD)
		p.IDs = append(p.IDs, s.IDs...)
		environ = append(environ, s.Environ...)
		homes = append(homes, proc.Getenv(s.Environ, "HOME"))
		for _, file := range append([]string{s.CWD}, s.Files...) {
			if abs, err := filepath.Abs(file); err == nil {
				homes = append(homes, accountHomePattern().FindString(abs))
			}
		}
	}
	for _, home := range homes {
		if home == "" || home == "/" || home == "/root" {
			continue
		}
		p.Homes = append(p.Homes, home)
		p.Users = append(p.Users, path.Base(filepath.ToSlash(home)))
	}
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		p.Users = append(p.Users, proc.Getenv(environ, name))
	}
	more, values := readSecretsFromFiles(environment, sessions)
	h.redact = redact.New(redact.Options{Environ: append(environ, more...), Values: values, Personal: &p, Label: h})
	return h
}

// RedactSessions replaces secrets in the sessions.
func (h *Redactor) RedactSessions(sessions []*session.Session) {
	for _, s := range sessions {
		for _, p := range s.Prompts {
			h.currentPlace = p.At
			p.Text = h.redact.String(p.Text)
			for i := range p.Hooks {
				p.Hooks[i].Name = h.redact.String(p.Hooks[i].Name)
			}
			h.redactMessages(p.Messages)
		}
		for i, name := range s.Tools {
			s.Tools[i] = h.redact.String(name)
		}
	}
}

func (h *Redactor) redactMessages(messages []*session.Message) {
	for _, m := range messages {
		h.currentPlace = m.At
		if m.Failure != nil {
			m.Failure.Text = h.redact.String(m.Failure.Text)
		}
		h.redactTexts(m)
		for i := range m.Blocks {
			if c := m.Blocks[i].Call; c != nil {
				h.redactCall(c)
			}
		}
	}
}

// redactTexts redacts the text blocks of a message. They are joined first, because a secret may be split between two.
func (h *Redactor) redactTexts(m *session.Message) {
	var joined strings.Builder
	var starts, which []int
	for i, b := range m.Blocks {
		if b.Call == nil {
			starts, which = append(starts, joined.Len()), append(which, i)
			joined.WriteString(b.Text)
		}
	}
	whole := joined.String()
	if len(which) < 2 {
		for _, i := range which {
			m.Blocks[i].Text = h.redact.String(whole)
		}
		return
	}
	type split struct {
		redact.Finding

		name string
	}
	var splits []split // secrets that begin in one text and end in another
	for _, f := range h.redact.Find(whole) {
		n, _ := slices.BinarySearch(starts, f.Start+1) // index of the text after the one in which the secret begins
		if f.Certain && n < len(starts) && f.End > starts[n] {
			splits = append(splits, split{f, h.Placeholder(f.Kind, whole[f.Start:f.End])})
		}
	}
	for n, i := range which {
		at, end := starts[n], len(whole)
		if n+1 < len(starts) {
			end = starts[n+1]
		}
		var b strings.Builder
		for _, s := range splits {
			if s.End <= at || s.Start >= end {
				continue
			}
			if s.Start >= at {
				b.WriteString(whole[at:s.Start] + s.name)
			}
			at = min(s.End, end)
		}
		m.Blocks[i].Text = h.redact.String(b.String() + whole[at:end])
	}
}

func (h *Redactor) redactCall(c *session.Call) {
	h.currentPlace = c.At
	c.Tool, c.Input = h.redact.String(c.Tool), h.redact.JSON(c.Input)
	if c.Result != nil {
		h.currentPlace = c.Result.At
		c.Result.Text = h.redact.String(c.Result.Text)
		if c.Result.Raw != nil {
			c.Result.Raw = h.redact.JSON(c.Result.Raw)
		}
		if f := c.Result.File; f != nil {
			f.Path, f.Content = h.redact.String(f.Path), h.redact.String(f.Content)
		}
	}
	if c.Agent != nil {
		c.Agent.Prompt = h.redact.String(c.Agent.Prompt)
		h.redactMessages(c.Agent.Messages)
	}
}

// FindSecretsInFiles lists the secrets in files: values known from the environment, and strings that have the form of a secret and
// cannot be anything else. A file that cannot be read is an error, but the others are still checked.
func FindSecretsInFiles(files []string, p CurrentEnvironment) ([]Leak, error) {
	more, values := readSecretsFromFiles(p, nil)
	r := redact.New(redact.Options{Environ: append(slices.Clone(p.Environ), more...), Values: values})
	var all []Leak
	var errs []error
	for _, name := range files {
		leaks, err := findSecretsInFile(name, name, r)
		all, errs = append(all, leaks...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// readSecretsFromFiles reads secrets from files of the project and its user. It ignores unreadable files.
func readSecretsFromFiles(p CurrentEnvironment, sessions []*session.Session) (namedValues, secretValues []string) {
	dirs := []string{p.Dir}
	for _, s := range sessions {
		if s.CWD != "" && !slices.Contains(dirs, s.CWD) {
			dirs = append(dirs, s.CWD)
		}
	}
	k := &secretsFromFilesReader{}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		for _, name := range []string{".env", ".env.local"} {
			k.readAssignments(readFileOrNil(dir, name))
		}
		for _, name := range []string{".mcp.json", ".claude/settings.json", ".claude/settings.local.json"} {
			k.readSecretsOfConfig(readFileOrNil(dir, name))
		}
		k.readSecretsOfGitConfig(readFileOrNil(dir, ".git/config"))
	}
	if p.Home != "" {
		for _, m := range netrcPasswordPattern().FindAllSubmatch(readFileOrNil(p.Home, ".netrc"), -1) {
			k.secretValues = append(k.secretValues, string(m[1]))
		}
		k.readAssignments(readFileOrNil(p.Home, ".aws/credentials"))
		k.readSecretsOfConfig(readFileOrNil(p.Home, ".claude/settings.json"))
	}
	return k.namedValues, k.secretValues
}

func readFileOrNil(dir, name string) []byte {
	data, _ := os.ReadFile(filepath.Join(dir, name)) // a file that cannot be read has no known secrets
	return data
}

type secretsFromFilesReader struct{ namedValues, secretValues []string }

// addSecretUnlessOrdinary records a value and its name, which may show that it is secret. A value that does not match
// [ordinaryValuePattern] counts as a secret. From a URL, only the password is recorded. Without a password, a user name
// of more than eight characters is recorded.
func (k *secretsFromFilesReader) addSecretUnlessOrdinary(variableOrHeaderName, value string) {
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
		if password, ok := u.User.Password(); ok {
			k.secretValues = append(k.secretValues, password)
		} else if u.User != nil && len(u.User.Username()) > 8 {
			k.secretValues = append(k.secretValues, u.User.Username())
		}
		return
	}
	k.namedValues = append(k.namedValues, variableOrHeaderName+"="+value)
	if !ordinaryValuePattern().MatchString(value) {
		k.secretValues = append(k.secretValues, value)
	}
}

// ordinaryValuePattern matches values that are not secrets: numbers, switches, paths, addresses without a password, words.
var ordinaryValuePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:.{0,7}|[A-Za-z]+|[a-z]+(?:[-_ .][a-z]+)*|[0-9.:]+|[~./$].*|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?)$`)
})

// readAssignments parses lines NAME=value, with or without quotes and export.
func (k *secretsFromFilesReader) readAssignments(data []byte) {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		k.addSecretUnlessOrdinary(strings.TrimSpace(name), value)
	}
}

func (k *secretsFromFilesReader) readSecretsOfConfig(configJSON []byte) {
	type server struct{ Env, Headers map[string]string }
	var c struct {
		server
		MCPServers map[string]server
	}
	if json.Unmarshal(configJSON, &c) != nil {
		return
	}
	for _, s := range slices.AppendSeq([]server{c.server}, maps.Values(c.MCPServers)) {
		for name, value := range s.Env {
			k.addSecretUnlessOrdinary(name, value)
		}
		for name, value := range s.Headers {
			if _, token, ok := strings.Cut(value, " "); ok {
				value = token
			}
			k.addSecretUnlessOrdinary(name, value)
		}
	}
}

var (
	gitRemoteURLCredentialPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(?:push)?url\s*=\s*\w+://(?:[^\s:@/]*:)?([^\s:@/]+)@`)
	})
	gitExtraHeaderPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?mi)^\s*extraheader\s*=\s*.*?:\s*(?:\w+\s+)?(\S+)\s*$`)
	})
	netrcPasswordPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bpassword\s+(\S+)`) })
)

func (k *secretsFromFilesReader) readSecretsOfGitConfig(gitConfig []byte) {
	for _, expr := range []*regexp.Regexp{gitRemoteURLCredentialPattern(), gitExtraHeaderPattern()} {
		for _, m := range expr.FindAllSubmatch(gitConfig, -1) {
			if secret := string(m[1]); secret != "git" {
				k.secretValues = append(k.secretValues, secret)
			}
		}
	}
}
